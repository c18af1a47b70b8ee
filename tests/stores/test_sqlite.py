"""What is special about the store in a file: it lasts, and several processes share it."""

import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from memlab import EVERYONE, InvalidInputError, MemoryRecord, MemoryScope, SqliteVectorStore
from memlab.providers.sqlite_history import SqliteHistoryProvider

RNG = np.random.default_rng(0)
NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


def some(count, start=0, **fields):
    return [
        MemoryRecord(
            f"text {i}",
            id=str(i),
            embedding=RNG.normal(size=16),
            created_at=NOON + timedelta(seconds=i % 7),
            scope=MemoryScope(user_id=f"u{i % 3}"),
            **fields,
        )
        for i in range(start, start + count)
    ]


def state(store, collection="c"):
    return [(r, r.embedding.tolist()) for r in store.scan(collection, scope=EVERYONE)]


def test_a_store_that_is_opened_again_holds_the_same(tmp_path):
    store = SqliteVectorStore(tmp_path / "m.db")
    store.upsert("c", some(2500))
    store.delete("c", scope=MemoryScope(user_id="u1"))
    store.upsert("c", some(10, start=1000))
    again = SqliteVectorStore(tmp_path / "m.db")
    assert state(again) == state(store)
    query = RNG.normal(size=16)
    assert again.search("c", query, scope=EVERYONE, top_k=50) == store.search("c", query, scope=EVERYONE, top_k=50)


@pytest.mark.parametrize("seed", range(8))
def test_two_stores_on_one_file_see_each_others_writes_at_once(tmp_path, seed):
    random = np.random.default_rng(seed)
    stores = [SqliteVectorStore(tmp_path / "m.db") for _ in range(3)]
    for _ in range(60):
        store = stores[random.integers(2)]  # the third one only reads, and now and then
        action = random.integers(5)
        if action < 3:
            store.upsert("c", some(int(random.integers(1, 6)), start=int(random.integers(0, 12))))
        elif action == 3:
            store.delete("c", scope=MemoryScope(user_id=f"u{random.integers(3)}"))
        else:
            store.delete("c", scope=EVERYONE, ids=[str(i) for i in random.integers(0, 12, 3)])
        assert state(stores[0]) == state(stores[1])
        if random.integers(10) == 0:
            assert state(stores[2]) == state(stores[0])
    assert state(SqliteVectorStore(tmp_path / "m.db")) == state(stores[2]) == state(stores[0])
    assert stores[0].info("c") == stores[2].info("c")


def test_deletions_are_not_kept_for_ever(tmp_path):
    store, other = SqliteVectorStore(tmp_path / "m.db"), SqliteVectorStore(tmp_path / "m.db")
    store.upsert("keep", some(5))
    for number in range(30):
        store.upsert("c", some(20, start=20 * number))
        if number % 7 == 0:
            other.count("c", scope=EVERYONE)
        store.delete("c", scope=EVERYONE)
    store.upsert("c", some(3))
    assert state(other) == state(store)
    assert sqlite3.connect(tmp_path / "m.db").execute("SELECT count(*) FROM deletions").fetchone()[0] <= 20
    assert len(store._collections["c"].records) <= 50  # nor in memory
    assert other.count("keep", scope=EVERYONE) == 5


def test_a_collection_that_another_store_put_in_place_is_read_anew(tmp_path):
    store, other = SqliteVectorStore(tmp_path / "m.db"), SqliteVectorStore(tmp_path / "m.db")
    store.upsert("c", some(4))
    other.upsert("new", some(4, start=10))
    assert other.move("new", "c", other.info("c"))
    assert {r.id for r in store.scan("c", scope=EVERYONE)} == {"10", "11", "12", "13"}
    assert state(store) == state(other)


WRITER = """
import sys, numpy as np
from memlab import MemoryRecord, SqliteVectorStore
store = SqliteVectorStore(sys.argv[1])
for i in range(50):
    store.upsert("c", [MemoryRecord(f"{sys.argv[2]} {i} {j}", embedding=np.ones(8)) for j in range(2)])
"""


def test_processes_that_write_at_once_store_everything_with_numbers_of_its_own(tmp_path):
    path = tmp_path / "m.db"  # not made yet: they also make it at once
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, str(n)]) for n in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    found = SqliteVectorStore(path).scan("c", scope=EVERYONE)
    assert {r.text for r in found} == {f"{n} {i} {j}" for n in range(3) for i in range(50) for j in range(2)}
    assert sorted(r.sequence for r in found) == list(range(300))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_opens_a_connection_of_its_own(tmp_path):
    store = SqliteVectorStore(tmp_path / "m.db")
    store.upsert("c", some(3))
    if (child := os.fork()) == 0:
        try:
            inherited = store._file._connection
            store.upsert("c", some(3, start=10))
            os._exit(int(store._file._connection is inherited))
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    store.upsert("c", some(3, start=20))
    assert store.count("c", scope=EVERYONE) == 9
    assert sqlite3.connect(tmp_path / "m.db").execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_write_that_is_refused_leaves_file_and_index_as_they_were(tmp_path):
    store = SqliteVectorStore(tmp_path / "m.db")
    bad = [*some(3), MemoryRecord("bad", embedding=np.zeros(16))]
    with pytest.raises(InvalidInputError, match="zero"):
        store.upsert("c", bad)
    assert store.info("c") is None
    store.upsert("c", some(3))
    with pytest.raises(InvalidInputError, match="16-d"):
        store.upsert("c", [MemoryRecord("other", embedding=np.ones(3))])
    assert state(store) == state(SqliteVectorStore(tmp_path / "m.db"))


def test_collections_keep_apart_and_are_read_when_they_are_used(tmp_path):
    store = SqliteVectorStore(tmp_path / "m.db")
    store.upsert("a", some(3))
    store.upsert("b", [MemoryRecord("other", embedding=np.ones(5))])
    again = SqliteVectorStore(tmp_path / "m.db")
    assert again.count("b", scope=EVERYONE) == 1
    assert list(again._collections) == ["b"]
    assert again.count("a", scope=EVERYONE) == 3


async def test_a_history_may_live_in_the_same_file(tmp_path):
    history = SqliteHistoryProvider(tmp_path / "m.db")
    await history.save_messages("s", [])
    store = SqliteVectorStore(tmp_path / "m.db")
    store.upsert("c", some(2))
    assert await history.get_messages("s") == []
    assert store.count("c", scope=EVERYONE) == 2


def test_a_store_that_was_closed_opens_again(tmp_path):
    store = SqliteVectorStore(tmp_path / "m.db", synchronous="FULL")
    store.upsert("c", some(2))
    store.close()
    store.close()
    assert store.count("c", scope=EVERYONE) == 2
    with pytest.raises(InvalidInputError, match="'OFF'"):
        SqliteVectorStore(tmp_path / "m.db", synchronous="OFF")
