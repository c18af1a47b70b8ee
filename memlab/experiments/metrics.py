"""Retrieval metrics over a whole grid of top-k and thresholds at once.

For one question, `order` is its candidates best first. Retrieved at (k, t) are the first k of those whose cosine is
at least t. With r retrieved, h of them evidence, and g evidence in all:

    recall = h / g    precision = h / r    F1 = 2 h / (r + g)    hit = h > 0    empty = r == 0

Nothing retrieved counts as precision 0. Source: Manning, Raghavan, Schütze (2008), chapter 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memlab.vectors import TIE, FloatArray, IntArray, select_top_k

Grid = NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """What was retrieved, for each question, threshold and top-k: arrays (questions, thresholds, top-ks)."""

    retrieved: IntArray
    hits: IntArray
    tokens: IntArray
    gold: IntArray  # (questions,)

    def metrics(self) -> dict[str, Grid]:
        """Each metric as an array (questions, thresholds, top-ks); NaN where a question has no evidence."""
        gold = self.gold[:, None, None].astype(float)
        known = np.where(gold > 0, gold, np.nan)
        hits, retrieved = self.hits.astype(float), self.retrieved.astype(float)
        return {
            "recall": hits / known,
            "precision": hits / np.maximum(retrieved, 1) + 0 * known,
            "f1": 2 * hits / (retrieved + known),
            "hit_rate": (hits > 0) + 0 * known,
            "empty_rate": (retrieved == 0) + 0 * known,
            "abstention": np.where(gold > 0, np.nan, (retrieved == 0).astype(float)),
            "tokens": self.tokens.astype(float),
        }


def best_first(scores: FloatArray) -> IntArray:
    """The candidates of each question, best first, ties within 1e-6 newest first: (questions, n), as `select_top_k`.

    One sort for all rows; only rows with near ties are sorted again, by the rule itself.
    """
    count = scores.shape[1]
    newest_first = scores[:, ::-1]
    order = count - 1 - np.argsort(-newest_first, axis=1, kind="stable")
    gaps = -np.diff(np.take_along_axis(scores, order, axis=1), axis=1)
    for row in np.flatnonzero(((gaps > 0) & (gaps <= TIE)).any(axis=1)).tolist():
        order[row] = select_top_k(scores[row], count)
    return order


def count_grid(
    order: IntArray,
    similarity: FloatArray,
    gold: NDArray[np.bool_],
    lengths: IntArray,
    thresholds: FloatArray,
    top_ks: IntArray,
) -> Counts:
    """Count over the whole grid.

    Parameters
    ----------
    order : candidates best first (questions, n).
    similarity : what a threshold is compared with (questions, n).
    gold : which candidates are evidence (questions, n).
    lengths : tokens of each candidate (n,).
    thresholds, top_ks : the grid; -inf as a threshold keeps everything.
    """
    table = _Sorted(*(np.take_along_axis(each, order, axis=1) for each in (gold, similarity)), lengths[order])
    # Where the similarity itself ranks, what passes a threshold is a beginning of the order.
    falling = bool((np.diff(table.similarity, axis=1) <= TIE).all())
    count = _count_prefixes if falling else _count_passing
    retrieved, hits, tokens = count(table, thresholds, top_ks)
    return Counts(retrieved, hits, tokens, gold.sum(axis=1))


@dataclass(frozen=True)
class _Sorted:
    """Gold, similarity and length of the candidates, best first: (questions, n)."""

    gold: NDArray[np.bool_]
    similarity: FloatArray
    lengths: IntArray


def _count_prefixes(table: _Sorted, thresholds: FloatArray, top_ks: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    passing = np.stack([(table.similarity >= threshold).sum(axis=1) for threshold in thresholds], axis=1)
    retrieved = np.minimum(passing[:, :, None], top_ks)
    places = retrieved.reshape(len(passing), -1)
    sums = (np.pad(each, ((0, 0), (1, 0))).cumsum(axis=1) for each in (table.gold, table.lengths))
    hits, tokens = (np.take_along_axis(each, places, axis=1).reshape(retrieved.shape) for each in sums)
    return retrieved, hits, tokens


def _count_passing(table: _Sorted, thresholds: FloatArray, top_ks: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    deepest, counts = int(top_ks.max(initial=0)), []
    for threshold in thresholds:
        passing = table.similarity >= threshold
        rank = passing.cumsum(axis=1)
        rows, places = np.nonzero(passing & (rank <= deepest))
        kept = np.zeros((3, len(passing), deepest + 1), dtype=np.int64)  # the first `deepest` that pass, best first
        values = np.ones(len(rows)), table.gold[rows, places], table.lengths[rows, places]
        kept[:, rows, rank[rows, places]] = np.stack(values)
        counts.append(kept.cumsum(axis=2)[:, :, top_ks])
    retrieved, hits, tokens = np.stack(counts, axis=2)
    return retrieved, hits, tokens
