"""What every vector store does. One list of makers, one set of tests."""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from memlab import (
    EVERYONE,
    InMemoryVectorStore,
    InvalidInputError,
    InvalidTypeError,
    MemoryRecord,
    MemoryScope,
    PostgresVectorStore,
    SqliteVectorStore,
    Trace,
)
from memlab.ranking import RANKS
from memlab.stores.base import SCOPE_FIELDS, VectorStore
from memlab.stores.reembed import reembed
from memlab.stores.transfer import export_jsonl, import_jsonl
from tests.support import stable_id, word_vector
from tests.support_postgres import new_schema, postgres_url  # noqa: F401 - a fixture

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
ALICE, BOB = MemoryScope(user_id="alice"), MemoryScope(user_id="bob")
HOSTILE = [
    "x' OR '1'='1",
    '"; DROP TABLE records; --',
    "100%",
    "under_score",
    "a*b?[c]",
    "😀 张三",
    "\\",
    "x" * 10_000,
    "a\nb",
]


class WordEmbedder:
    """Vectors that depend on the text alone; counts the batches it gets."""

    def __init__(self, model: str = "words", dimensions: int = 8) -> None:
        self.model, self.dimensions = model, dimensions
        self.batches: list[tuple[list[str], str]] = []

    def embed(self, texts: Sequence[str], role: str = "document") -> np.ndarray:
        self.batches.append((list(texts), role))
        return np.array([word_vector(text, self.dimensions) for text in texts], dtype=np.float32)


def makers_in_memory(request):
    return InMemoryVectorStore


def makers_in_sqlite(request):
    folder, numbers = request.getfixturevalue("tmp_path"), itertools.count()
    return lambda **options: SqliteVectorStore(folder / f"{next(numbers)}.db", **options)


def makers_in_postgres(request):
    url, used = request.getfixturevalue("postgres_url"), []

    def make(**options):
        used.append(PostgresVectorStore(new_schema(url), **options))
        return used[-1]

    request.addfinalizer(lambda: [store.close() for store in used])
    return make


MAKERS: dict[str, Callable[[pytest.FixtureRequest], Callable[..., VectorStore]]] = {
    "in memory": makers_in_memory,
    "sqlite": makers_in_sqlite,
    "postgres": makers_in_postgres,
}


@pytest.fixture(params=MAKERS)
def make(request):
    """Makes empty stores; each test gets its own."""
    return MAKERS[request.param](request)


@pytest.fixture
def store(make):
    return make(embedder=WordEmbedder())


def record(text, scope=ALICE, minutes=0, **fields):
    return MemoryRecord(text, scope=scope, created_at=NOON + timedelta(minutes=minutes), **fields)


def texts(found):
    return [getattr(item, "record", item).text for item in found]


# --- search ---


def test_the_best_comes_first_with_its_cosine(make):
    store = make()
    vectors = {"same": [2.0, 0.0], "near": [1.0, 1.0], "far": [0.0, 3.0], "opposite": [-1.0, 0.0]}
    store.upsert("c", [record(text, embedding=np.array(vector)) for text, vector in vectors.items()])
    hits = store.search("c", np.array([5.0, 0.0]), scope=ALICE, top_k=9)
    assert texts(hits) == ["same", "near", "far", "opposite"]
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.5**0.5, 0.0, -1.0], abs=1e-6)
    assert texts(store.search("c", np.array([5.0, 0.0]), scope=ALICE, top_k=9, threshold=0.5)) == ["same", "near"]


def test_a_question_is_embedded_as_a_query_and_records_as_documents_in_one_batch(make):
    embedder = WordEmbedder()
    store = make(embedder=embedder)
    store.upsert("c", [record("one"), record("two", embedding=word_vector("two")), record("three")])
    assert texts(store.search("c", "two", scope=ALICE, top_k=1)) == ["two"]
    assert embedder.batches == [(["one", "three"], "document"), (["two"], "query")]


def test_ties_go_newest_first(store):
    store.upsert("c", [record("same", minutes=m, id=str(m)) for m in (2, 0, 3, 1)])
    assert [hit.record.id for hit in store.search("c", "same", scope=ALICE, top_k=3)] == ["3", "2", "1"]


def test_what_ties_with_the_last_place_competes_for_it(make):
    store = make()
    older, newer = np.array([1.0, 0.0]), np.array([1.0, 5e-4])  # cosines 1 and 1 - 1.25e-7
    store.upsert("c", [record("older", embedding=older), record("newer", embedding=newer, minutes=1)])
    assert texts(store.search("c", older, scope=ALICE, top_k=1)) == ["newer"]
    store.upsert("c", [record(f"{i}", embedding=older, minutes=2 + i) for i in range(100)])
    assert texts(store.search("c", older, scope=ALICE, top_k=2)) == ["99", "98"]


def test_top_k_larger_than_the_collection_gives_all_and_zero_gives_none(store):
    store.upsert("c", [record("one"), record("two")])
    assert len(store.search("c", "x", scope=ALICE, top_k=100)) == 2
    assert store.search("c", "x", scope=ALICE, top_k=0) == []


def test_nothing_stored_nothing_found(store):
    assert store.upsert("c", []) == []
    assert store.search("c", "x", scope=EVERYONE) == store.scan("c", scope=EVERYONE) == []
    assert store.count("c", scope=EVERYONE) == store.delete("c", scope=EVERYONE) == 0


def test_kind_and_role_filter(store):
    store.upsert("c", [record("one"), record("two", role="assistant"), record("three", kind="order")])
    assert texts(store.search("c", "x", scope=ALICE, role="assistant")) == ["two"]
    assert texts(store.search("c", "x", scope=ALICE, kind="order")) == texts(store.scan("c", scope=ALICE, kind="order"))
    assert texts(store.scan("c", scope=ALICE, kind="order", role="assistant")) == []


def test_a_trace_gets_every_candidate_of_the_scope_with_its_score(store):
    store.upsert(
        "c", [record(text, minutes=i) for i, text in enumerate(["one", "two", "three"])] + [record("hers", BOB)]
    )
    trace = Trace()
    hits = store.search("c", "two", scope=ALICE, top_k=1, trace=trace)
    (search,) = trace.searches
    assert (search.query, search.top_k, texts(search.candidates)) == ("two", 1, ["one", "two", "three"])
    assert [search.candidates[i] for i in search.kept] == [hit.record for hit in hits]
    assert search.scores[1] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("query", "options", "named"),
    [
        ("  ", {}, "blank"),
        (np.zeros(8), {}, "zero"),
        (np.full(8, np.nan), {}, "NaN"),
        (np.ones((1, 8)), {}, r"shape \(1, 8\)"),
        ("x", {"top_k": -1}, "top_k is -1"),
        ("x", {"rank": "magic"}, "'magic'.*cosine"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(store, query, options, named):
    store.upsert("c", [record("one")])
    with pytest.raises(InvalidInputError, match=named):
        store.search("c", query, scope=ALICE, **options)


def test_text_needs_an_embedder(make):
    with pytest.raises(InvalidInputError, match="no embedder"):
        make().search("c", "question", scope=EVERYONE)
    with pytest.raises(InvalidInputError, match="no embedding"):
        make().upsert("c", [record("one")])


# --- scopes ---


@pytest.mark.parametrize("name", SCOPE_FIELDS)
def test_a_scope_filters_by_exact_equality(store, name):
    values = ["alice", "Alice", "alice ", "alicea", "ali"]
    store.upsert("c", [record(value, MemoryScope(**{name: value})) for value in values])
    store.upsert("c", [record("unstamped", MemoryScope())])
    for value in values:
        assert texts(store.search("c", "x", scope=MemoryScope(**{name: value}), top_k=9)) == [value]
    assert store.count("c", scope=EVERYONE) == 6


def test_every_field_that_is_set_must_match(store):
    both = MemoryScope(user_id="alice", session_id="s1")
    store.upsert("c", [record("both", both), record("user", ALICE), record("session", MemoryScope(session_id="s1"))])
    assert texts(store.scan("c", scope=both)) == ["both"]
    assert set(texts(store.scan("c", scope=ALICE))) == {"both", "user"}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_ids_are_only_text(store, hostile):
    store.upsert("c", [record("mine", MemoryScope(user_id=hostile), id=hostile), record("other", BOB)])
    assert [found.id for found in store.scan("c", scope=MemoryScope(user_id=hostile))] == [hostile]
    assert store.delete("c", scope=MemoryScope(user_id=hostile)) == 1
    assert texts(store.scan("c", scope=EVERYONE)) == ["other"]


@pytest.mark.parametrize("scope", [MemoryScope(), None, "alice"])
@pytest.mark.parametrize("action", ["search", "scan", "count", "delete"])
def test_no_scope_is_an_error_never_everyone(store, action, scope):
    store.upsert("c", [record("one")])
    arguments = ["x"] if action == "search" else []
    with pytest.raises((InvalidInputError, InvalidTypeError), match="EVERYONE"):
        getattr(store, action)("c", *arguments, scope=scope)
    assert store.count("c", scope=EVERYONE) == 1


# --- upsert, scan, delete ---


def test_a_record_of_the_same_id_is_replaced(store):
    store.upsert("c", [record("old", id="1"), record("other", id="2")])
    assert store.upsert("c", [record("new", id="1", minutes=1)]) == ["1"]
    assert texts(store.scan("c", scope=EVERYONE)) == ["new", "other"]
    assert store.count("c", scope=ALICE) == 2
    assert texts(store.search("c", "old", scope=EVERYONE, top_k=9)).count("old") == 0
    store.upsert("c", [record("first", id="3", minutes=2), record("second", id="3", minutes=2)])
    assert texts(store.scan("c", scope=EVERYONE, limit=1)) == ["second"]


def test_scan_is_newest_first_by_time_whatever_the_order_of_writing(store):
    store.upsert("c", [record(str(m), minutes=m) for m in (5, 1, 9)])
    store.upsert("c", [record(str(m), minutes=m) for m in (3, 7)])
    assert texts(store.scan("c", scope=ALICE)) == texts(store.scan("c", scope=EVERYONE)) == ["9", "7", "5", "3", "1"]
    assert texts(store.scan("c", scope=ALICE, limit=2)) == ["9", "7"]
    assert store.scan("c", scope=ALICE, limit=0) == []
    with pytest.raises(InvalidInputError, match="limit is -1"):
        store.scan("c", scope=ALICE, limit=-1)
    with pytest.raises(InvalidTypeError, match=r"limit is '2'.*a whole number or None"):
        store.scan("c", scope=ALICE, limit="2")


@pytest.mark.parametrize(
    "given", ["soup", ["soup"], record("soup"), 5, [None], (r for r in [record("soup")])], ids=stable_id
)
def test_what_is_no_list_of_records_is_refused_with_what_to_pass(store, given):
    with pytest.raises(InvalidTypeError, match=r"record.* is .*pass a list of MemoryRecords"):
        store.upsert("c", given)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("threshold", "0.3", "a number or None"),
        ("threshold", True, "a number or None"),
        ("kind", 5, "a string or None"),
        ("role", ["user"], "a string or None"),
    ],
)
def test_an_option_of_another_type_is_refused_with_what_to_pass(store, option, value, said):
    store.upsert("c", [record("soup")])
    with pytest.raises(InvalidTypeError, match=f"{option} is .*pass {said}"):
        store.search("c", "soup", scope=ALICE, **{option: value})


@pytest.mark.parametrize("top_k", ["3", 2.5, None, True, -1])
def test_top_k_is_a_whole_number(store, top_k):
    store.upsert("c", [record("soup")])
    with pytest.raises(InvalidInputError, match=r"top_k is .*whole number"):
        store.search("c", "soup", scope=ALICE, top_k=top_k)


def test_records_of_one_time_are_scanned_in_the_order_of_writing_newest_first(store):
    store.upsert("c", [record("a"), record("b")])
    store.upsert("c", [record("c")])
    assert texts(store.scan("c", scope=ALICE)) == ["c", "b", "a"]


def test_sequence_grows_even_after_a_delete(store):
    store.upsert("c", [record("one"), record("two")])
    store.delete("c", scope=ALICE)
    store.upsert("c", [record("three")])
    store.upsert("c", [record("four", minutes=1)])
    four, three = store.scan("c", scope=ALICE)
    assert four.sequence > three.sequence >= 2


def test_delete_removes_the_scope_and_nothing_else(store):
    store.upsert("c", [record("one"), record("two", BOB), record("three")])
    store.upsert("d", [record("one")])
    assert store.delete("c", scope=ALICE) == 2
    assert texts(store.scan("c", scope=EVERYONE)) == ["two"]
    assert texts(store.search("c", "two", scope=EVERYONE, top_k=9)) == ["two"]
    assert store.count("d", scope=EVERYONE) == 1
    assert store.delete("c", scope=EVERYONE) == 1
    assert store.search("c", "two", scope=EVERYONE) == store.scan("c", scope=EVERYONE) == []


def test_everything_of_a_record_comes_back(store):
    given = record("我喜欢川菜 😀", BOB, id="1", role="assistant", author="cook", kind="order")
    store.upsert("c", [given])
    (found,) = store.scan("c", scope=BOB)
    for name in ("id", "text", "role", "author", "scope", "kind", "created_at"):
        assert getattr(found, name) == getattr(given, name)
    assert found.created_at.tzinfo is UTC
    expected = np.array(word_vector(given.text))
    np.testing.assert_allclose(found.embedding, expected / np.linalg.norm(expected), atol=1e-6)


@pytest.mark.parametrize(
    ("vector", "fault"),
    [([0.0] * 8, "zero"), ([np.nan] * 8, "NaN"), ([np.inf] + [0.0] * 7, "infinite"), ([1.0] * 7, r"shape \(7,\)")],
)
def test_a_bad_vector_is_refused_by_name_and_nothing_is_stored(store, vector, fault):
    bad = record("bad", id="the bad one", embedding=np.array(vector))
    with pytest.raises(InvalidInputError, match=fault) as refused:
        store.upsert("c", [record("good"), bad])
    assert "[1]" in str(refused.value) or "the bad one" in str(refused.value)
    assert store.count("c", scope=EVERYONE) == 0


def test_a_collection_refuses_another_dimension(store):
    store.upsert("c", [record("one")])
    for refused in (
        lambda: store.upsert("c", [record("two", embedding=np.ones(3))]),
        lambda: store.search("c", np.ones(3), scope=ALICE),
    ):
        with pytest.raises(InvalidInputError, match=r"8-d vectors of words; 3-d"):
            refused()
    assert store.count("c", scope=EVERYONE) == 1


def test_a_collection_refuses_another_model_with_both_names(store):
    store.upsert("c", [record("one")])
    store.embedder = WordEmbedder("other-words")
    with pytest.raises(InvalidInputError, match=r"of words; .*other-words"):
        store.search("c", "one", scope=ALICE)
    with pytest.raises(InvalidInputError, match=r"of words; .*other-words"):
        store.upsert("c", [record("two")])
    store.upsert("another collection", [record("two")])


@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_collection_needs_a_name(store, name):
    with pytest.raises(InvalidInputError, match="name"):
        store.upsert(name, [record("one")])


# --- ranks and exclusions ---


def test_excluded_ids_are_left_out_before_the_best_are_chosen(store):
    store.upsert("c", [record(text, id=text) for text in ("one", "two", "three")])
    excluded = {"two", "unknown", "nul\0", "surrogate\ud800"}
    assert texts(store.search("c", "two", scope=ALICE, top_k=1, exclude_ids={"one", "three"})) == ["two"]
    assert "two" not in texts(store.search("c", "two", scope=ALICE, top_k=3, exclude_ids=excluded))
    assert len(store.search("c", "two", scope=EVERYONE, top_k=3, exclude_ids=list(excluded))) == 2


def test_every_rank_finds_what_the_store_in_memory_finds(make):
    embedder = WordEmbedder()
    store, reference = make(embedder=embedder), InMemoryVectorStore(embedder=embedder)
    said = ["I like soup", "soup for two", "trains run late", "the late soup", "nothing at all", "late again"]
    for number, text in enumerate(said):
        new = record(text, minutes=number % 4, id=str(number))
        store.upsert("c", [new])
        reference.upsert("c", [new])
    for rank in RANKS:
        for threshold in (None, 0.0):
            for trace in (None, Trace()):
                asked = {"scope": ALICE, "top_k": 4, "rank": rank, "threshold": threshold}
                found, expected = (
                    store.search("c", "late soup", trace=trace, **asked),
                    reference.search("c", "late soup", **asked),
                )
                assert [hit.record.id for hit in found] == [hit.record.id for hit in expected], asked
                assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)


def test_a_far_query_in_a_small_scope_of_a_large_table_gives_all_it_holds(store):
    rng = np.random.default_rng(0)
    near = rng.normal(size=8) * 0.05 + np.eye(8)[0]
    crowd = [record(f"{i}", BOB, embedding=near + 0.05 * rng.normal(size=8)) for i in range(3000)]
    store.upsert("c", crowd)
    store.upsert("c", [record(f"hers {i}", embedding=-near + 0.05 * rng.normal(size=8)) for i in range(6)])
    for exact_below in (10_000, 0):  # with PostgreSQL: compared one by one, and through the index
        store.exact_below = exact_below
        store.upsert("c", [record("one more", BOB, id="one more", embedding=near)])
        assert len(store.search("c", near, scope=ALICE, top_k=6)) == 6
        assert len(store.search("c", near, scope=ALICE, top_k=100)) == 6
        assert store.search("c", near, scope=EVERYONE, top_k=1)[0].record.scope == BOB


# --- several at once, and hostile values ---


def test_threads_write_and_read_at_once(store):
    def work(number):
        for step in range(10):
            batch = [record(f"{number} {step} {i}", MemoryScope(user_id=f"u{number}"), minutes=step) for i in range(3)]
            store.upsert("c", batch)
            assert store.count("c", scope=MemoryScope(user_id=f"u{number}")) == 3 * (step + 1)
            assert len(store.search("c", "x", scope=EVERYONE, top_k=3)) == 3

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))  # raises what a thread raised
    found = store.scan("c", scope=EVERYONE)
    assert len(found) == 180
    assert len({r.sequence for r in found}) == 180


def test_a_record_of_another_scope_is_not_replaced(store):
    store.upsert("c", [MemoryRecord("hers", scope=ALICE, id="same")])
    with pytest.raises(InvalidInputError, match="another scope"):
        store.upsert("c", [MemoryRecord("new", scope=BOB), MemoryRecord("his", scope=BOB, id="same")])
    assert [record.text for record in store.scan("c", scope=EVERYONE)] == ["hers"]


def test_threads_that_replace_the_same_record_leave_one(store):
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: store.upsert("c", [record(f"{n} {i}", id=str(i)) for i in range(4)]), range(24)))
    assert sorted(r.id for r in store.scan("c", scope=EVERYONE)) == ["0", "1", "2", "3"]
    assert len({r.text.split()[0] for r in store.scan("c", scope=EVERYONE)}) == 1  # a write is stored as a whole


def test_ids_of_any_length_that_differ_only_at_the_end(store):
    letters = np.random.default_rng(0).choice(list("abcdefghij张三"), size=20_000)  # does not compress
    long = "".join(letters)
    for end in "xy":
        store.upsert("c", [record(end, MemoryScope(user_id=long + end), id=long + end)])
    assert texts(store.scan("c", scope=MemoryScope(user_id=long + "x"))) == ["x"]
    assert texts(store.search("c", "q", scope=EVERYONE, exclude_ids=[long + "x"])) == ["y"]
    assert store.delete("c", scope=MemoryScope(user_id=long + "y")) == 1
    assert texts(store.scan("c", scope=EVERYONE)) == ["x"]


def test_characters_that_no_database_keeps_are_replaced(store):
    store.upsert("c", [record("a\0b\ud800", role="r\0", author="x\ud800", kind="k\0")])
    (found,) = store.scan("c", scope=ALICE, kind="k\0", role="r\0")
    assert (found.text, found.role, found.author, found.kind) == ("a\ufffdb\ufffd", "r\ufffd", "x\ufffd", "k\ufffd")


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 201])
def test_a_name_that_some_database_could_not_keep_is_refused(store, name):
    with pytest.raises(InvalidInputError, match="name"):
        store.upsert(name, [record("one")])


@pytest.mark.parametrize("name", [*HOSTILE[:7], "a\nb", "memlab_collections", "collections"])
def test_a_collection_may_have_any_name(store, name):
    store.upsert(name, [record("one")])
    store.upsert("other", [record("two")])
    assert texts(store.scan(name, scope=EVERYONE)) == ["one"]


@pytest.mark.parametrize("year", [1, 1969, 9999])
def test_times_come_back_to_the_microsecond(store, year):
    time = datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    store.upsert("c", [MemoryRecord("x", created_at=time)])
    assert store.scan("c", scope=EVERYONE)[0].created_at == time


# --- parts of a scope, names, models ---


def test_delete_of_some_ids_stays_within_the_scope(store):
    store.upsert("c", [record(text, id=text) for text in ("one", "two", "three")] + [record("his", BOB, id="his")])
    assert store.delete("c", scope=ALICE, ids=["one", "his", "unknown", "nul\0"]) == 1
    assert store.delete("c", scope=EVERYONE, ids=[]) == 0
    assert set(texts(store.scan("c", scope=EVERYONE))) == {"two", "three", "his"}


def test_info_names_model_and_dimension_and_changes_with_every_write(store):
    assert store.info("c") is None
    store.upsert("c", [record("one")])
    before = store.info("c")
    assert before[:3] == ("c", "words", 8)
    store.delete("c", scope=EVERYONE)
    assert store.info("c") != before


def test_a_collection_that_moves_takes_over_the_name(store):
    store.upsert("old", [record("one")])
    store.upsert("new", [record("two"), record("three")])
    stale = store.info("old")
    store.upsert("old", [record("four")])
    assert not store.move("new", "old", stale)
    assert not store.move("missing", "old", store.info("old"))
    assert store.count("old", scope=EVERYONE) == 2
    assert store.move("new", "old", store.info("old"))
    assert set(texts(store.scan("old", scope=EVERYONE))) == {"two", "three"}
    assert store.info("new") is None
    assert store.move("old", "elsewhere", None)
    assert store.count("elsewhere", scope=EVERYONE) == 2
    assert store.count("old", scope=EVERYONE) == 0


def test_embedding_again_switches_at_the_end_and_keeps_everything_else(store):
    given = [record(f"text {i}", (ALICE, BOB)[i % 2], minutes=i % 3, kind=f"k{i % 2}") for i in range(20)]
    store.upsert("c", given)
    other = WordEmbedder("other-words", 5)
    new = reembed(store, "c", other, batch_size=6, progress=False)
    assert [len(batch) for batch, _ in other.batches] == [6, 6, 6, 2]
    assert new.info("c")[:3] == ("c", "other-words", 5)
    found = new.scan("c", scope=EVERYONE)
    newest_first = sorted(given, key=lambda r: r.created_at)[::-1]
    assert [r.with_values(sequence=None) for r in found] == newest_first
    assert new.search("c", "text 3", scope=EVERYONE, top_k=1)[0].score == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(InvalidInputError, match=r"other-words; .*words"):
        store.search("c", "text 3", scope=EVERYONE)
    assert reembed(new, "c", other, progress=False).count("c", scope=EVERYONE) == 20
    assert len(other.batches) == 5  # the four, and the question


def test_embedding_again_goes_on_where_it_was_interrupted(store):
    store.upsert("c", [record(f"text {i}", minutes=i, id=str(i)) for i in range(20)])
    breaking = WordEmbedder("other-words", 5)
    embed, breaking.embed = (
        breaking.embed,
        lambda texts, role: embed(texts, role) if len(breaking.batches) < 2 else 1 / 0,
    )
    with pytest.raises(ZeroDivisionError):
        reembed(store, "c", breaking, batch_size=6, progress=False)
    assert store.search("c", "text 3", scope=EVERYONE, top_k=1)[0].record.text == "text 3"  # still in use
    store.upsert("c", [record("changed", id="0"), record("late")])
    store.delete("c", scope=EVERYONE, ids=["1"])
    other = WordEmbedder("other-words", 5)
    new = reembed(store, "c", other, batch_size=100, progress=False)
    assert [len(batch) for batch, _ in other.batches] == [8 + 2]
    assert set(texts(new.scan("c", scope=EVERYONE))) == {f"text {i}" for i in range(2, 20)} | {"changed", "late"}


def test_what_is_written_during_the_work_is_embedded_too(store):
    store.upsert("c", [record("one")])

    class Slow(WordEmbedder):
        def embed(self, texts, role="document"):
            if len(self.batches) == 0:
                store.upsert("c", [record("written meanwhile")])
            return super().embed(texts, role)

    new = reembed(store, "c", Slow("other-words"), progress=False)
    assert set(texts(new.scan("c", scope=EVERYONE))) == {"one", "written meanwhile"}


def test_what_is_written_at_the_last_moment_is_not_lost(store, monkeypatch):
    store.upsert("c", [record("one")])
    scan, late = type(store).scan, [record("at the last moment")]

    def scan_then_write(self, collection, **options):
        found = scan(self, collection, **options)
        if collection != "c" and found and late:  # both collections were compared, and the switch comes next
            store.upsert("c", [late.pop()])
        return found

    monkeypatch.setattr(type(store), "scan", scan_then_write)
    new = reembed(store, "c", WordEmbedder("other-words"), progress=False)
    assert late == []
    assert set(texts(new.scan("c", scope=EVERYONE))) == {"one", "at the last moment"}


def test_export_and_import_give_the_same_records_and_vectors_bit_by_bit(store, make, tmp_path):
    vectors = np.random.default_rng(0).normal(size=(30, 8))
    given = [record(f"文 {i}\n😀", (ALICE, BOB)[i % 2], i % 4, author="x", embedding=v) for i, v in enumerate(vectors)]
    store.upsert("c", given)
    assert export_jsonl(store, "c", tmp_path / "c.jsonl") == 30
    other = make()
    assert import_jsonl(other, tmp_path / "c.jsonl", "d") == import_jsonl(other, tmp_path / "c.jsonl", "d") == 30
    assert other.info("d")[:3] == ("d", "words", 8)
    before, after = store.scan("c", scope=EVERYONE), other.scan("d", scope=EVERYONE)
    assert [r.with_values(sequence=None) for r in after] == [r.with_values(sequence=None) for r in before]
    assert all((a.embedding == b.embedding).all() for a, b in zip(after, before, strict=True))
    export_jsonl(other, "d", tmp_path / "d.jsonl")
    assert (tmp_path / "d.jsonl").read_text("utf-8").splitlines()[1:] == (tmp_path / "c.jsonl").read_text(
        "utf-8"
    ).splitlines()[1:]


def test_an_import_of_another_model_is_refused_with_both_names(store, make, tmp_path):
    store.upsert("c", [record("one")])
    export_jsonl(store, "c", tmp_path / "c.jsonl")
    with pytest.raises(InvalidInputError, match=r"other-words.*words"):
        import_jsonl(make(embedder=WordEmbedder("other-words")), tmp_path / "c.jsonl")


# --- against a list and a loop ---

users = st.sampled_from([None, "a", "b"])
scopes = st.builds(MemoryScope, user_id=users, session_id=st.sampled_from([None, "s"]))
records = st.builds(
    record,
    st.sampled_from(["one", "two", "three", "four"]),
    scopes,
    st.integers(0, 3),
    id=st.integers(0, 12).map(str),
    kind=st.sampled_from(["message", "order"]),
)
search_scopes = scopes.filter(MemoryScope.set_fields) | st.just(EVERYONE)


class AgainstAList(RuleBasedStateMachine):
    """The store and a plain list, put through the same writes and asked the same questions."""

    maker: Callable[..., VectorStore]

    def __init__(self) -> None:
        super().__init__()
        self.store = type(self).maker(embedder=WordEmbedder())
        self.rows: list[MemoryRecord] = []

    @rule(batch=st.lists(records, max_size=5))
    def upsert(self, batch):
        scopes = {}
        if any(scopes.setdefault(r.id, r.scope) != r.scope for r in [*self.rows, *batch]):
            with pytest.raises(InvalidInputError, match="another scope"):
                self.store.upsert("c", batch)
            return
        self.store.upsert("c", batch)
        for new in batch:
            self.rows = [*(old for old in self.rows if old.id != new.id), new]

    @rule(scope=search_scopes)
    def delete(self, scope):
        doomed = self.matching(scope)
        assert self.store.delete("c", scope=scope) == len(doomed)
        self.rows = [row for row in self.rows if row not in doomed]

    @precondition(lambda self: self.rows)
    @rule(
        scope=search_scopes,
        kind=st.sampled_from([None, "order"]),
        top_k=st.integers(0, 14),
        text=st.sampled_from(["one", "zero"]),
        threshold=st.sampled_from([None, 0.1]),
    )
    def search(self, scope, kind, top_k, text, threshold):
        query = np.array(word_vector(text))
        scored = []
        for row in self.matching(scope, kind):
            vector = np.array(word_vector(row.text))
            scored.append((float(query @ vector / np.linalg.norm(query) / np.linalg.norm(vector)), row))
        best = sorted(scored, key=lambda pair: round(pair[0], 5), reverse=True)  # stable: newest first in ties
        expected = [row.id for score, row in best if threshold is None or score >= threshold][:top_k]
        found = self.store.search("c", text, scope=scope, kind=kind, top_k=top_k, threshold=threshold)
        assert [hit.record.id for hit in found] == expected

    @invariant()
    def scans_agree(self):
        for scope in (EVERYONE, MemoryScope(user_id="a"), MemoryScope(user_id="b", session_id="s")):
            expected = [row.id for row in self.matching(scope)]
            assert [row.id for row in self.store.scan("c", scope=scope)] == expected
            assert self.store.count("c", scope=scope) == len(expected)

    def matching(self, scope, kind=None):
        wanted = [r for r in self.rows if (scope is EVERYONE or scope.matches(r.scope)) and kind in (None, r.kind)]
        return sorted(wanted, key=lambda r: r.created_at)[::-1]


def test_random_writes_and_searches_agree_with_a_list(make):
    machine = type("Machine", (AgainstAList,), {"maker": staticmethod(make)})
    run_state_machine_as_test(machine, settings=settings(max_examples=20, stateful_step_count=20, deadline=None))
