"""The agent: one turn of a conversation, from the input to the stored answer.

    before-hooks in order -> instructions + history + input + context messages -> model <-> tools -> after-hooks

Streamed and plain runs share one pipeline. The model is reached through a `ChatClient`, which is all that the
agent knows of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, overload

from memlab.errors import InvalidInputError, MemlabError
from memlab.messages import Content, Message, MessageSource, UsageDetails, as_messages, new_id
from memlab.providers.base import ContextProvider, SessionContext
from memlab.providers.history import HistoryProvider, InMemoryHistoryProvider
from memlab.response import AgentResponse, AgentResponseUpdate, ChatClient, ResponseStream
from memlab.session import AgentSession
from memlab.tools import FunctionTool, as_tools, run_tool
from memlab.trace import Failure, ModelCall

logger = logging.getLogger("memlab.agent")

Input = str | Message | Content | Iterable[str | Message | Content]


class AgentRunError(MemlabError, RuntimeError):
    """A run failed after tools had run: what they did in the world is done. `tools_run` names them."""

    def __init__(self, message: str, tools_run: Sequence[str]) -> None:
        super().__init__(f"{message}; tools that already ran: {', '.join(tools_run) or 'none'}")
        self.tools_run = list(tools_run)


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

    With a session and no history provider, an `InMemoryHistoryProvider` remembers the conversation. Without a
    session the agent has amnesia. Raises InvalidInputError for two providers of one source_id and for two
    providers that load history.
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
    ) -> None:
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
        self.context_providers = _checked(list(context_providers or []))
        self.default_options = dict(default_options or {})
        self.placement = placement
        self.max_tool_rounds = max_tool_rounds
        self._default_history = InMemoryHistoryProvider()

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        """A new, empty conversation."""
        return AgentSession(session_id=session_id)

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
        turn = _Turn(self, as_messages(messages), session, as_tools(tools), dict(options or {}), stream)
        turn.pipeline = turn.updates()
        return ResponseStream(turn.pipeline) if stream else _last(turn.pipeline)


async def _last(updates: AsyncIterator[AgentResponseUpdate | AgentResponse]) -> AgentResponse:
    final = [update async for update in updates if isinstance(update, AgentResponse)]
    return final[0]


def _checked(providers: list[ContextProvider]) -> list[ContextProvider]:
    ids = [provider.source_id for provider in providers]
    if twice := sorted({source_id for source_id in ids if ids.count(source_id) > 1}):
        raise InvalidInputError(f"two context providers share the source_id {twice[0]!r}; give each its own")
    loading = [p.source_id for p in providers if isinstance(p, HistoryProvider) and p.load_messages]
    if len(loading) > 1:
        raise InvalidInputError(f"{' and '.join(loading)} all load history; pass load_messages=False to all but one")
    return providers


class _Turn:
    """One run of an agent."""

    def __init__(
        self,
        agent: Agent,
        messages: list[Message],
        session: AgentSession | None,
        tools: list[FunctionTool],
        options: dict[str, Any],
        stream: bool,
    ) -> None:
        self.agent, self.stream = agent, stream
        self.has_session = session is not None
        self.session = session or AgentSession()
        inputs = [m.copy(message_id=m.message_id or new_id(), source=MessageSource()) for m in messages]
        self.context = SessionContext(
            input_messages=inputs,
            session_id=self.session.session_id if self.has_session else None,
            service_session_id=self.session.service_session_id,
            tools=as_tools([*agent.tools, *tools]),
            options={**agent.default_options, **options},
        )
        self.trace = self.context.trace
        self.produced: list[Message] = []
        self.pipeline: Any = None
        self.task: asyncio.Task[Any] | None = None
        self.usage = UsageDetails()
        self.finish_reason: str | None = None

    async def updates(self) -> AsyncIterator[AgentResponseUpdate | AgentResponse]:
        async with self._session_to_itself():
            for provider in self._providers():
                if not isinstance(provider, HistoryProvider) or provider.load_messages:
                    await self._hook(provider.before_run, provider)
            async for update in self._model_and_tools():
                self.task = asyncio.current_task()
                yield update
            response = AgentResponse(self.produced, self.usage, self.trace, self.finish_reason)
            self.context.response = response
            for provider in reversed(self._providers()):
                await self._after(provider)
        yield response

    @asynccontextmanager
    async def _session_to_itself(self) -> AsyncIterator[None]:
        holder = self.session.holder
        if holder is not None and (holder.task is asyncio.current_task() or holder.task.done()):
            # Whoever read that run is here now, so nobody will ever read its rest: waiting would be for ever.
            if not holder.stream:
                raise MemlabError("a run on this session started another one inside itself; give it its own session")
            await holder.pipeline.aclose()
        async with self.session.lock:
            self.session.holder, self.task = self, asyncio.current_task()
            try:
                yield
            finally:
                self.session.holder = None

    def _providers(self) -> list[ContextProvider]:
        providers = self.agent.context_providers
        if not self.has_session or any(isinstance(provider, HistoryProvider) for provider in providers):
            return providers
        return [self.agent._default_history, *providers]

    async def _hook(self, hook: Callable[..., Awaitable[None]], provider: ContextProvider) -> None:
        state = self.session.state.setdefault(provider.source_id, {})
        await hook(agent=self.agent, session=self.session, context=self.context, state=state)

    async def _after(self, provider: ContextProvider) -> None:
        try:
            await self._hook(provider.after_run, provider)
        except Exception as error:  # noqa: BLE001 - the user's answer must not be lost with the hook
            self.trace.failures.append(Failure(f"{provider.source_id}.after_run", type(error).__name__))
            logger.error("%s.after_run failed: %s; the answer is kept", provider.source_id, type(error).__name__)

    async def _model_and_tools(self) -> AsyncIterator[AgentResponseUpdate]:
        request = self._request()
        for _ in range(self.agent.max_tool_rounds + 1):
            async for piece in self._call_model(request + self.produced):
                yield AgentResponseUpdate(piece)
            calls = self.produced[-1].tool_calls
            if not calls:
                return
            results = []
            for call in calls:
                result, run = await run_tool(call, self.context.tools)
                self.trace.tool_runs.append(run)
                results.append(result)
            self.produced.append(self._own(Message("tool", results)))
        ran = [run.name for run in self.trace.tool_runs]
        raise AgentRunError(f"the model still called tools after {self.agent.max_tool_rounds} rounds", ran)

    async def _call_model(self, messages: list[Message]) -> AsyncIterator[str]:
        tools = self.context.tools
        call = ModelCall(messages, [tool.to_wire() for tool in tools])
        self.trace.calls.append(call)
        started = time.perf_counter()
        try:
            async for part in self.agent.client.complete(messages, tools, self.context.options, stream=self.stream):
                if isinstance(part, str):
                    yield part
                else:
                    reply = part
        except Exception as error:
            if self.trace.tool_runs:
                ran = [run.name for run in self.trace.tool_runs]
                raise AgentRunError(f"a later model call failed with {type(error).__name__}", ran) from error
            raise
        call.seconds = time.perf_counter() - started
        call.usage, call.model = reply.usage, reply.model
        self.usage += reply.usage
        self.finish_reason = reply.finish_reason
        self.produced.append(self._own(reply.message))

    def _own(self, message: Message) -> Message:
        return message.copy(
            message_id=message.message_id or new_id(),
            author_name=self.agent.name if message.role == "assistant" else None,
            source=MessageSource("model", self.agent.name),
        )

    def _request(self) -> list[Message]:
        texts = [*([self.agent.instructions] if self.agent.instructions else []), *self.context.instructions]
        system = [Message("system", "\n\n".join(texts))] if texts else []
        added = self.context.get_messages()
        history = [m for m in added if m.source.kind == "history"]
        memories = [m for m in added if m.source.kind != "history"]
        inputs = self.context.input_messages
        after = self.agent.placement == "after_input"
        request = [*system, *history, *(inputs + memories if after else memories + inputs)]
        if not history and not inputs and not memories:
            raise InvalidInputError("there is nothing to send: pass a message, or a session with history")
        return request
