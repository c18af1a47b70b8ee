"""What every vector store does. One list of makers, one set of tests."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from memlab import EVERYONE, InMemoryVectorStore, InvalidInputError, InvalidTypeError, MemoryRecord, MemoryScope, Trace
from memlab.stores.base import SCOPE_FIELDS, VectorStore
from tests.support import word_vector

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


MAKERS: dict[str, Callable[..., VectorStore]] = {"in memory": InMemoryVectorStore}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


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
    assert store.upsert("c", [record("new", BOB, id="1", minutes=1)]) == ["1"]
    assert texts(store.scan("c", scope=EVERYONE)) == ["new", "other"]
    assert store.count("c", scope=ALICE) == 1
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
    run_state_machine_as_test(machine, settings=settings(max_examples=40, stateful_step_count=20, deadline=None))
