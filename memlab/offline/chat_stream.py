"""A completion as server-sent events."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from memlab.tokens import encode, get_encoding


class _Choice(Protocol):
    @property
    def text(self) -> str | None: ...
    @property
    def tool_calls(self) -> tuple[dict[str, Any], ...]: ...
    @property
    def finish_reason(self) -> str: ...


def stream_chunks(head: dict[str, Any], choices: Sequence[_Choice], usage: dict[str, Any] | None) -> Iterator[bytes]:
    """The events of a streamed completion, in the API's order.

    For each choice: its role, its text or tool calls piece by piece, its finish reason. Then, when `usage` is
    given, a chunk with no choices that carries it (the others carry null), and `[DONE]`.
    """
    head = {**head, "object": "chat.completion.chunk"}
    nothing = {} if usage is None else {"usage": None}
    for index, choice in enumerate(choices):
        for delta in _deltas(choice):
            yield _event({**head, "choices": [_piece(index, delta, None)], **nothing})
        yield _event({**head, "choices": [_piece(index, {}, choice.finish_reason)], **nothing})
    if usage is not None:
        yield _event({**head, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _piece(index: int, delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _event(chunk: dict[str, Any]) -> bytes:
    data = json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
    return f"data: {data}\n\n".encode("utf-8", "replace")


def _deltas(choice: _Choice) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None if choice.tool_calls else "", "refusal": None}
    for piece in split_tokens(choice.text or ""):
        yield {"content": piece}
    for index, call in enumerate(choice.tool_calls):
        yield {"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]}
        for piece in split_tokens(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def split_tokens(text: str) -> Iterator[str]:
    """The text of each token; a character that spans tokens comes with the last of them.

    >>> list(split_tokens("我叫张三"))
    ['我', '叫', '张', '三']
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    encoding = get_encoding("o200k_base")
    for token in encode(text):
        piece = decoder.decode(encoding.decode_single_token_bytes(token))
        if piece:
            yield piece
