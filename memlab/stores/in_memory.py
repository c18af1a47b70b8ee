"""A vector store in memory: exact search with NumPy. When the process ends, the memories are gone."""

from __future__ import annotations

import threading
from collections.abc import Collection as Ids
from collections.abc import Sequence

import numpy as np

from memlab.ranking import needs_cosine, rank_candidates
from memlab.stores.base import CollectionInfo, Embeds, Hit, MemoryRecord, SearchScope, Vector
from memlab.stores.collection import Collection
from memlab.stores.inputs import (
    check_embedder,
    check_ids,
    check_limit,
    check_name,
    check_space,
    filters,
    query_vector,
    record_vectors,
    unit_parts,
)
from memlab.trace import Search, Trace


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
        check_embedder(embedder)
        self.embedder = embedder
        self._collections: dict[str, Collection] = {}
        self._lock = threading.RLock()

    def upsert(self, collection: str, records: Sequence[MemoryRecord]) -> list[str]:
        """Store records, replacing those of the same id; the ids come back.

        Raises InvalidInputError for a blank collection name, a bad vector (naming the record), vectors of another
        model or dimension than the collection's, or an id that a record of another scope has. Then nothing is stored.
        """
        check_name(collection)
        if not records:
            return []
        check_ids(collection, records)
        vectors = record_vectors(records, self.embedder)
        with self._lock:
            target = self._collection(collection) or Collection(collection, self._model(), len(vectors[0]))
            check_space(collection, target.model, target.dimensions, self._model(), len(vectors[0]))
            target.refuse_other_scope(records)
            target.add(records, unit_parts(records, vectors))
            self._collections[collection] = target.compacted()
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
        exclude_ids: Ids[str] = (),
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
        wanted = filters(scope, kind, role)
        text = query if isinstance(query, str) else ""
        vector = query_vector(query, self.embedder) if needs_cosine(rank, threshold) else None
        with self._lock:
            target = self._collection(collection)
            if target is None:
                if trace is not None:  # a search that had nothing to look at is a search, too
                    none = np.empty(0, dtype=np.float32)
                    trace.searches.append(
                        Search(collection, text, [], none, none.astype(np.intp), top_k, threshold, rank)
                    )
                return []
            if vector is not None:
                check_space(collection, target.model, target.dimensions, self._model(), len(vector))
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
        check_limit(limit)
        wanted = filters(scope, kind, role)
        with self._lock:
            target = self._collection(collection)
            return target.records_of(target.rows(wanted))[::-1][:limit] if target else []

    def count(self, collection: str, *, scope: SearchScope) -> int:
        """How many records the scope holds."""
        wanted = filters(scope)
        with self._lock:
            target = self._collection(collection)
            if target is None:
                return 0
            rows = target.rows(wanted)
            return len(target.records) if rows is None else len(rows)

    def delete(self, collection: str, *, scope: SearchScope, ids: Ids[str] | None = None) -> int:
        """Remove the records of `scope`, or only those of `ids` among them; how many there were.

        The collection keeps its model and dimension.
        """
        wanted = filters(scope)
        with self._lock:
            target = self._collection(collection)
            if target is None:
                return 0
            doomed = self._ids_of(target, wanted, ids)
            target.discard(doomed, target.sequence + 1)
            self._collections[collection] = target.compacted()
            return len(doomed)

    def info(self, collection: str) -> CollectionInfo | None:
        """Model, dimension and state of a collection, or None when there is none of that name."""
        with self._lock:
            target = self._collection(collection)
            if target is None:
                return None
            return CollectionInfo(collection, target.model, target.dimensions, target.sequence)

    def move(self, collection: str, to: str, expected: CollectionInfo | None) -> bool:
        """Give a collection the name `to`, in place of the one that has it, at once: no reader sees a half.

        Nothing happens, and False comes back, if `info(to)` is not `expected` any more, or there is no `collection`.
        """
        with self._lock:
            if self.info(check_name(to)) != expected or self._collection(collection) is None:
                return False
            target = self._collections.pop(collection)
            target.name, self._collections[to] = to, target
            return True

    def _collection(self, name: str) -> Collection | None:
        return self._collections.get(name)

    @staticmethod
    def _ids_of(target: Collection, wanted: dict[str, str], ids: Ids[str] | None) -> list[str]:
        chosen = None if ids is None else set(ids)
        found = (record.id for record in target.records_of(target.rows(wanted)))
        return [record_id for record_id in found if chosen is None or record_id in chosen]

    def _model(self) -> str | None:
        return self.embedder.model if self.embedder else None
