"""A vector store in memory: exact search with NumPy. When the process ends, the memories are gone.

Vectors stand in blocks that never move, so adding costs the same at any size. For each value of a scope field
the store keeps the rows that carry it, so a search in one scope looks at that scope alone.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InvalidInputError
from memlab.ranking import needs_cosine, rank_candidates
from memlab.stores.base import (
    SCOPE_FIELDS,
    Embeds,
    Hit,
    MemoryRecord,
    SearchScope,
    Vector,
    check_search_scope,
)
from memlab.trace import Search, Trace
from memlab.vectors import normalize, unit_vector

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
            if len(target.dead) > len(target.row_of):  # more replaced rows than live ones: time to clear up
                target = target.rebuilt(target.records_of(target.rows({})))
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
        exclude_ids: Collection[str] = (),
        trace: Trace | None = None,
    ) -> list[Hit]:
        """The best records of `scope` for `query`, best first.

        Parameters
        ----------
        query : a question, or its vector (d,).
        scope : whose records; EVERYONE for all.
        top_k, threshold : at most `top_k` records with `score >= threshold`; ties within 1e-6, newest first.
        rank : one of `memlab.ranking.RANKS`; a threshold is one of cosine similarity in all of them.
        kind, role : only such records.
        exclude_ids : records that are left out.
        trace : gets every candidate with its score.
        """
        wanted = _wanted(scope, kind, role)
        text = query if isinstance(query, str) else ""
        vector = self._query_vector(query) if needs_cosine(rank, threshold) else None
        with self._lock:
            target = self._collections.get(collection)
            if target is None:
                if trace is not None:  # a search that had nothing to look at is a search, too
                    none = np.empty(0, dtype=np.float32)
                    trace.searches.append(
                        Search(collection, text, [], none, none.astype(np.intp), top_k, threshold, rank)
                    )
                return []
            if vector is not None:
                target.check(self._model(), len(vector))
            rows = target.rows(wanted, exclude_ids)
            count = len(target.records) if rows is None else len(rows)
            cosine = np.zeros(count, dtype=np.float32) if vector is None else target.scores(vector, rows)
            scores, kept = rank_candidates(
                rank,
                top_k,
                threshold,
                cosine=cosine,
                query=text,
                texts=lambda: [record.text for record in target.records_of(rows)],
                vectors=lambda: target.vectors_of(rows),
            )
            found = kept.tolist() if rows is None else rows[kept].tolist()
            if trace is not None:
                candidates = target.records_of(rows)
                trace.searches.append(
                    Search(collection, text, candidates, scores, kept, top_k, threshold, rank, cosine)
                )
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
            if target is None:
                return 0
            rows = target.rows(wanted)
            return len(target.records) if rows is None else len(rows)

    def delete(self, collection: str, *, scope: SearchScope) -> int:
        """Remove the records of `scope`; how many there were. The collection keeps its model and dimension."""
        wanted = _wanted(scope)
        with self._lock:
            target = self._collections.get(collection)
            if target is None:
                return 0
            doomed = {record.id for record in target.records_of(target.rows(wanted))}
            stay = [record for record in target.records_of(target.rows({})) if record.id not in doomed]
            self._collections[collection] = target.rebuilt(stay)
            return len(doomed)

    def _model(self) -> str | None:
        return self.embedder.model if self.embedder else None

    def _query_vector(self, query: str | Vector) -> Vector:
        vector = unit_vector(self._embed_query(query) if isinstance(query, str) else query)
        return vector.astype(np.float32, copy=False)

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
        return normalize(np.stack(rows), "embedding").astype(np.float32, copy=False)

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
        self.times = array("d")
        self.in_time_order = True

    def check(self, model: str | None, dimensions: int) -> None:
        """Refuse vectors of another model or dimension."""
        if dimensions != self.dimensions or (model and self.model and model != self.model):
            raise InvalidInputError(
                f"collection {self.name!r} holds {self.dimensions}-d vectors of {self.model or 'an unnamed model'}; "
                f"{dimensions}-d vectors of {model or 'an unnamed model'} do not compare with them. "
                "Use another collection, or embed this one again"
            )

    def add(self, records: Sequence[MemoryRecord], vectors: Sequence[Vector] | Vector) -> None:
        """Append rows with new sequence numbers; the row of an id that is replaced is dead from now on."""
        for record, vector in zip(records, vectors, strict=True):
            self._append(record.with_values(sequence=self.sequence), vector)
            self.sequence += 1

    def rebuilt(self, records: Sequence[MemoryRecord]) -> _Collection:
        """A collection of the same model that holds these records alone."""
        fresh = _Collection(self.name, self.model, self.dimensions, self.sequence)
        for record in records:
            assert record.embedding is not None
            fresh._append(record, record.embedding)
        return fresh

    def _append(self, record: MemoryRecord, vector: Vector) -> None:
        row = len(self.records)
        slot = self._slot(row)
        slot[:] = vector
        slot.flags.writeable = False
        if self.records and record.created_at < self.records[-1].created_at:
            self.in_time_order = False
        if record.id in self.row_of:
            self.dead.add(self.row_of[record.id])
        self.row_of[record.id] = row
        self.records.append(record.with_values(embedding=slot))
        self.times.append(record.created_at.timestamp())
        for key in _keys(record):
            self.rows_with.setdefault(key, array("q")).append(row)

    def _slot(self, row: int) -> Vector:
        if row // _BLOCK == len(self.blocks):
            self.blocks.append(np.empty((_BLOCK, self.dimensions), dtype=np.float32))
        return self.blocks[row // _BLOCK][row % _BLOCK]

    def rows(self, wanted: dict[str, str], exclude_ids: Collection[str] = ()) -> Rows | None:
        """The rows that match, oldest first; None for all rows as they stand."""
        gone = self.dead | {self.row_of[record_id] for record_id in exclude_ids if record_id in self.row_of}
        if not wanted and not gone and self.in_time_order:
            return None
        found = np.arange(len(self.records)) if not wanted else self._matching(wanted)
        if gone:
            found = found[~np.isin(found, list(gone))]
        if not self.in_time_order:
            found = found[np.argsort(np.array(self.times)[found], kind="stable")]
        return found

    def _matching(self, wanted: dict[str, str]) -> Rows:
        lists = sorted((self.rows_with.get(item, array("q")) for item in wanted.items()), key=len)
        found = np.array(lists[0], dtype=np.int64)
        for other in lists[1:]:
            found = np.intersect1d(found, np.array(other, dtype=np.int64), assume_unique=True)
        return found

    def scores(self, vector: Vector, rows: Rows | None) -> Vector:
        """The cosine of `vector` (d,) with each of `rows` (n,)."""
        if rows is not None and len(rows) * 4 < len(self.records):  # few rows: gather them
            scores = np.empty(len(rows), dtype=np.float32)
            for number in np.unique(rows // _BLOCK).tolist():
                here = rows // _BLOCK == number
                scores[here] = self.blocks[number][rows[here] % _BLOCK] @ vector
            return scores
        count = len(self.records)
        parts = [block[: count - i * _BLOCK] @ vector for i, block in enumerate(self.blocks)]
        scores = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype=np.float32), *parts])
        return scores if rows is None else scores[rows]

    def vectors_of(self, rows: Rows | None) -> Vector:
        """The vectors (n, d) of `rows`, in their order."""
        vectors = np.empty((len(self.records) if rows is None else len(rows), self.dimensions), dtype=np.float32)
        for place, record in enumerate(self.records_of(rows)):
            vectors[place] = record.embedding
        return vectors

    def records_of(self, rows: Rows | None) -> list[MemoryRecord]:
        """The records of `rows`, in their order."""
        return list(self.records) if rows is None else [self.records[row] for row in rows.tolist()]


def _keys(record: MemoryRecord) -> list[tuple[str, str]]:
    values = {**record.scope.set_fields(), "kind": record.kind, "role": record.role}
    return [(name, values[name]) for name in _FILTERS if name in values]
