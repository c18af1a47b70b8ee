"""How the port answers one HTTP request."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import tornado.web
from tornado.iostream import StreamClosedError

from memlab.offline.api_errors import ApiError
from memlab.offline.dispatch import Reply, check_key, dispatch, error_reply

if TYPE_CHECKING:
    from memlab.offline.server import Server

log = logging.getLogger("memlab.offline.server")


@tornado.web.stream_request_body
class Handler(tornado.web.RequestHandler):
    """Gathers the body, answers in a worker thread, sends the reply: the event loop only moves bytes."""

    def initialize(self, server: Server) -> None:
        self.server = server
        self.body = bytearray()
        self.too_large = False

    def prepare(self) -> None:
        length = self.request.headers.get("Content-Length", "0")
        self.too_large = length.isdecimal() and int(length) > self.server.max_body
        if self.too_large:  # answered at once: nobody wants to read the rest
            self._refuse_body()

    def data_received(self, chunk: bytes) -> None:
        if len(self.body) + len(chunk) > self.server.max_body:
            self.too_large = True
        if not self.too_large:
            self.body += chunk

    async def _serve(self, *args: str) -> None:
        self.server.active += 1
        try:
            await self._send(await self._answer())
        finally:
            self.server.active -= 1

    get = post = put = patch = delete = options = head = _serve

    async def _answer(self) -> Reply:
        server, path = self.server, self.request.path
        try:
            if path == "/stats":
                check_key(self.request.headers, server.api_key)
                return _stats(server)
            server.count(path.rstrip("/"))
            if self.too_large:
                raise _body_too_large(server.max_body)
            check_key(self.request.headers, server.api_key)
            server.check_rate()
        except ApiError as error:
            return error_reply(error)
        request = (self.request.method or "", path, self.request.headers, bytes(self.body))
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(server.executor, dispatch, *request)
        except Exception:
            log.exception("The endpoint failed on %s %s", self.request.method, path)
            return _server_error()

    async def _send(self, reply: Reply) -> None:
        self.set_status(reply.status)
        self.clear_header("Server")
        for name, value in reply.headers.items():
            self.set_header(name, value)
        if isinstance(reply.body, bytes):
            self.finish(reply.body)
            return
        self.request.connection.stream.set_nodelay(True)  # type: ignore[union-attr]  # or each event waits 40 ms
        try:
            for event in reply.body:
                self.write(event)
                await self.flush()
                await asyncio.sleep(0)  # other requests get their turn
            self.finish()
        except StreamClosedError:
            log.debug("A client went away in the middle of a stream")

    def _refuse_body(self) -> None:
        self.server.count(self.request.path.rstrip("/"))
        self.set_header("connection", "close")
        self._finish_with(_body_too_large(self.server.max_body))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """What Tornado refuses by itself, such as an unknown method, in the API's shape."""
        self._finish_with(ApiError(f"{status_code}: {self._reason}", status=status_code))

    def _finish_with(self, error: ApiError) -> None:
        self.set_status(error.status)
        self.set_header("content-type", "application/json")
        self.finish(error.to_json())


def _stats(server: Server) -> Reply:
    body = json.dumps({"requests": server.counts, "total": sum(server.counts.values())})
    return Reply(200, {"content-type": "application/json"}, body.encode())


def _body_too_large(limit: int) -> ApiError:
    return ApiError(f"The request body is larger than {limit} bytes.", status=413, code="request_too_large")


def _server_error() -> Reply:
    return error_reply(ApiError("The server had an error.", status=500, kind="server_error"))
