"""A vector store in memory: exact search with NumPy. When the process ends, the memories are gone.

Vectors stand in blocks that never move, so adding costs the same at any size. For each value of a scope field
the store keeps the rows that carry it, so a search in one scope looks at that scope alone.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InvalidInputError
from memlab.stores.base import (
    RANKS,
    SCOPE_FIELDS,
    Embeds,
    Hit,
    MemoryRecord,
    SearchScope,
    Vector,
    check_search_scope,
)
from memlab.trace import Search, Trace
from memlab.vectors import normalize, select_top_k, unit_vector

Rows = NDArray[np.int64]
_FILTERS = (*SCOPE_FIELDS, "kind", "role")
_BLOCK = 16_384


class InMemoryVectorStore:
    """Keeps records and vectors in this process.

    Parameters
    ----------
    embedder : makes vectors of records and questions that come as text; None when all come as vectors.

    A collection remembers the embedding model and dimension of its first record, and refuses any other.
    Vectors are kept at length 1, so that a product is a cosine.

    >>> from memlab import EVERYONE, MemoryRecord
    >>> store = InMemoryVectorStore()
    >>> record = MemoryRecord("我叫张三", embedding=np.array([1.0, 0.0], dtype=np.float32))
    >>> len(store.upsert("facts", [record]))
    1
    >>> [hit.record.text for hit in store.search("facts", np.array([1.0, 1.0]), scope=EVERYONE)]
    ['我叫张三']
    """

    def __init__(self, embedder: Embeds | None = None) -> None:
        self.embedder = embedder
        self._collections: dict[str, _Collection] = {}
        self._lock = threading.RLock()

    def upsert(self, collection: str, records: Sequence[MemoryRecord]) -> list[str]:
        """Store records, replacing those of the same id; the ids come back.

        Raises InvalidInputError for a blank collection name, a bad vector (naming the record), or vectors of
        another model or dimension than the collection's. Then nothing is stored.
        """
        if not isinstance(collection, str) or not collection.strip():
            raise InvalidInputError(f"the collection's name is {collection!r}; give it one")
        if not records:
            return []
        vectors = self._vectors(records)
        with self._lock:
            known = self._collections.get(collection)
            target = known or _Collection(collection, self._model(), vectors.shape[1])
            target.check(self._model(), vectors.shape[1])
            target.add(records, vectors)
            self._collections[collection] = target
        return [record.id for record in records]

    def search(
        self,
        collection: str,
        query: str | Vector,
        *,
        scope: SearchScope,
        top_k: int = 3,
        threshold: float | None = None,
        rank: str = "cosine",
        kind: str | None = None,
        role: str | None = None,
        trace: Trace | None = None,
    ) -> list[Hit]:
        """The records of `scope` nearest to `query` by cosine similarity, best first.

        Parameters
        ----------
        query : a question, or its vector (d,).
        scope : whose records; EVERYONE for all.
        top_k, threshold : at most `top_k` records with `score >= threshold`; ties within 1e-6, newest first.
        kind, role : only such records.
        trace : gets every candidate with its score.
        """
        if rank not in RANKS:
            raise InvalidInputError(f"rank is {rank!r}; this store knows {', '.join(RANKS)}")
        wanted = _wanted(scope, kind, role)
        vector = self._embed_query(query) if isinstance(query, str) else query
        with self._lock:
            target = self._collections.get(collection)
            if target is None:
                return []
            target.check(self._model(), len(vector))
            rows = target.rows(wanted)
            scores = target.scores(unit_vector(vector, target.dimensions), rows)
            kept = select_top_k(scores, top_k, threshold)
            found = kept.tolist() if rows is None else rows[kept].tolist()
            if trace is not None:
                text = query if isinstance(query, str) else ""
                candidates = target.records_of(rows)
                trace.searches.append(Search(collection, text, candidates, scores, kept, top_k, threshold, rank))
            return [Hit(target.records[row], score) for row, score in zip(found, scores[kept].tolist(), strict=True)]

    def scan(
        self,
        collection: str,
        *,
        scope: SearchScope,
        kind: str | None = None,
        role: str | None = None,
        limit: int | None = None,
    ) -> list[MemoryRecord]:
        """The records of `scope`, newest first; at most `limit`, which must not be negative."""
        if limit is not None and limit < 0:
            raise InvalidInputError(f"limit is {limit}; it must be 0 or more, or None for all")
        wanted = _wanted(scope, kind, role)
        with self._lock:
            target = self._collections.get(collection)
            return target.records_of(target.rows(wanted))[::-1][:limit] if target else []

    def count(self, collection: str, *, scope: SearchScope) -> int:
        """How many records the scope holds."""
        wanted = _wanted(scope)
        with self._lock:
            target = self._collections.get(collection)
            return len(target.records_of(target.rows(wanted))) if target else 0

    def delete(self, collection: str, *, scope: SearchScope) -> int:
        """Remove the records of `scope`; how many there were. The collection keeps its model and dimension."""
        wanted = _wanted(scope)
        with self._lock:
            target = self._collections.get(collection)
            if target is None:
                return 0
            doomed = {record.id for record in target.records_of(target.rows(wanted))}
            stay = [record for record in target.records_of(target.rows({})) if record.id not in doomed]
            fresh = _Collection(collection, target.model, target.dimensions, target.sequence)
            fresh.add(stay, np.stack([r.embedding for r in stay]) if stay else None, keep_sequence=True)  # type: ignore[misc]
            self._collections[collection] = fresh
            return len(doomed)

    def _model(self) -> str | None:
        return self.embedder.model if self.embedder else None

    def _embed_query(self, query: str) -> Vector:
        if self.embedder is None:
            raise InvalidInputError("the query is text and the store has no embedder; pass embedder= or a vector")
        if not query.strip():
            raise InvalidInputError("the query is blank; there is nothing to search for")
        return self.embedder.embed([query], role="query")[0]

    def _vectors(self, records: Sequence[MemoryRecord]) -> Vector:
        """One unit vector a record: the given ones, and those of the rest from the embedder, in one batch."""
        missing = [i for i, record in enumerate(records) if record.embedding is None]
        if missing and self.embedder is None:
            raise InvalidInputError(
                f"record {records[missing[0]].id!r} has no embedding and the store no embedder; pass one of them"
            )
        made = dict(zip(missing, self._embed([records[i].text for i in missing]), strict=True))
        rows = [made[i] if i in made else np.asarray(record.embedding) for i, record in enumerate(records)]
        for record, row in zip(records, rows, strict=True):
            if row.shape != rows[0].shape:
                raise InvalidInputError(f"record {record.id!r} has a vector of shape {row.shape}, not {rows[0].shape}")
        return normalize(np.stack(rows).astype(np.float32, copy=False), "embedding")

    def _embed(self, texts: list[str]) -> Sequence[Vector]:
        return list(self.embedder.embed(texts, role="document")) if texts and self.embedder else []


def _wanted(scope: SearchScope, kind: str | None = None, role: str | None = None) -> dict[str, str]:
    extra = {name: value for name, value in (("kind", kind), ("role", role)) if value is not None}
    return {**check_search_scope(scope), **extra}


class _Collection:
    """The records of one collection, oldest row first, with their vectors in blocks."""

    def __init__(self, name: str, model: str | None, dimensions: int, sequence: int = 0) -> None:
        self.name, self.model, self.dimensions, self.sequence = name, model, dimensions, sequence
        self.records: list[MemoryRecord] = []
        self.blocks: list[Vector] = []
        self.row_of: dict[str, int] = {}
        self.rows_with: dict[tuple[str, str], array[int]] = {}
        self.dead: set[int] = set()
        self.in_time_order = True

    def check(self, model: str | None, dimensions: int) -> None:
        """Refuse vectors of another model or dimension."""
        if dimensions != self.dimensions or (model and self.model and model != self.model):
            raise InvalidInputError(
                f"collection {self.name!r} holds {self.dimensions}-d vectors of {self.model or 'an unnamed model'}; "
                f"{dimensions}-d vectors of {model or 'an unnamed model'} do not compare with them. "
                "Use another collection, or embed this one again"
            )

    def add(self, records: Sequence[MemoryRecord], vectors: Vector | None, keep_sequence: bool = False) -> None:
        """Append rows; the row of an id that is replaced is dead from now on."""
        for i, record in enumerate(records):
            assert vectors is not None
            row = len(self.records)
            slot = self._slot(row)
            slot[:] = vectors[i]
            slot.flags.writeable = False
            number = record.sequence if keep_sequence else self.sequence
            self.sequence = max(self.sequence, (number or 0) + 1)
            stored = record.with_values(sequence=number, embedding=slot)
            if self.records and stored.created_at < self.records[-1].created_at:
                self.in_time_order = False
            if record.id in self.row_of:
                self.dead.add(self.row_of[record.id])
            self.row_of[record.id] = row
            self.records.append(stored)
            for key in _keys(stored):
                self.rows_with.setdefault(key, array("q")).append(row)

    def _slot(self, row: int) -> Vector:
        if row // _BLOCK == len(self.blocks):
            self.blocks.append(np.empty((_BLOCK, self.dimensions), dtype=np.float32))
        return self.blocks[row // _BLOCK][row % _BLOCK]

    def rows(self, wanted: dict[str, str]) -> Rows | None:
        """The rows that match, oldest first; None for all rows as they stand."""
        if not wanted and not self.dead and self.in_time_order:
            return None
        found = np.arange(len(self.records)) if not wanted else self._matching(wanted)
        if self.dead:
            found = found[~np.isin(found, list(self.dead))]
        if not self.in_time_order:
            times = np.array([self.records[row].created_at.timestamp() for row in found.tolist()])
            found = found[np.argsort(times, kind="stable")]
        return found

    def _matching(self, wanted: dict[str, str]) -> Rows:
        lists = sorted((self.rows_with.get(item, array("q")) for item in wanted.items()), key=len)
        found = np.array(lists[0], dtype=np.int64)
        for other in lists[1:]:
            found = np.intersect1d(found, np.array(other, dtype=np.int64), assume_unique=True)
        return found

    def scores(self, vector: Vector, rows: Rows | None) -> Vector:
        """The cosine of `vector` (d,) with each of `rows` (n,)."""
        vector = vector.astype(np.float32, copy=False)
        if rows is not None and len(rows) * 4 < len(self.records):
            picked = [self.blocks[row // _BLOCK][row % _BLOCK] for row in rows.tolist()]
            return np.stack(picked) @ vector if picked else np.empty(0, dtype=np.float32)
        scores = np.empty(len(self.records), dtype=np.float32)
        for start, block in zip(range(0, len(scores), _BLOCK), self.blocks, strict=True):
            part = scores[start : start + _BLOCK]
            np.dot(block[: len(part)], vector, out=part)
        return scores if rows is None else scores[rows]

    def records_of(self, rows: Rows | None) -> list[MemoryRecord]:
        """The records of `rows`, in their order."""
        return list(self.records) if rows is None else [self.records[row] for row in rows.tolist()]


def _keys(record: MemoryRecord) -> list[tuple[str, str]]:
    values = {**record.scope.set_fields(), "kind": record.kind, "role": record.role}
    return [(name, values[name]) for name in _FILTERS if name in values]
