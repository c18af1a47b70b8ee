"""A memlab provider inside an agent of Microsoft's Agent Framework (extra `agent-framework`).

    from agent_framework import Agent, InMemoryHistoryProvider
    from memlab.interop.agent_framework import adapt, trace_of

    agent = Agent(client=client, context_providers=[InMemoryHistoryProvider(), adapt(memory)])
    response = await agent.run("…", session=session)
    trace_of(response).searches

The adapter turns their messages into ours and back. Everything else, the scopes, the store, the options, is the
provider's own. Where the messages of a provider stand in the request is the host's choice.
"""

from __future__ import annotations

import copy
import json
import logging
import time
from typing import Any
from weakref import WeakKeyDictionary

from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.messages import (
    ROLES,
    Content,
    Message,
    MessageSource,
    Text,
    ToolCall,
    ToolResult,
    UsageDetails,
    new_id,
)
from memlab.providers.base import ContextProvider, SessionContext
from memlab.providers.history import HistoryProvider
from memlab.providers.memory_options import State
from memlab.response import AgentResponse
from memlab.tools import FunctionTool, collecting_events
from memlab.trace import Event, Failure, ToolRun, Trace

try:
    import agent_framework as af
except ImportError as missing:
    raise ImportError("Agent Framework is not installed: pip install 'memlab[agent-framework]'") from missing

logger = logging.getLogger("memlab.interop")

af.register_state_type(State, type_id="memlab.memory_state")

_traces: WeakKeyDictionary[Any, Trace] = WeakKeyDictionary()
_TRACE, _HOOKS = "memlab.trace", "memlab.hooks"  # in the metadata of their context, which lives as long as a run


def adapt(provider: ContextProvider) -> af.ContextProvider:
    """`provider` as a context provider of Agent Framework, under the same source_id.

    An after-hook that fails is logged and stands in the trace; the answer is kept. Events that a tool records are
    stored as soon as it has succeeded. List the host's history provider before this one.
    Raises InvalidTypeError for anything but a memlab provider, InvalidInputError for a history provider, since
    Agent Framework has its own.
    """
    if not isinstance(provider, ContextProvider):
        raise InvalidTypeError(f"provider is a {type(provider).__name__}; adapt takes a memlab ContextProvider")
    if isinstance(provider, HistoryProvider):
        raise InvalidInputError(
            f"{type(provider).__name__} keeps history, and Agent Framework would add a second one beside it; "
            "use agent_framework's HistoryProvider classes for history and adapt the memory provider alone"
        )
    return _Adapter(provider)


def adapt_tool(tool: FunctionTool) -> af.FunctionTool:
    """A memlab tool as one of Agent Framework: the same schema, the same check of arguments, the same events.

    Plain functions and their own tools need no adapter. `record_event` and a returned `Event` need an adapted
    provider among the agent's context providers: without one, the call fails with the error of `record_event`.
    """
    if not isinstance(tool, FunctionTool):
        raise InvalidTypeError(f"tool is a {type(tool).__name__}; adapt_tool takes what memlab's @tool makes")

    async def run(**arguments: Any) -> str:
        return await tool.invoke(json.dumps(arguments))

    return af.FunctionTool(name=tool.name, description=tool.description, func=run, input_model=tool.parameters)


def trace_of(response: Any) -> Trace:
    """What the adapted providers of one run searched, stored events of, and failed at.

    `response` is the object that `agent.run` or `get_final_response` gave; an empty trace for any other.
    """
    return _traces.get(response) or Trace()


class _Adapter(af.ContextProvider):
    """A memlab provider as Agent Framework calls it."""

    def __init__(self, provider: ContextProvider) -> None:
        super().__init__(provider.source_id)
        self.provider = provider

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        # With ids the same words said twice stay two messages, and a memory can be told from the history.
        context.input_messages = [_with_id(message) for message in context.input_messages]
        ours = _context(context, agent)
        known = {source_id: len(messages) for source_id, messages in ours.context_messages.items()}
        tools = len(ours.tools)
        await self.provider.before_run(agent=agent, session=session, context=ours, state=state)
        for source_id, messages in ours.context_messages.items():
            if new := messages[known.get(source_id, 0) :]:
                source = self if source_id == self.source_id else source_id
                context.extend_messages(source, [_to_theirs(message) for message in new])
        context.extend_tools(self.source_id, [adapt_tool(tool) for tool in ours.tools[tools:]])
        context.extend_instructions(self.source_id, ours.instructions)
        self._watch_tools(context, {"agent": agent, "session": session, "context": ours, "state": state})

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        for message in context.response.messages if context.response else ():
            message.message_id = message.message_id or new_id()
        ours = _context(context, agent)
        if context.response is not None:
            ours.response = _response(context.response, ours.trace)
            _traces[context.response] = ours.trace
        hook = {"agent": agent, "session": session, "context": ours, "state": state}
        await _guarded(self.provider, "after_run", hook)

    def _watch_tools(self, context: Any, hook: dict[str, Any]) -> None:
        """One middleware for all adapted providers of a run: the first of them adds it."""
        hooks = context.metadata.setdefault(_HOOKS, [])
        if not hooks:
            context.extend_middleware(self.source_id, _ToolEvents(hook["context"].trace, hooks))
        hooks.append((self.provider, hook))


class _ToolEvents(af.FunctionMiddleware):
    """Collects what a tool records, and gives it to every adapted provider once the tool has succeeded."""

    def __init__(self, trace: Trace, hooks: list[tuple[ContextProvider, dict[str, Any]]]) -> None:
        self.trace, self.hooks = trace, hooks

    async def process(self, context: Any, call_next: Any) -> None:
        started, failed = time.perf_counter(), True
        with collecting_events() as events:
            try:
                await call_next()
                failed = False
            finally:
                run = _tool_run(context, failed, time.perf_counter() - started, events)
                self.trace.tool_runs.append(run)
        for provider, hook in self.hooks if run.events else ():
            await _guarded(provider, "after_tool", {**hook, "run": run})


def _tool_run(context: Any, failed: bool, seconds: float, events: list[Event]) -> ToolRun:
    arguments = json.dumps(dict(context.arguments), ensure_ascii=False, default=str)
    parts = context.result if isinstance(context.result, list) else [context.result]
    result = "" if failed else "".join(str(getattr(part, "text", part) or "") for part in parts)
    return ToolRun(context.function.name, arguments, result, failed, seconds, () if failed else tuple(events))


async def _guarded(provider: ContextProvider, name: str, arguments: dict[str, Any]) -> None:
    """Call a hook that must not cost the user the answer."""
    try:
        await getattr(provider, name)(**arguments)
    except Exception as error:  # noqa: BLE001 - a provider may raise anything
        failure = Failure(f"{provider.source_id}.{name}", type(error).__name__)
        arguments["context"].trace.failures.append(failure)
        logger.error("%s failed: %s; the answer is kept", failure.where, failure.error)


# --- their objects as ours, and back ---


def _context(theirs: Any, agent: Any) -> SessionContext:
    """Their context as ours. Its lists are new: what a provider adds is taken from them afterwards."""
    providers = getattr(agent, "context_providers", None) or ()
    history = {p.source_id for p in providers if isinstance(p, af.HistoryProvider)}
    added = {
        source_id: _messages(messages, MessageSource("history" if source_id in history else "provider", source_id))
        for source_id, messages in theirs.context_messages.items()
    }
    return SessionContext(
        _messages(theirs.input_messages, MessageSource()),
        theirs.session_id,
        theirs.service_session_id,
        context_messages=added,
        tools=[_our_tool(tool) for tool in theirs.tools if isinstance(tool, af.FunctionTool)],
        trace=theirs.metadata.setdefault(_TRACE, Trace()),
    )


def _response(theirs: Any, trace: Trace) -> AgentResponse:
    usage = {name: count for name, count in (theirs.usage_details or {}).items() if isinstance(count, int)}
    return AgentResponse(_messages(theirs.messages, MessageSource("model")), UsageDetails(usage), trace)


def _messages(theirs: Any, source: MessageSource) -> list[Message]:
    return [to_message(message, source) for message in theirs if message.role in ROLES]


def to_message(theirs: Any, source: MessageSource | None = None) -> Message:
    """A message of Agent Framework as one of memlab. Contents that are neither text nor tool calls are left out."""
    contents = [made for content in theirs.contents if (made := _content(content)) is not None]
    return Message(theirs.role, contents, author_name=theirs.author_name, message_id=theirs.message_id, source=source)


def _content(theirs: Any) -> Content | None:
    if theirs.type == "text":
        return Text(theirs.text or "")
    if theirs.type == "function_call":
        arguments = theirs.arguments or "{}"
        text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False)
        return ToolCall(theirs.call_id, theirs.name, text)
    if theirs.type == "function_result":
        return ToolResult(theirs.call_id, str(theirs.result or ""), theirs.exception is not None)
    return None


def _our_tool(theirs: Any) -> FunctionTool:
    return FunctionTool(theirs.name, theirs.description, theirs.parameters(), theirs, dict)


def _with_id(theirs: Any) -> Any:
    if theirs.message_id:
        return theirs
    twin = copy.copy(theirs)
    twin.message_id = new_id()
    return twin


def _to_theirs(message: Message) -> Any:
    contents = [_their_content(content) for content in message.contents]
    return af.Message(message.role, contents, author_name=message.author_name, message_id=message.message_id)


def _their_content(content: Content) -> Any:
    if isinstance(content, Text):
        return af.Content.from_text(content.text)
    if isinstance(content, ToolCall):
        return af.Content.from_function_call(content.call_id, content.name, arguments=content.arguments)
    error = "error" if content.is_error else None
    return af.Content.from_function_result(content.call_id, result=content.result, exception=error)
