"""The stores: adding and searching, beside sqlite-vec and plain pgvector with the same rows, and HNSW beside exact."""

from __future__ import annotations

import gc
import itertools
import sys
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row, interleaved
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[2]))

from memlab import EVERYONE, InMemoryVectorStore, MemoryRecord, MemoryScope, PostgresVectorStore, SqliteVectorStore
from tests.support_postgres import new_schema, own_url

DIMENSIONS, TOP_K = 512, 6
SCOPES = [MemoryScope(user_id=f"user {number}") for number in range(10)]


@dataclass(frozen=True)
class Amount(Row):
    """A row whose members are no times: ours and the reference in `unit`. With `at_least` the aim is a lower limit."""

    unit: str = ""
    at_least: bool = False

    @property
    def verdict(self) -> str:
        good = self.aim is None or (self.ratio >= self.aim if self.at_least else self.ratio <= self.aim)
        return "" if self.aim is None else "ok" if good else "MISSED"

    def cells(self) -> list[str]:
        aim = "" if self.aim is None else f"{'>=' if self.at_least else '<='} {self.aim:g}"
        ours, reference = (f"{values[0]:,.3g} {self.unit}" for values in (self.ours, self.reference))
        return [self.what, ours, self.against, reference, f"{self.ratio:.2f}", aim, self.verdict]


async def stores() -> AsyncIterator[Row]:
    """All rows about stores, with one thread, since sqlite-vec has no more."""
    with threadpool_limits(1):
        for part in (adding, memory, narrow_scopes, sqlite, postgres, recall):
            async for row in part():
                yield row


def some(count: int, scopes: Sequence[MemoryScope] = SCOPES) -> list[MemoryRecord]:
    """Records with random vectors, spread over the scopes."""
    vectors = np.random.default_rng(count).normal(size=(count, DIMENSIONS)).astype(np.float32)
    return [
        MemoryRecord(f"record number {i}, a sentence of some length", scope=scopes[i % len(scopes)], embedding=vector)
        for i, vector in enumerate(vectors)
    ]


# --- in memory ---


async def adding() -> AsyncIterator[Row]:
    """Adding 100k records whose vectors are given: in bulk, and two at a time as a turn does. Processor time."""
    records = some(100_000)
    bulk, pairs, growth = [], [], []
    for _ in range(3):
        with _no_collector():
            bulk.append(_seconds(lambda: InMemoryVectorStore().upsert("c", records)))
            store = InMemoryVectorStore()
            parts = [_seconds(lambda: _by_two(store, records[i : i + 10_000])) for i in range(0, 100_000, 10_000)]  # noqa: B023
        pairs.append(sum(parts))
        growth.append((sum(parts[-3:]), sum(parts[:3])))
    yield Row(f"add 100k x {DIMENSIONS} in bulk", bulk, [0.5] * 3, "200k records/s", 1.0)
    yield Row(f"add 100k x {DIMENSIONS} two at a time", pairs, [4.0] * 3, "25k records/s", 1.0)
    yield Row("two at a time: the last 30k", *zip(*growth, strict=True), "the first 30k", 1.3)


def _by_two(store: InMemoryVectorStore, records: Sequence[MemoryRecord]) -> None:
    for i in range(0, len(records), 2):
        store.upsert("c", records[i : i + 2])


async def memory() -> AsyncIterator[Row]:
    """The memory that a store of 100k records takes at its peak, while they are added."""
    records = some(100_000)
    needed = sum(record.embedding.nbytes + len(record.text) for record in records) / 1e6
    tracemalloc.start()
    store = InMemoryVectorStore()
    store.upsert("c", records)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    yield Amount(f"peak memory, 100k x {DIMENSIONS} in bulk", [peak], [needed], "vectors + texts", 1.5, "MB")


async def narrow_scopes() -> AsyncIterator[Row]:
    """One scope of 1k records in a store of a million, against a search of all."""
    store = InMemoryVectorStore()
    scopes = [MemoryScope(user_id=f"user {number}") for number in range(1_000)]
    for _ in range(10):
        store.upsert("c", some(100_000, scopes))
    query = np.random.default_rng(1).normal(size=DIMENSIONS).astype(np.float32)
    assert store.count("c", scope=scopes[7]) == 1_000
    actions = [
        lambda: store.search("c", query, scope=scopes[7], top_k=TOP_K),
        lambda: store.search("c", query, scope=EVERYONE, top_k=TOP_K),
    ]
    times = await interleaved(actions, repeats=20)
    yield Row(f"search a scope of 1k in 1M x {DIMENSIONS}", *times, "search all", 0.01)


# --- SQLite ---


async def sqlite() -> AsyncIterator[Row]:
    """Search and insert in a file, against sqlite-vec with the same columns."""
    query = np.random.default_rng(1).normal(size=DIMENSIONS).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        for size in (1_000, 10_000, 100_000):
            records = some(size)
            ours, theirs = SqliteVectorStore(Path(folder) / f"ours {size}"), _sqlite_vec(Path(folder) / f"vec {size}")
            ours.upsert("c", records)
            _sqlite_vec_insert(theirs, records)
            for what, scope in (("all", EVERYONE), ("a scope of a tenth", SCOPES[3])):
                actions = [_search(ours, query, scope), lambda d=theirs, s=scope: _sqlite_vec_search(d, query, s)]
                assert [hit.record.text for hit in actions[0]()] == [text for text, _ in actions[1]()]
                times = await interleaved(actions, repeats=10, calls=3)
                yield Row(f"SQLite: search {what} of {size // 1000}k", *times, "sqlite-vec", 1.0)
        ours, theirs = SqliteVectorStore(Path(folder) / "ours"), _sqlite_vec(Path(folder) / "vec")
        for count, rounds, aim in ((2, 100, None), (1_000, 5, 1.0)):  # sqlite-vec keeps ids that are not unique
            batches = iter([some(count) for _ in range(2 * (rounds + 2))])
            actions = [
                lambda b=batches: ours.upsert("c", next(b)),
                lambda b=batches: _sqlite_vec_insert(theirs, next(b)),
            ]
            yield Row(f"SQLite: insert {count}", *await interleaved(actions, rounds), "sqlite-vec", aim)
        opening = await interleaved([lambda: _opened(Path(folder) / "ours 10000")], repeats=3)
        yield Row("SQLite: open a file of 10k and search", opening[0], [1.0] * 3, "a second", 1.0)


def _opened(path: Path) -> None:
    store = SqliteVectorStore(path)
    assert store.search("c", np.ones(DIMENSIONS), scope=SCOPES[0], top_k=TOP_K)
    store.close()


def _sqlite_vec(path: Path) -> Any:
    import apsw  # many builds of Python's sqlite3 can load no extension
    import sqlite_vec

    database = apsw.Connection(str(path))
    database.enable_load_extension(True)
    database.load_extension(sqlite_vec.loadable_path())
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute(
        "CREATE VIRTUAL TABLE c USING vec0("
        f"user_id TEXT, embedding float[{DIMENSIONS}] distance_metric=cosine, +id TEXT, +role TEXT, +text TEXT)"
    )
    return database


def _sqlite_vec_insert(database: Any, records: Sequence[MemoryRecord]) -> None:
    with database:  # one transaction
        database.executemany(
            "INSERT INTO c (user_id, embedding, id, role, text) VALUES (?, ?, ?, ?, ?)",
            [(r.scope.user_id, r.embedding.tobytes(), r.id, r.role, r.text) for r in records],
        )


def _sqlite_vec_search(database: Any, query: np.ndarray, scope: Any) -> list[tuple[str, float]]:
    mine = "" if scope is EVERYONE else "AND user_id = ?"
    values = [query.tobytes(), TOP_K, *([] if scope is EVERYONE else [scope.user_id])]
    return list(
        database.execute(
            f"SELECT text, distance FROM c WHERE embedding MATCH ? AND k = ? {mine} ORDER BY distance", values
        )
    )


# --- PostgreSQL ---


async def postgres() -> AsyncIterator[Row]:
    """Search and insert in a database, against the same statements written by hand with psycopg and pgvector."""
    query = np.random.default_rng(1).normal(size=DIMENSIONS).astype(np.float32)
    ours, theirs = PostgresVectorStore(new_schema(own_url())), _pgvector()
    records = some(10_000)
    ours.upsert("c", records)
    _pgvector_insert(theirs, records)
    for what, scope in (("all of 10k", EVERYONE), ("a scope of 1k in 10k", SCOPES[3])):
        actions = [_search(ours, query, scope), lambda s=scope: _pgvector_search(theirs, query, s)]
        assert [hit.record.text for hit in actions[0]()] == [text for text, _ in actions[1]()]
        times = await interleaved(actions, repeats=30)
        yield Row(f"PostgreSQL: search {what}", *times, "plain pgvector", 1.5)
    for count, rounds, aim in ((2, 50, None), (1_000, 5, 2.0)):  # plain: no unique ids, order of writers, or scopes
        batches = iter([some(count) for _ in range(2 * (rounds + 2))])
        actions = [lambda b=batches: ours.upsert("d", next(b)), lambda b=batches: _pgvector_insert(theirs, next(b))]
        yield Row(f"PostgreSQL: insert {count}", *await interleaved(actions, rounds), "plain pgvector", aim)
    ours.close()


def _pgvector() -> Any:
    import psycopg
    from pgvector.psycopg import register_vector

    connection = psycopg.connect(new_schema(own_url()), autocommit=True)
    register_vector(connection)
    connection.execute(
        "CREATE TABLE c (number bigserial PRIMARY KEY, id text, user_id text, role text, text text, "
        f"embedding vector({DIMENSIONS}))"
    )
    connection.execute("CREATE INDEX ON c (user_id)")
    return connection


def _pgvector_insert(connection: Any, records: Sequence[MemoryRecord]) -> None:
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO c (id, user_id, role, text, embedding) VALUES (%b, %b, %b, %b, %b)",
            [(r.id, r.scope.user_id, r.role, r.text, r.embedding) for r in records],
        )


def _pgvector_search(connection: Any, query: np.ndarray, scope: Any) -> list[tuple[str, float]]:
    mine = "" if scope is EVERYONE else "WHERE user_id = %b"
    values = [query, *([] if scope is EVERYONE else [scope.user_id]), TOP_K]
    return connection.execute(
        f"SELECT text, embedding <=> %b AS distance FROM c {mine} ORDER BY distance LIMIT %b", values, binary=True
    ).fetchall()


async def recall() -> AsyncIterator[Row]:
    """What share of the exact answer the HNSW index finds, and what it saves: for vectors in clusters, as those of
    texts lie, and for vectors without any structure, the hardest case."""
    rng, dimensions, size = np.random.default_rng(0), 128, 20_000
    centres = rng.normal(size=(200, dimensions))[rng.integers(200, size=size)]
    for kind, spread, aim in (("clustered", 0.7, 0.95), ("random", 30.0, None)):
        vectors = (centres + spread * rng.normal(size=(size, dimensions))).astype(np.float32)
        store = PostgresVectorStore(new_schema(own_url()))
        store.upsert("c", [MemoryRecord(str(i), id=str(i), embedding=vector) for i, vector in enumerate(vectors)])
        queries = (vectors[:100] + 0.7 * spread * rng.normal(size=(100, dimensions))).astype(np.float32)
        found = {limit: _found(store, queries, limit) for limit in (10_000, 100_000)}
        share = sum(len(a & b) for a, b in zip(found[10_000], found[100_000], strict=True)) / (TOP_K * len(queries))
        what = f"recall@{TOP_K} of HNSW, {size // 1000}k x {dimensions}, {kind}"
        yield Amount(what, [share], [1.0], "exact", aim, "", True)
        turns = itertools.cycle(queries)
        times = await interleaved([_limited(store, turns, 10_000), _limited(store, turns, 100_000)], repeats=30)
        yield Row(f"PostgreSQL: search {size // 1000}k by HNSW, {kind}", *times, "exact", 1.0)
        store.close()


def _found(store: PostgresVectorStore, queries: np.ndarray, limit: int) -> list[set[str]]:
    store.exact_below = limit  # above the size of the collection, the search is exact
    return [{hit.record.id for hit in _search(store, query, EVERYONE)()} for query in queries]


def _limited(store: PostgresVectorStore, queries: Iterator[np.ndarray], limit: int) -> Callable[[], Any]:
    def search() -> None:
        store.exact_below = limit
        store.search("c", next(queries), scope=EVERYONE, top_k=TOP_K)

    return search


# --- small parts ---


def _search(store: Any, query: np.ndarray, scope: Any) -> Callable[[], Any]:
    return lambda: store.search("c", query, scope=scope, top_k=TOP_K)


def _seconds(action: Callable[[], Any]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


@contextmanager
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()  # as in `interleaved`
    try:
        yield
    finally:
        gc.enable()
