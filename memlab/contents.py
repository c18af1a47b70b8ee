"""Contents: what a message holds. Text, the model's call of a tool, or the tool's result.

>>> read_content("Hi")
Text(text='Hi')
>>> read_content({"type": "function_call", "call_id": "1", "name": "clock"})
ToolCall(call_id='1', name='clock', arguments='{}')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from memlab.errors import InvalidInputError, InvalidTypeError


def clean_text(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD, since no encoder, database or wire takes one."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True)
class Text:
    """Plain text."""

    text: str
    type: ClassVar[str] = "text"


@dataclass(frozen=True)
class ToolCall:
    """The model asks for a tool. `arguments` is the JSON text as the model wrote it."""

    call_id: str
    name: str
    arguments: str = "{}"
    type: ClassVar[str] = "function_call"


@dataclass(frozen=True)
class ToolResult:
    """What the tool answered. `is_error` marks an exception that was passed on as text."""

    call_id: str
    result: str
    is_error: bool = False
    type: ClassVar[str] = "function_result"


Content = Text | ToolCall | ToolResult
_CONTENT_TYPES: dict[str, type[Content]] = {kind.type: kind for kind in (Text, ToolCall, ToolResult)}


def read_content(item: Any) -> Content:
    """A content from a string, a content, or the dictionary of a stored one. Raises InvalidTypeError for the rest."""
    if isinstance(item, str):
        return Text(item)
    if isinstance(item, Text | ToolCall | ToolResult):
        return item
    if isinstance(item, Mapping) and item.get("type") in _CONTENT_TYPES:
        fields = {name: value for name, value in item.items() if name != "type"}
        try:
            return _CONTENT_TYPES[item["type"]](**fields)
        except TypeError as error:
            raise InvalidInputError(f"a content of type {item['type']!r} can't be read: {error}") from None
    raise InvalidTypeError(f"a content is text, a ToolCall or a ToolResult, not {type(item).__name__}: {item!r:.80}")


def cleaned(item: Content) -> Content:
    """The content with its texts as `clean_text` gives them. Raises InvalidTypeError for a field that is no string."""
    texts = [value for name, value in vars(item).items() if name != "is_error"]
    if wrong := [value for value in texts if not isinstance(value, str)]:
        raise InvalidTypeError(f"{type(item).__name__} holds {wrong[0]!r:.80}; its fields are strings")
    if all(text.isascii() for text in texts):
        return item
    if isinstance(item, Text):
        return Text(clean_text(item.text))
    if isinstance(item, ToolCall):
        return ToolCall(clean_text(item.call_id), clean_text(item.name), clean_text(item.arguments))
    return ToolResult(clean_text(item.call_id), clean_text(item.result), item.is_error)
