"""Messages: what is said to a model and what it says back.

The names are those of Agent Framework: a message has a role and a list of contents, and a content is
text, a tool call or a tool result. `to_wire` turns messages into the dictionaries of the OpenAI Chat
Completions format, which is all that a model ever sees.

>>> Message("user", "我叫张三").text
'我叫张三'
>>> to_wire([Message("system", "Be brief."), Message("user", ["Hi"])])
[{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'Hi'}]
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memlab.checks import check_type
from memlab.contents import Content, Text, ToolCall, ToolResult, clean_text, cleaned, read_content
from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.usage import UsageDetails

__all__ = [
    "ROLES",
    "SOURCES",
    "Content",
    "Message",
    "MessageSource",
    "Text",
    "ToolCall",
    "ToolResult",
    "UsageDetails",
    "as_messages",
    "clean_text",
    "new_id",
    "to_wire",
]

_NAME = re.compile(r"[^\s<|\\/>]{1,64}")  # what the API takes as a name
ROLES = ("system", "developer", "user", "assistant", "tool")
SOURCES = ("external", "history", "provider", "model")


@dataclass(frozen=True)
class MessageSource:
    """Where a message of a request comes from: the caller, the chat history, or a context provider.

    `kind` is "external", "history", "provider" or "model"; `source_id` names the provider.
    """

    kind: str = "external"
    source_id: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in SOURCES:
            raise InvalidInputError(
                f"the kind of a source is {self.kind!r:.80}; it must be one of {', '.join(SOURCES)}"
            )


@dataclass(repr=False)
class Message:
    """One message of a conversation.

    Parameters
    ----------
    role : "system", "developer", "user", "assistant" or "tool".
    contents : a string, one content, or a list of strings and contents.
    author_name : who speaks, when a role alone doesn't tell.
    message_id : identity. A message whose id is already stored is not stored again; without one, `Agent.run`
        gives a new id to its copy, so that the same words said twice are two messages.
    additional_properties : anything else; never sent to a model.
    source : where the message came from, see `MessageSource`.

    `repaired` is True when a lone surrogate had to be replaced by U+FFFD.
    Raises InvalidInputError for an unknown role, InvalidTypeError for a content or a field of another type.
    """

    role: str
    contents: list[Content]
    author_name: str | None = None
    message_id: str | None = None
    additional_properties: dict[str, Any] = field(default_factory=dict)
    source: MessageSource = MessageSource()
    repaired: bool = False

    def __init__(
        self,
        role: str,
        contents: str | Content | Sequence[str | Content | Mapping[str, Any]] | None = None,
        *,
        author_name: str | None = None,
        message_id: str | None = None,
        additional_properties: Mapping[str, Any] | None = None,
        source: MessageSource | None = None,
        repaired: bool = False,
    ) -> None:
        if role not in ROLES:
            raise InvalidInputError(f"role is {role!r}; it must be one of {', '.join(ROLES)}")
        if not (author_name is message_id is additional_properties is source is None):
            check_type("author_name", author_name, str, None)
            check_type("message_id", message_id, str, None)
            check_type("additional_properties", additional_properties, dict, None, Mapping, what="a dictionary or None")
            check_type("source", source, MessageSource, None)
        parsed = [read_content(item) for item in _as_list(contents)]
        self.role = role
        self.contents = [cleaned(item) for item in parsed]
        self.author_name = author_name and clean_text(author_name)
        self.message_id = message_id
        self.additional_properties = dict(additional_properties or {})
        self.source = source or MessageSource()
        self.repaired = repaired or self.contents != parsed

    @property
    def text(self) -> str:
        """The text contents, joined by a space."""
        return " ".join([item.text for item in self.contents if isinstance(item, Text)])

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls among the contents."""
        return [item for item in self.contents if isinstance(item, ToolCall)]

    @property
    def tool_results(self) -> list[ToolResult]:
        """The tool results among the contents."""
        return [item for item in self.contents if isinstance(item, ToolResult)]

    def __repr__(self) -> str:
        shown = self.text or ", ".join(map(repr, self.contents))
        return f"Message({self.role!r}, {shown[:80] + '…' if len(shown) > 80 else shown!r})"

    def copy(self, **changes: Any) -> Message:
        """A copy that shares no mutable part with the original, with `changes` to its fields."""
        twin = object.__new__(Message)
        own = self.__dict__
        parts = {"contents": own["contents"].copy(), "additional_properties": own["additional_properties"].copy()}
        twin.__dict__ = {**own, **parts, **changes}
        return twin

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary; `Message.from_dict` gives an equal message back."""
        data: dict[str, Any] = {
            "type": "message",
            "role": self.role,
            "contents": [{"type": item.type, **vars(item)} for item in self.contents],
            "additional_properties": dict(self.additional_properties),
            "source": dict(vars(self.source)),
        }
        optional = {"author_name": self.author_name, "message_id": self.message_id, "repaired": self.repaired}
        return data | {name: value for name, value in optional.items() if value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """The message of `to_dict`. Raises InvalidInputError naming the field that is wrong."""
        if not isinstance(data, Mapping) or "role" not in data:
            raise InvalidInputError(f"a stored message is a dictionary with a role and contents, not {data!r:.80}")
        try:
            source = MessageSource(**(data.get("source") or {}))
        except TypeError:
            raise InvalidInputError(f"source is {data['source']!r:.80}; it has a kind and a source_id") from None
        return cls(
            data["role"],
            data.get("contents"),
            author_name=data.get("author_name"),
            message_id=data.get("message_id"),
            additional_properties=data.get("additional_properties"),
            source=source,
            repaired=bool(data.get("repaired")),
        )


def _as_list(contents: Any) -> Sequence[Any]:
    if contents is None:
        return []
    single = isinstance(contents, str | Mapping) or not isinstance(contents, Iterable)
    return [contents] if single else list(contents)


def new_id(prefix: str = "msg") -> str:
    """A new unique id."""
    return f"{prefix}_{uuid.uuid4().hex}"


def as_messages(messages: str | Message | Content | Iterable[str | Message | Content] | None) -> list[Message]:
    """Anything that `Agent.run` takes, as a list of messages: a string becomes one user message."""
    if messages is None:
        return []
    single = isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable)
    items: Iterable[Any] = [messages] if single else messages  # type: ignore[assignment]
    return [item if isinstance(item, Message) else _said(item) for item in items]


def _said(item: Any) -> Message:
    if isinstance(item, Mapping) and "role" in item:
        made = f'Message("{item["role"]!s:.20}", "…") instead'
        remedy = "Message.from_dict(…) of it" if "contents" in item else made
        raise InvalidTypeError(f"a message is {item!r:.80}, a dictionary; pass {remedy}")
    kinds = (str, Text, ToolCall, ToolResult, Mapping, list, tuple)
    check_type("a message", item, *kinds, what="a string, a Message, or a list of them")
    return Message("user", item)


def to_wire(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages in the OpenAI Chat Completions format. One tool message is made for each tool result."""
    return [wire for message in messages for wire in _wire(message)]


def _wire(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"role": "tool", "tool_call_id": r.call_id, "content": r.result} for r in message.tool_results]
    text = message.text
    wire: dict[str, Any] = {"role": message.role, "content": text}
    if message.author_name and message.role == "user" and _NAME.fullmatch(message.author_name):
        wire["name"] = message.author_name
    if calls := message.tool_calls:
        wire["content"] = text or None
        wire["tool_calls"] = [
            {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls
        ]
    return [wire]
