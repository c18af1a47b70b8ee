"""The meter: how many tokens went over the wire so far, and what they cost.

It reads the `usage` that the service reports, at the HTTP client, so that it sees every request, whoever makes it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from memlab import prices

if TYPE_CHECKING:
    import httpx2

_MODEL = re.compile(rb'"model"\s*:\s*"([^"]*)"')
_USAGE = re.compile(rb'"usage"\s*:\s*\{')
_KEPT = 4096  # bytes at each end of a body: most services put the usage last, some first


class Meter:
    """Counts requests and tokens by model.

    `requests`, `input_tokens` and `output_tokens` are counters by model name; `unreported` counts the requests
    whose answer carried no usage, whose tokens are therefore missing here.
    """

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.input_tokens: Counter[str] = Counter()
        self.output_tokens: Counter[str] = Counter()
        self.unreported = 0

    def cost_usd(self) -> float | None:
        """What was spent so far by the price table; None when a model has no price there."""
        costs = [prices.cost_usd(model, self.input_tokens[model], self.output_tokens[model]) for model in self.requests]
        return None if any(cost is None for cost in costs) else sum(cost for cost in costs if cost is not None)

    def add(self, model: str, body: bytes) -> None:
        """Count one answer by its body, of which both ends are enough."""
        self.requests[model] += 1
        found = list(_USAGE.finditer(body))
        if not found:
            self.unreported += 1
            return
        usage = body[found[-1].start() :]
        # Chat Completions and embeddings say prompt and completion, Responses says input and output.
        self.input_tokens[model] += _number(usage, b"(?:prompt|input)_tokens")
        self.output_tokens[model] += _number(usage, b"(?:completion|output)_tokens")

    def on_response(self, response: httpx2.Response) -> None:
        """An event hook for a synchronous HTTP client."""
        if not response.is_success or not (found := _MODEL.search(response.request.content)):
            return
        model = found[1].decode("utf-8", "replace")
        if response.is_stream_consumed:  # an answer made in this process is whole already
            self.add(model, response.content)
        else:
            response.stream = _recorder(response.stream, self, model)

    async def on_async_response(self, response: httpx2.Response) -> None:
        """An event hook for an asynchronous HTTP client."""
        self.on_response(response)


def _number(usage: bytes, name: bytes) -> int:
    found = re.search(rb'"' + name + rb'"\s*:\s*(\d+)', usage)
    return int(found[1]) if found else 0


def _recorder(stream: Any, meter: Meter, model: str) -> Any:
    import httpx2

    class Recorder(httpx2.SyncByteStream, httpx2.AsyncByteStream):
        """Passes a body on and remembers both ends."""

        start = end = b""

        def __iter__(self) -> Iterator[bytes]:
            for chunk in stream:
                self._note(chunk)
                yield chunk

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in stream:
                self._note(chunk)
                yield chunk

        def _note(self, chunk: bytes) -> None:
            room = _KEPT - len(self.start)
            self.start += chunk[:room]
            self.end = (self.end + chunk[room:])[-_KEPT:]

        def close(self) -> None:
            meter.add(model, self.start + self.end)
            stream.close()

        async def aclose(self) -> None:
            meter.add(model, self.start + self.end)
            await stream.aclose()

    return Recorder()
