"""What a memory provider reads out of messages, and how it writes a memory down."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from memlab.messages import Message
from memlab.providers.base import SessionContext


def messages_so_far(context: SessionContext) -> list[Message]:
    """The caller's input, then what providers before this one added."""
    return [*context.input_messages, *context.get_messages()]


def query_of(messages: Sequence[Message]) -> str:
    """The texts of messages, blank ones dropped, a line each."""
    return "\n".join(message.text for message in messages if message.text.strip())


def spoken(messages: Sequence[Message]) -> list[Message]:
    """What the user and the assistant said: messages with a text."""
    return [message for message in messages if message.role in ("user", "assistant") and message.text.strip()]


def turns_of(history: Sequence[Message]) -> list[list[Message]]:
    """The spoken messages of a history by turns: a new one begins where the user speaks after the assistant."""
    turns: list[list[Message]] = []
    for message in spoken(history):
        if not turns or (message.role == "user" and turns[-1][-1].role == "assistant"):
            turns.append([])
        turns[-1].append(message)
    return turns


def quoted(text: str) -> str:
    """`text` as one JSON string on one line, whatever counts as the end of a line."""
    return re.sub("[\x7f-\x9f\u2028\u2029]", lambda m: f"\\u{ord(m[0]):04x}", json.dumps(text, ensure_ascii=False))
