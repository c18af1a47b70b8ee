"""What is special about the store in memory: blocks of vectors, growth, and several threads."""

import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from memlab import EVERYONE, InMemoryVectorStore, MemoryRecord, MemoryScope
from memlab.stores import collection

RNG = np.random.default_rng(0)


def fill(store, count, users=4, dimensions=6, start=0):
    vectors = RNG.normal(size=(count, dimensions)).astype(np.float32)
    records = [
        MemoryRecord(str(i), id=str(i), scope=MemoryScope(user_id=f"u{i % users}"), embedding=vector)
        for i, vector in enumerate(vectors, start)
    ]
    store.upsert("c", records)
    return vectors


@pytest.mark.parametrize("users", [1, 3, 50])  # all rows, many rows, few rows of a scope
def test_a_collection_of_many_blocks_is_ranked_like_one_matrix(monkeypatch, users):
    monkeypatch.setattr(collection, "_BLOCK", 16)
    store = InMemoryVectorStore()
    vectors = fill(store, 200, users)
    query = RNG.normal(size=6).astype(np.float32)
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    mine = np.arange(0, 200, users)
    expected = mine[np.argsort(-cosines[mine])][:6]
    hits = store.search("c", query, scope=MemoryScope(user_id="u0"), top_k=6)
    assert [int(hit.record.id) for hit in hits] == expected.tolist()
    assert [hit.score for hit in hits] == pytest.approx(cosines[expected].tolist(), abs=1e-5)


def test_few_rows_out_of_time_order_are_gathered_from_many_blocks(monkeypatch):
    monkeypatch.setattr(collection, "_BLOCK", 16)
    store, noon = InMemoryVectorStore(), datetime(2025, 1, 1, tzinfo=UTC)
    vectors = RNG.normal(size=(300, 6)).astype(np.float32)
    ages = RNG.permutation(300).tolist()
    scopes = [MemoryScope(user_id=f"u{i % 10}") for i in range(300)]
    rows = zip(ages, scopes, vectors, strict=True)
    store.upsert("c", [MemoryRecord(f"{a}", scope=s, embedding=v, created_at=noon + timedelta(a)) for a, s, v in rows])
    query = RNG.normal(size=6).astype(np.float32)
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    mine = np.arange(0, 300, 10)
    hits = store.search("c", query, scope=scopes[0], top_k=30)
    assert [hit.record.text for hit in hits] == [str(ages[i]) for i in mine[np.argsort(-cosines[mine])]]
    assert len(store.search("c", query, scope=scopes[0], top_k=5, rank="mmr")) == 5


def test_replacing_the_same_records_again_and_again_does_not_grow_the_store(monkeypatch):
    monkeypatch.setattr(collection, "_BLOCK", 16)
    store = InMemoryVectorStore()
    for _ in range(50):
        vectors = fill(store, 10)
    assert store.count("c", scope=EVERYONE) == 10
    assert len(store._collections["c"].records) <= 30
    hits = store.search("c", vectors[3], scope=EVERYONE, top_k=1)
    assert hits[0].record.id == "3"


def test_vectors_of_float64_keep_their_direction_at_any_length():
    store = InMemoryVectorStore()
    store.upsert(
        "c",
        [
            MemoryRecord("tiny", embedding=np.array([1e-200, 0.0])),
            MemoryRecord("huge", embedding=np.array([0.0, 1e200])),
        ],
    )
    assert [hit.score for hit in store.search("c", np.array([1.0, 0.0]), scope=EVERYONE)] == [1.0, 0.0]


def test_a_found_vector_cannot_be_changed():
    store = InMemoryVectorStore()
    fill(store, 3)
    with pytest.raises(ValueError, match="read-only"):
        store.scan("c", scope=EVERYONE)[0].embedding[0] = 9


def test_the_caller_may_reuse_its_array():
    store = InMemoryVectorStore()
    vector = np.array([1.0, 0.0], dtype=np.float32)
    store.upsert("c", [MemoryRecord("x", embedding=vector)])
    vector[:] = [0.0, 1.0]
    assert store.search("c", np.array([1.0, 0.0]), scope=EVERYONE)[0].score == pytest.approx(1.0)


def test_threads_write_and_search_at_once():
    store, errors = InMemoryVectorStore(), []

    def work(number):
        try:
            for step in range(20):
                fill(store, 5, start=number * 100 + step * 5)
                hits = store.search("c", np.ones(6), scope=EVERYONE, top_k=5)
                assert len(hits) == 5
        except Exception as error:  # noqa: BLE001 - to be shown in the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.count("c", scope=EVERYONE) == 400
    assert sorted(r.sequence for r in store.scan("c", scope=EVERYONE)) == list(range(400))
