"""What is special about the store in PostgreSQL: the index, several clients, and what goes to the server."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from memlab import EVERYONE, InvalidInputError, MemoryRecord, MemoryScope, PostgresVectorStore, Trace
from memlab.stores import postgres_tables
from tests.support_postgres import new_schema, postgres_url  # noqa: F401 - a fixture

RNG = np.random.default_rng(0)
SIZE = 3000
ALICE, CROWD = MemoryScope(user_id="alice"), MemoryScope(user_id="crowd")


@pytest.fixture
def url(postgres_url):  # noqa: F811
    return new_schema(postgres_url)


@pytest.fixture(scope="module")
def indexed(postgres_url) -> Iterator[PostgresVectorStore]:  # noqa: F811
    """3,000 records in one corner of the space, 6 in the opposite one; with an index, to which the planner is held."""
    forced = "%20-cenable_seqscan%3Doff%20-cenable_bitmapscan%3Doff%20-cenable_sort%3Doff"
    store = PostgresVectorStore(new_schema(postgres_url) + forced, exact_below=100)
    store.upsert("c", [record(f"{i}", CROWD, towards(1)) for i in range(SIZE)])
    store.upsert("c", [record(f"hers {i}", ALICE, towards(-1)) for i in range(6)])
    yield store
    store.close()


def towards(sign):
    return sign * np.eye(16)[0] + 0.3 * RNG.normal(size=16)


def record(text, scope, vector):
    return MemoryRecord(text, id=text, scope=scope, embedding=vector)


def test_a_search_in_a_large_scope_goes_through_the_index_and_finds_nearly_all(indexed, monkeypatch):
    monkeypatch.setattr(postgres_tables, "nearest_exact", None)  # calling it would fail
    found = wanted = 0
    rows = indexed.scan("c", scope=CROWD)
    matrix = np.array([r.embedding for r in rows])
    for _ in range(20):
        query = towards(1)
        hits = indexed.search("c", query, scope=CROWD, top_k=10)
        best = {rows[i].id for i in np.argsort(-(matrix @ query))[:10]}
        found += len({hit.record.id for hit in hits} & best)
        wanted += len(best)
    assert found / wanted >= 0.95


def test_the_index_alone_misses_a_small_scope_and_the_store_does_not(indexed, monkeypatch):
    far, which = towards(1).astype(np.float32), postgres_tables.where({"user_id": "alice"})

    def by_index(connection):
        connection.execute("SET LOCAL hnsw.max_scan_tuples = 200")  # a table of millions has the same effect
        table = postgres_tables.find(connection, "c")
        return postgres_tables.nearest_by_index(connection, table, which, far, 6)

    assert len(indexed._server.run(by_index)) < 6
    for exact_below in (100, 5):  # her scope is small; or it is large, and the index gives too few
        monkeypatch.setattr(indexed, "exact_below", exact_below)
        if exact_below == 5:
            monkeypatch.setattr(postgres_tables, "nearest_by_index", lambda *arguments: [])
        assert len(indexed.search("c", far, scope=ALICE, top_k=6)) == 6
        assert len(indexed.search("c", far, scope=ALICE, top_k=100)) == 6


def test_a_trace_of_a_large_scope_holds_what_the_database_gave_back(indexed):
    trace = Trace()
    hits = indexed.search("c", towards(1), scope=EVERYONE, top_k=4, threshold=0.1, trace=trace)
    (search,) = trace.searches
    assert len(hits) == 4
    assert [search.candidates[i] for i in search.kept] == [hit.record for hit in hits]


def test_newest_in_a_large_scope_counts_from_all_its_records(indexed):
    hits = indexed.search("c", "", scope=CROWD, top_k=3, rank="newest")
    assert [hit.record for hit in hits] == indexed.scan("c", scope=CROWD, limit=3)
    assert [hit.score for hit in hits] == pytest.approx([1, 1 - 1 / SIZE, 1 - 2 / SIZE])


def test_the_index_comes_with_the_record_that_makes_a_collection_large(url):
    store = PostgresVectorStore(url, exact_below=10)

    def has_index():
        return store._server.run(lambda connection: postgres_tables.find(connection, "c")).has_index

    store.upsert("c", [record(str(i), ALICE, towards(1)) for i in range(10)])
    store.upsert("c", [record(str(i), ALICE, towards(1)) for i in range(10)])  # the same ten
    assert not has_index()
    store.upsert("c", [record("one more", ALICE, towards(1))])
    assert has_index()
    store.upsert("c", [record(str(i), ALICE, towards(1)) for i in range(20)])
    assert store.count("c", scope=EVERYONE) == 21
    store.close()


@pytest.mark.parametrize("dimensions", [1, 1536, 1537, 3072])
def test_vectors_of_usual_dimensions_are_kept_exactly(url, dimensions):
    store = PostgresVectorStore(url, exact_below=2)
    vectors = RNG.normal(size=(5, dimensions)).astype(np.float32)
    ids = store.upsert("c", [record("text " * 500 + str(i), ALICE, v) for i, v in enumerate(vectors)])
    best = store.search("c", vectors[3], scope=ALICE, top_k=5)[0]
    if dimensions > 1:
        assert best.record.id == ids[3]
    unit = vectors[3] / np.linalg.norm(vectors[3])
    np.testing.assert_allclose({r.id: r for r in store.scan("c", scope=ALICE)}[ids[3]].embedding, unit, atol=1e-7)
    store.close()


WRITER = """
import sys, numpy as np
from memlab import MemoryRecord, PostgresVectorStore
store = PostgresVectorStore(sys.argv[1])
for i in range(30):
    store.upsert("c", [MemoryRecord(f"{sys.argv[2]} {i} {j}", embedding=np.ones(8)) for j in range(2)])
"""


def test_processes_that_write_at_once_store_everything_with_numbers_of_its_own(url):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, url, str(n)]) for n in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]  # they also made the tables at once
    store = PostgresVectorStore(url)
    found = store.scan("c", scope=EVERYONE)
    assert {r.text for r in found} == {f"{n} {i} {j}" for n in range(3) for i in range(30) for j in range(2)}
    assert sorted(r.sequence for r in found) == list(range(180))
    store.close()


def test_two_clients_see_one_state_also_after_a_switch(url):
    one, two = PostgresVectorStore(url), PostgresVectorStore(url)
    one.upsert("c", [record("x", ALICE, towards(1))])
    assert two.count("c", scope=EVERYONE) == 1
    two.upsert("new", [record("y", ALICE, np.ones(3)), record("z", ALICE, np.ones(3))])
    assert two.move("new", "c", one.info("c"))
    assert one.count("c", scope=EVERYONE) == 2
    assert one.search("c", np.ones(3), scope=ALICE, top_k=1)[0].score == pytest.approx(1.0)
    one.close()
    two.close()


def test_connections_are_few_and_closed(url):
    store = PostgresVectorStore(url)
    for _ in range(50):
        store.count("c", scope=EVERYONE)
    assert len(store._server._idle) == 1
    store.close()
    assert store._server._idle == []


@pytest.mark.parametrize("exact_below", [-1])
def test_a_negative_limit_is_refused(url, exact_below):
    with pytest.raises(InvalidInputError, match="exact_below is -1"):
        PostgresVectorStore(url, exact_below=exact_below)


def test_without_the_extra_the_error_names_it():
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "import memlab\n"
        "try: memlab.PostgresVectorStore('postgresql://x/y')\n"
        "except memlab.ConfigurationError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert 'pip install "memlab[postgres]"' in said
