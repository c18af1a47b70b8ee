"""The endpoint in process: a transport for the official client, with no socket and no port.

openai.AsyncOpenAI(base_url=OFFLINE_URL, api_key="offline", http_client=async_http_client())
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import anyio
import anyio.to_thread
import httpx2

from memlab.offline.dispatch import Reply, dispatch

OFFLINE_URL = "http://offline.invalid/v1"  # never looked up; `.invalid` can't exist, should it ever be


class OfflineTransport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Hands each request to `dispatch`; serves sync and async clients."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = request.read()
        return _to_response(dispatch(request.method, request.url.path, request.headers, body))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        path = request.url.path
        if path.endswith("/embeddings"):  # milliseconds to seconds of work: keep the event loop free
            reply = await anyio.to_thread.run_sync(dispatch, request.method, path, request.headers, body)
        else:
            reply = dispatch(request.method, path, request.headers, body)
        return _to_response(reply)


class _EventStream(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """Events one by one; between two of them other tasks get their turn."""

    def __init__(self, events: Iterator[bytes]) -> None:
        self._events = events

    def __iter__(self) -> Iterator[bytes]:
        yield from self._events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self._events:
            yield event
            await anyio.sleep(0)


def _to_response(reply: Reply) -> httpx2.Response:
    if isinstance(reply.body, bytes):
        return httpx2.Response(reply.status, headers=reply.headers, content=reply.body)
    return httpx2.Response(reply.status, headers=reply.headers, stream=_EventStream(reply.body))


def sync_http_client() -> httpx2.Client:
    """An HTTP client for `openai.OpenAI(http_client=…)`. Proxy variables can't lead it to the network."""
    return httpx2.Client(transport=OfflineTransport(), trust_env=False)


def async_http_client() -> httpx2.AsyncClient:
    """An HTTP client for `openai.AsyncOpenAI(http_client=…)`; make one per event loop."""
    return httpx2.AsyncClient(transport=OfflineTransport(), trust_env=False)
