"""Checking a JSON schema: its keywords must have the types that its reader relies on."""

from __future__ import annotations

from typing import Any

from memlab.offline.api_errors import ApiError, wrong_type

_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS_OF_SCHEMAS = ("properties", "$defs", "definitions")
_SIZES = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_MOST = 1000  # the largest list or text that a schema may demand from the classroom model
_TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}


def check_schema(schema: Any, param: str) -> None:
    """Raise the API's error when `schema` is not a JSON schema; null stands for none."""
    if schema is None:
        return
    if not isinstance(schema, dict):
        raise wrong_type(param, "an object", schema)
    problem = _find_problem(schema, "")
    if problem:
        raise ApiError(f"Invalid schema in '{param}': {problem}.", param=param, code="invalid_function_parameters")


def _find_problem(schema: Any, place: str) -> str:
    """The first thing wrong in a schema or in one within it; an empty text when all is well."""
    if isinstance(schema, bool):
        return ""
    if not isinstance(schema, dict):
        return f"a schema must be an object or a boolean (at {place or 'the root'})"
    for keyword, value in schema.items():
        here = f"{place}/{keyword}"
        if not _can_be_used(keyword, value):
            return f"the value of '{keyword}' can't be used (at {here[:200]})"
        for name, inner in _schemas_within(keyword, value):
            problem = _find_problem(inner, f"{here}/{name}")
            if problem:
                return problem
    return ""


def _can_be_used(keyword: str, value: Any) -> bool:
    if keyword == "type":
        names = value if isinstance(value, list) else [value]
        return all(isinstance(name, str) and name in _TYPES for name in names)
    if keyword == "required":
        return isinstance(value, list) and all(isinstance(name, str) for name in value)
    if keyword == "enum" or keyword in _LISTS_OF_SCHEMAS:
        return isinstance(value, list) and bool(value)
    if keyword in _MAPS_OF_SCHEMAS:
        return isinstance(value, dict)
    if keyword in _SIZES:
        return type(value) is int and 0 <= value <= (_MOST if keyword.startswith("min") else 2**31)
    if keyword in _NUMBERS:
        return type(value) in (int, float) and abs(value) < 1e300
    return keyword not in ("$ref", "description", "title", "format", "pattern") or isinstance(value, str)


def _schemas_within(keyword: str, value: Any) -> list[tuple[str, Any]]:
    if keyword in _MAPS_OF_SCHEMAS:
        return list(value.items())
    if keyword in _LISTS_OF_SCHEMAS:
        return [(str(i), inner) for i, inner in enumerate(value)]
    return [("", value)] if keyword in ("items", "additionalProperties") else []
