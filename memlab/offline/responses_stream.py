"""A response as the typed events of the Responses API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from memlab.offline.chat_stream import split_tokens

Event = tuple[str, dict[str, Any]]  # its type without "response.", and its fields


def stream_events(response: dict[str, Any], on_end: Callable[[], None]) -> Iterator[bytes]:
    """The events of a response, numbered, in the API's order; `on_end` is called before the last of them."""
    numbers = count()
    pending: dict[str, Any] = {
        "status": "in_progress",
        "output": [],
        "usage": None,
        "completed_at": None,
        "incomplete_details": None,
    }
    started = {**response, **pending}
    yield _line(("created", {"response": started}), next(numbers))
    yield _line(("in_progress", {"response": started}), next(numbers))
    for index, item in enumerate(response["output"]):
        for event in _item_events(index, item):
            yield _line(event, next(numbers))
    on_end()
    yield _line((response["status"], {"response": response}), next(numbers))


def _line(event: Event, number: int) -> bytes:
    kind, fields = event
    # The number goes before the response, whose last field is the usage: a meter looks for it at the end.
    data = {"type": f"response.{kind}", "sequence_number": number, **fields}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"event: response.{kind}\ndata: {text}\n\n".encode("utf-8", "replace")


def _item_events(index: int, item: dict[str, Any]) -> Iterator[Event]:
    place = {"output_index": index, "item_id": item["id"]}
    nothing: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
    yield "output_item.added", {"output_index": index, "item": {**item, "status": "in_progress", **nothing}}
    if item["type"] == "message":
        yield from _text_events(place, item["content"][0])
    else:
        for piece in split_tokens(item["arguments"]):
            yield "function_call_arguments.delta", {**place, "delta": piece}
        yield "function_call_arguments.done", {**place, "name": item["name"], "arguments": item["arguments"]}
    yield "output_item.done", {"output_index": index, "item": item}


def _text_events(place: dict[str, Any], part: dict[str, Any]) -> Iterator[Event]:
    place = {**place, "content_index": 0}
    yield "content_part.added", {**place, "part": {**part, "text": ""}}
    for piece in split_tokens(part["text"]):
        yield "output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "content_part.done", {**place, "part": part}
