"""History providers: the whole conversation goes along with every request.

`HistoryProvider` is the base class: override `get_messages` and `save_messages`, and say with flags what is
loaded and what is stored. `InMemoryHistoryProvider` keeps the messages in the session itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from memlab.checks import check_type
from memlab.errors import InvalidInputError
from memlab.messages import Message
from memlab.providers.base import ContextProvider, SessionContext
from memlab.providers.reducers import Reducer, repair_tool_calls
from memlab.providers.stored_messages import newest, noting_changes, tell_changes, unknown_messages
from memlab.session import AgentSession
from memlab.trace import Dropped

if TYPE_CHECKING:
    from memlab.agent import Agent


class HistoryProvider(ContextProvider):
    """Loads the conversation before a run and stores it after one.

    Parameters
    ----------
    source_id : the provider's name, and its key in the session's state.
    load_messages : whether history is sent; at most one provider of an agent may load.
    store_inputs, store_outputs : whether the caller's messages and the agent's answers are stored.
    store_context_messages : whether what other providers added is stored, too; `store_context_from` names
        the providers it is taken from (None: from all).
    reducer : shortens a long history.
    reducer_trigger : "before_retrieval" shortens what is sent, and what is stored stays whole; "after_adding"
        shortens what is stored, so that what was dropped is gone.
    load_filter : a function of the stored messages that returns those to send.

    Without a session a history provider loads and stores nothing. A message whose id is stored already is not stored
    again; if it says something else, the stored one stays, and log and trace say so.
    """

    message_kind = "history"

    def __init__(
        self,
        source_id: str,
        *,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_outputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: Iterable[str] | None = None,
        reducer: Reducer | None = None,
        reducer_trigger: Literal["before_retrieval", "after_adding"] = "before_retrieval",
        load_filter: Callable[[list[Message]], list[Message]] | None = None,
    ) -> None:
        super().__init__(source_id)
        if isinstance(store_context_from, str):
            raise InvalidInputError(f"store_context_from is {store_context_from!r}; pass a set of source ids")
        check_type("store_context_from", store_context_from, Iterable, None, what="a set of source ids or None")
        if reducer is not None and (isinstance(reducer, type) or not hasattr(reducer, "reduce")):
            check_type(
                "reducer", reducer, what="an object with a method reduce, such as MessageCountReducer(20), or None"
            )
        check_type("load_filter", load_filter, Callable, None)
        self.load_messages = load_messages
        self.store_inputs = store_inputs
        self.store_outputs = store_outputs
        self.store_context_messages = store_context_messages
        self.store_context_from = None if store_context_from is None else set(store_context_from)
        if reducer_trigger not in ("before_retrieval", "after_adding"):
            raise InvalidInputError(
                f"reducer_trigger is {reducer_trigger!r}; it must be 'before_retrieval' or 'after_adding'"
            )
        self.reducer = reducer
        self.reducer_trigger = reducer_trigger
        self.load_filter = load_filter

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """The stored messages of a session, oldest first. To override."""
        raise NotImplementedError(f"{type(self).__name__} must override get_messages")

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Store new messages of a session after those it has. To override."""
        raise NotImplementedError(f"{type(self).__name__} must override save_messages")

    async def replace_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None
    ) -> None:
        """Keep only these messages of a session. To override for `reducer_trigger="after_adding"`."""
        raise NotImplementedError(f"{type(self).__name__} must override replace_messages to reduce what is stored")

    async def before_run(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Load the history into the context, reduced where a reducer is set."""
        if context.session_id is None:
            return
        messages = await self.get_messages(context.session_id, state=state)
        if self.load_filter is not None:
            messages = self._keep(context, messages, self.load_filter(list(messages)), "load_filter")
        if self.reducer is not None and self.reducer_trigger == "before_retrieval":
            kept = await self.reducer.reduce(messages)
            messages = self._keep(context, messages, kept, type(self.reducer).__name__)
        context.extend_messages(self, self._keep(context, messages, repair_tool_calls(messages), "orphaned tool call"))

    async def after_run(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store what the flags choose."""
        outputs = context.response.messages if context.response is not None else []
        await self.after_call(agent=agent, session=session, context=context, state=state, outputs=outputs, first=True)

    async def after_call(
        self,
        *,
        agent: Agent,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
        outputs: Sequence[Message],
        first: bool,
    ) -> None:
        """Store the messages of one call of the model; those of the request with the first call of a run.

        Called instead of `after_run` where an agent requires per-service-call persistence.
        """
        if context.session_id is None:
            return
        messages = self._context_to_store(context) if first else []
        if self.store_inputs and first:
            messages += context.input_messages
        if self.store_outputs:
            messages += outputs
        if messages:
            with noting_changes(context.trace):
                await self.save_messages(context.session_id, messages, state=state)
        if self.reducer is not None and self.reducer_trigger == "after_adding":
            stored = await self.get_messages(context.session_id, state=state)
            kept = self._keep(context, stored, await self.reducer.reduce(stored), type(self.reducer).__name__)
            if kept != stored:
                await self.replace_messages(context.session_id, kept, state=state)

    def _context_to_store(self, context: SessionContext) -> list[Message]:
        if not self.store_context_messages:
            return []
        added = context.get_messages(sources=self.store_context_from, exclude_sources={self.source_id})
        return [message for message in added if message.source.kind != "history"]

    def _keep(self, context: SessionContext, before: list[Message], after: list[Message], why: str) -> list[Message]:
        remaining = {id(message) for message in after}
        if dropped := [message for message in before if id(message) not in remaining]:
            context.trace.dropped.append(Dropped(self.source_id, dropped, why))
        return after


class InMemoryHistoryProvider(HistoryProvider):
    """Keeps the history in `session.state[source_id]["messages"]`: it lives as long as the session is kept.

    >>> InMemoryHistoryProvider().source_id
    'in_memory'
    """

    DEFAULT_SOURCE_ID = "in_memory"

    def __init__(self, source_id: str | None = None, **options: Any) -> None:
        super().__init__(source_id or self.DEFAULT_SOURCE_ID, **options)

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: dict[str, Any] | None = None,
        limit: int | None = None,
        **kwargs: Any,
    ) -> list[Message]:
        """The messages in `state`, the provider's part of the session's state; with `limit` the newest so many."""
        stored = (state or {}).get("messages", [])
        if not isinstance(stored, list) or not all(isinstance(message, Message) for message in stored):
            raise InvalidInputError(
                f"session.state[{self.source_id!r}]['messages'] holds something else than messages; "
                "remove it to begin anew"
            )
        return newest(list(stored), limit)

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append the messages that are new to `state`."""
        if state is None:
            raise InvalidInputError("an in-memory history needs state=, the provider's part of session.state")
        stored = state.setdefault("messages", [])
        new = unknown_messages(stored, messages)
        tell_changes(self.source_id, stored, messages, new)
        stored.extend(message.copy() for message in new)

    async def replace_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None
    ) -> None:
        """Keep only these messages."""
        if state is not None:
            state["messages"] = [message.copy() for message in messages]
