"""Reducers: what of a long history still goes to the model.

A reducer never drops the system message or the newest group, never parts a tool call from its result, and
below its limit changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from memlab import tokens
from memlab.checks import check_type, fits
from memlab.errors import InvalidInputError
from memlab.messages import Message, Text, ToolCall, to_wire


class Reducer(Protocol):
    """Anything with this method, given to a history provider as `reducer=`."""

    async def reduce(self, messages: Sequence[Message]) -> list[Message]:
        """The messages that still go to the model, in their order."""
        ...


class MessageCountReducer:
    """Keeps the last `max_messages` messages.

    A group that does not fit as a whole is left out, so fewer may remain.
    """

    def __init__(self, max_messages: int = 20) -> None:
        self.max_messages = _positive("max_messages", max_messages)

    async def reduce(self, messages: Sequence[Message]) -> list[Message]:
        """The system messages and the newest groups within the limit."""
        return _newest_within(messages, self.max_messages, lambda message: 1)


class TokenBudgetReducer:
    """Keeps the newest messages that fit into `max_tokens`, counted (an estimate) as `model` counts them."""

    def __init__(self, max_tokens: int, model: str = tokens.DEFAULT_MODEL) -> None:
        self.max_tokens = _positive("max_tokens", max_tokens)
        check_type("model", model, str)
        self.model = model

    async def reduce(self, messages: Sequence[Message]) -> list[Message]:
        """The system messages and the newest groups within the budget."""
        return _newest_within(messages, self.max_tokens, self._count)

    def _count(self, message: Message) -> int:
        return sum(tokens.count_message(wire, self.model) for wire in to_wire([message]))


def group_messages(messages: Sequence[Message]) -> list[list[Message]]:
    """The messages in groups that must stay together: a tool call with its results, else one message a group.

    >>> from memlab.messages import ToolCall, ToolResult
    >>> call, result = Message("assistant", ToolCall("1", "f")), Message("tool", ToolResult("1", "ok"))
    >>> [len(group) for group in group_messages([Message("user", "hi"), call, result])]
    [1, 2]
    """
    groups: list[list[Message]] = []
    for message in messages:
        belongs = message.role == "tool" and groups and groups[-1][0].tool_calls
        if belongs:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def repair_tool_calls(messages: Sequence[Message]) -> list[Message]:
    """The messages without tool calls that were never answered, and without results that nobody asked for.

    The API refuses both. They are left behind by a process that died within a tool loop, or by another writer.
    """
    kept: list[Message] = []
    for group in group_messages(messages):
        asked = {call.call_id for call in group[0].tool_calls}
        answered = {result.call_id for message in group[1:] for result in message.tool_results}
        if asked == answered and (asked or group[0].role != "tool"):
            kept += group
        elif asked and not (asked & answered) and group[0].text:
            kept.append(group[0].copy(contents=[c for c in group[0].contents if not isinstance(c, ToolCall)]))
        else:
            kept += _matching(group, asked & answered)
    return kept


def _matching(group: Sequence[Message], both: set[str]) -> list[Message]:
    """The messages of a group with only those calls and results that belong together."""
    kept = [
        message.copy(contents=[c for c in message.contents if isinstance(c, Text) or c.call_id in both])
        for message in group
    ]
    return [message for message in kept if message.contents]


def _newest_within(messages: Sequence[Message], limit: int, size: Callable[[Message], int]) -> list[Message]:
    groups = group_messages(messages)
    kept = {i for i, group in enumerate(groups) if group[0].role in ("system", "developer")}
    used = sum(size(message) for i in kept for message in groups[i])
    conversation = [i for i in range(len(groups)) if i not in kept]
    for i in reversed(conversation):
        used += sum(size(message) for message in groups[i])
        if used > limit and i != conversation[-1]:
            break
        kept.add(i)
    return [message for i in sorted(kept) for message in groups[i]]


def _positive(name: str, value: int) -> int:
    if not fits(value, int) or value < 1:
        raise InvalidInputError(f"{name} is {value!r}; it must be a whole number of at least 1")
    return value
