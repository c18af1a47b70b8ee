"""Checking the messages of a Chat Completions request."""

from __future__ import annotations

from typing import Any

from memlab.offline.api_errors import ApiError, empty_array, missing, wrong_type, wrong_value
from memlab.offline.models import read_object

ROLES = ["system", "assistant", "user", "function", "tool", "developer"]
_PARTS = {
    "text": "text",
    "image_url": "image_url",
    "input_audio": "input_audio",
    "file": "file",
    "refusal": "refusal",
}


def check_messages(messages: Any) -> None:
    """Raise the API's error for the first thing that is wrong with `messages`."""
    if messages is None:
        raise missing("messages")
    if not isinstance(messages, list):
        raise wrong_type("messages", "an array of objects", messages)
    if not messages:
        raise empty_array("messages")
    waiting: list[str] = []  # ids of tool calls that have no result yet
    for i, message in enumerate(messages):
        waiting = _check_message(message, i, waiting)
    if waiting:
        raise _unanswered(waiting, len(messages))


def _check_message(message: Any, i: int, waiting: list[str]) -> list[str]:
    """Check one message; returns the tool calls that wait for a result after it."""
    message = read_object(message, f"messages[{i}]")
    role = _read_role(message, i)
    if role == "tool":
        return _check_tool_message(message, i, waiting)
    if waiting:
        raise _unanswered(waiting, i)
    _check_string(message, "name", i)
    calls = message.get("tool_calls")
    if role == "assistant" and calls is not None:
        _check_content(message.get("content"), i, required=False)
        return _check_tool_calls(calls, f"messages[{i}].tool_calls")
    refusal = role == "assistant" and isinstance(message.get("refusal"), str)
    _check_content(message.get("content"), i, required=not refusal)
    return []


def _read_role(message: dict[str, Any], i: int) -> str:
    role = message.get("role")
    if role is None:
        raise missing(f"messages[{i}].role")
    if not isinstance(role, str):
        raise wrong_type(f"messages[{i}].role", "a string", role)
    if role not in ROLES:
        raise wrong_value(f"messages[{i}].role", role, ROLES)
    return role


def _check_string(item: dict[str, Any], name: str, i: int) -> None:
    if item.get(name) is not None and not isinstance(item[name], str):
        raise wrong_type(f"messages[{i}].{name}", "a string", item[name])


def _check_content(content: Any, i: int, required: bool) -> None:
    """A string, or a list of parts; null beside tool calls."""
    if isinstance(content, str) or (content is None and not required):
        return
    param = f"messages[{i}].content"
    if content is None:
        raise ApiError("Invalid value for 'content': expected a string, got null.", param=param)
    if not isinstance(content, list):
        raise wrong_type(param, "one of a string or array of objects", content)
    for j, part in enumerate(content):
        _check_part(part, f"{param}[{j}]")


def _check_part(part: Any, param: str) -> None:
    part = read_object(part, param)
    kind = part.get("type")
    if kind is None:
        raise missing(f"{param}.type")
    if not isinstance(kind, str) or kind not in _PARTS:
        raise wrong_value(f"{param}.type", kind, list(_PARTS))
    field = _PARTS[kind]
    if part.get(field) is None:
        raise missing(f"{param}.{field}")
    if kind in ("text", "refusal") and not isinstance(part[field], str):
        raise wrong_type(f"{param}.{field}", "a string", part[field])


def _check_tool_message(message: dict[str, Any], i: int, waiting: list[str]) -> list[str]:
    call_id = message.get("tool_call_id")
    if call_id is None:
        raise missing(f"messages[{i}].tool_call_id")
    if not isinstance(call_id, str):
        raise wrong_type(f"messages[{i}].tool_call_id", "a string", call_id)
    if call_id not in waiting:
        raise ApiError(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'.",
            param=f"messages.[{i}].role",
        )
    _check_content(message.get("content"), i, required=True)
    return [other for other in waiting if other != call_id]


def _check_tool_calls(calls: Any, param: str) -> list[str]:
    if not isinstance(calls, list):
        raise wrong_type(param, "an array of objects", calls)
    if not calls:
        raise empty_array(param)
    return [_read_call_id(call, f"{param}[{j}]") for j, call in enumerate(calls)]


def _read_call_id(call: Any, param: str) -> str:
    call = read_object(call, param)
    if call.get("type", "function") != "function":
        raise wrong_value(f"{param}.type", call["type"], ["function"])
    function = read_object(call.get("function"), f"{param}.function")
    fields = {"id": call.get("id")} | {f"function.{key}": function.get(key) for key in ("name", "arguments")}
    for name, value in fields.items():
        if value is None:
            raise missing(f"{param}.{name}")
        if not isinstance(value, str):
            raise wrong_type(f"{param}.{name}", "a string", value)
    return call["id"]


def _unanswered(waiting: list[str], i: int) -> ApiError:
    return ApiError(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}",
        param=f"messages.[{i}].role",
    )
