"""One turn of a conversation, from the input to the stored answer.

    before-hooks in order -> instructions + history + input + context messages -> model <-> tools -> after-hooks

Streamed and plain runs share this pipeline.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from memlab.errors import InvalidInputError, MemlabError
from memlab.messages import Message, MessageSource, ToolCall, UsageDetails, new_id
from memlab.providers.base import ContextProvider, SessionContext
from memlab.providers.history import HistoryProvider
from memlab.response import AgentResponse, AgentResponseUpdate, ChatReply
from memlab.session import AgentSession
from memlab.tools import FunctionTool, as_tools, run_tool
from memlab.trace import Failure, ModelCall, ToolRun, Trace

if TYPE_CHECKING:
    from memlab.agent import Agent

logger = logging.getLogger("memlab.agent")

_calling: ContextVar[tuple[Turn, ...]] = ContextVar("memlab_calling", default=())
"""The turns whose tools and hooks this code runs in, tasks they started included."""


_reading: ContextVar[Turn | None] = ContextVar("memlab_reading", default=None)
"""The streamed turn that this code reads: a run started by its reader must not wait for it."""


class AgentRunError(MemlabError, RuntimeError):
    """A run failed after tools had run: what they did in the world is done.

    `tools_run` names them, and `trace` tells what was searched, sent and called until then.
    """

    def __init__(self, message: str, tools_run: Sequence[str], trace: Trace | None = None) -> None:
        super().__init__(f"{message}; tools that already ran: {', '.join(tools_run) or 'none'}")
        self.tools_run = list(tools_run)
        self.trace = trace or Trace()
        self._made_of = message, self.tools_run, self.trace

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of  # so that it comes back whole from another process


class Turn:
    """One run of an agent: `updates()` runs it."""

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
        if taken := sorted({"messages", "input", "stream", "tools"} & {*agent.default_options, *options}):
            raise InvalidInputError(f"options has {', '.join(taken)}, which the agent itself sends; leave that out")
        self.context = SessionContext(
            input_messages=inputs,
            session_id=self.session.session_id if self.has_session else None,
            service_session_id=self.session.service_session_id,
            tools=as_tools([*agent.tools, *tools]),
            options={**agent.default_options, **options},
        )
        self.trace = self.context.trace
        self.served, self.response_id = False, self.session.service_session_id  # both are settled within the lock
        self.saved: dict[str, int] = {}  # by source_id: how many of `produced` a history has stored already
        self.produced: list[Message] = []
        self.pipeline: Callable[[], AsyncGenerator[Any, None] | None] = lambda: None
        self.reader: asyncio.Task[Any] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.usage = UsageDetails()
        self.finish_reason: str | None = None

    async def updates(self) -> AsyncGenerator[AgentResponseUpdate | AgentResponse, None]:
        async with self._session_to_itself():
            self.response_id = self.context.service_session_id = self.session.service_session_id
            self.served = self._service_keeps_history()
            for provider in self._providers():
                if not isinstance(provider, HistoryProvider) or provider.load_messages:
                    await self._hook("before_run", provider)
            async for update in self._model_and_tools():
                self.reader = asyncio.current_task()
                _reading.set(self)  # seen by whoever reads this stream, and by the tasks it starts
                yield update
            if self.served:
                self.session.service_session_id = self.response_id
            response = AgentResponse(self.produced, self.usage, self.trace, self.finish_reason)
            self.context.response = response
            for provider in reversed(self._providers()):
                if not (self._persists_each_call and isinstance(provider, HistoryProvider)):
                    await self._guarded("after_run", provider)
        yield response

    @asynccontextmanager
    async def _session_to_itself(self) -> AsyncIterator[None]:
        holder = self.session.holder
        if holder is not None and holder in _calling.get():
            raise MemlabError("a run on this session started another one inside itself; give it its own session")
        if holder is not None and holder.loop is not asyncio.get_running_loop() and holder.loop.is_running():
            raise MemlabError("another event loop is running this session now; give each thread its own sessions")
        closing = self._close_abandoned()  # in a task of its own, so that the place in the queue is taken now
        async with self.session.lock:
            if closing is not None:
                await closing
            self.session.holder, self.reader = self, asyncio.current_task()
            self.loop = asyncio.get_running_loop()
            try:
                yield
            finally:
                self.session.holder = None

    def _close_abandoned(self) -> asyncio.Task[None] | None:
        """Close a stream whose reader is here now or has ended: nobody will read its rest."""
        holder = self.session.holder
        here = holder is not None and (holder.reader is asyncio.current_task() or _reading.get() is holder)
        if holder is None or not (here or holder.reader.done()):
            return None
        self.session.holder, stream = None, holder.pipeline()
        return asyncio.ensure_future(stream.aclose()) if stream is not None else None

    @contextmanager
    def _marked(self) -> Iterator[None]:
        token = _calling.set((*_calling.get(), self))
        try:
            yield
        finally:
            _calling.reset(token)

    # --- providers ---

    def _providers(self) -> list[ContextProvider]:
        providers = self.agent.context_providers
        if self.served:
            return [p for p in providers if not (isinstance(p, HistoryProvider) and p.load_messages)]
        if not self.has_session or any(isinstance(provider, HistoryProvider) for provider in providers):
            return providers
        return [self.agent.default_history, *providers]

    async def _hook(self, name: str, provider: ContextProvider, **more: Any) -> None:
        state = self.session.state.setdefault(provider.source_id, {})
        if not isinstance(state, dict):
            raise InvalidInputError(
                f"session.state[{provider.source_id!r}] is {type(state).__name__}; it must be a dictionary, "
                "that provider's own"
            )
        with self._marked():
            hook: Callable[..., Awaitable[None]] = getattr(provider, name)
            await hook(agent=self.agent, session=self.session, context=self.context, state=state, **more)

    async def _guarded(self, name: str, provider: ContextProvider, **more: Any) -> bool:
        try:
            await self._hook(name, provider, **more)
            return True
        except Exception as error:  # noqa: BLE001 - the user's answer must not be lost with the hook
            self.trace.failures.append(Failure(f"{provider.source_id}.{name}", type(error).__name__))
            logger.error("%s.%s failed: %s; the answer is kept", provider.source_id, name, type(error).__name__)
            return False

    @property
    def _persists_each_call(self) -> bool:
        return self.agent.require_per_service_call_history_persistence

    async def _persist_call(self) -> None:
        for provider in self._providers():
            if isinstance(provider, HistoryProvider):
                done = self.saved.get(provider.source_id, 0)
                new = self.produced[done:]  # with what an earlier save failed to store
                if await self._guarded("after_call", provider, outputs=new, first=done == 0):
                    self.saved[provider.source_id] = len(self.produced)

    # --- history kept by the service ---

    def _service_keeps_history(self) -> bool:
        """Whether the service keeps the history of this run; then a loading history provider stands aside."""
        able, known = getattr(self.agent.client, "stores_history", False), self.session.service_session_id
        if known and not able:
            raise InvalidInputError(
                f"the session has the service_session_id {known!r}, but {type(self.agent.client).__name__} has no "
                "service that keeps history; use OpenAIChatClient, or a session without that id"
            )
        local = [p for p in self.agent.context_providers if isinstance(p, HistoryProvider) and p.load_messages]
        wanted = self.context.options.get("store")
        if known and wanted is False:
            raise InvalidInputError(
                "the service keeps the history of this session, so store=False can't hold; leave it out, "
                "or use a session without a service_session_id"
            )
        served = able and self.has_session and bool(known or wanted or (wanted is None and not local))
        if served and local:
            self.trace.notes.append(f"the service keeps the history; {local[0].source_id} stands aside")
        if able and not served:
            self.context.options.setdefault("store", False)
        return served

    def _call_options(self) -> dict[str, Any]:
        if not self.served:
            return self.context.options
        previous = {"previous_response_id": self.response_id} if self.response_id else {}
        return {**self.context.options, "store": True, **previous}

    # --- model and tools ---

    async def _model_and_tools(self) -> AsyncIterator[AgentResponseUpdate]:
        system, messages = self._request()
        for rounds_left in range(self.agent.max_tool_rounds, -1, -1):
            async for piece in self._call_model([*system, *messages]):
                yield AgentResponseUpdate(piece)
            if self._persists_each_call:
                await self._persist_call()
            calls = self.produced[-1].tool_calls
            if not calls:
                return
            if rounds_left:
                await self._run_tools(calls)
            # A service that keeps the history has the rest already.
            messages = self.produced[-1:] if self.served else [*messages, *self.produced[-2:]]
        ran = [run.name for run in self.trace.tool_runs]
        raise AgentRunError(f"the model still called tools after {self.agent.max_tool_rounds} rounds", ran, self.trace)

    async def _run_tools(self, calls: Sequence[ToolCall]) -> None:
        results = []
        for call in calls:
            with self._marked():
                result, run = await run_tool(call, self.context.tools)
            self.trace.tool_runs.append(run)
            results.append(result)
            await self._tell_events(run)
        self.produced.append(self._own(Message("tool", results)))

    async def _tell_events(self, run: ToolRun) -> None:
        for provider in self._providers() if run.events else ():
            if hasattr(provider, "after_tool"):  # a provider of another house may not know it
                await self._guarded("after_tool", provider, run=run)

    async def _call_model(self, messages: list[Message]) -> AsyncIterator[str]:
        tools = self.context.tools
        call = ModelCall(messages, [tool.to_wire() for tool in tools])
        self.trace.calls.append(call)
        reply: ChatReply | None = None
        started = time.perf_counter()
        try:
            async for part in self.agent.client.complete(messages, tools, self._call_options(), stream=self.stream):
                if isinstance(part, str):
                    yield part
                else:
                    reply = part
            if reply is None:
                raise MemlabError(f"{type(self.agent.client).__name__}.complete ended without a ChatReply")
        except Exception as error:
            if self.trace.tool_runs:
                ran = [run.name for run in self.trace.tool_runs]
                what = f"a later model call failed with {type(error).__name__}"
                raise AgentRunError(what, ran, self.trace) from error
            raise
        call.seconds = time.perf_counter() - started
        call.usage, call.model = reply.usage, reply.model
        self.usage += reply.usage
        self.finish_reason, self.response_id = reply.finish_reason, reply.response_id
        self.produced.append(self._own(reply.message))

    def _own(self, message: Message) -> Message:
        return message.copy(
            message_id=message.message_id or new_id(),
            author_name=self.agent.name if message.role == "assistant" else None,
            source=MessageSource("model", self.agent.name),
        )

    def _request(self) -> tuple[list[Message], list[Message]]:
        """The system message, and the rest of the first request."""
        texts = [*([self.agent.instructions] if self.agent.instructions else []), *self.context.instructions]
        system = [Message("system", "\n\n".join(texts))] if texts else []
        added = self.context.get_messages()
        history = [m for m in added if m.source.kind == "history"]
        memories = [m for m in added if m.source.kind != "history"]
        inputs = self.context.input_messages
        after = self.agent.placement == "after_input"
        if not history and not inputs and not memories:
            raise InvalidInputError("there is nothing to send: pass a message, or a session with history")
        return system, [*history, *(inputs + memories if after else memories + inputs)]
