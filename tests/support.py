"""Shared parts of the tests: endpoints that answer from a script, reached through the official client."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import numpy as np
import openai
from hypothesis import settings

from memlab import Agent, OpenAIChatCompletionClient, OpenAIEmbedder, ToolCall

settings.register_profile("memlab", deadline=None)  # how long an example takes depends on the machine
settings.load_profile("memlab")

URL = "http://scripted.invalid/v1"


def stable_id(value: object) -> str:
    """The id of a test's parameter: its text without addresses and random ids, which differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+|[0-9a-f]{32}|datetime\([^)]*\)", "", str(value))


def call(name: str, call_id: str = "call_1", /, **arguments: Any) -> ToolCall:
    """A tool call, as a reply of a `ScriptedEndpoint`."""
    return ToolCall(call_id, name, json.dumps(arguments, ensure_ascii=False))


def failure(status: int, code: str | None = None, headers: dict[str, str] | None = None) -> httpx2.Response:
    """An error in the API's shape."""
    body = {"error": {"message": "no", "type": "error", "param": None, "code": code}}
    return httpx2.Response(status, json=body, headers=headers)


class ScriptedEndpoint:
    """Plays `replies`, one a request, and keeps the `requests`. When they are used up, it answers "ok".

    A reply is a text, a ToolCall, a list of them, a whole response, or a (coroutine) function of the request
    that returns one of these. `open_streams` counts the streams that nobody closed yet.
    """

    def __init__(self, *replies: Any, usage: bool = True) -> None:
        self.replies, self.usage = list(replies), usage
        self.requests: list[dict[str, Any]] = []
        self.open_streams = 0

    async def handle(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.requests.append(body)
        reply = self.replies.pop(0) if self.replies else "ok"
        if callable(reply):
            reply = reply(body)
        if inspect.isawaitable(reply):
            reply = await reply
        if isinstance(reply, httpx2.Response):
            return reply
        if body.get("stream"):
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=_Events(self, reply))
        return httpx2.Response(200, json=self._whole(body, reply))

    def _whole(self, body: dict[str, Any], reply: Any) -> dict[str, Any]:
        text, calls = _parts(reply)
        choice = {"index": 0, "message": {"role": "assistant", "content": text, "tool_calls": calls or None}}
        choice["finish_reason"] = "tool_calls" if calls else "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12} if self.usage else None
        return _envelope("chat.completion", [choice], usage)

    @property
    def client(self) -> OpenAIChatCompletionClient:
        """A chat client on this endpoint."""
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self.handle), trust_env=False)
        official = openai.AsyncOpenAI(api_key="x", base_url=URL, http_client=http, max_retries=0)
        return OpenAIChatCompletionClient("classroom-128k", async_client=official)

    def agent(self, **options: Any) -> Agent:
        """An agent on this endpoint."""
        return Agent(self.client, **options)

    def sent(self, request: int = -1) -> list[tuple[str, str]]:
        """The (role, content) pairs of one request."""
        return [(message["role"], message["content"]) for message in self.requests[request]["messages"]]


class _Events(httpx2.AsyncByteStream):
    """A streamed answer: one event a word, or a piece of a tool call; at last the usage."""

    def __init__(self, endpoint: ScriptedEndpoint, reply: Any) -> None:
        self.endpoint, self.reply = endpoint, reply
        endpoint.open_streams += 1

    async def __aiter__(self) -> AsyncIterator[bytes]:
        text, calls = _parts(self.reply)
        for piece in (text or "").split(" ") if text else []:
            yield _event({"content": piece + " "})
        for index, made in enumerate(calls):
            name, arguments = made["function"]["name"], made["function"]["arguments"]
            yield _event({"tool_calls": [{**made, "index": index, "function": {"name": name, "arguments": ""}}]})
            for piece in (arguments[:3], arguments[3:]):
                yield _event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield _event({}, "tool_calls" if calls else "stop")
        if self.endpoint.usage:
            usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
            yield _line(_envelope("chat.completion.chunk", [], usage))
        yield b"data: [DONE]\n\n"

    async def aclose(self) -> None:
        self.endpoint.open_streams -= 1


def _parts(reply: Any) -> tuple[str | None, list[dict[str, Any]]]:
    if isinstance(reply, str):
        return reply, []
    calls = reply if isinstance(reply, list) else [reply]
    return None, [
        {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls
    ]


def _envelope(kind: str, choices: list[dict[str, Any]], usage: dict[str, int] | None) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "scripted", "choices": choices, "usage": usage}


def _event(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return _line(_envelope("chat.completion.chunk", [choice], None))


def _line(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()


def word_vector(text: str, dimensions: int = 8) -> list[float]:
    """A vector that depends on the text alone."""
    seed = sum(ord(character) * (i + 1) for i, character in enumerate(text))
    return np.random.default_rng(seed).normal(size=dimensions).tolist()


class EmbeddingEndpoint:
    """Answers embedding requests with `word_vector`s, in reverse order, after the scripted `failures`."""

    def __init__(self, *failures: httpx2.Response, usage: bool = True) -> None:
        self.failures, self.usage = list(failures), usage
        self.requests: list[dict[str, Any]] = []
        self.waits: list[float] = []
        self.change: Callable[[dict[str, Any]], Any] = lambda answer: answer

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.requests.append(body)
        if self.failures:
            return self.failures.pop(0)
        texts, size = body["input"], body.get("dimensions", 8)
        rows = [{"object": "embedding", "index": i, "embedding": word_vector(t, size)} for i, t in enumerate(texts)]
        answer: dict[str, Any] = {"object": "list", "data": rows[::-1], "model": body["model"]}
        if self.usage:
            answer["usage"] = {"prompt_tokens": 3 * len(texts), "total_tokens": 3 * len(texts)}
        return httpx2.Response(200, json=self.change(answer))

    def embedder(self, model: str = "test-embedding", dimensions: int | None = None, **options: Any) -> OpenAIEmbedder:
        """An embedder on this endpoint. It does not sleep: `waits` keeps the seconds it would have."""
        http = httpx2.Client(transport=httpx2.MockTransport(self.handle), trust_env=False)
        official = openai.OpenAI(api_key="x", base_url=URL, http_client=http)
        return OpenAIEmbedder(official, model, dimensions, sleep=self.waits.append, **options)
