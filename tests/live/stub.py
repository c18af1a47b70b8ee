"""A small OpenAI-compatible endpoint whose replies look different: `python tests/live/stub.py [PORT]`.

No usage, other ids, other wording, a stream of one chunk; vectors of 24 numbers, as floats whatever was asked,
rows in reverse. Asked to "hang up", it breaks off in the middle of its answer.
Anything that works here leans on the format, not on the classroom model.
"""

import hashlib
import json
import math
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODELS = ("stub-chat", "stub-vectors")
DIMENSIONS = 24


def answer(messages: list[dict[str, Any]]) -> str:
    """Says how much it read and nothing else: it never claims to know or not to know."""
    return f"[stub] Read {len(messages)} message(s)."


def vector(text: str) -> list[float]:
    """Letter pairs, hashed: texts that share letters are similar."""
    values = [0.01] * DIMENSIONS
    for pair in zip(text, text[1:] + " ", strict=True):
        values[hashlib.sha256("".join(pair).encode("utf-8", "replace")).digest()[0] % DIMENSIONS] += 1.0
    length = math.hypot(*values)
    return [value / length for value in values]


def embeddings(body: dict[str, Any]) -> dict[str, Any]:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    rows = [{"index": i, "embedding": vector(str(text)), "object": "embedding"} for i, text in enumerate(texts)]
    return {"object": "list", "model": "stub-vectors", "data": rows[::-1]}


def completion(body: dict[str, Any]) -> dict[str, Any]:
    """A whole answer, or, when streaming, the one chunk that carries it all."""
    part = {"role": "assistant", "content": answer(body["messages"])}
    choice = {"index": 0, "finish_reason": "stop", "delta" if body.get("stream") else "message": part}
    kind = "chat.completion.chunk" if body.get("stream") else "chat.completion"
    return {"id": "x/0001", "object": kind, "created": 1, "model": "stub-chat-build-7", "choices": [choice]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = 0

    def do_GET(self) -> None:
        if self.path == "/stats":
            self.send({"total": self.seen})
            return
        self.send({"object": "list", "data": [{"id": name, "object": "model", "created": 1} for name in MODELS]})

    def do_POST(self) -> None:
        Handler.seen += 1
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            self.send(embeddings(body))
        elif body.get("stream"):
            events = f"data: {json.dumps(completion(body))}\n\ndata: [DONE]\n\n"
            hangs_up = body["messages"][-1]["content"] == "hang up"
            self.send_bytes(events.encode(), "text/event-stream", missing=10 if hangs_up else 0)
        else:
            self.send(completion(body))

    def send(self, value: Any) -> None:
        self.send_bytes(json.dumps(value).encode(), "application/json")

    def send_bytes(self, data: bytes, kind: str, missing: int = 0) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) - missing])
        self.close_connection = bool(missing)

    def log_message(self, *args: Any) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever()
