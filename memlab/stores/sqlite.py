"""A vector store in one SQLite file: a durable log of records, with the in-memory index over it.

Every write goes to the file first, in one transaction, and then into the index. Before every operation the index
reads what other processes have written since: each change of a collection has a number, and the index knows the
last one it has seen. So searching and ranking are those of the store in memory, and all processes see one state.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection as Ids
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from memlab.stores.base import SCOPE_FIELDS, CollectionInfo, Embeds, MemoryRecord, MemoryScope, SearchScope, Vector
from memlab.stores.collection import Collection
from memlab.stores.in_memory import InMemoryVectorStore
from memlab.stores.inputs import check_ids, check_name, check_space, filters, record_vectors, unit_parts
from memlab.stores.sqlite_file import SqliteFile

_COLUMNS = ("sequence", "id", "role", "author", *SCOPE_FIELDS, "kind", "text", "created_at", "embedding")
_INSERT = (
    f"INSERT OR REPLACE INTO records (collection, {', '.join(_COLUMNS)}) "
    f"VALUES ({', '.join('?' * (len(_COLUMNS) + 1))})"
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM records WHERE collection = ? AND sequence >= ? ORDER BY sequence"
_START = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FLOAT = np.dtype("<f4")
_BLANK = MemoryRecord("-", id="-", created_at=_START)


class SqliteVectorStore(InMemoryVectorStore):
    """Keeps records and vectors in one file, for all threads and processes of this machine.

    Parameters
    ----------
    path : the file; made when it is missing.
    embedder : makes vectors of records and questions that come as text; None when all come as vectors.
    synchronous : "NORMAL": what was acknowledged survives a killed process. "FULL": a power loss, too; slower.

    The first use of a collection reads all of it into memory. Raises MemlabError, saying what to do, when the file
    is damaged, of another program, not writable, deleted or replaced, or the disk is full; then nothing of that write
    is stored.
    """

    def __init__(self, path: str | Path, embedder: Embeds | None = None, synchronous: str = "NORMAL") -> None:
        super().__init__(embedder)
        self._file = SqliteFile(path, synchronous)
        self._lock = self._file.lock
        self._numbers: dict[str, int] = {}

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def close(self) -> None:
        """Close the file. The next use opens what is at the path then, and reads it anew."""
        with self._lock:
            self._file.close()
            self._collections.clear()
            self._numbers.clear()

    def upsert(self, collection: str, records: Sequence[MemoryRecord]) -> list[str]:
        """Store records, replacing those of the same id, in one transaction; the ids come back.

        When it returns, they are in the file. Raises like `InMemoryVectorStore.upsert`, and MemlabError for a file
        that can't be written.
        """
        check_name(collection)
        if not records:
            return []
        check_ids(collection, records)
        vectors = record_vectors(records, self.embedder)
        with self._lock:
            with self._file.writing() as database:
                target = self._refreshed(database, collection)
                if target is None:
                    target = self._make(database, collection, len(vectors[0]))
                check_space(collection, target.model, target.dimensions, self._model(), len(vectors[0]))
                target.refuse_other_scope(records)
                parts = list(unit_parts(records, vectors))
                numbers = range(target.sequence, target.sequence + len(records))
                rows = _rows(self._numbers[collection], records, parts, numbers)
                database.executemany(_INSERT, rows)
                self._advance(database, collection, numbers.stop)
            self._apply(target, lambda: target.add(records, parts, numbers))
        return [record.id for record in records]

    def delete(self, collection: str, *, scope: SearchScope, ids: Ids[str] | None = None) -> int:
        """Remove the records of `scope`, or only those of `ids` among them; how many there were."""
        wanted = filters(scope)
        with self._lock:
            with self._file.writing() as database:
                target = self._refreshed(database, collection)
                doomed = [] if target is None else self._ids_of(target, wanted, ids)
                if target is None or not doomed:
                    return 0
                mine = self._numbers[collection]
                database.executemany(
                    "DELETE FROM records WHERE collection = ? AND id = ?", [(mine, record_id) for record_id in doomed]
                )
                database.executemany(
                    "INSERT INTO deletions VALUES (?, ?, ?)", [(mine, target.sequence, i) for i in doomed]
                )
                _forget_old_deletions(database, mine, target.sequence, len(target.row_of))
                self._advance(database, collection, target.sequence + 1)
            self._apply(target, lambda: target.discard(doomed, target.sequence + 1))
        return len(doomed)

    def move(self, collection: str, to: str, expected: CollectionInfo | None) -> bool:
        """Give a collection the name `to`, in place of the one that has it; see `InMemoryVectorStore.move`."""
        check_name(to)
        with self._lock:
            with self._file.writing() as database:
                if self._refreshed(database, collection) is None or self._info(database, to) != expected:
                    return False
                if expected is not None:
                    for table in ("records", "deletions"):
                        database.execute(f"DELETE FROM {table} WHERE collection = ?", (self._numbers[to],))
                    database.execute("DELETE FROM collections WHERE number = ?", (self._numbers[to],))
                database.execute("UPDATE collections SET name = ? WHERE name = ?", (to, collection))
            for name in (collection, to):  # to be read again
                self._forget(name)
        return True

    def _info(self, database: sqlite3.Connection, name: str) -> CollectionInfo | None:
        found = self._refreshed(database, name)
        return CollectionInfo(name, found.model, found.dimensions, found.sequence) if found else None

    def _collection(self, name: str) -> Collection | None:
        with self._file.reading() as database:
            return self._refreshed(database, name)

    # --- from the file into the index ---

    def _refreshed(self, database: sqlite3.Connection, name: str) -> Collection | None:
        """The index of a collection, with all that the file holds by now; None when there is no such collection."""
        row = database.execute(
            "SELECT number, model, dimensions, sequence, horizon FROM collections WHERE name = ?", (name,)
        ).fetchone()
        if row is None:
            self._forget(name)
            return None
        number, model, dimensions, sequence, horizon = row
        known = self._collections.get(name)
        if known is None or self._numbers.get(name) != number or known.sequence < horizon:
            self._numbers[name] = number
            known = self._collections[name] = Collection(name, model, dimensions)
        if known.sequence < sequence:
            self._apply(known, lambda: self._catch_up(database, known, number, sequence))
        return self._collections[name]

    @staticmethod
    def _catch_up(database: sqlite3.Connection, target: Collection, number: int, sequence: int) -> None:
        since = (number, target.sequence)
        deleted = database.execute("SELECT id FROM deletions WHERE collection = ? AND number >= ?", since).fetchall()
        # Deletions first: what was deleted and stored again since is among the records.
        target.discard((record_id for (record_id,) in deleted), sequence)
        added = database.execute(_SELECT, since)
        scopes: dict[tuple[str | None, ...], MemoryScope] = {}
        while rows := added.fetchmany(1000):
            records = [_record(row, scopes) for row in rows]
            target.add(records, [_vectors(rows)], [row[0] for row in rows])

    def _apply(self, target: Collection, change: Any) -> None:
        """Do a change of the index that the file has already; if it breaks off, the index is read anew."""
        try:
            change()
        except BaseException:
            self._forget(target.name)
            raise
        self._collections[target.name] = target.compacted()

    def _forget(self, name: str) -> None:
        self._collections.pop(name, None)
        self._numbers.pop(name, None)

    # --- within a transaction that writes ---

    def _make(self, database: sqlite3.Connection, name: str, dimensions: int) -> Collection:
        made = database.execute(
            "INSERT INTO collections (name, model, dimensions) VALUES (?, ?, ?)", (name, self._model(), dimensions)
        )
        self._numbers[name] = made.lastrowid or 0
        return Collection(name, self._model(), dimensions)

    @staticmethod
    def _advance(database: sqlite3.Connection, name: str, sequence: int) -> None:
        database.execute("UPDATE collections SET sequence = ? WHERE name = ?", (sequence, name))


def _forget_old_deletions(database: sqlite3.Connection, number: int, sequence: int, living: int) -> None:
    """Once more deletions than records are kept, drop them; readers that are behind read all records again."""
    mine = (number,)
    if database.execute("SELECT count(*) FROM deletions WHERE collection = ?", mine).fetchone()[0] > living:
        database.execute("DELETE FROM deletions WHERE collection = ?", mine)
        database.execute("UPDATE collections SET horizon = ? WHERE number = ?", (sequence + 1, number))


def _rows(
    number: int, records: Sequence[MemoryRecord], parts: Iterable[Vector], sequences: Iterable[int]
) -> Iterator[tuple[Any, ...]]:
    vectors = (vector for part in parts for vector in part)
    for record, vector, sequence in zip(records, vectors, sequences, strict=True):
        scope = (getattr(record.scope, name) for name in SCOPE_FIELDS)
        time = (record.created_at - _START) // _MICROSECOND
        blob = vector.astype(_FLOAT, copy=False).tobytes()
        yield (number, sequence, record.id, record.role, record.author, *scope, record.kind, record.text, time, blob)


def _record(row: tuple[Any, ...], scopes: dict[tuple[str | None, ...], MemoryScope]) -> MemoryRecord:
    sequence, record_id, role, author, *stamps, kind, text, time, _ = row
    scope = scopes.get(key := tuple(stamps)) or scopes.setdefault(key, MemoryScope(*key))
    return _BLANK.with_values(
        id=record_id,
        role=role,
        author=author,
        scope=scope,
        kind=kind,
        text=text,
        created_at=_START + time * _MICROSECOND,
        sequence=sequence,
    )


def _vectors(rows: Sequence[tuple[Any, ...]]) -> Vector:
    flat = np.frombuffer(b"".join(row[-1] for row in rows), dtype=_FLOAT)
    return flat.reshape(len(rows), -1).astype(np.float32, copy=False)
