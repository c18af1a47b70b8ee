"""Context providers: plug-ins of an agent that add to a request before it is sent, and learn from the answer.

A provider holds nothing that belongs to a session: that lives in `session.state[source_id]`, which the agent
passes to both hooks as `state`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memlab.checks import check_type
from memlab.errors import InvalidInputError
from memlab.messages import Message, MessageSource, as_messages
from memlab.session import AgentSession
from memlab.tools import FunctionTool, as_tools
from memlab.trace import ToolRun, Trace

if TYPE_CHECKING:
    from memlab.agent import Agent, AgentResponse


@dataclass
class SessionContext:
    """One run, as the providers see it. They read the input and add messages, instructions and tools.

    `context_messages` maps a provider's source_id to what it added; `response` is there after the model answered.
    `session_id` is None when the agent runs without a session.
    """

    input_messages: list[Message]
    session_id: str | None = None
    service_session_id: str | None = None
    context_messages: dict[str, list[Message]] = field(default_factory=dict)
    instructions: list[str] = field(default_factory=list)
    tools: list[FunctionTool] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    response: AgentResponse | None = None

    def extend_messages(self, source: str | ContextProvider, messages: Sequence[Message]) -> None:
        """Add copies of `messages`, stamped with their source. The caller's objects stay as they are."""
        check_type("source", source, str, ContextProvider, what="the provider, or its source_id")
        source_id = source if isinstance(source, str) else source.source_id
        stamp = MessageSource(getattr(source, "message_kind", "provider"), source_id)
        stamped = [m if m.source == stamp else m.copy(source=stamp) for m in as_messages(messages)]
        self.context_messages.setdefault(source_id, []).extend(stamped)

    def extend_instructions(self, source_id: str, instructions: str | Sequence[str]) -> None:
        """Add to the instructions of this run."""
        check_type("instructions", instructions, str, Iterable, what="a string or a list of strings")
        for text in (texts := [instructions] if isinstance(instructions, str) else list(instructions)):
            check_type("an instruction", text, str)
        self.instructions.extend(texts)

    def extend_tools(self, source_id: str, tools: Sequence[Any]) -> None:
        """Offer more tools in this run."""
        self.tools = as_tools([*self.tools, *as_tools(tools)])

    def get_messages(
        self,
        *,
        sources: set[str] | None = None,
        exclude_sources: Iterable[str] | None = None,
        include_input: bool = False,
        include_response: bool = False,
    ) -> list[Message]:
        """The messages that providers added, in their order; on request the input and the response, too."""
        excluded = set(exclude_sources or ())
        chosen = [
            message
            for source_id, messages in self.context_messages.items()
            if (sources is None or source_id in sources) and source_id not in excluded
            for message in messages
        ]
        if include_input:
            chosen += self.input_messages
        if include_response and self.response is not None:
            chosen += self.response.messages
        return chosen


class ContextProvider:
    """Base class of the plug-ins. Override one hook or both.

    `source_id` names the provider: it is the key of its part of the session's state, so no two providers of an
    agent may share it.
    """

    message_kind = "provider"

    def __init__(self, source_id: str) -> None:
        if not isinstance(source_id, str) or not source_id.strip():
            raise InvalidInputError(f"source_id is {source_id!r}; give the provider a name")
        self.source_id = source_id

    async def before_run(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Called before the model: add to `context`. What it raises ends the run."""

    async def after_run(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Called after a run that succeeded, with `context.response` set."""

    async def after_tool(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any], run: ToolRun
    ) -> None:
        """Called as soon as a tool that reported events has succeeded, whatever becomes of the run."""
