"""The file behind `SqliteVectorStore`: its tables, its one connection, and errors in plain words."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memlab.checks import check_type
from memlab.errors import InvalidInputError, MemlabError

_APPLICATION_ID = 0x6D656D6C  # "meml", in the header of the file
_VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS collections (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, model TEXT, dimensions INTEGER NOT NULL,
    sequence INTEGER NOT NULL DEFAULT 0, -- the number of the next change, and how readers see that there was one
    horizon INTEGER NOT NULL DEFAULT 0   -- deletions before this number are forgotten: who is behind it reads anew
) STRICT;
CREATE TABLE IF NOT EXISTS records (
    collection INTEGER NOT NULL, sequence INTEGER NOT NULL, id TEXT NOT NULL, role TEXT NOT NULL, author TEXT,
    application_id TEXT, agent_id TEXT, session_id TEXT, user_id TEXT, kind TEXT NOT NULL, text TEXT NOT NULL,
    created_at INTEGER NOT NULL,         -- microseconds since 1970, UTC
    embedding BLOB NOT NULL,             -- little-endian float32, of length 1
    UNIQUE (collection, id), UNIQUE (collection, sequence)
) STRICT;
CREATE TABLE IF NOT EXISTS deletions (
    collection INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, PRIMARY KEY (collection, number, id)
) STRICT, WITHOUT ROWID;
"""
_SHARED = {"messages", "sqlite_sequence"}  # a history of memlab's may live in the same file
_REMEDIES = {
    "not a database": "it is no SQLite file; give another path",
    "malformed": "it is damaged; restore a copy, or save what is left with the `.recover` command of sqlite3",
    "full": "the disk is full; nothing of this write was stored, all earlier writes are safe; make room and repeat it",
    "i/o": "the disk refuses to read or write it, or is full; what was acknowledged before is safe",
    "readonly": "it may not be written; change its permissions, or copy it",
    "unable to open": "its folder must exist, and this process must be allowed to read and write there",
    "locked": "another process keeps it locked; end that one, or try again",
}


class SqliteFile:
    """One connection, which threads use in turns: whoever uses it holds `lock`.

    `synchronous` is SQLite's: with "NORMAL" what was acknowledged survives the death of the process, with "FULL"
    that of the machine, too, at the price of one flush of the disk for each write.
    """

    def __init__(self, path: str | Path, synchronous: str = "NORMAL") -> None:
        check_type("path", path, str, Path, what="the path of a file")
        if synchronous not in ("NORMAL", "FULL"):
            raise InvalidInputError(f"synchronous is {synchronous!r}; it must be 'NORMAL' or 'FULL'")
        self.path, self.synchronous = Path(path), synchronous
        self.lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[str, tuple[int, int] | None] = ("", None)  # where the file was, and which one it is
        self._process = os.getpid()
        with self.reading():
            pass  # say now what is wrong with the file, not at the first question

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection within a transaction that sees one state of the file."""
        with self._transaction("BEGIN") as database:
            yield database

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection within a transaction that is the only one to write: all of it is stored, or nothing."""
        with self._transaction("BEGIN IMMEDIATE") as database:
            yield database

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self.lock, self._plain_errors():
            database = self._open()
            database.execute(begin)
            try:
                yield database
                database.execute("COMMIT")
            finally:
                if database.in_transaction:  # an error, also one of COMMIT itself
                    database.execute("ROLLBACK")

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            said = str(error)
            remedy = next((words for sign, words in _REMEDIES.items() if sign in said.lower()), "")
            raise MemlabError(f"{self.path.name}: {said}{'; ' if remedy else ''}{remedy}") from error

    def _open(self) -> sqlite3.Connection:
        if self._process != os.getpid():  # a connection must not be carried into a forked process
            self._connection, self._process = None, os.getpid()
        if self._connection is None:
            database = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(database)
            except BaseException:
                database.close()
                raise
            place = os.path.abspath(self.path)
            self._connection, self._opened = database, (place, _identity(place))
        else:
            self._refuse_other_file()
        return self._connection

    def _refuse_other_file(self) -> None:
        """Notice a file that was deleted under the connection: what is written into that is lost."""
        place, opened = self._opened
        if opened is not None and _identity(place) != opened:
            raise MemlabError(
                f"{self.path.name} was deleted, moved or replaced while this store had it open: a write would be lost; "
                "put the file back, or close() the store and remove the old file's -wal and -shm to go on with the new"
            )

    def _prepare(self, database: sqlite3.Connection) -> None:
        owner = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if owner != _APPLICATION_ID:
            self._refuse_foreign(database, owner)
            database.execute("PRAGMA page_size = 16384")  # several vectors a page
        elif version != _VERSION:
            raise MemlabError(f"{self.path.name} has format {version}; this memlab reads format {_VERSION}")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA synchronous = {self.synchronous}")
        if owner != _APPLICATION_ID:
            database.executescript(
                f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {_APPLICATION_ID};"
                f"PRAGMA user_version = {_VERSION}; COMMIT"
            )

    def _refuse_foreign(self, database: sqlite3.Connection, owner: int) -> None:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        ours = {"collections", "records", "deletions"}  # the moment before another process signs the new file
        if owner or (tables - _SHARED - ours):
            raise MemlabError(f"{self.path.name} is a database of another program; give a path of its own")

    def close(self) -> None:
        """Close the connection. The next use opens the path again."""
        with self.lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None


def _identity(place: str) -> tuple[int, int] | None:
    """Which file is there, by device and inode; None where there is none. Takes about 2 microseconds."""
    try:
        found = os.stat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino
