"""Ranking: from candidates to scores, and from scores to what is kept.

Candidates stand oldest first. Each function says on which scale its scores lie. A threshold always means cosine
similarity, whatever ranks: first it decides who may take part, then the ranking decides who is best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from memlab.errors import InvalidInputError
from memlab.lexical import Bm25
from memlab.vectors import TIE, FloatArray, IntArray, check_top_k, select_top_k

RANKS = ("cosine", "bm25", "hybrid", "recency", "mmr", "newest")
"""The ways to rank that every store knows."""


def min_max(scores: FloatArray) -> FloatArray:
    """Scores (..., n) moved to [0, 1] along the last axis; all 0 where they are all equal, within 1e-6.

    >>> min_max(np.array([2.0, 4.0, 3.0]))
    array([0. , 1. , 0.5])
    """
    if scores.shape[-1] == 0:
        return scores
    low, high = scores.min(axis=-1, keepdims=True), scores.max(axis=-1, keepdims=True)
    differ = high - low > TIE  # one text embedded twice must not become the best and the worst
    return np.where(differ, (scores - low) / np.where(differ, high - low, 1), 0)


def fuse(cosine: FloatArray, lexical: FloatArray, weight: float = 0.5) -> FloatArray:
    """`weight` of the one and the rest of the other, both moved to [0, 1]: scale [0, 1].

    Source: Bruch, Gai, Ingber, An Analysis of Fusion Functions for Hybrid Retrieval (2023).
    """
    if not 0 <= weight <= 1:
        raise InvalidInputError(f"weight is {weight}; it must lie between 0 and 1")
    return weight * min_max(cosine) + (1 - weight) * min_max(lexical)


def newest_scores(count: int) -> FloatArray:
    """Scores of `count` candidates that stand oldest first: 1 for the newest, evenly down to 1/count.

    >>> newest_scores(4)
    array([0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return np.arange(1, count + 1, dtype=np.float32) / np.float32(max(count, 1))


def with_recency(cosine: FloatArray, weight: float = 0.5) -> FloatArray:
    """Similarity moved to [0, 1], mixed with `newest_scores`: scale [0, 1].

    Raw cosines of related texts differ by less than a recency does, so without the scaling time alone would rank.
    Source of the scaling: Park et al., Generative Agents (2023), section 4.1.
    """
    return (1 - weight) * min_max(cosine) + weight * newest_scores(cosine.shape[-1])


def mmr(cosine: FloatArray, vectors: FloatArray, top_k: int, diversity: float = 0.5) -> IntArray:
    """Maximal marginal relevance: positions, each time the best of similar to the question and unlike those taken.

        argmax  (1 - diversity) * cosine(question, d) - diversity * max over taken t of cosine(d, t)

    `vectors` (n, d) have length 1. Of ties the newest is taken. Source: Carbonell, Goldstein (1998).
    """
    check_top_k(top_k)
    taken: list[int] = []
    value = (1 - diversity) * cosine
    redundancy = np.full(len(cosine), -np.inf, dtype=np.float32)
    left = np.ones(len(cosine), dtype=bool)
    while len(taken) < min(top_k, len(cosine)):
        best = int(np.flatnonzero(left)[select_top_k(value[left], 1)[0]])
        taken.append(best)
        left[best] = False
        redundancy = np.maximum(redundancy, vectors @ vectors[best])
        value = (1 - diversity) * cosine - diversity * redundancy
    return np.array(taken, dtype=np.intp)


def mmr_rows(
    cosine: FloatArray,
    likeness: FloatArray,
    top_k: int,
    threshold: float | None = None,
    diversity: float = 0.5,
) -> IntArray:
    """`mmr` of many questions at once, among the candidates whose cosine is at least `threshold`.

    `cosine` (questions, n), `likeness` (n, n) the cosine of each candidate with each. Returns positions
    (questions, top_k or n if that is less); where fewer pass the threshold, one that does not stands in their place.
    """
    check_top_k(top_k, threshold)
    count, rows = cosine.shape[1], np.arange(len(cosine))
    left = np.ones(cosine.shape, dtype=bool) if threshold is None else cosine >= float(threshold)
    redundancy = np.full(cosine.shape, -np.inf, dtype=np.float32)
    value, taken = (1 - diversity) * cosine, np.empty((len(cosine), min(top_k, count)), dtype=np.intp)
    for place in range(taken.shape[1]):
        value = np.where(left, value, -np.inf)
        best = count - 1 - (value >= value.max(axis=1, keepdims=True).astype(np.float64) - TIE)[:, ::-1].argmax(axis=1)
        taken[:, place] = np.where(left[rows, best], best, cosine.argmin(axis=1))
        left[rows, best] = False
        redundancy = np.maximum(redundancy, likeness[best])
        value = (1 - diversity) * cosine - diversity * redundancy
    return taken


def needs_cosine(rank: str, threshold: float | None) -> bool:
    """Whether a ranking looks at similarity at all. Raises InvalidInputError for an unknown rank."""
    if rank not in RANKS:
        raise InvalidInputError(f"rank is {rank!r}; it must be one of {', '.join(RANKS)}")
    return threshold is not None or rank not in ("bm25", "newest")


def rank_candidates(
    rank: str,
    top_k: int,
    threshold: float | None = None,
    *,
    cosine: FloatArray,
    query: str = "",
    texts: Callable[[], Sequence[str]] = tuple,
    vectors: Callable[[], FloatArray] | None = None,
) -> tuple[FloatArray, IntArray]:
    """Score all candidates and choose: (scores (n,), positions of the kept, best first).

    Parameters
    ----------
    rank : one of `RANKS`.
    top_k, threshold : at most `top_k` of those whose cosine is at least `threshold`. Raises InvalidInputError for a
        negative top_k or a threshold that is NaN.
    cosine : similarity of each candidate with the question (n,), oldest first; any values where `needs_cosine`
        says no.
    query : the question as text, for "bm25" and "hybrid".
    texts, vectors : functions that give all texts, and all unit vectors (n, d), where a ranking needs them.
    """
    if rank == "cosine":
        return cosine, select_top_k(cosine, top_k, threshold)
    check_top_k(top_k, threshold)
    scores = _scores(rank, cosine, query, texts)
    if threshold is None and rank != "mmr":
        return scores, select_top_k(scores, top_k)
    eligible = np.arange(len(cosine)) if threshold is None else np.flatnonzero(cosine >= float(threshold))
    if rank != "mmr":
        return scores, eligible[select_top_k(scores[eligible], top_k)]
    assert vectors is not None
    return scores, eligible[mmr(cosine[eligible], vectors()[eligible], top_k)]


def _scores(rank: str, cosine: FloatArray, query: str, texts: Callable[[], Sequence[str]]) -> FloatArray:
    if rank == "mmr":
        return cosine
    if rank == "newest":
        return newest_scores(len(cosine))
    if rank == "recency":
        return with_recency(cosine)
    if not query.strip():
        raise InvalidInputError(f"rank {rank!r} needs the question as text, not as a vector alone")
    lexical = Bm25(texts()).scores(query)
    return lexical if rank == "bm25" else fuse(cosine, lexical)
