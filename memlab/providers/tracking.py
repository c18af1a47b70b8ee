"""Two small providers for lessons: one shows what the model will get, one says the same thing in every run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from memlab.checks import check_type
from memlab.messages import Message
from memlab.providers.base import ContextProvider, SessionContext
from memlab.providers.memory_text import messages_so_far
from memlab.session import AgentSession

if TYPE_CHECKING:
    from memlab.agent import Agent

_RULE = "-" * 20


class ContextTrackingProvider(ContextProvider):
    """Prints every message and every tool that the model will get, as far as is known at its place in the list.

    The caller's input comes first. Put it last to see everything. `write` gets each line; by default it prints.
    """

    def __init__(self, source_id: str = "context_tracking", *, write: Callable[[str], Any] = print) -> None:
        super().__init__(source_id)
        self._write = write

    async def before_run(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Print the messages and tools so far."""
        for number, message in enumerate(messages_so_far(context), start=1):
            self._block(f"Message {number}", f"Role: {message.role}", f"Text: {message.text}")
        for tool in context.tools:
            schema = json.dumps(tool.parameters, indent=2, ensure_ascii=False)
            self._block(f"Tool {tool.name}", f"Description: {tool.description}", "JsonSchema:", schema)

    def _block(self, title: str, *lines: str) -> None:
        for line in (f"{_RULE} {title} {_RULE}", *lines):
            self._write(line)


class MessageProvider(ContextProvider):
    """Adds one user message with `text` to every run."""

    def __init__(self, text: str, source_id: str = "message") -> None:
        super().__init__(source_id)
        check_type("text", text, str)
        self.text = text

    async def before_run(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the message."""
        context.extend_messages(self, [Message("user", self.text)])
