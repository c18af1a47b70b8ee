"""Messages on their way to and from a store: as JSON, each id once, and word of what was not stored."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from memlab.checks import check_type
from memlab.errors import InvalidInputError, MemlabError
from memlab.messages import Message
from memlab.trace import Trace

logger = logging.getLogger("memlab.history")

_trace: ContextVar[Trace | None] = ContextVar("memlab_history_trace", default=None)
"""The trace of the run whose messages are being saved; threads that save for it see it, too."""


def read_message(stored: str | bytes, where: str) -> Message:
    """The message of a stored JSON text. Raises MemlabError that names `where` it stands, but not what it says."""
    try:
        return Message.from_dict(json.loads(stored))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise MemlabError(
            f"{where} is no stored message ({type(error).__name__}); move it away, or take it out, to go on"
        ) from None


def write_message(message: Message) -> str:
    """A message as one line of JSON. Raises InvalidInputError where JSON can't keep it."""
    try:
        line = json.dumps(message.to_dict(), ensure_ascii=False, allow_nan=False)
        line.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"a message can't be stored as JSON ({type(error).__name__}); see its id and additional_properties"
        ) from None
    return line


def newest(messages: list[Message], limit: int | None) -> list[Message]:
    """The last `limit` messages, all for None. Raises InvalidInputError for a negative limit."""
    check_type("limit", limit, int, None)
    if limit is not None and limit < 0:
        raise InvalidInputError(f"limit is {limit}; it must be 0 or more, or None for all messages")
    return messages if limit is None else messages[len(messages) - min(limit, len(messages)) :]


def unknown_messages(stored: Iterable[Message], messages: Iterable[Message]) -> list[Message]:
    """Those of `messages` whose id is not stored yet. Messages without an id are always new."""
    seen = {message.message_id for message in stored if message.message_id}
    new: list[Message] = []
    for message in messages:
        if not message.message_id:
            new.append(message)
        elif message.message_id not in seen:
            new.append(message)
            seen.add(message.message_id)
    return new


def tell_changes(
    source_id: str, stored: Iterable[Message], messages: Sequence[Message], new: Collection[Message]
) -> None:
    """Say which of `messages` have the id of another one and are not the same: only the `new` ones are stored.

    The log gets their number, the trace of the run their ids; neither gets any text.
    """
    if len(new) == len(messages):
        return
    first = {message.message_id: message for message in [*reversed(list(messages)), *stored]}
    changed = [m.message_id for m in messages if m.message_id and _said(m) != _said(first[m.message_id])]
    if not changed:
        return
    logger.warning("%s: %d messages have the id of a stored one and say something else", source_id, len(changed))
    if (trace := _trace.get()) is not None:
        ids = ", ".join(sorted(set(changed)))
        trace.notes.append(
            f"{source_id} has other messages under the ids {ids:.200}, and keeps those; "
            "give a changed message a new message_id"
        )


def _said(message: Message) -> object:
    return message.role, message.contents


@contextmanager
def noting_changes(trace: Trace) -> Iterator[None]:
    """Within it, `tell_changes` writes into `trace`, too."""
    token = _trace.set(trace)
    try:
        yield
    finally:
        _trace.reset(token)
