"""From labelled conversations to scores: embed them once, then rank every turn for every question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from memlab import prices, tokens
from memlab.clients.cache import CachedEmbedder
from memlab.clients.embedder import MAX_TOKENS
from memlab.experiments.datasets import Conversation, Dataset
from memlab.experiments.metrics import BoolArray, Counts, best_first, count_each, count_grid, has_chain
from memlab.lexical import Bm25
from memlab.ranking import fuse, mmr_rows, newest_scores, with_recency
from memlab.stores.base import Embeds
from memlab.vectors import FloatArray, IntArray, normalize, select_top_k

_NONE = np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class Prepared:
    """One conversation as a ranking needs it, ready to travel to another process.

    `texts` are its turns as they would be stored, `lengths` their tokens (turns,), `turns` (turns, d) and
    `questions` (questions, d) unit vectors, empty when they were left out.
    """

    talk: Conversation
    texts: tuple[str, ...]
    lengths: IntArray
    turns: FloatArray
    questions: FloatArray


def prepare(dataset: Dataset, embedder: Embeds | None, template: str = "{text}") -> Iterator[Prepared]:
    """Each conversation that has questions, embedded; without vectors if `embedder` is None."""
    for talk in dataset.conversations:
        if talk.questions:
            texts = tuple(turn.written(template) for turn in talk.turns)
            lengths = np.array([tokens.count_text(text) for text in texts], dtype=np.intp)
            turns, questions = _NONE, _NONE
            if embedder is not None:
                turns = normalize(embedder.embed(texts, role="document"))
                questions = normalize(embedder.embed([question.ask for question in talk.questions], role="query"))
            yield Prepared(talk, texts, lengths, turns, questions)


@dataclass(frozen=True)
class Scored:
    """One conversation under one ranking: scores and similarities (questions, turns), oldest turn first.

    `similarity` is what a threshold is compared with. `order` (questions, turns) has the turns best first.
    """

    prepared: Prepared
    rank: str
    scores: FloatArray
    similarity: FloatArray
    order: IntArray

    @classmethod
    def of(cls, prepared: Prepared, rank: str, scores: FloatArray, similarity: FloatArray) -> Scored:
        """Sort by `scores`."""
        return cls(prepared, rank, scores, similarity, best_first(scores))

    @property
    def talk(self) -> Conversation:
        """The conversation."""
        return self.prepared.talk

    def gold(self) -> BoolArray:
        """Which turns are evidence of which question: (questions, turns)."""
        place = {turn.id: number for number, turn in enumerate(self.talk.turns)}
        gold = np.zeros(self.scores.shape, dtype=bool)
        for row, question in enumerate(self.talk.questions):
            gold[row, [place[name] for name in question.evidence]] = True
        return gold

    def count(self, thresholds: FloatArray, top_ks: IntArray) -> Counts:
        """What a search with each threshold and top-k finds. `thresholds` has -inf where all may pass."""
        similarity, gold, lengths = self.similarity, self.gold(), self.prepared.lengths
        if self.rank == "mmr":
            likeness, deepest = self.prepared.turns @ self.prepared.turns.T, int(top_ks.max())
            return count_each(
                lambda t: mmr_rows(similarity, likeness, deepest, t), similarity, gold, lengths, thresholds, top_ks
            )
        counts = count_grid(self.order, similarity, gold, lengths, thresholds, top_ks)
        if self.scores is similarity:
            return counts
        rows = np.flatnonzero(has_chain(self.scores))
        if len(rows):  # there a threshold changes the groups of ties
            again = count_each(
                lambda t: self._passing_first(rows, t), similarity[rows], gold[rows], lengths, thresholds, top_ks
            )
            counts.put(rows, again)
        return counts

    def _passing_first(self, rows: IntArray, threshold: float) -> IntArray:
        orders = []
        for scores, similarity in zip(self.scores[rows], self.similarity[rows], strict=True):
            passing = similarity >= threshold
            kept = np.flatnonzero(passing)
            orders.append(np.concatenate([kept[select_top_k(scores[kept], len(kept))], np.flatnonzero(~passing)]))
        return np.stack(orders)


def score(
    dataset: Dataset, embedder: Embeds, rank: str = "cosine", template: str = "{text}", deepest: int | None = None
) -> list[Scored]:
    """Score every turn of each conversation for each of its questions, and sort.

    "mmr" puts its choice of the best `deepest` first (by default of all), and the others behind it.
    """
    prepared = prepare(dataset, None if rank == "bm25" else embedder, template)
    return [score_one(each, rank, deepest) for each in prepared]


def score_one(prepared: Prepared, rank: str, deepest: int | None = None) -> Scored:
    """As `score`, for one conversation that is embedded already."""
    if rank == "bm25":
        scores = _lexical(prepared)
        return Scored.of(prepared, rank, scores, scores)
    cosine = prepared.questions @ prepared.turns.T
    if rank == "mmr":
        return Scored(prepared, rank, cosine, cosine, _mmr_order(prepared, cosine, deepest))
    scores = cosine
    if rank == "hybrid":
        scores = fuse(cosine, _lexical(prepared))
    elif rank == "recency":
        scores = with_recency(cosine)
    elif rank == "newest":
        scores = np.broadcast_to(newest_scores(cosine.shape[1]), cosine.shape)
    return Scored.of(prepared, rank, scores, cosine)


def _lexical(prepared: Prepared) -> FloatArray:
    index = Bm25(prepared.texts)
    return np.stack([index.scores(question.ask) for question in prepared.talk.questions])


def _mmr_order(prepared: Prepared, cosine: FloatArray, deepest: int | None) -> IntArray:
    count = cosine.shape[1]
    first = mmr_rows(cosine, prepared.turns @ prepared.turns.T, count if deepest is None else deepest)
    rest = [np.setdiff1d(np.arange(count), row) for row in first]
    return np.concatenate([first, np.reshape(rest, (len(first), -1)).astype(np.intp)], axis=1)


def evidence_ranks(scored: Iterable[Scored]) -> IntArray:
    """At which place each labelled turn stands in its question's ranking, counted from 1: (labels,)."""
    found = [np.nonzero(np.take_along_axis(part.gold(), part.order, axis=1))[1] + 1 for part in scored]
    return np.concatenate([np.empty(0, dtype=np.intp), *found])


class EmbeddingCost(NamedTuple):
    """What embedding would take: tokens, and US dollars at list price; None where no price is known."""

    tokens: int
    usd: float | None


def estimate_embedding_cost(dataset: Dataset, embedder: Embeds | str, template: str = "{text}") -> EmbeddingCost:
    """What it takes to embed a dataset with `embedder`, or with the model of that name. An estimate.

    Of a `CachedEmbedder`, only what its file lacks counts.

    >>> from memlab.experiments.datasets import Conversation, Question, Turn
    >>> talk = Conversation("a", (Turn("1", "user", "I like tea"),), (Question("q", "Tea?", ("1",)),))
    >>> estimate_embedding_cost(Dataset("tiny", [talk]), "text-embedding-3-small")
    EmbeddingCost(tokens=6, usd=1.2e-07)
    """
    talks = [talk for talk in dataset.conversations if talk.questions]
    texts = {
        "document": [turn.written(template) for talk in talks for turn in talk.turns],
        "query": [question.ask for talk in talks for question in talk.questions],
    }
    model = embedder if isinstance(embedder, str) else embedder.model
    if isinstance(embedder, CachedEmbedder):
        texts = {role: embedder.missing(there, role) for role, there in texts.items()}
    total = sum(min(tokens.count_text(text, model), MAX_TOKENS) for there in texts.values() for text in there)
    return EmbeddingCost(total, prices.cost_usd(model, total))
