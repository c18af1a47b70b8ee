"""Retrieval metrics over a whole grid of top-k and thresholds at once.

For one question, `order` is its candidates best first. Retrieved at (k, t) are the first k of those whose cosine is
at least t. With r retrieved, h of them evidence, and g evidence in all:

    recall = h / g    precision = h / r    F1 = 2 h / (r + g)    hit = h > 0    empty = r == 0

Nothing retrieved counts as precision 0. Source: Manning, Raghavan, Schütze (2008), chapter 8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.vectors import TIE, FloatArray, IntArray, select_top_k

Grid = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

METRICS = ("recall", "precision", "f1", "hit_rate", "empty_rate", "abstention", "tokens")


@dataclass(frozen=True)
class Counts:
    """What was retrieved, for each question, threshold and top-k: arrays (questions, thresholds, top-ks)."""

    retrieved: NDArray[np.integer[Any]]
    hits: NDArray[np.integer[Any]]
    tokens: NDArray[np.integer[Any]]
    gold: NDArray[np.integer[Any]]  # (questions,)

    def metrics(self) -> dict[str, Grid]:
        """Each of `METRICS` as an array (questions, thresholds, top-ks); NaN where it is not defined for a question."""
        found = {name: self.values(name) for name in METRICS}
        for name, values in found.items():
            values[~self.defined(name)] = np.nan
        return found

    def defined(self, name: str) -> BoolArray:
        """The questions (questions,) that a metric is about: "tokens" about all, "abstention" about those without
        evidence, the others about those with evidence."""
        if name == "tokens":
            return np.ones(len(self.gold), dtype=bool)
        return self.gold == 0 if name == "abstention" else self.gold > 0

    def values(self, name: str) -> Grid:
        """One metric as an array (questions, thresholds, top-ks); of no meaning where it is not `defined`."""
        gold = self.gold[:, None, None]
        if name == "recall":
            return self.hits / np.maximum(gold, 1)
        if name == "precision":
            return self.hits / np.maximum(self.retrieved, 1)
        if name == "f1":
            return 2 * self.hits / np.maximum(self.retrieved + gold, 1)
        if name == "tokens":
            return self.tokens.astype(float)
        return (self.hits > 0 if name == "hit_rate" else self.retrieved == 0).astype(float)

    def put(self, rows: IntArray, other: Counts) -> None:
        """Replace the counts of these questions by those of `other`."""
        for name in ("retrieved", "hits", "tokens"):
            getattr(self, name)[rows] = getattr(other, name)


def best_first(scores: FloatArray) -> IntArray:
    """The candidates of each question, best first, ties within 1e-6 newest first: (questions, n), as `select_top_k`.

    One sort for all rows; then each group of ties is turned newest first.
    """
    order, falling = np.argsort(-scores, axis=1), _falling(scores)
    tied = falling[:, :-1] - falling[:, 1:] <= TIE
    crowded = np.flatnonzero((tied[:, :-1] & tied[:, 1:]).any(axis=1))
    order[crowded] = _newest_first_in_groups(order[crowded], tied[crowded])
    tied[crowded] = False
    rows, places = np.nonzero(tied)  # these are pairs
    pairs = order[rows, places], order[rows, places + 1]
    order[rows, places], order[rows, places + 1] = np.maximum(*pairs), np.minimum(*pairs)
    for row in crowded[_chains(falling[crowded])].tolist():
        order[row] = select_top_k(scores[row], scores.shape[1])
    return order


def _newest_first_in_groups(order: IntArray, tied: BoolArray) -> IntArray:
    group = np.zeros(order.shape, dtype=np.intp)
    np.cumsum(~tied, axis=1, out=group[:, 1:])
    return np.take_along_axis(order, np.argsort(group * order.shape[1] - order, axis=1), axis=1)


def has_chain(scores: FloatArray) -> BoolArray:
    """For each question, whether near ties chain: a ties with b, b with c, but a not with c. Rare.

    Then the groups of ties depend on where the first of them begins, and so on what a threshold left out.
    """
    return _chains(_falling(scores))


def _falling(scores: FloatArray) -> FloatArray:
    """The scores of each question, best first; double precision, in which `select_top_k` tells ties."""
    return np.sort(scores, axis=1)[:, ::-1].astype(np.float64)


def _chains(falling: FloatArray) -> BoolArray:
    begins = np.ones(falling.shape, dtype=bool)
    begins[:, 1:] = falling[:, :-1] - falling[:, 1:] > TIE
    best_of_chain = np.minimum.accumulate(np.where(begins, falling, np.inf), axis=1)
    chained: BoolArray = np.any(best_of_chain - falling > TIE, axis=1)
    return chained


def count_grid(
    order: IntArray,
    similarity: FloatArray,
    gold: BoolArray,
    lengths: IntArray,
    thresholds: FloatArray,
    top_ks: IntArray,
) -> Counts:
    """Count over the whole grid.

    Parameters
    ----------
    order : candidates best first (questions, n), or as many of them as any place of the grid can retrieve.
    similarity : what a threshold is compared with (questions, n).
    gold : which candidates are evidence (questions, n).
    lengths : tokens of each candidate (n,).
    thresholds, top_ks : the grid; -inf as a threshold keeps everything.
    """
    thresholds = thresholds.astype(similarity.dtype)  # as `select_top_k` compares: in the precision of the scores
    table = _Ranked(order, np.take_along_axis(similarity, order, axis=1), gold, lengths)
    beginning = table.passes_from_the_top(thresholds)
    if beginning.all():
        return Counts(*_count_beginnings(table, thresholds, top_ks), gold.sum(axis=1, dtype=np.int32))
    retrieved, hits, tokens = np.empty((3, len(order), len(thresholds), len(top_ks)), dtype=np.int32)
    for rows, count in ((beginning, _count_beginnings), (~beginning, _count_passing)):
        retrieved[rows], hits[rows], tokens[rows] = count(table.of(rows), thresholds, top_ks)
    return Counts(retrieved, hits, tokens, gold.sum(axis=1, dtype=np.int32))


def count_each(
    order_at: Callable[[float], IntArray],
    similarity: FloatArray,
    gold: BoolArray,
    lengths: IntArray,
    thresholds: FloatArray,
    top_ks: IntArray,
) -> Counts:
    """As `count_grid`, where each threshold has an order of its own."""
    each = [
        count_grid(order_at(threshold), similarity, gold, lengths, np.array([threshold]), top_ks)
        for threshold in thresholds.tolist()
    ]
    retrieved, hits, tokens = (
        np.concatenate([getattr(one, name) for one in each], axis=1) for name in ("retrieved", "hits", "tokens")
    )
    return Counts(retrieved, hits, tokens, gold.sum(axis=1, dtype=np.int32))


@dataclass(frozen=True)
class _Ranked:
    """Candidates and their similarity, best first (questions, n); gold and lengths as they stand."""

    order: IntArray
    similarity: FloatArray
    gold: BoolArray
    lengths: IntArray

    def of(self, rows: BoolArray) -> _Ranked:
        """That of some questions."""
        return _Ranked(self.order[rows], self.similarity[rows], self.gold[rows], self.lengths)

    def passes_from_the_top(self, thresholds: FloatArray) -> BoolArray:
        """For each question, whether what passes a threshold is always a beginning of its candidates.

        It is where the similarity itself ranks, save for near ties on both sides of a threshold.
        """
        result = np.ones(len(self.similarity), dtype=bool)
        rises = np.flatnonzero((np.diff(self.similarity, axis=1) > 0).any(axis=1))
        before = np.minimum.accumulate(self.similarity[rises], axis=1)
        after = np.maximum.accumulate(self.similarity[rises, ::-1], axis=1)[:, ::-1]
        rows, places = np.nonzero(before < after)  # here something better comes after something worse
        low, high = (np.searchsorted(np.sort(thresholds), each[rows, places], "right") for each in (before, after))
        result[rises[rows[low < high]]] = False
        return result


def _count_beginnings(table: _Ranked, thresholds: FloatArray, top_ks: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    top = slice(0, int(top_ks.max(initial=0)))  # deeper candidates can't matter
    order = table.order[:, top]
    passing = (table.similarity[:, top, None] >= thresholds).sum(axis=1, dtype=np.int32)
    retrieved = np.minimum(passing[:, :, None], top_ks.astype(np.int32))
    sums = np.zeros((2, len(order), order.shape[1] + 1), dtype=np.int32)  # of the first 0, 1, 2, ...
    for values, total in zip((np.take_along_axis(table.gold, order, axis=1), table.lengths[order]), sums, strict=True):
        np.cumsum(values, axis=1, out=total[:, 1:])
    places = retrieved + np.arange(len(order))[:, None, None] * sums.shape[2]
    hits, tokens = (each.ravel().take(places) for each in sums)
    return retrieved, hits, tokens


def _count_passing(table: _Ranked, thresholds: FloatArray, top_ks: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    deepest, counts = int(top_ks.max(initial=0)), []
    for threshold in thresholds:
        passing = table.similarity >= threshold
        rank = passing.cumsum(axis=1)
        rows, places = np.nonzero(passing & (rank <= deepest))
        turns = table.order[rows, places]
        kept = np.zeros((3, len(passing), deepest + 1), dtype=np.int32)  # the first `deepest` that pass, best first
        kept[:, rows, rank[rows, places]] = np.ones(len(rows)), table.gold[rows, turns], table.lengths[turns]
        counts.append(kept.cumsum(axis=2)[:, :, top_ks])
    retrieved, hits, tokens = np.stack(counts, axis=2)
    return retrieved, hits, tokens
