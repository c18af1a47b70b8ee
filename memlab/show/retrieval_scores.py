"""Scores of a dataset, kept for each ranking, so that a new top-k or threshold only counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memlab.errors import InvalidInputError
from memlab.experiments.datasets import Conversation, Dataset
from memlab.experiments.metrics import BoolArray, Counts, best_first
from memlab.experiments.scoring import Scored, prepare, score_one
from memlab.ranking import RANKS, mmr_rows
from memlab.stores.base import Embeds
from memlab.vectors import FloatArray, IntArray

DEEPEST = 20  # the largest top-k of the explorer


class RetrievalScores:
    """All questions of a dataset against the turns of their conversations: embedded once, scored once a ranking."""

    def __init__(self, dataset: Dataset, embedder: Embeds) -> None:
        self.dataset = dataset
        self._prepared = list(prepare(dataset, embedder))
        if not self._prepared:
            raise InvalidInputError(f"{dataset.name} has no questions; retrieval is measured on labelled ones")
        self._rankings: dict[str, Ranking] = {}

    def ranking(self, rank: str) -> Ranking:
        """The scores of one of `memlab.ranking.RANKS`."""
        if rank not in RANKS:
            raise InvalidInputError(f"rank is {rank!r}; it must be one of {', '.join(RANKS)}")
        if rank not in self._rankings:
            self._rankings[rank] = Ranking(rank, [score_one(each, rank, DEEPEST) for each in self._prepared])
        return self._rankings[rank]


class Ranking:
    """All conversations under one ranking."""

    def __init__(self, rank: str, scored: Sequence[Scored]) -> None:
        self.rank = rank
        self._scored = scored
        self._chosen: dict[tuple[float, int], list[Table]] = {}

    def tables(self, least: float, top_k: int) -> list[Table]:
        """The turns of each conversation, best first.

        "mmr" weighs each choice against those before it, so its order depends on what may take part.
        """
        if self.rank != "mmr":
            return self._sorted
        if (least, top_k) not in self._chosen:
            pairs = zip(self._scored, self._places, strict=True)
            tables = [Table.of(part, _chosen_first(part, places, least, top_k)) for part, places in pairs]
            self._chosen = {(least, top_k): tables}  # of the last setting only: they are large
        return self._chosen[least, top_k]

    @cached_property
    def _sorted(self) -> list[Table]:
        return [Table.of(part, part.order) for part in self._scored]

    @cached_property
    def _places(self) -> list[IntArray]:
        """At which place each turn stands by similarity alone: (questions, turns) of each conversation."""
        return [np.argsort(best_first(part.similarity), axis=1) for part in self._scored]

    def least(self, threshold: float) -> float:
        """The similarity a threshold asks for: itself, or for "bm25" that quantile of all scores, as in a sweep."""
        if self.rank != "bm25":
            return threshold
        if not 0 <= threshold <= 1:
            raise InvalidInputError(f"threshold is {threshold:g}; for bm25 it is a quantile, from 0 to 1")
        return float(np.quantile(self._all_scores, np.array([threshold]))[0])

    @cached_property
    def _all_scores(self) -> FloatArray:
        return np.sort(np.concatenate([part.similarity.ravel() for part in self._scored]))


@dataclass(frozen=True)
class Table:
    """One conversation, the turns of each question best first: arrays (questions, turns)."""

    talk: Conversation
    order: IntArray
    scores: FloatArray
    similarity: FloatArray
    gold: BoolArray
    lengths: IntArray

    @classmethod
    def of(cls, part: Scored, order: IntArray) -> Table:
        """The scores, similarities, labels and lengths of a conversation in that order."""
        return cls(
            part.talk,
            order,
            np.take_along_axis(part.scores, order, axis=1),
            np.take_along_axis(part.similarity, order, axis=1),
            np.take_along_axis(part.gold(), order, axis=1),
            part.prepared.lengths[order],
        )

    def kept(self, top_k: int, least: float) -> BoolArray:
        """Which are kept (questions, turns): the first `top_k` of those whose similarity is at least `least`."""
        passing = self.similarity >= least  # a Python float is compared in the precision of the scores
        return passing & (passing.cumsum(axis=1, dtype=np.int32) <= top_k)

    def count(self, top_k: int, least: float) -> Counts:
        """What one setting finds for every question, as a grid of one cell."""
        kept = self.kept(top_k, least)
        tokens = np.einsum("ij,ij->i", kept, self.lengths, dtype=np.intp)
        retrieved, hits = kept.sum(axis=1), (kept & self.gold).sum(axis=1)
        cell = (slice(None), None, None)
        return Counts(retrieved[cell], hits[cell], tokens[cell], self.gold.sum(axis=1))


def _chosen_first(part: Scored, places: IntArray, least: float, top_k: int) -> IntArray:
    """What "mmr" chooses among those that pass, then all others by their similarity, `places`."""
    turns = part.prepared.turns
    chosen = mmr_rows(part.similarity, turns @ turns.T, top_k, least)
    passing = np.take_along_axis(part.similarity, chosen, axis=1) >= least
    first = np.arange(chosen.shape[1]) - chosen.shape[1]  # negative: before every other
    places = places.copy()
    rows = np.nonzero(passing)[0]
    places[rows, chosen[passing]] = np.broadcast_to(first, chosen.shape)[passing]
    return np.argsort(places, axis=1)
