"""A history in a database: the key lives in the session's state, the connection in the provider.

Take it as a model for a database of your own: two short methods, and a session that can be resumed anywhere,
since all it carries is the key.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memlab.checks import check_type
from memlab.errors import InvalidInputError, MemlabError
from memlab.messages import Message
from memlab.providers.history import HistoryProvider
from memlab.providers.stored_messages import newest, read_message, tell_changes, write_message

_TABLE = """
CREATE TABLE IF NOT EXISTS messages (
    source_id TEXT NOT NULL, session_key TEXT NOT NULL, number INTEGER NOT NULL, message_id TEXT, body TEXT NOT NULL,
    PRIMARY KEY (source_id, session_key, number), UNIQUE (source_id, session_key, message_id)
) STRICT
"""


class SqliteHistoryProvider(HistoryProvider):
    """Keeps messages in one SQLite file, for all sessions and processes.

    Parameters
    ----------
    path : the database file; made when it is missing.
    source_id : the provider's name; two providers in one file keep apart by it.
    options : those of `HistoryProvider`.

    The key of a conversation is `session.state[source_id]["key"]`, by default the session's id. An acknowledged
    write survives a killed process. Raises MemlabError when the file is no such database.
    """

    DEFAULT_SOURCE_ID = "sqlite_history"

    def __init__(self, path: str | Path, source_id: str | None = None, **options: Any) -> None:
        super().__init__(source_id or self.DEFAULT_SOURCE_ID, **options)
        check_type("path", path, str, Path, what="the path of a file")
        self.path = Path(path)

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: dict[str, Any] | None = None,
        limit: int | None = None,
        **kwargs: Any,
    ) -> list[Message]:
        """The stored messages, oldest first; with `limit` the newest so many."""
        key = self._key(session_id, state)
        return newest(await asyncio.to_thread(self._read, key) if key else [], limit)

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Store the messages that are new."""
        if key := self._key(session_id, state):
            await asyncio.to_thread(self._write, key, list(messages), replace=False)

    async def replace_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None
    ) -> None:
        """Keep only these messages, in one transaction."""
        if key := self._key(session_id, state):
            await asyncio.to_thread(self._write, key, list(messages), replace=True)

    def _key(self, session_id: str | None, state: dict[str, Any] | None) -> str | None:
        if state is None or session_id is None:
            return session_id
        key = state.setdefault("key", session_id)
        if not isinstance(key, str) or not key.strip():
            raise InvalidInputError(f"session.state[{self.source_id!r}]['key'] is {key!r}; it must be a string")
        return key

    def _read(self, key: str) -> list[Message]:
        with self._connection() as database:
            rows = database.execute(
                "SELECT number, body FROM messages WHERE source_id = ? AND session_key = ? ORDER BY number",
                (self.source_id, key),
            ).fetchall()
        return [read_message(body, f"{self.path.name}, message {number} of this session,") for number, body in rows]

    def _write(self, key: str, messages: list[Message], *, replace: bool) -> None:
        mine = (self.source_id, key)
        with self._connection() as database:
            if replace:
                database.execute("DELETE FROM messages WHERE source_id = ? AND session_key = ?", mine)
            known: list[Message] = []
            for message in messages:
                # The number is taken inside the transaction, so that two processes never take the same one.
                added = database.execute(
                    "INSERT OR IGNORE INTO messages SELECT ?1, ?2, coalesce(max(number), 0) + 1, ?3, ?4 "
                    "FROM messages WHERE source_id = ?1 AND session_key = ?2",
                    (*mine, message.message_id or None, write_message(message)),
                ).rowcount
                known += [] if added else [message]
            if known:
                tell_changes(self.source_id, self._same_ids(database, mine, known), known, ())

    def _same_ids(self, database: sqlite3.Connection, mine: tuple[str, str], messages: list[Message]) -> list[Message]:
        select = "SELECT body FROM messages WHERE source_id = ? AND session_key = ? AND message_id = ?"
        rows = [database.execute(select, (*mine, message.message_id)).fetchone() for message in messages]
        return [read_message(body, f"{self.path.name}, a message of this session,") for (body,) in rows]

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction of its own. Each call opens one: threads never share it."""
        try:
            database = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        except sqlite3.Error as error:
            raise MemlabError(f"{self.path.name} can't be opened: {error}; does its folder exist?") from error
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("BEGIN IMMEDIATE")
            database.execute(_TABLE)
            yield database
            database.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            raise MemlabError(f"{self.path.name}: {error}; is it a database of memlab's, and writable?") from error
        finally:
            database.close()
