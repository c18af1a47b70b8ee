"""Ranking functions against their formulas, and every ranking through the store and the memory provider."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memlab import (
    EVERYONE,
    Agent,
    ChatHistoryMemoryProvider,
    ChatHistoryMemoryProviderOptions,
    InMemoryVectorStore,
    InvalidInputError,
    MemoryRecord,
    MemoryScope,
    State,
    normalize,
    select_top_k,
)
from memlab.lexical import Bm25
from memlab.ranking import (
    RANKS,
    fuse,
    min_max,
    mmr,
    mmr_rows,
    needs_cosine,
    newest_scores,
    rank_candidates,
    with_recency,
)
from memlab.vectors import TIE
from tests.support import ScriptedEndpoint
from tests.support_sweep import WORDS, SeededEmbedder

cosines = hnp.arrays(np.float32, st.integers(1, 30), elements=st.floats(-1, 1, width=32))


def unit_vectors(count, dimensions=6, seed=0):
    return normalize(np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32))


# --- scales ---


@given(cosines)
def test_min_max_reaches_both_ends_and_keeps_the_order(scores):
    moved = min_max(scores)
    assert moved.dtype == scores.dtype
    assert ((moved >= 0) & (moved <= 1)).all()
    if np.ptp(scores) > TIE:
        assert (moved.min(), moved.max()) == (0, 1)
        assert (np.diff(moved[np.argsort(scores)]) >= 0).all()


@pytest.mark.parametrize("scores", [[0.4], [0.4, 0.4, 0.4], [0.4, 0.4 + 3e-7], []])
def test_min_max_of_equal_scores_is_zero(scores):
    """One text embedded twice differs by 2e-7: that must not make it the best and the worst."""
    assert min_max(np.array(scores, dtype=np.float32)).tolist() == [0.0] * len(scores)


def test_min_max_takes_each_question_by_itself():
    assert min_max(np.array([[0.0, 1.0, 2.0], [5.0, 5.0, 5.0]])).tolist() == [[0, 0.5, 1], [0, 0, 0]]
    assert min_max(np.empty((3, 0))).shape == (3, 0)


@given(cosines, st.floats(0, 1))
def test_a_fusion_lies_between_its_parts(cosine, weight):
    lexical = np.arange(len(cosine), dtype=np.float32)[::-1] * 7
    fused, low, high = fuse(cosine, lexical, weight), min_max(cosine), min_max(lexical)
    assert (fused >= np.minimum(low, high) - 1e-6).all()
    assert (fused <= np.maximum(low, high) + 1e-6).all()
    np.testing.assert_array_equal(fuse(cosine, lexical, 1.0), low)
    np.testing.assert_array_equal(fuse(cosine, lexical, 0.0), high)


def test_a_fusion_by_hand():
    fused = fuse(np.array([0.2, 0.4, 0.3]), np.array([0.0, 1.0, 4.0]))
    np.testing.assert_allclose(fused, [0.0, 0.5 * 1 + 0.5 * 0.25, 0.5 * 0.5 + 0.5 * 1])


@pytest.mark.parametrize("weight", [-0.1, 1.1])
def test_a_weight_outside_zero_and_one_is_refused(weight):
    with pytest.raises(InvalidInputError, match="weight"):
        fuse(np.ones(2), np.ones(2), weight)


@given(st.integers(0, 50))
def test_newest_scores_grow_evenly_to_one(count):
    np.testing.assert_allclose(newest_scores(count), [i / count for i in range(1, count + 1)], rtol=1e-6)


def test_recency_is_added_to_normalised_similarity():
    cosine = np.array([0.30, 0.31, 0.32, 0.30], dtype=np.float32)
    expected = [0.5 * 0 + 0.5 / 4, 0.5 * 0.5 + 0.5 * 2 / 4, 0.5 * 1 + 0.5 * 3 / 4, 0.5 * 0 + 0.5]
    np.testing.assert_allclose(with_recency(cosine), expected, rtol=1e-4)
    assert with_recency(cosine).argmax() == 2, "added to raw cosines, time alone would rank"


# --- maximal marginal relevance ---


def mmr_by_the_formula(cosine, vectors, top_k, diversity=0.5):
    taken = []
    while len(taken) < min(top_k, len(cosine)):
        left = [i for i in range(len(cosine)) if i not in taken]
        value = {
            i: (1 - diversity) * cosine[i] - (diversity * max(vectors[i] @ vectors[t] for t in taken) if taken else 0)
            for i in left
        }
        best = max(value.values())
        taken.append(max(i for i in left if best - value[i] <= TIE))
    return taken


@given(st.integers(0, 12), st.integers(0, 15), st.integers(0, 99), st.sampled_from([0.2, 0.5, 0.9]))
def test_mmr_agrees_with_its_formula(count, top_k, seed, diversity):
    vectors = unit_vectors(count + 1, seed=seed)
    question, vectors = vectors[0], vectors[1:]
    cosine = vectors @ question
    assert mmr(cosine, vectors, top_k, diversity).tolist() == mmr_by_the_formula(cosine, vectors, top_k, diversity)


def test_mmr_takes_one_of_two_copies_first_and_no_diversity_is_cosine():
    vectors = normalize(np.array([[1, 0.2, 0], [1, 0.2, 0], [1, 0, 0.3], [0, 1, 0]], dtype=np.float32))
    cosine = vectors @ np.array([1, 0, 0], dtype=np.float32)
    assert mmr(cosine, vectors, 2, diversity=0.0).tolist() == select_top_k(cosine, 2).tolist() == [1, 0]
    assert set(mmr(cosine, vectors, 2).tolist()) != {0, 1}
    assert sorted(mmr(cosine, vectors, 9).tolist()) == [0, 1, 2, 3]


@given(st.integers(1, 12), st.integers(1, 15), st.integers(0, 99), st.none() | st.floats(-1, 1))
def test_mmr_of_many_questions_is_mmr_of_each_among_those_that_pass(count, top_k, seed, threshold):
    vectors, questions = unit_vectors(count, seed=seed), unit_vectors(5, seed=seed + 1)
    cosine, likeness = questions @ vectors.T, vectors @ vectors.T
    for row, taken in zip(cosine, mmr_rows(cosine, likeness, top_k, threshold), strict=True):
        passing = np.flatnonzero(row >= (-9 if threshold is None else float(threshold)))
        expected = passing[mmr(row[passing], vectors[passing], top_k)]
        assert taken[: len(expected)].tolist() == expected.tolist()
        assert len(taken) == min(top_k, count)
        assert not set(taken[len(expected) :].tolist()) & set(passing.tolist())


# --- what a threshold means ---


def candidates(count=20, seed=3):
    rng = np.random.default_rng(seed)
    vectors = unit_vectors(count, seed=seed)
    texts = [" ".join(rng.choice(WORDS, size=4)) for _ in range(count)]
    return vectors, texts, vectors @ unit_vectors(1, seed=seed + 1)[0]


def full_scores(rank, cosine, texts, query):
    lexical = Bm25(texts).scores(query)
    return {
        "cosine": cosine,
        "bm25": lexical,
        "hybrid": fuse(cosine, lexical),
        "recency": with_recency(cosine),
        "newest": newest_scores(len(cosine)),
        "mmr": cosine,
    }[rank]


@pytest.mark.parametrize("threshold", [None, 0.0, 0.2, 0.9])
@pytest.mark.parametrize("rank", RANKS)
def test_a_threshold_is_one_of_cosine_and_decides_before_the_ranking(rank, threshold):
    vectors, texts, cosine = candidates()
    query = "tea for Peter"
    scores, kept = rank_candidates(
        rank, 5, threshold, cosine=cosine, query=query, texts=lambda: texts, vectors=lambda: vectors
    )
    expected = full_scores(rank, cosine, texts, query)
    np.testing.assert_allclose(scores, expected)
    passing = [i for i in range(len(cosine)) if threshold is None or cosine[i] >= threshold]
    best = mmr(cosine[passing], vectors[passing], 5) if rank == "mmr" else select_top_k(expected[passing], 5)
    assert kept.tolist() == [passing[i] for i in best]


def test_a_threshold_in_double_precision_lets_the_same_score_pass_in_every_rank():
    cosine = np.array([0.7, 0.1], dtype=np.float32)  # 0.7 in single precision is less than 0.7
    for rank in RANKS:
        _, kept = rank_candidates(
            rank, 9, np.float64(0.7), cosine=cosine, query="x", texts=lambda: ["x", "y"], vectors=lambda: np.eye(2)
        )
        assert kept.tolist() == [0], rank


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize(("top_k", "threshold"), [(-1, None), (1.5, None), (2, float("nan"))])
def test_every_rank_refuses_a_wrong_top_k_and_threshold(rank, top_k, threshold):
    vectors, texts, cosine = candidates()
    with pytest.raises(InvalidInputError, match=r"top_k|threshold"):
        rank_candidates(rank, top_k, threshold, cosine=cosine, query="x", texts=lambda: texts, vectors=lambda: vectors)


def test_needs_cosine_and_unknown_ranks():
    assert [rank for rank in RANKS if not needs_cosine(rank, None)] == ["bm25", "newest"]
    assert all(needs_cosine(rank, 0.1) for rank in RANKS)
    with pytest.raises(InvalidInputError, match=r"'magic'.*hybrid"):
        needs_cosine("magic", None)


def test_a_vector_alone_can_not_be_ranked_by_words():
    with pytest.raises(InvalidInputError, match="bm25"):
        rank_candidates("bm25", 1, cosine=np.zeros(1), texts=lambda: ["x"])


# --- every rank through the store and the provider ---

ME, YOU = MemoryScope(user_id="me"), MemoryScope(user_id="you")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def store():
    _, texts, _ = candidates()
    store = InMemoryVectorStore(SeededEmbedder())
    hers = [MemoryRecord(f"Peter Peter {text}", scope=YOU) for text in texts]
    mine = [MemoryRecord(t, scope=ME, created_at=NOON + timedelta(minutes=i)) for i, t in enumerate(texts)]
    store.upsert("c", [record for pair in zip(hers, mine, strict=True) for record in pair])
    return store


@pytest.mark.parametrize("threshold", [None, 0.1])
@pytest.mark.parametrize("rank", RANKS)
def test_every_rank_through_the_store(store, rank, threshold):
    _, texts, _ = candidates()
    query = "piano of Peter"
    vectors = normalize(store.embedder.embed(texts))
    cosine = vectors @ normalize(store.embedder.embed([query], role="query"))[0]
    scores, kept = rank_candidates(
        rank, 4, threshold, cosine=cosine, query=query, texts=lambda: texts, vectors=lambda: vectors
    )
    hits = store.search("c", query, scope=ME, top_k=4, threshold=threshold, rank=rank)
    assert [hit.record.text for hit in hits] == [texts[i] for i in kept]
    np.testing.assert_allclose([hit.score for hit in hits], scores[kept], atol=1e-6)


@pytest.mark.parametrize("rank", RANKS)
async def test_every_rank_through_the_memory_provider(store, rank):
    threshold = None if rank == "newest" else 0.0
    options = ChatHistoryMemoryProviderOptions(rank=rank, threshold=threshold, max_results=3)
    provider = ChatHistoryMemoryProvider(store, "c", 16, lambda session: State(ME), options)
    expected = store.search("c", "piano of Peter", scope=ME, top_k=3, threshold=threshold, rank=rank)
    agent = Agent(ScriptedEndpoint().client, context_providers=[provider])
    response = await agent.run("piano of Peter", session=agent.create_session())
    (search,) = response.trace.searches
    assert (search.rank, search.threshold) == (rank, threshold)
    assert [search.candidates[i].text for i in search.kept] == [hit.record.text for hit in expected]
    assert store.count("c", scope=EVERYONE) == 42
