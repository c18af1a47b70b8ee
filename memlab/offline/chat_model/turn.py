"""What the classroom model hands back: one turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """A tool call the model asks for, e.g. `Call("GetMenu", {})`."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """A reply in words, or tool calls (then `text` is None), and the skill that made it."""

    text: str | None
    tool_calls: tuple[Call, ...] = ()
    skill: str = ""
