"""Connections to PostgreSQL for `PostgresVectorStore`: opened when needed, lent to one thread at a time.

This module needs psycopg and pgvector, so the store imports it on use.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from pgvector.psycopg import register_vector
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict

from memlab.errors import ConfigurationError, InvalidInputError, MemlabError

T = TypeVar("T")
_KEPT_OPEN = 8
_LOCK = 0x6D656D6C  # an advisory lock: who makes extension and tables does it alone
_COLLECTIONS = """
CREATE TABLE IF NOT EXISTS memlab_collections (
    name text PRIMARY KEY, table_name text NOT NULL UNIQUE, model text, dimensions integer NOT NULL,
    sequence bigint NOT NULL DEFAULT 0, has_index boolean NOT NULL DEFAULT false
)
"""


class Server:
    """A database, by its URL. `run(work)` calls `work(connection)` within one transaction."""

    def __init__(self, url: str) -> None:
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise InvalidInputError("the URL is none of PostgreSQL; write postgresql://user@host:5432/name") from error
        self._url = url
        self.name = f"PostgreSQL database {parts.get('dbname', '')!r}"  # never the URL: it may hold a password
        self._idle: list[Connection[Any]] = []
        self._lock = threading.Lock()

    def run(self, work: Callable[[Connection[Any]], T]) -> T:
        """The result of `work`, committed. If the connection has dropped, all of it is done once more on a new one.

        So `work` must be such that a second time does no harm. Raises MemlabError for what the database refuses.
        """
        try:
            return self._once(work)
        except _Interrupted:
            self.close()  # the others have most likely dropped as well
        try:
            return self._once(work)
        except _Interrupted as error:
            raise MemlabError(f"{self.name} was interrupted twice: {error}; try again") from error

    def _once(self, work: Callable[[Connection[Any]], T]) -> T:
        connection = self._take()
        try:
            with connection.transaction():
                result = work(connection)
        except psycopg.Error as error:
            # A table that is gone since its name was read: its collection was embedded again meanwhile.
            if connection.closed or isinstance(error, psycopg.errors.UndefinedTable):
                raise _Interrupted(_words(error)) from error
            raise MemlabError(f"{self.name}: {_words(error)}") from error
        finally:
            self._give_back(connection)
        return result

    def _take(self) -> Connection[Any]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        try:
            connection = psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        except psycopg.Error as error:
            raise MemlabError(
                f"{self.name} can't be reached: {_words(error)}; is it running? All that was acknowledged is stored; "
                "repeat what was not"
            ) from error
        try:
            _prepare(connection)
        except psycopg.Error as error:
            connection.close()
            raise ConfigurationError(
                f"{self.name} can't be set up: {_words(error)}; it needs the extension pgvector, which an "
                "administrator adds with CREATE EXTENSION vector, and the right to create tables"
            ) from error
        return connection

    def _give_back(self, connection: Connection[Any]) -> None:
        with self._lock:
            if not connection.closed and len(self._idle) < _KEPT_OPEN:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the connections that nobody uses. The next use opens new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class _Interrupted(Exception):  # noqa: N818 - not an error yet: it is tried again
    """The work was not done, for a reason that may be gone the next time."""


def _words(error: Exception) -> str:
    return " ".join(str(error).split())  # in one line


def _prepare(connection: Connection[Any]) -> None:
    connection.execute("SET timezone = 'UTC'")
    made = connection.execute(
        "SELECT to_regtype('vector') IS NOT NULL AND to_regclass('memlab_collections') IS NOT NULL"
    ).fetchone()
    if made is None or not made[0]:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            connection.execute(_COLLECTIONS)
    register_vector(connection)
