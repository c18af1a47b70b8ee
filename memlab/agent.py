"""The agent: a model with instructions, tools and memory.

`Agent.run` hands one turn to `memlab.turn`, which says what happens in which order. The model is reached through a
`ChatClient`, which is all that the agent knows of it.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from typing import Any, Literal, overload

from memlab.checks import check_type
from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.messages import Content, Message, as_messages, new_id
from memlab.providers.base import ContextProvider
from memlab.providers.history import HistoryProvider, InMemoryHistoryProvider
from memlab.response import AgentResponse, AgentResponseUpdate, ChatClient, ResponseStream, check_client
from memlab.session import AgentSession
from memlab.tools import as_tools
from memlab.turn import Turn

Input = str | Message | Content | Iterable[str | Message | Content]


class Agent:
    """A model with instructions, tools and memory.

    Parameters
    ----------
    client : a `ChatClient`, for example `OpenAIChatCompletionClient()`.
    instructions : the system message of every request.
    name, description, id : how the agent is known to people, tools and stores.
    tools : functions or `@tool`s that the model may call.
    context_providers : plug-ins, called in this order before a run and in the opposite order after it.
    default_options : parameters of every request, such as `{"temperature": 0, "seed": 1}`.
    placement : where messages of context providers stand, "after_input" or "before_input".
    max_tool_rounds : how many requests for tools one run answers before it fails.
    require_per_service_call_history_persistence : store the history after each call of the model, instead of once
        a run: what a long tool loop has reached then survives its failure.

    With a session and no history provider, an `InMemoryHistoryProvider` remembers the conversation. Without a
    session the agent has amnesia. Raises InvalidInputError for two providers of one source_id and for two
    providers that load history, InvalidTypeError for an argument of another type.
    """

    def __init__(
        self,
        client: ChatClient,
        instructions: str | None = None,
        *,
        id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        tools: Any = None,
        context_providers: Sequence[ContextProvider] | None = None,
        default_options: Mapping[str, Any] | None = None,
        placement: Literal["after_input", "before_input"] = "after_input",
        max_tool_rounds: int = 10,
        require_per_service_call_history_persistence: bool = False,
    ) -> None:
        check_client(client)
        texts = {"instructions": instructions, "id": id, "name": name, "description": description}
        for argument, text in texts.items():
            check_type(argument, text, str, None)
        check_type("default_options", default_options, Mapping, None)
        check_type("max_tool_rounds", max_tool_rounds, int)
        if placement not in ("after_input", "before_input"):
            raise InvalidInputError(f"placement is {placement!r}; it must be 'after_input' or 'before_input'")
        if max_tool_rounds < 1:
            raise InvalidInputError(f"max_tool_rounds is {max_tool_rounds}; it must be at least 1")
        self.client = client
        self.instructions = instructions
        self.id = id or new_id("agent")
        self.name = name
        self.description = description
        self.tools = as_tools(tools)
        self.context_providers = _checked(context_providers)
        self.default_options = dict(default_options or {})
        self.placement = placement
        self.max_tool_rounds = max_tool_rounds
        self.require_per_service_call_history_persistence = require_per_service_call_history_persistence
        self.default_history = InMemoryHistoryProvider()

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        """A new, empty conversation."""
        return AgentSession(session_id=session_id)

    def get_session(self, service_session_id: str, *, session_id: str | None = None) -> AgentSession:
        """A conversation whose history a service keeps under `service_session_id`."""
        return AgentSession(session_id=session_id, service_session_id=service_session_id)

    @overload
    def run(
        self,
        messages: Input | None = ...,
        *,
        stream: Literal[False] = ...,
        session: AgentSession | None = ...,
        tools: Any = ...,
        options: Mapping[str, Any] | None = ...,
    ) -> Awaitable[AgentResponse]: ...
    @overload
    def run(
        self,
        messages: Input | None = ...,
        *,
        stream: Literal[True],
        session: AgentSession | None = ...,
        tools: Any = ...,
        options: Mapping[str, Any] | None = ...,
    ) -> ResponseStream: ...
    def run(
        self,
        messages: Input | None = None,
        *,
        stream: bool = False,
        session: AgentSession | None = None,
        tools: Any = None,
        options: Mapping[str, Any] | None = None,
    ) -> Awaitable[AgentResponse] | ResponseStream:
        """Run one turn.

        Parameters
        ----------
        messages : a string, a message, or a list of them.
        stream : False to await an `AgentResponse`, True for a `ResponseStream` of updates.
        session : the conversation; None for none.
        tools, options : for this run, besides those of the agent.

        Two runs at once on one session are served one after the other. A run that fails stores nothing. A
        failing after-hook never loses the answer: it is logged and stands in the trace.
        Raises what the client raises (`AgentRunError` if tools ran before), and what a before-hook raises.
        """
        if session is not None and not isinstance(session, AgentSession):
            raise InvalidTypeError(f"session is {session!r:.80}; pass an AgentSession, as create_session() makes it")
        check_type("options", options, Mapping, None)
        turn = Turn(self, as_messages(messages), session, as_tools(tools), dict(options or {}), stream)
        updates = turn.updates()
        turn.pipeline = weakref.ref(updates)  # weak, so that a stream nobody holds any more is closed at once
        return ResponseStream(updates) if stream else _last(updates)


async def _last(updates: AsyncIterator[AgentResponseUpdate | AgentResponse]) -> AgentResponse:
    final = [update async for update in updates if isinstance(update, AgentResponse)]
    return final[0]


def _checked(given: Iterable[ContextProvider] | None) -> list[ContextProvider]:
    check_type("context_providers", given, Iterable, None, what="a list of providers, context_providers=[…]")
    providers = list(given or [])
    for provider in providers:
        hooks = [getattr(provider, name, None) for name in ("before_run", "after_run")]
        if isinstance(provider, type) or not (hasattr(provider, "source_id") and all(map(callable, hooks))):
            what = "an object of a class of ContextProvider's"
            check_type("a context provider", provider, ContextProvider, what=what)
        name, own = f"{type(provider).__name__}.source_id", getattr(provider, "source_id", None)
        check_type(name, own, str, what="one to super().__init__() in the provider's __init__")
    ids = [provider.source_id for provider in providers]
    if not any(isinstance(provider, HistoryProvider) for provider in providers):
        ids.append(InMemoryHistoryProvider.DEFAULT_SOURCE_ID)  # the one that is used with a session
    if twice := sorted({source_id for source_id in ids if ids.count(source_id) > 1}):
        raise InvalidInputError(f"two context providers share the source_id {twice[0]!r}; give each its own")
    loading = [p.source_id for p in providers if isinstance(p, HistoryProvider) and p.load_messages]
    if len(loading) > 1:
        raise InvalidInputError(f"{' and '.join(loading)} all load history; pass load_messages=False to all but one")
    return providers
