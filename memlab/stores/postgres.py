"""A vector store in PostgreSQL with pgvector: one table a collection, a B-tree on each field of the scope.

A search within a scope of up to `exact_below` records compares all of them: nothing is missed. Above that an
HNSW index proposes candidates; if it gives fewer than were asked for, the search is repeated exactly.
"""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from memlab.errors import ConfigurationError, InvalidInputError
from memlab.ranking import needs_cosine, newest_scores, rank_candidates
from memlab.stores.base import CollectionInfo, Embeds, Hit, MemoryRecord, SearchScope, Vector
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
from memlab.vectors import FloatArray, IntArray, select_top_k

if TYPE_CHECKING:
    from psycopg import Connection

    from memlab.stores import postgres_tables as sql


class PostgresVectorStore:
    """Keeps records and vectors in a PostgreSQL database, for all processes and machines that reach it.

    Parameters
    ----------
    url : for example "postgresql://user:password@host:5432/name". Connecting makes the extension and one table.
    embedder : makes vectors of records and questions that come as text; None when all come as vectors.
    exact_below : up to so many records a scope is searched exactly; a collection with more gets an HNSW index.

    The ranks "cosine" and "newest" are computed in the database. The others need all texts or vectors of the scope,
    so its records are fetched and ranked here: keep scopes small for them. A trace gets every candidate of a scope
    of up to `exact_below` records, of a larger one those that the database gave back. Vectors of more than 2,000
    dimensions get no index.

    Needs `pip install "memlab[postgres]"`. Raises MemlabError when the database can't be reached or refuses; a
    connection that dropped is opened once more. What was acknowledged is committed.
    """

    def __init__(self, url: str, embedder: Embeds | None = None, exact_below: int = 10_000) -> None:
        try:
            from memlab.stores import postgres_tables
            from memlab.stores.postgres_server import Server
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                f'PostgresVectorStore needs {error.name}; install it: pip install "memlab[postgres]"'
            ) from error
        check_embedder(embedder)
        if exact_below < 0:
            raise InvalidInputError(f"exact_below is {exact_below}; it must be 0 or more")
        self.embedder, self.exact_below = embedder, exact_below
        self._sql, self._server = postgres_tables, Server(url)
        self._server.run(lambda connection: None)  # say now what is wrong, not at the first question

    def close(self) -> None:
        """Close the connections. The next use opens new ones."""
        self._server.close()

    def upsert(self, collection: str, records: Sequence[MemoryRecord]) -> list[str]:
        """Store records, replacing those of the same id, in one transaction; the ids come back.

        The write that makes a collection larger than `exact_below` builds its index, which takes a while.
        Raises like `InMemoryVectorStore.upsert`, and MemlabError for what the database refuses.
        """
        check_name(collection)
        if not records:
            return []
        check_ids(collection, records)
        vectors = np.concatenate(list(unit_parts(records, record_vectors(records, self.embedder))))
        chosen = sorted({record.id: i for i, record in enumerate(records)}.values())  # of one id, the last

        def work(connection: Connection[Any]) -> sql.Table:
            table = self._sql.advance(connection, collection, len(chosen))
            if table is None:
                self._sql.make(connection, collection, self._model(), vectors.shape[1])
                table = self._sql.advance(connection, collection, len(chosen))
            assert table is not None
            self._check(collection, table, vectors.shape[1])
            self._sql.insert(connection, table, [records[i] for i in chosen], vectors[chosen])
            return table

        table = self._server.run(work)
        if not table.has_index and table.sequence > self.exact_below:
            self._server.run(lambda connection: self._sql.make_vector_index(connection, collection, self.exact_below))
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
        """The best records of `scope` for `query`, best first. Parameters as in `InMemoryVectorStore.search`."""
        check_name(collection)
        select_top_k(np.empty(0), top_k, threshold)  # refuses what makes no sense
        wanted = filters(scope, kind, role)
        text = query if isinstance(query, str) else ""
        vector = query_vector(query, self.embedder) if needs_cosine(rank, threshold) else None
        asked = _Asked(rank, text, vector, top_k, threshold, trace is not None)

        def work(connection: Connection[Any]) -> _Found:
            table = self._sql.find(connection, collection)
            if table is None:
                return _Found([], np.empty(0, dtype=np.float32), np.empty(0, dtype=np.intp))
            if vector is not None:
                self._check(collection, table, len(vector))
            return self._find(connection, table, self._sql.where(wanted, exclude_ids), asked)

        found = self._server.run(work)
        if trace is not None:
            records, scores, kept, cosine = found
            trace.searches.append(Search(collection, text, records, scores, kept, top_k, threshold, rank, cosine))
        return [Hit(found.records[i], float(found.scores[i])) for i in found.kept]

    def _find(self, connection: Connection[Any], table: sql.Table, which: sql.Where, asked: _Asked) -> _Found:
        size = self._sql.size(connection, table, which, self.exact_below + 1)
        small = size <= self.exact_below
        if not asked.in_database or (asked.traced and small):
            return _rank_here(self._sql.newest(connection, table, which)[::-1], asked)
        if asked.vector is None:
            total = self._sql.size(connection, table, which)
            records = self._sql.newest(connection, table, which, asked.top_k)[::-1]
            scores = newest_scores(total)[total - len(records) :]
            return _Found(records, scores, np.arange(len(records))[::-1])
        found = []
        if table.has_index and not small:
            found = self._sql.nearest_by_index(connection, table, which, asked.vector, asked.top_k)
        if len(found) < min(asked.top_k, size):
            found = self._sql.nearest_exact(connection, table, which, asked.vector, asked.top_k)
        scores = np.array([score for _, score in found], dtype=np.float32)
        return _Found([record for record, _ in found], scores, select_top_k(scores, asked.top_k, asked.threshold))

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
        check_name(collection)
        check_limit(limit)
        which = self._sql.where(filters(scope, kind, role))

        def work(connection: Connection[Any]) -> list[MemoryRecord]:
            table = self._sql.find(connection, collection)
            return self._sql.newest(connection, table, which, limit) if table else []

        return self._server.run(work)

    def count(self, collection: str, *, scope: SearchScope) -> int:
        """How many records the scope holds."""
        check_name(collection)
        which = self._sql.where(filters(scope))

        def work(connection: Connection[Any]) -> int:
            table = self._sql.find(connection, collection)
            return self._sql.size(connection, table, which) if table else 0

        return self._server.run(work)

    def delete(self, collection: str, *, scope: SearchScope, ids: Ids[str] | None = None) -> int:
        """Remove the records of `scope`, or only those of `ids` among them; how many there were."""
        check_name(collection)
        which = self._sql.where(filters(scope), only_ids=ids)

        def work(connection: Connection[Any]) -> int:
            table = self._sql.advance(connection, collection, 1)
            return self._sql.delete(connection, table, which) if table else 0

        return self._server.run(work)

    def info(self, collection: str) -> CollectionInfo | None:
        """Model, dimension and state of a collection, or None when there is none of that name."""
        check_name(collection)
        return _info(collection, self._server.run(lambda connection: self._sql.find(connection, collection)))

    def move(self, collection: str, to: str, expected: CollectionInfo | None) -> bool:
        """Give a collection the name `to`, in place of the one that has it; see `InMemoryVectorStore.move`."""
        check_name(to)

        def work(connection: Connection[Any]) -> bool:
            old = self._sql.advance(connection, to, 0)  # locks it: nothing is written to it meanwhile
            if _info(to, old) != expected or self._sql.advance(connection, collection, 0) is None:
                return False
            self._sql.replace(connection, collection, to, old)
            return True

        return self._server.run(work)

    def _model(self) -> str | None:
        return self.embedder.model if self.embedder else None

    def _check(self, collection: str, table: sql.Table, dimensions: int) -> None:
        check_space(collection, table.model, table.dimensions, self._model(), dimensions)


class _Asked(NamedTuple):
    rank: str
    text: str
    vector: Vector | None
    top_k: int
    threshold: float | None
    traced: bool

    @property
    def in_database(self) -> bool:
        return self.rank == "cosine" or (self.rank == "newest" and self.threshold is None)


class _Found(NamedTuple):
    """Records, oldest first, with their scores; `kept` holds positions, best first."""

    records: list[MemoryRecord]
    scores: FloatArray
    kept: IntArray
    cosine: FloatArray | None = None


def _rank_here(records: list[MemoryRecord], asked: _Asked) -> _Found:
    vectors = np.array([record.embedding for record in records], dtype=np.float32)
    cosine = vectors @ asked.vector if records and asked.vector is not None else np.zeros(len(records), np.float32)
    scores, kept = rank_candidates(
        asked.rank,
        asked.top_k,
        asked.threshold,
        cosine=cosine,
        query=asked.text,
        texts=lambda: [record.text for record in records],
        vectors=lambda: vectors,
    )
    return _Found(records, scores, kept, cosine)


def _info(collection: str, table: sql.Table | None) -> CollectionInfo | None:
    return CollectionInfo(collection, table.model, table.dimensions, table.sequence) if table else None
