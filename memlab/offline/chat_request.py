"""Reading a Chat Completions request: what the API would refuse is refused here, in its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memlab.offline.api_errors import ApiError, too_many, wrong_type, wrong_value
from memlab.offline.messages_check import check_messages
from memlab.offline.models import CHAT_WINDOWS, read_model_name, read_object
from memlab.offline.schema_check import check_schema
from memlab.offline.tools_check import check_tools, read_function_name


@dataclass(frozen=True)
class ChatRequest:
    """A request that passed every check. `body` is what the classroom model sees."""

    body: dict[str, Any]
    model: str
    max_tokens: int | None
    n: int
    stop: tuple[str, ...]
    stream: bool
    include_usage: bool
    json_schema: dict[str, Any] | None
    json_object: bool


def read_chat_request(body: dict[str, Any]) -> ChatRequest:
    """Check a request's fields; fields that the classroom model has no use for are let through."""
    model = read_model_name(body, list(CHAT_WINDOWS))
    check_messages(body.get("messages"))
    check_tools(body)
    _check_numbers(body)
    response_format = _read_response_format(body)
    stream = _read_boolean(body, "stream")
    return ChatRequest(
        body=body,
        model=model,
        max_tokens=_read_max_tokens(body),
        n=_read_integer(body, "n", 1, 128) or 1,
        stop=_read_stop(body),
        stream=stream,
        include_usage=_read_include_usage(body, stream),
        json_schema=response_format.get("json_schema"),
        json_object=response_format.get("type") == "json_object",
    )


# --- fields ---


def _read_boolean(body: dict[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise wrong_type(name, "a boolean", value)
    return bool(value)


def _read_integer(body: dict[str, Any], name: str, low: int, high: int) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if type(value) is not int:
        raise wrong_type(name, "an integer", value)
    _check_range(name, value, low, high, "integer")
    return value


def _check_range(name: str, value: float, low: float, high: float, kind: str) -> None:
    if low <= value <= high:
        return
    side, sign, bound = ("below minimum", ">=", low) if value < low else ("above maximum", "<=", high)
    raise ApiError(
        f"Invalid '{name}': {kind} {side} value. Expected a value {sign} {bound}, but got {str(value)[:50]} instead.",
        param=name,
        code=f"{kind}_{'below_min' if value < low else 'above_max'}_value",
    )


def _check_numbers(body: dict[str, Any]) -> None:
    ranges = {
        "temperature": (0, 2),
        "top_p": (0, 1),
        "presence_penalty": (-2, 2),
        "frequency_penalty": (-2, 2),
    }
    for name, (low, high) in ranges.items():
        value = body.get(name)
        if value is None:
            continue
        if type(value) not in (int, float):
            raise wrong_type(name, "a decimal", value)
        _check_range(name, value, low, high, "decimal")
    _read_integer(body, "seed", -(2**63), 2**63 - 1)


def _read_max_tokens(body: dict[str, Any]) -> int | None:
    old = _read_integer(body, "max_tokens", 1, 2**31)
    new = _read_integer(body, "max_completion_tokens", 1, 2**31)
    if old is not None and new is not None:
        raise ApiError(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            code="invalid_parameter_combination",
        )
    return old if new is None else new


def _read_stop(body: dict[str, Any]) -> tuple[str, ...]:
    value = body.get("stop")
    stops = [value] if isinstance(value, str) else value or []
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise wrong_type("stop", "a string or an array of strings", value)
    if len(stops) > 4:
        raise too_many("stop", 4, len(stops))
    return tuple(stop for stop in stops if stop)


def _read_include_usage(body: dict[str, Any], stream: bool) -> bool:
    options = body.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise wrong_type("stream_options", "an object", options)
    if not stream:
        raise ApiError(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
        )
    return bool(options.get("include_usage"))


# --- response_format ---


def _read_response_format(body: dict[str, Any]) -> dict[str, Any]:
    value = body.get("response_format")
    if value is None:
        return {}
    value = read_object(value, "response_format")
    kind = value.get("type")
    if kind not in ("text", "json_object", "json_schema"):
        raise wrong_value("response_format.type", kind, ["json_object", "json_schema", "text"])
    if kind == "json_schema":
        _check_json_schema(value)
        return value
    if kind == "json_object" and "json" not in str(body["messages"]).lower():
        raise ApiError(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
            param="messages",
        )
    return {"type": kind}


def _check_json_schema(value: dict[str, Any]) -> None:
    named = read_object(value.get("json_schema"), "response_format.json_schema")
    read_function_name(named, "response_format.json_schema.name")
    schema = read_object(named.get("schema"), "response_format.json_schema.schema")
    check_schema(schema, "response_format.json_schema.schema")
