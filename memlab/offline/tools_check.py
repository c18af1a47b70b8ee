"""Checking the tools of a Chat Completions request."""

from __future__ import annotations

import re
from typing import Any

from memlab.offline.api_errors import ApiError, empty_array, missing, wrong_type, wrong_value
from memlab.offline.models import read_object
from memlab.offline.schema_check import check_schema

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_tools(body: dict[str, Any]) -> None:
    """Raise the API's error for what is wrong with `tools`, `tool_choice` or `parallel_tool_calls`."""
    tools = body.get("tools")
    if tools is None:
        _check_no_tool_options(body)
        return
    if not isinstance(tools, list):
        raise wrong_type("tools", "an array of objects", tools)
    if not tools:
        raise empty_array("tools")
    names = [_read_tool_name(tool, f"tools[{i}]") for i, tool in enumerate(tools)]
    _check_tool_choice(body.get("tool_choice"), names)
    parallel = body.get("parallel_tool_calls")
    if parallel is not None and not isinstance(parallel, bool):
        raise wrong_type("parallel_tool_calls", "a boolean", parallel)


def _check_no_tool_options(body: dict[str, Any]) -> None:
    for option in ("tool_choice", "parallel_tool_calls"):
        if body.get(option) is not None and body[option] not in ("none", "auto"):
            raise ApiError(
                f"Invalid value for '{option}': '{option}' is only allowed when 'tools' are specified.",
                param=option,
            )


def _read_tool_name(tool: Any, param: str) -> str:
    tool = read_object(tool, param)
    if tool.get("type") is None:
        raise missing(f"{param}.type")
    if tool["type"] != "function":
        raise ApiError(
            f"Invalid value: '{str(tool['type'])[:100]}'. This offline endpoint supports tools of type 'function'.",
            param=f"{param}.type",
            code="invalid_value",
        )
    function = read_object(tool.get("function"), f"{param}.function")
    if not isinstance(function.get("description", ""), str | None):
        raise wrong_type(f"{param}.function.description", "a string", function["description"])
    _check_parameters(function.get("parameters"), f"{param}.function.parameters")
    return read_function_name(function, f"{param}.function.name")


def _check_parameters(schema: Any, param: str) -> None:
    """A function's arguments are an object, and nothing at the top level of their schema may say otherwise."""
    check_schema(schema, param)
    schema = schema or {}
    others = [word for word in ("anyOf", "oneOf", "allOf", "enum", "const", "not") if word in schema]
    if schema.get("type", "object") != "object" or others:
        raise ApiError(
            f"Invalid schema in '{param}': schema must have type 'object' and not have "
            "'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level.",
            param=param,
            code="invalid_function_parameters",
        )


def read_function_name(function: dict[str, Any], param: str) -> str:
    """The `name` of a function or of a named schema."""
    name = function.get("name")
    if name is None:
        raise missing(param)
    if not isinstance(name, str):
        raise wrong_type(param, "a string", name)
    if not _NAME.fullmatch(name):
        raise ApiError(
            f"Invalid '{param}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$' and is at most 64 characters long.",
            param=param,
            code="invalid_value",
        )
    return name


def _check_tool_choice(choice: Any, names: list[str]) -> None:
    if choice is None or choice in ("none", "auto", "required"):
        return
    if isinstance(choice, str):
        raise wrong_value("tool_choice", choice, ["none", "auto", "required"])
    choice = read_object(choice, "tool_choice")
    function = read_object(choice.get("function"), "tool_choice.function")
    name = read_function_name(function, "tool_choice.function.name")
    if name not in names:
        raise ApiError(
            f"Invalid value for 'tool_choice': no function named '{name}' was specified in 'tools'.",
            param="tool_choice",
        )
