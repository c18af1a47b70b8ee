"""ChatHistoryMemoryProvider: what was said before, in any session, found again by similarity.

    before a run   search the store with the user's words, and add what was found as one message
                   (or offer the search to the model as a tool)
    after a run    store what was said, stamped with its scope

Storage scope and search scope are separate: the first stamps what is stored, the second filters what is found.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from memlab.checks import check_type, fits
from memlab.errors import InvalidInputError
from memlab.messages import Message
from memlab.providers.base import ContextProvider, SessionContext
from memlab.providers.history import HistoryProvider
from memlab.providers.memory_options import SEARCH_SCHEMA, ChatHistoryMemoryProviderOptions, SearchTime, State
from memlab.providers.memory_text import messages_so_far, query_of, quoted, spoken, turns_of
from memlab.providers.state import ProviderSessionState
from memlab.session import AgentSession
from memlab.stores.base import Hit, MemoryRecord, VectorStore
from memlab.tools import FunctionTool, tool
from memlab.trace import Failure, ToolRun, Trace

if TYPE_CHECKING:
    from memlab.agent import Agent

logger = logging.getLogger("memlab.memory")

_OPTIONS = "ChatHistoryMemoryProviderOptions(max_results=…), with the options by name"
_NAMESPACE = uuid.UUID("6d656d6c-6162-4000-8000-7265636f7264")


class ChatHistoryMemoryProvider(ContextProvider):
    """Gives an agent memories of earlier conversations.

    Parameters
    ----------
    vector_store : where memories are kept, with an embedder of its own.
    collection_name : the collection in that store.
    vector_dimensions : the dimension of its vectors, `embedder.dimensions`.
    state_initializer : a function of the session that returns its `State`: whose memories are stored and
        searched. Called once for each session; what it raises ends the run.
    options : see `ChatHistoryMemoryProviderOptions`.

    A search or a write that fails never loses the user's answer: it is logged without any text, stands in the
    response's trace, and the run goes on.
    """

    def __init__(
        self,
        vector_store: VectorStore,
        collection_name: str,
        vector_dimensions: int,
        state_initializer: Callable[[AgentSession], State],
        options: ChatHistoryMemoryProviderOptions | None = None,
    ) -> None:
        check_type("options", options, ChatHistoryMemoryProviderOptions, None, what=_OPTIONS)
        self.options = options or ChatHistoryMemoryProviderOptions()
        super().__init__(self.options.state_key or type(self).__name__)
        if isinstance(vector_store, type) or not (hasattr(vector_store, "search") and hasattr(vector_store, "upsert")):
            raise InvalidInputError(
                f"vector_store is {vector_store!r:.80}; pass a store, for example InMemoryVectorStore(embedder)"
            )
        if getattr(vector_store, "embedder", self) is None:
            raise InvalidInputError("vector_store has no embedder; make it as InMemoryVectorStore(lab.embedder)")
        if not isinstance(collection_name, str) or not collection_name.strip():
            raise InvalidInputError(f"collection_name is {collection_name!r}; give the collection a name")
        if not fits(vector_dimensions, int) or vector_dimensions < 1:
            raise InvalidInputError(f"vector_dimensions is {vector_dimensions!r}; pass embedder.dimensions")
        self.vector_store = vector_store
        self.collection_name = collection_name
        self.vector_dimensions = vector_dimensions
        self._state = ProviderSessionState(state_initializer, self.source_id, State)
        self._dimensions_checked = False

    async def before_run(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add what is remembered, or the tool that searches for it."""
        scopes = self._state.get_or_initialize(session)
        await self._check_dimensions()
        if self.options.exclude_loaded and _history_comes_later(agent, self):
            raise InvalidInputError(
                "exclude_loaded leaves out what the history has loaded, and the history stands after "
                f"{self.source_id} in context_providers; put it before"
            )
        if self.options.search_time == SearchTime.ON_DEMAND_FUNCTION_CALLING:
            context.extend_tools(self.source_id, [self._search_tool(scopes, context)])
            return
        query = query_of(self.options.search_input_message_filter(messages_so_far(context)))
        if query and (text := self._as_text(await self._search(query, scopes, context))):
            context.extend_messages(self, [Message("user", text)])

    async def after_run(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store what was said in this run, in one write."""
        scopes = self._state.get_or_initialize(session)
        said = self.options.storage_input_request_message_filter(messages_so_far(context))
        if context.response is not None:
            said = [*said, *self.options.storage_input_response_message_filter(list(context.response.messages))]
        await self._store(self._records(said, scopes), context)

    async def after_tool(
        self, *, agent: Agent, session: AgentSession, context: SessionContext, state: dict[str, Any], run: ToolRun
    ) -> None:
        """Store the events of a tool at once: an order that was placed is placed, whatever the run comes to."""
        scope, now = self._state.get_or_initialize(session).storage_scope, self.options.clock()
        events = [
            MemoryRecord(event.text, "tool", scope, event.kind, now, author=run.name)
            for event in run.events
            if event.text.strip()
        ]
        await self._store(events, context)

    # --- searching ---

    def _search_tool(self, scopes: State, context: SessionContext) -> FunctionTool:
        async def search(userQuestion: str) -> str:  # noqa: N803 - the name that the model sees
            hits = await self._search(userQuestion, scopes, context) if userQuestion.strip() else []
            return self._as_text(hits)

        options = self.options
        make = tool(
            name=options.function_tool_name, description=options.function_tool_description, schema=SEARCH_SCHEMA
        )
        return make(search)

    async def _search(self, query: str, scopes: State, context: SessionContext) -> list[Hit]:
        options, found, cut_before = self.options, Trace(), self._texts_cut()
        try:
            hits = await self._in_thread(
                self.vector_store.search,
                self.collection_name,
                query,
                scope=scopes.searched,
                top_k=options.max_results,
                threshold=options.threshold,
                rank=options.rank,
                exclude_ids=self._loaded_ids(context, scopes) if options.exclude_loaded else (),
                trace=found,
                **options.where,
            )
        except Exception as error:  # noqa: BLE001 - a store may raise anything, and the user still wants an answer
            self._failed("search", error, context.trace)
            return []
        context.trace.searches += found.searches
        self._note_cuts(cut_before, "question", context.trace)
        logger.info("found %d memories for %s in %s", len(hits), self._shown(query), self._shown(scopes.searched))
        return hits

    def _loaded_ids(self, context: SessionContext, scopes: State) -> set[str]:
        history = [m for m in context.get_messages() if m.source.kind == "history" and m.message_id]
        loaded = turns_of(history) if self.options.store_turns_as_one else [[m] for m in history]
        return {self._record_id(scopes, *messages) for messages in loaded}

    def _as_text(self, hits: Sequence[Hit]) -> str:
        lines = [self._line(hit.record) for hit in hits]
        return "\n".join([self.options.context_prompt, *lines]) if lines else ""

    def _line(self, record: MemoryRecord) -> str:
        text = self.options.record_template.format(
            text=record.text, role=record.role, author=record.author or "", date=f"{record.created_at:%Y-%m-%d}"
        )
        return quoted(text) if self.options.quote_memories else text

    # --- storing ---

    def _records(self, messages: Sequence[Message], scopes: State) -> list[MemoryRecord]:
        """One record for each text of the user and the assistant, or one for all of them."""
        said = spoken(messages)
        now, scope = self.options.clock(), scopes.storage_scope
        if self.options.store_turns_as_one and said:
            text = "\n".join(message.text for message in said)
            return [MemoryRecord(text, "turn", scope, created_at=now, id=self._record_id(scopes, *said))]
        return [
            MemoryRecord(m.text, m.role, scope, created_at=now, id=self._record_id(scopes, m), author=m.author_name)
            for m in said
        ]

    def _record_id(self, scopes: State, *messages: Message) -> str:
        """The same message in the same scope has the same id; two users whose messages share an id do not collide.

        Under `deduplicate` the same text has the same id, so that it replaces what it repeats.
        """
        known: list[Any] = [[m.role, m.text] if self.options.deduplicate else m.message_id for m in messages]
        ids = [each or uuid.uuid4().hex for each in known]
        return uuid.uuid5(_NAMESPACE, json.dumps([scopes.storage_scope.set_fields(), ids])).hex

    async def _store(self, records: list[MemoryRecord], context: SessionContext) -> None:
        if not records:
            return
        cut_before = self._texts_cut()
        try:
            await self._in_thread(self.vector_store.upsert, self.collection_name, records)
        except Exception as error:  # noqa: BLE001 - see _search
            self._failed("write", error, context.trace)
            return
        self._note_cuts(cut_before, "record", context.trace)
        logger.info("stored %d records in %s", len(records), self._shown(records[0].scope))

    # --- both ---

    async def _in_thread(self, work: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return await asyncio.wait_for(asyncio.to_thread(work, *args, **options), self.options.timeout)

    async def _check_dimensions(self) -> None:
        embedder = getattr(self.vector_store, "embedder", None)
        if self._dimensions_checked or embedder is None:
            return
        try:  # asking an embedder for its dimensions may embed a text to see
            actual = await self._in_thread(lambda: getattr(embedder, "dimensions", self.vector_dimensions))
        except Exception:  # noqa: BLE001 - the search that follows meets the same fault, and reports it
            return
        if actual != self.vector_dimensions:
            raise InvalidInputError(
                f"vector_dimensions is {self.vector_dimensions}, but {embedder.model} makes {actual}-d vectors; "
                "pass embedder.dimensions"
            )
        self._dimensions_checked = True

    def _texts_cut(self) -> int:
        return getattr(getattr(self.vector_store, "embedder", None), "truncated", 0)

    def _note_cuts(self, before: int, what: str, trace: Trace) -> None:
        if self._texts_cut() > before:
            trace.notes.append(f"a {what} was too long for the embedder, which saw its beginning alone")

    def _failed(self, what: str, error: Exception, trace: Trace) -> None:
        kind = type(error).__name__
        trace.failures.append(Failure(f"{self.source_id}.{what}", kind))
        logger.error("the memory %s of %s failed with %s; the run goes on", what, self.collection_name, kind)

    def _shown(self, value: object) -> str:
        """How `value` stands in a log: as it is only with the opt-in."""
        if self.options.enable_sensitive_telemetry_data:
            return str(value)
        try:
            return self.options.redactor(str(value)) if self.options.redactor else "<redacted>"
        except Exception:  # noqa: BLE001 - a redactor that fails must neither leak nor cost the answer
            return "<redacted>"


def _history_comes_later(agent: Agent, memory: ContextProvider) -> bool:
    providers = list(getattr(agent, "context_providers", None) or [])
    later = providers[providers.index(memory) + 1 :] if memory in providers else []
    return any(isinstance(provider, HistoryProvider) and provider.load_messages for provider in later)
