"""Shared parts of the tests of memory: a fast embedder, a store that fails on demand, and agents with a memory."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from memlab import (
    EVERYONE,
    Agent,
    AgentResponse,
    ChatHistoryMemoryProvider,
    ChatHistoryMemoryProviderOptions,
    HistoryProvider,
    InMemoryVectorStore,
    Lab,
    MemoryRecord,
    MemoryScope,
    Message,
    State,
    connect,
)
from memlab.providers.history import newest, unknown_messages

COLLECTION = "chat_history_memory"
PROMPT = "## Memories\nConsider the following memories when answering user questions:"


@cache
def lab() -> Lab:
    """One offline connection for all tests."""
    return connect("offline")


class BagEmbedder:
    """A bag of words: texts that share words are near each other. Deterministic and fast."""

    model, dimensions = "bag-of-words", 64

    def embed(self, texts: Sequence[str], role: str = "document") -> np.ndarray:
        vectors = np.full((len(texts), self.dimensions), 0.01, dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in text[:2000].lower().replace("?", " ").replace(".", " ").split():
                vector[zlib.crc32(word.encode("utf-8", "replace")) % self.dimensions] += 1
        return vectors


class FaultyStore(InMemoryVectorStore):
    """A store that fails or is slow on demand. It counts the searches and keeps each write."""

    def __init__(self, embedder: Any = None) -> None:
        super().__init__(embedder or BagEmbedder())
        self.fail_search: Exception | None = None
        self.fail_write: Exception | None = None
        self.slow_search = self.slow_write = 0.0
        self.searches: list[str] = []
        self.writes: list[list[MemoryRecord]] = []
        self.threads: set[int] = set()

    def search(self, collection: str, query: Any, **options: Any) -> Any:
        self.searches.append(query)
        self.threads.add(threading.get_ident())
        time.sleep(self.slow_search)
        if self.fail_search:
            raise self.fail_search
        return super().search(collection, query, **options)

    def upsert(self, collection: str, records: Sequence[MemoryRecord]) -> list[str]:
        self.threads.add(threading.get_ident())
        time.sleep(self.slow_write)
        if self.fail_write:
            raise self.fail_write
        self.writes.append(list(records))
        return super().upsert(collection, records)


def user_state(session: Any) -> State:
    """The usual state: one user's memories."""
    return State(MemoryScope(user_id=session.state["user_id"]))


def memory(store: Any = None, state: Any = user_state, **options: Any) -> ChatHistoryMemoryProvider:
    """A memory provider; `state` is a `State`, or a function of the session that makes one."""
    store = FaultyStore() if store is None else store
    initializer = (lambda session: state) if isinstance(state, State) else state
    chosen = ChatHistoryMemoryProviderOptions(**options)
    return ChatHistoryMemoryProvider(store, COLLECTION, store.embedder.dimensions, initializer, chosen)


def remembering(provider: Any, client: Any = None, **options: Any) -> Agent:
    """An agent with this memory, by default on the classroom model."""
    return Agent(client or lab().chat, context_providers=[provider], **options)


async def ask(agent: Agent, text: Any, user: str = "alice", **options: Any) -> AgentResponse:
    """One run in a new session of a user."""
    session = agent.create_session()
    session.state["user_id"] = user
    return await agent.run(text, session=session, **options)


def injected(response: AgentResponse, source_id: str = "ChatHistoryMemoryProvider") -> list[str]:
    """The texts that a provider added to the first request of a run."""
    return [message.text for message in response.trace.sent if message.source.source_id == source_id]


def remembered(response: AgentResponse) -> list[str]:
    """The single memories that were injected, best first."""
    return [line for text in injected(response) for line in text.removeprefix(PROMPT + "\n").split("\n")]


def records(store: Any, scope: Any = EVERYONE, **options: Any) -> list[MemoryRecord]:
    """All records of a store, oldest first."""
    return store.scan(COLLECTION, scope=scope, **options)[::-1]


def texts(store: Any, scope: Any = EVERYONE, **options: Any) -> list[str]:
    """The texts of all records of a store, oldest first."""
    return [record.text for record in records(store, scope, **options)]


# --- a history provider as a learner would write it ---


def open_database(path: Any) -> sqlite3.Connection:
    """The learner's database: one table."""
    client = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    client.execute("CREATE TABLE IF NOT EXISTS chat (id INTEGER PRIMARY KEY, key TEXT, message_id TEXT, body TEXT)")
    return client


class DatabaseHistoryProvider(HistoryProvider):
    """Keeps messages in a database: the connection is the provider's, the key is in the session's state."""

    def __init__(self, db_client: sqlite3.Connection, source_id: str = "database", **options: Any) -> None:
        super().__init__(source_id, **options)
        self.db = db_client

    def _key(self, session_id: str | None, state: dict[str, Any]) -> str:
        return state.setdefault("key", json.dumps([self.source_id, session_id]))

    async def get_messages(
        self, session_id: str | None, *, state: Any = None, limit: int | None = None, **kwargs: Any
    ) -> list[Message]:
        key = self._key(session_id, state)
        rows = self.db.execute("SELECT body FROM chat WHERE key = ? ORDER BY id", (key,)).fetchall()
        return newest([Message.from_dict(json.loads(body)) for (body,) in rows], limit)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: Any = None, **kwargs: Any
    ) -> None:
        stored = await self.get_messages(session_id, state=state)
        for message in unknown_messages(stored, messages):
            row = (self._key(session_id, state), message.message_id, json.dumps(message.to_dict()))
            self.db.execute("INSERT INTO chat (key, message_id, body) VALUES (?, ?, ?)", row)

    async def replace_messages(self, session_id: str | None, messages: Sequence[Message], *, state: Any = None) -> None:
        self.db.execute("DELETE FROM chat WHERE key = ?", (self._key(session_id, state),))
        await self.save_messages(session_id, messages, state=state)
