"""Items of the Responses API: checking them, and making them the messages that the classroom model reads.

>>> to_messages(read_items([{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]))
[{'role': 'user', 'content': 'Hi'}]
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from memlab.offline.api_errors import ApiError, missing, wrong_type, wrong_value
from memlab.offline.models import read_object

Item = dict[str, Any]

_TYPES = ["message", "function_call", "function_call_output", "reasoning"]
_ROLES = ["assistant", "system", "developer", "user"]
_TEXT_OF_PART = {"input_text": "text", "output_text": "text", "refusal": "refusal"}
_INPUT_PARTS = ["input_text", "input_image", "input_file"]
_OUTPUT_PARTS = ["output_text", "refusal"]


# --- reading ---


def read_items(value: Any) -> list[Item]:
    """The items of a request's `input`: a string is a user's message, null is nothing."""
    if value is None:
        return []
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    if not isinstance(value, list):
        raise wrong_type("input", "one of a string or array of objects", value)
    for i, item in enumerate(value):
        _check_item(item, f"input[{i}]")
    return value


def _check_item(item: Any, param: str) -> None:
    kind = _kind(read_object(item, param))
    if kind not in _TYPES:
        raise wrong_value(f"{param}.type", kind, _TYPES)
    if kind == "message":
        _check_message(item, param)
    elif kind == "function_call":
        _check_strings(item, ("call_id", "name", "arguments"), param)
    elif kind == "function_call_output":
        _check_strings(item, ("call_id",), param)
        _check_content(item.get("output"), _INPUT_PARTS, f"{param}.output")


def _kind(item: Item) -> Any:
    kind = item.get("type")
    return "message" if kind is None else kind


def _check_message(item: Item, param: str) -> None:
    _check_strings(item, ("role",), param)
    if item["role"] not in _ROLES:
        raise wrong_value(f"{param}.role", item["role"], _ROLES)
    parts = _OUTPUT_PARTS if item["role"] == "assistant" else _INPUT_PARTS
    _check_content(item.get("content"), parts, f"{param}.content")


def _check_strings(item: Item, names: Iterable[str], param: str) -> None:
    for name in names:
        if item.get(name) is None:
            raise missing(f"{param}.{name}")
        if not isinstance(item[name], str):
            raise wrong_type(f"{param}.{name}", "a string", item[name])


def _check_content(content: Any, allowed: list[str], param: str) -> None:
    if content is None:
        raise missing(param)
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise wrong_type(param, "one of a string or array of objects", content)
    for i, part in enumerate(content):
        _check_part(read_object(part, f"{param}[{i}]"), allowed, f"{param}[{i}]")


def _check_part(part: Item, allowed: list[str], param: str) -> None:
    kind = part.get("type")
    if kind is None:
        raise missing(f"{param}.type")
    if kind not in allowed:
        raise wrong_value(f"{param}.type", kind, allowed)
    if kind in _TEXT_OF_PART:
        _check_strings(part, (_TEXT_OF_PART[kind],), param)


# --- items to messages ---


def to_messages(items: Iterable[Item]) -> list[dict[str, Any]]:
    """The items as chat messages: calls in a row are one message, followed by the results of those calls.

    Reasoning items are left out. Raises the API's error for a call without its output, or the other way round.
    """
    told = [item for item in items if _kind(item) != "reasoning"]
    outputs = _outputs(told)
    messages: list[dict[str, Any]] = []
    for kind, group in groupby(told, key=_kind):
        if kind == "message":
            messages += [_message(item) for item in group]
        elif kind == "function_call":
            messages += _calls_and_results(list(group), messages, outputs)
    if left := [call_id for call_id, waiting in outputs.items() if waiting]:
        raise ApiError(f"No tool call found for function call output with call_id {left[0][:100]}.", param="input")
    return messages


def _outputs(items: Iterable[Item]) -> dict[str, deque[Any]]:
    outputs: dict[str, deque[Any]] = defaultdict(deque)
    for item in items:
        if _kind(item) == "function_call_output":
            outputs[item["call_id"]].append(item["output"])
    return outputs


def _calls_and_results(
    calls: list[Item], messages: list[dict[str, Any]], outputs: dict[str, deque[Any]]
) -> Iterator[dict[str, Any]]:
    # What the model said right before its calls was said with them: one message, as in Chat Completions.
    together = bool(messages) and messages[-1]["role"] == "assistant"
    said = messages.pop() if together else {"role": "assistant", "content": None}
    yield {**said, "tool_calls": [_call(item) for item in calls]}
    for item in calls:
        if not outputs[item["call_id"]]:
            raise ApiError(f"No tool output found for function call {item['call_id'][:100]}.", param="input")
        output = outputs[item["call_id"]].popleft()
        yield {"role": "tool", "tool_call_id": item["call_id"], "content": _content(output)}


def _call(item: Item) -> dict[str, Any]:
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def _message(item: Item) -> dict[str, Any]:
    return {"role": item["role"], "content": _content(item["content"])}


def _content(content: str | list[Item]) -> str | list[Item]:
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content]
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _part(part: Item) -> Item:
    kind = part["type"]
    if kind in ("input_text", "output_text"):
        return {"type": "text", "text": part["text"]}
    if kind == "refusal":
        return {"type": "refusal", "refusal": part["refusal"]}
    if kind == "input_image":
        return {"type": "image_url", "image_url": {"url": part.get("image_url") or part.get("file_id")}}
    return {"type": "file", "file": {name: value for name, value in part.items() if name != "type"}}
