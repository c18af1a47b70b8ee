"""A Responses request as a Chat Completions one, and the errors of the chat handler in the words of this API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memlab.offline.api_errors import ApiError, wrong_type, wrong_value
from memlab.offline.models import read_object
from memlab.offline.responses_items import Item, to_messages

_SAME = ("model", "temperature", "top_p", "user", "seed")  # seed: not in the API, but it breaks ties here
_BOOLEANS = ("store", "stream", "parallel_tool_calls", "background")
_STRINGS = ("instructions", "previous_response_id")
_OBJECTS = ("metadata", "text", "reasoning")
_NOT_SERVED = {
    "conversation": "chain responses with 'previous_response_id'",
    "prompt": "send 'instructions' and 'input'",
}
# Names of fields in Chat Completions and here, longer ones first.
_NAMES = {
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
    "max_completion_tokens": "max_output_tokens",
    "messages": "input",
    ".function": "",
}


def check_fields(body: dict[str, Any]) -> None:
    """Raise the API's error for a field of the wrong type; fields without a meaning here are let through."""
    for name, instead in _NOT_SERVED.items():
        if body.get(name) is not None:
            raise ApiError(
                f"Unsupported parameter: '{name}' is not supported by this offline endpoint; {instead}.",
                param=name,
                code="unsupported_parameter",
            )
    kinds = ((_BOOLEANS, bool, "a boolean"), (_STRINGS, str, "a string"), (_OBJECTS, dict, "an object"))
    for names, kind, words in kinds:
        for name in names:
            if body.get(name) is not None and not isinstance(body[name], kind):
                raise wrong_type(name, words, body[name])
    if body.get("input") is None and body.get("previous_response_id") is None:
        raise ApiError(
            "One of 'input' or 'previous_response_id' must be provided.",
            param="input",
            code="missing_required_parameter",
        )


def to_chat_body(body: dict[str, Any], items: Iterable[Item]) -> dict[str, Any]:
    """The chat request that asks the same: `items` are the whole conversation, earlier responses included."""
    chat = {name: body[name] for name in _SAME if body.get(name) is not None}
    system = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
    chat["messages"] = [*system, *to_messages(items)]
    if body.get("max_output_tokens") is not None:
        chat["max_completion_tokens"] = body["max_output_tokens"]
    if response_format := _read_format(body):
        chat["response_format"] = response_format
    return chat | _read_tools(body)


def _read_format(body: dict[str, Any]) -> dict[str, Any] | None:
    value = (body.get("text") or {}).get("format")
    if value is None:
        return None
    value = read_object(value, "text.format")
    if value.get("type") != "json_schema":
        return {"type": value.get("type")}
    return {"type": "json_schema", "json_schema": {k: v for k, v in value.items() if k != "type"}}


def _read_tools(body: dict[str, Any]) -> dict[str, Any]:
    tools, choice = body.get("tools"), body.get("tool_choice")
    if isinstance(choice, dict):
        tools, choice = _read_choice(tools, choice)
    fields = {"tool_choice": choice} if choice is not None else {}
    if tools is None or tools == []:  # the API's default is an empty list
        return fields
    fields["tools"] = [_nest(tool) for tool in tools] if isinstance(tools, list) else tools
    if body.get("parallel_tool_calls") is not None:
        fields["parallel_tool_calls"] = body["parallel_tool_calls"]
    return fields


def _nest(tool: Any) -> Any:
    if not isinstance(tool, dict) or tool.get("type") != "function":
        return tool  # told by the check of tools
    return {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}


def _read_choice(tools: Any, choice: dict[str, Any]) -> tuple[Any, Any]:
    """A named function, or some of the tools with a mode for them."""
    kind = choice.get("type")
    if kind == "function":
        return tools, {"type": "function", "function": {"name": choice.get("name")}}
    if kind != "allowed_tools":
        raise wrong_value("tool_choice.type", kind, ["function", "allowed_tools"])
    allowed = choice.get("tools")
    if not isinstance(allowed, list) or not isinstance(tools, list):
        raise wrong_type("tool_choice.tools", "an array of objects", allowed)
    names = [tool.get("name") for tool in allowed if isinstance(tool, dict)]
    return [tool for tool in tools if isinstance(tool, dict) and tool.get("name") in names], choice.get("mode")


def in_words_of_responses(error: ApiError) -> ApiError:
    """An error of the chat handler with the names that the fields have in this API."""
    told = error.payload["error"]
    message, param = str(told["message"]), told["param"]
    if told["code"] == "context_length_exceeded":
        numbers = message.partition(" Please")[0]
        message = (
            f"Your input exceeds the context window of this model. Please adjust your input and try again. {numbers}"
        )
        return ApiError(message, param="input", code="context_length_exceeded")
    for chat_name, name in _NAMES.items():
        message = message.replace(f"'{chat_name}'", f"'{name}'")
    if param is not None:
        renamed = _rename(param)
        message, param = message.replace(param, renamed), renamed
    return ApiError(message, status=error.status, param=param, code=told["code"], kind=str(told["type"]))


def _rename(param: str) -> str:
    for chat_name, name in _NAMES.items():
        param = param.replace(chat_name, name)
    return param
