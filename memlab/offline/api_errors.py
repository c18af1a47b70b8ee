"""The API's own way of saying no: a status, and `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

import json
from typing import Any

from memlab.errors import MemlabError


class ApiError(MemlabError):
    """An error that the endpoint answers with, in the shape and wording of the OpenAI API."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        kind: str = "invalid_request_error",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.payload = {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def to_json(self) -> bytes:
        """The body of the reply."""
        return json.dumps(self.payload, ensure_ascii=False).encode("utf-8", "replace")


def missing(param: str) -> ApiError:
    """A required parameter is not there."""
    return ApiError(f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")


def wrong_type(param: str, expected: str, value: Any) -> ApiError:
    """A parameter has another JSON type than the API takes; `expected` is, for example, "a string"."""
    return ApiError(
        f"Invalid type for '{param}': expected {expected}, but got {json_type(value)} instead.",
        param=param,
        code="invalid_type",
    )


def wrong_value(param: str, value: Any, allowed: list[str]) -> ApiError:
    """A parameter's value is not one of the allowed ones."""
    first = ", ".join(f"'{name}'" for name in allowed[:-1])
    names = f"{first}, and '{allowed[-1]}'" if first else f"'{allowed[-1]}'"
    return ApiError(
        f"Invalid value: '{str(value)[:100]}'. Supported values are: {names}.",
        param=param,
        code="invalid_value",
    )


def empty_array(param: str) -> ApiError:
    """A list that must have something in it."""
    return ApiError(
        f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        param=param,
        code="empty_array",
    )


def too_many(param: str, most: int, given: int) -> ApiError:
    """A list that is too long."""
    return ApiError(
        f"Invalid '{param}': array too long. Expected an array with maximum length {most}, "
        f"but got an array with length {given} instead.",
        param=param,
        code="array_above_max_length",
    )


def json_type(value: Any) -> str:
    """The JSON name of a Python value's type, with its article.

    >>> json_type(None), json_type(True), json_type(1.5), json_type({})
    ('null', 'a boolean', 'a decimal', 'an object')
    """
    names = {bool: "a boolean", int: "an integer", float: "a decimal", str: "a string"}
    names |= {list: "an array", dict: "an object", type(None): "null"}
    return names.get(type(value), type(value).__name__)
