"""The endpoint on a port, for any client: `memlab serve`, or in tests

with Server(port=0, api_key="…") as server:
    client = openai.OpenAI(base_url=server.url, api_key="…")
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import tornado.httpserver
import tornado.web
from tornado.netutil import bind_sockets

from memlab.errors import ConfigurationError
from memlab.offline.api_errors import ApiError
from memlab.offline.dispatch import PATHS
from memlab.offline.http_handler import Handler

BACKLOG = 1024  # a class that starts its cell at the same moment must not be turned away
MAX_BODY = 32 * 1024 * 1024  # bytes
DRAIN_SECONDS = 5.0


class Server:
    """The endpoint on a port, served by a background thread while the `with` block lasts.

    Parameters
        host, port: where to listen; port 0 takes a free one.
        api_key: when given, requests without it get a 401.
        rate_limit_every: every n-th API request is answered 429, with `Retry-After: retry_after` (seconds),
            to try a client's patience.
        max_body: the largest request body in bytes; a larger one gets a 413.

    `url` is the base URL for a client, `counts` the number of requests so far by path.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8765,
        api_key: str | None = None,
        *,
        rate_limit_every: int | None = None,
        retry_after: float = 1.0,
        max_body: int = MAX_BODY,
    ) -> None:
        self.host, self.port = host, port
        self.api_key = api_key
        self.rate_limit_every, self.retry_after = rate_limit_every, retry_after
        self.max_body = max_body
        self.active = 0  # requests being answered
        self.executor = ThreadPoolExecutor(max_workers=4, thread_name_prefix="memlab-endpoint")
        self._counts: Counter[str] = Counter()
        self._limited = 0
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    @property
    def url(self) -> str:
        """The base URL to give to a client; it ends in /v1."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1"

    @property
    def counts(self) -> dict[str, int]:
        """The number of requests received, by path; paths that don't exist are counted as "other"."""
        return dict(self._counts)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen and serve; returns when requests are answered. A port in use is a `ConfigurationError`."""
        try:
            sockets = bind_sockets(self.port, self.host, backlog=BACKLOG)
        except OSError as error:
            raise ConfigurationError(
                f"Can't listen on {self.host}:{self.port} ({error.strerror or error}). Is another server running? "
                "Choose another port, or 0 for a free one."
            ) from error
        self.port = sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(sockets)), daemon=True)
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Take no new requests, let those under way finish (up to 5 seconds), and close."""
        if self._thread and self._loop and self._stop and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        self.executor.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, sockets: list[Any]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = tornado.web.Application([(r".*", Handler, {"server": self})], log_function=lambda handler: None)
        # The handler's own limit answers 413; this one, which closes the connection, is the second line.
        http = tornado.httpserver.HTTPServer(app, max_body_size=2 * self.max_body + 2**20)
        http.add_sockets(sockets)
        self._ready.set()
        await self._stop.wait()
        http.stop()
        deadline = time.monotonic() + DRAIN_SECONDS
        while self.active and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        await http.close_all_connections()

    def count(self, path: str) -> None:
        """Count a request; called on the server's own thread only."""
        family = "/".join(path.split("/")[:3])  # /v1/models/{id} counts as /v1/models
        self._counts[path if path in PATHS else family if family in PATHS else "other"] += 1

    def check_rate(self) -> None:
        """Raise the API's 429 when this request's turn has come."""
        if self.rate_limit_every is None:
            return
        self._limited += 1
        if self._limited % self.rate_limit_every == 0:
            raise ApiError(
                f"Rate limit reached. Please try again in {self.retry_after}s.",
                status=429,
                kind="requests",
                code="rate_limit_exceeded",
                headers={"retry-after": str(self.retry_after)},
            )
