"""Sweeps: recall, precision, noise and tokens over top-k x threshold x ranking x embedding model.

    frame = sweep(load_teaching_set(), top_k=range(1, 21), threshold=np.linspace(0, 1, 50), rank=["cosine", "bm25"])

The whole grid costs about one matrix product and one sort for each conversation and ranking.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memlab import tokens
from memlab.errors import InvalidInputError
from memlab.experiments.datasets import Conversation, Dataset, Question
from memlab.experiments.metrics import Counts, Grid, best_first, count_grid
from memlab.lexical import Bm25
from memlab.ranking import RANKS, fuse, mmr, newest_scores, with_recency
from memlab.stores.base import Embeds
from memlab.vectors import FloatArray, IntArray, normalize

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("recall", "precision", "f1", "hit_rate", "empty_rate", "abstention", "tokens")


@dataclass(frozen=True)
class Scored:
    """One conversation under one ranking: scores and similarities (questions, turns), oldest turn first."""

    talk: Conversation
    scores: FloatArray
    similarity: FloatArray
    order: IntArray

    def gold(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which turns are evidence of which question: (questions, turns)."""
        place = {turn.id: number for number, turn in enumerate(self.talk.turns)}
        gold = np.zeros(self.scores.shape, dtype=bool)
        for row, question in enumerate(self.talk.questions):
            gold[row, [place[name] for name in question.evidence]] = True
        return gold


def sweep(
    dataset: Dataset,
    *,
    top_k: Iterable[int] = range(1, 21),
    threshold: Iterable[float] | None = None,
    rank: str | Sequence[str] = "cosine",
    embedder: Embeds | Sequence[Embeds] | None = None,
    template: str | Sequence[str] = "{text}",
    by: Sequence[str] = ("category",),
    resamples: int = 1000,
    resume: str | Path | None = None,
    n_jobs: int = 1,
    progress: bool = True,
) -> pd.DataFrame:
    """Measure retrieval on labelled conversations, one search in each conversation for each of its questions.

    Parameters
    ----------
    dataset : from `memlab.experiments.datasets`.
    top_k, threshold : the grid. None as threshold keeps everything. A threshold is one of cosine similarity; for
        "bm25" it is a quantile of all its scores, from 0 to 1.
    rank : one or several of `memlab.ranking.RANKS`.
    embedder : one or several; by default the one of `memlab.connect()`.
    template : how a turn is written into a record, such as "{text}" or "{day} {speaker}: {text}".
    by : besides "all", a row for each value of these: "category", "language".
    resamples : of the bootstrap over conversations, which gives `recall_low` and `recall_high`, a 95 % interval;
        with few conversations it is rough. 0 leaves it out.
    resume : a folder for finished parts; an interrupted sweep goes on from there.
    n_jobs : parts at once, through joblib: within `joblib.parallel_config("dask")` they run on a Dask cluster.

    Returns a tidy frame: dataset, embedder, rank, template, top_k, threshold, group, n (questions with evidence),
    recall, precision, f1, hit_rate, empty_rate, abstention (of questions without evidence), tokens, and intervals.
    """
    import pandas as pd
    from joblib import Parallel, delayed
    from tqdm.auto import tqdm

    grid = _Grid.of(top_k, threshold, by, resamples)
    ranks = [rank] if isinstance(rank, str) else list(rank)
    if unknown := set(ranks) - set(RANKS):
        raise InvalidInputError(f"rank {', '.join(sorted(unknown))} is unknown; there are {', '.join(RANKS)}")
    parts = [
        (embedding, ranking, written)
        for embedding in _embedders(embedder)
        for written in ([template] if isinstance(template, str) else template)
        for ranking in ranks
    ]
    work = (delayed(_part)(dataset, *part, grid, resume) for part in parts)
    done = Parallel(n_jobs=n_jobs, return_as="generator")(work)
    return pd.concat(list(tqdm(done, total=len(parts), desc="sweep", disable=not progress)), ignore_index=True)


@dataclass(frozen=True)
class _Grid:
    top_ks: IntArray
    thresholds: FloatArray
    by: tuple[str, ...]
    resamples: int

    @classmethod
    def of(cls, top_k: Iterable[int], threshold: Iterable[float] | None, by: Sequence[str], resamples: int) -> _Grid:
        top_ks = np.array(sorted(set(top_k)), dtype=np.intp)
        if not len(top_ks) or top_ks[0] < 1:
            raise InvalidInputError(f"top_k is {top_ks.tolist()}; it needs whole numbers of at least 1")
        thresholds = np.array([-np.inf] if threshold is None else sorted(set(threshold)), dtype=float)
        if not len(thresholds) or np.isnan(thresholds).any():
            raise InvalidInputError(f"threshold is {thresholds.tolist()}; it needs numbers")
        if unknown := set(by) - {"category", "language"}:
            raise InvalidInputError(f"by has {', '.join(sorted(unknown))}; it takes 'category' and 'language'")
        return cls(top_ks, thresholds, tuple(by), resamples)


def _embedders(embedder: Embeds | Sequence[Embeds] | None) -> list[Embeds]:
    if embedder is None:
        from memlab.settings import connect

        return [connect().embedder]
    return list(embedder) if isinstance(embedder, Sequence) else [embedder]


def _part(
    dataset: Dataset, embedder: Embeds, rank: str, template: str, grid: _Grid, resume: str | Path | None
) -> pd.DataFrame:
    """One ranking of one embedder over the whole grid: from the folder when it is there, else measured."""
    import pandas as pd

    path = Path(resume) / f"{_key(dataset, embedder, rank, template, grid)}.csv" if resume else None
    if path is not None and path.exists():
        return pd.read_csv(path, keep_default_na=True)
    frame = _measure(dataset, embedder, rank, template, grid)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        frame.to_csv(part, index=False)
        part.replace(path)
    return frame


def _key(dataset: Dataset, embedder: Embeds, rank: str, template: str, grid: _Grid) -> str:
    texts = [[turn.written(template) for turn in talk.turns] for talk in dataset.conversations]
    asked = [[q.id, q.ask, q.category, *q.evidence] for _, q in dataset.questions]
    numbers = [grid.top_ks.tolist(), grid.thresholds.tolist(), grid.by, grid.resamples]
    what = json.dumps([dataset.name, embedder.model, rank, numbers, texts, asked])
    return hashlib.sha256(what.encode()).hexdigest()[:24]


def _measure(dataset: Dataset, embedder: Embeds, rank: str, template: str, grid: _Grid) -> pd.DataFrame:
    scored = score(dataset, embedder, rank, template, deepest=int(grid.top_ks[-1]))
    thresholds = grid.thresholds
    if rank == "bm25" and np.isfinite(thresholds).all():
        thresholds = np.quantile(np.concatenate([part.similarity.ravel() for part in scored]), thresholds)
    counts = [count(part, template, thresholds, grid.top_ks) for part in scored]
    frame = summarise(scored, counts, grid)
    head = {"dataset": dataset.name, "embedder": embedder.model, "rank": rank, "template": template}
    for place, (name, value) in enumerate(head.items()):
        frame.insert(place, name, value)
    return frame


def score(
    dataset: Dataset, embedder: Embeds, rank: str = "cosine", template: str = "{text}", deepest: int | None = None
) -> list[Scored]:
    """Score every turn of each conversation for each of its questions, and sort. `deepest` limits "mmr"."""
    return [_score(talk, embedder, rank, template, deepest) for talk in dataset.conversations if talk.questions]


def _score(talk: Conversation, embedder: Embeds, rank: str, template: str, deepest: int | None) -> Scored:
    texts, asked = [turn.written(template) for turn in talk.turns], [q.ask for q in talk.questions]
    if rank == "bm25":
        index = Bm25(texts)
        scores = np.stack([index.scores(question) for question in asked])
        return Scored(talk, scores, scores, best_first(scores))
    documents = normalize(embedder.embed(texts, role="document"))
    cosine = normalize(embedder.embed(asked, role="query")) @ documents.T
    if rank == "mmr":
        depth = len(texts) if deepest is None else deepest
        return Scored(talk, cosine, cosine, np.stack([_mmr_order(row, documents, depth) for row in cosine]))
    if rank == "hybrid":
        index = Bm25(texts)
        scores = fuse(cosine, np.stack([index.scores(question) for question in asked]))
    elif rank == "recency":
        scores = with_recency(cosine)
    else:
        scores = np.broadcast_to(newest_scores(len(texts)), cosine.shape) if rank == "newest" else cosine
    return Scored(talk, scores, cosine, best_first(scores))


def _mmr_order(cosine: FloatArray, documents: FloatArray, depth: int) -> IntArray:
    first = mmr(cosine, documents, depth)
    return np.concatenate([first, np.setdiff1d(np.arange(len(cosine)), first)])


def count(part: Scored, template: str, thresholds: FloatArray, top_ks: IntArray) -> Counts:
    """What the grid retrieves of one conversation."""
    lengths = np.array([tokens.count_text(turn.written(template)) for turn in part.talk.turns])
    return count_grid(part.order, part.similarity, part.gold(), lengths, thresholds, top_ks)


def summarise(scored: Sequence[Scored], counts: Sequence[Counts], grid: _Grid) -> pd.DataFrame:
    """Means over the questions of each group, with a bootstrap over conversations."""
    import pandas as pd

    tables = [each.metrics() for each in counts]
    metrics = {name: np.concatenate([table[name] for table in tables]) for name in METRICS}
    owner = np.repeat(np.arange(len(scored)), [len(part.talk.questions) for part in scored])
    frames = [
        _group(name, {metric: values[rows] for metric, values in metrics.items()}, owner[rows], grid)
        for name, rows in _groups(scored, grid.by).items()
    ]
    return pd.concat(frames, ignore_index=True)


def _groups(scored: Sequence[Scored], by: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    questions = [(part.talk, question) for part in scored for question in part.talk.questions]
    groups = {"all": np.arange(len(questions))}
    for what in by:
        labels = np.array([_label(talk, question, what) for talk, question in questions])
        groups |= {str(label): np.flatnonzero(labels == label) for label in sorted(set(labels.tolist())) if label}
    return groups


def _label(talk: Conversation, question: Question, what: str) -> str:
    return question.category if what == "category" else talk.language


def _group(name: str, metrics: dict[str, Grid], owner: np.ndarray[Any, Any], grid: _Grid) -> pd.DataFrame:
    import pandas as pd

    thresholds, top_ks = np.meshgrid(grid.thresholds, grid.top_ks, indexing="ij")
    known = ~np.isnan(metrics["recall"][:, 0, 0])
    columns = {"top_k": top_ks.ravel(), "threshold": thresholds.ravel(), "group": name, "n": int(known.sum())}
    columns |= {metric: _mean(values).ravel() for metric, values in metrics.items()}
    if grid.resamples:
        low, high = _interval(metrics["recall"][known], owner[known], grid.resamples)
        columns |= {"recall_low": low.ravel(), "recall_high": high.ravel()}
    return pd.DataFrame(columns)


def _mean(values: Grid) -> Grid:
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


def _interval(values: Grid, owner: np.ndarray[Any, Any], resamples: int) -> tuple[Grid, Grid]:
    """A 95 % interval of the mean, by drawing whole conversations again and again.

    Source: Efron, Tibshirani, An Introduction to the Bootstrap (1993), on clustered data.
    """
    owners, place = np.unique(owner, return_inverse=True)
    if not len(owners):
        return np.full(values.shape[1:], np.nan), np.full(values.shape[1:], np.nan)
    sums = np.zeros((len(owners), *values.shape[1:]))
    np.add.at(sums, place, values)
    sizes = np.bincount(place).astype(float)
    drawn = np.random.default_rng(0).multinomial(len(owners), np.full(len(owners), 1 / len(owners)), size=resamples)
    means = (drawn @ sums.reshape(len(owners), -1)) / (drawn @ sizes)[:, None]
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return low.reshape(values.shape[1:]), high.reshape(values.shape[1:])
