"""History providers: the whole conversation goes along with every request.

`HistoryProvider` is the base class: override `get_messages` and `save_messages`, and say with flags what is
loaded and what is stored. `InMemoryHistoryProvider` keeps the messages in the session itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from memlab.errors import InvalidInputError
from memlab.messages import Message
from memlab.providers.base import ContextProvider, SessionContext
from memlab.providers.reducers import Reducer
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
    reducer : shortens what is sent; what is stored stays whole.
    load_filter : a function of the stored messages that returns those to send.

    Without a session a history provider loads and stores nothing.
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
        load_filter: Callable[[list[Message]], list[Message]] | None = None,
    ) -> None:
        super().__init__(source_id)
        if isinstance(store_context_from, str):
            raise InvalidInputError(f"store_context_from is {store_context_from!r}; pass a set of source ids")
        self.load_messages = load_messages
        self.store_inputs = store_inputs
        self.store_outputs = store_outputs
        self.store_context_messages = store_context_messages
        self.store_context_from = None if store_context_from is None else set(store_context_from)
        self.reducer = reducer
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

    async def before_run(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Load the history into the context, reduced where a reducer is set."""
        if context.session_id is None:
            return
        messages = await self.get_messages(context.session_id, state=state)
        if self.load_filter is not None:
            messages = self._keep(context, messages, self.load_filter(messages), "load_filter")
        if self.reducer is not None:
            kept = await self.reducer.reduce(messages)
            messages = self._keep(context, messages, kept, type(self.reducer).__name__)
        context.extend_messages(self, messages)

    async def after_run(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store what the flags choose."""
        if context.session_id is None:
            return
        messages = self._context_to_store(context)
        if self.store_inputs:
            messages += context.input_messages
        if self.store_outputs and context.response is not None:
            messages += context.response.messages
        if messages:
            await self.save_messages(context.session_id, messages, state=state)

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


def unknown_messages(stored: Iterable[Message], messages: Iterable[Message]) -> list[Message]:
    """Those of `messages` whose id is not stored yet. Messages without an id are always new."""
    seen = {message.message_id for message in stored if message.message_id}
    new: list[Message] = []
    for message in messages:
        if message.message_id is None:
            new.append(message)
        elif message.message_id not in seen:
            new.append(message)
            seen.add(message.message_id)
    return new


class InMemoryHistoryProvider(HistoryProvider):
    """Keeps the history in `session.state[source_id]["messages"]`: it lives as long as the session is kept.

    >>> InMemoryHistoryProvider().source_id
    'in_memory'
    """

    DEFAULT_SOURCE_ID = "in_memory"

    def __init__(self, source_id: str | None = None, **options: Any) -> None:
        super().__init__(source_id or self.DEFAULT_SOURCE_ID, **options)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """The messages in `state`, the provider's part of the session's state."""
        return list((state or {}).get("messages", []))

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
        stored.extend(unknown_messages(stored, messages))
