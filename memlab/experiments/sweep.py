"""Sweeps: recall, precision, noise and tokens over top-k x threshold x ranking x embedding model.

    frame = sweep(load_teaching_set(), top_k=range(1, 21), threshold=np.linspace(0, 1, 50), rank=["cosine", "bm25"])

The whole grid costs about one matrix product and one sort for each conversation and ranking.

On a cluster the same call runs within two more lines; only arrays and texts travel, no client and no key:

    with dask.distributed.Client("tcp://scheduler:8786"), joblib.parallel_config("dask"):
        frame = sweep(...)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memlab import prices
from memlab.clients.cache import CachedEmbedder
from memlab.clients.embedder import OpenAIEmbedder
from memlab.errors import InvalidInputError
from memlab.experiments.datasets import Dataset
from memlab.experiments.scoring import (
    Prepared,
    Scored,
    estimate_embedding_cost,
    evidence_ranks,
    prepare,
    score,
    score_one,
)
from memlab.experiments.summary import summarise
from memlab.ranking import RANKS
from memlab.stores.base import Embeds
from memlab.vectors import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Scored", "estimate_embedding_cost", "evidence_ranks", "score", "sweep"]


def sweep(
    dataset: Dataset,
    *,
    top_k: Iterable[int] = range(1, 21),
    threshold: Iterable[float] | None = None,
    rank: str | Sequence[str] = "hybrid",
    embedder: Embeds | Sequence[Embeds] | None = None,
    template: str | Sequence[str] = "{text}",
    by: Sequence[str] = ("category",),
    resamples: int = 1000,
    resume: str | Path | None = None,
    n_jobs: int | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Measure retrieval on labelled conversations, one search in each conversation for each of its questions.

    Parameters
    ----------
    dataset : from `memlab.experiments.datasets`.
    top_k, threshold : the grid. None as threshold keeps everything. A threshold is one of cosine similarity; for
        "bm25" it is a quantile of all its scores, from 0 to 1.
    rank : one or several of `memlab.ranking.RANKS`. The default measured best (`experiments.retrieval_figures`).
    embedder : one or several; by default the one of `memlab.connect()`. Where embedding costs money, the price is
        printed before it is spent.
    template : how a turn is written into a record, such as "{text}" or "{day} {speaker}: {text}".
    by : besides "all", a row for each value of these: "category", "language".
    resamples : of the bootstrap over conversations, which gives `recall_low` and `recall_high`, a 95 % interval;
        with few conversations it is rough. 0 leaves it out.
    resume : a folder for finished parts and for vectors; an interrupted sweep goes on from there.
    n_jobs : parts at once, through joblib; None for what `joblib.parallel_config` says, else 1. Embedding stays in
        this process.

    Returns a tidy frame: dataset, embedder, rank, template, top_k, threshold, group, n (questions with evidence),
    recall, precision, f1, hit_rate, empty_rate, abstention (of questions without evidence), tokens, and intervals.
    Raises InvalidInputError for a dataset without questions, and for settings it can't use, naming them.
    """
    import pandas as pd
    from joblib import Parallel, delayed, effective_n_jobs
    from tqdm.auto import tqdm

    if not any(talk.questions for talk in dataset.conversations):
        raise InvalidInputError(f"{dataset!r} has no question to measure with")
    ranks = [rank] if isinstance(rank, str) else list(rank)
    templates = [template] if isinstance(template, str) else list(template)
    embedders = [_remembering(each, resume) for each in _embedders(embedder)]
    if not (ranks and templates and embedders):
        raise InvalidInputError("rank, template and embedder need at least one value each")
    grid = _Grid.of(top_k, threshold, by, resamples, ranks)
    parts = [_Part(*choice) for choice in dict.fromkeys(product(embedders, templates, ranks))]
    files = {part: Path(resume) / f"{_key(dataset, part, grid)}.json" if resume else None for part in parts}
    left = [part for part, path in files.items() if path is None or not path.exists()]
    _show_price(dataset, left)
    work = (delayed(_measure)(prepared, part.rank, grid) for part, prepared in _prepared(dataset, left, progress))
    # With several jobs, all is embedded first: joblib draws further work from a thread that must not be kept waiting.
    ready = work if effective_n_jobs(n_jobs) == 1 else list(work)
    done = zip(left, Parallel(n_jobs=n_jobs, return_as="generator")(ready), strict=True)
    frames = {
        part: _kept(_titled(frame, dataset, part), files[part])
        for part, frame in tqdm(done, total=len(left), desc="sweep", disable=not progress)
    }
    return pd.concat([frames[p] if p in frames else _read(files[p]) for p in parts], ignore_index=True)


class _Part(NamedTuple):
    """What one process does at a time: one ranking of one embedder and template."""

    embedder: Embeds
    template: str
    rank: str


@dataclass(frozen=True)
class _Grid:
    top_ks: IntArray
    thresholds: FloatArray
    by: tuple[str, ...]
    resamples: int

    @classmethod
    def of(
        cls,
        top_k: Iterable[int],
        threshold: Iterable[float] | None,
        by: Sequence[str],
        resamples: int,
        ranks: Sequence[str],
    ) -> _Grid:
        if unknown := set(ranks) - set(RANKS):
            raise InvalidInputError(f"rank {', '.join(sorted(unknown))} is unknown; there are {', '.join(RANKS)}")
        chosen = sorted(set(top_k))
        if not chosen or chosen[0] < 1 or any(number != int(number) for number in chosen):
            raise InvalidInputError(f"top_k is {chosen}; it needs whole numbers of at least 1")
        thresholds = np.array([-np.inf] if threshold is None else sorted(set(threshold)), dtype=float)
        if not len(thresholds) or np.isnan(thresholds).any():
            raise InvalidInputError(f"threshold is {thresholds.tolist()}; it needs numbers")
        if threshold is not None and "bm25" in ranks and (thresholds.min() < 0 or thresholds.max() > 1):
            raise InvalidInputError("threshold is a quantile for rank 'bm25': it needs numbers from 0 to 1")
        if unknown := set(by) - {"category", "language"}:
            raise InvalidInputError(f"by has {', '.join(sorted(unknown))}; it takes 'category' and 'language'")
        if resamples < 0:
            raise InvalidInputError(f"resamples is {resamples}; it needs 0 or more")
        return cls(np.array(chosen, dtype=np.intp), thresholds, tuple(by), resamples)


def _embedders(embedder: Embeds | Sequence[Embeds] | None) -> list[Embeds]:
    if embedder is None:
        from memlab.settings import connect

        return [connect().embedder]
    return list(embedder) if isinstance(embedder, Sequence) else [embedder]


def _remembering(embedder: Embeds, folder: str | Path | None) -> Embeds:
    if folder is None or isinstance(embedder, CachedEmbedder):
        return embedder
    return CachedEmbedder(embedder, Path(folder) / "embeddings.sqlite")


def _show_price(dataset: Dataset, parts: Sequence[_Part]) -> None:
    """Say what embedding will cost, where it costs anything."""
    for embedder, template in dict.fromkeys(part[:2] for part in parts if part.rank != "bm25"):
        payee = embedder.embedder if isinstance(embedder, CachedEmbedder) else embedder
        if isinstance(payee, OpenAIEmbedder) and prices.cost_usd(payee.model, 1) != 0:
            cost = estimate_embedding_cost(dataset, embedder, template)
            price = "at an unknown price" if cost.usd is None else f"for about ${cost.usd:.4f}"
            print(f"embedding about {cost.tokens:,} tokens with {payee.model} {price}")


def _prepared(dataset: Dataset, parts: Sequence[_Part], progress: bool) -> Iterator[tuple[_Part, list[Prepared]]]:
    """Each part with its conversations, which are embedded once for all rankings."""
    from tqdm.auto import tqdm

    before, prepared = None, []
    for part in parts:
        now = part[:2]
        if now != before:
            looks = any(other.rank != "bm25" for other in parts if other[:2] == now)
            talks = prepare(dataset, part.embedder if looks else None, part.template)
            total = sum(bool(talk.questions) for talk in dataset.conversations)
            prepared = list(tqdm(talks, total=total, desc="embed", disable=not progress, leave=False))
            before = now
        yield part, prepared


def _key(dataset: Dataset, part: _Part, grid: _Grid) -> str:
    texts = [[turn.written(part.template) for turn in talk.turns] for talk in dataset.conversations]
    asked = [[talk.id, talk.language, q.id, q.ask, q.category, *q.evidence] for talk, q in dataset.questions]
    model = [part.embedder.model, getattr(part.embedder, "requested_dimensions", None)]
    numbers = [grid.top_ks.tolist(), grid.thresholds.tolist(), grid.by, grid.resamples]
    what = json.dumps([dataset.name, model, part.template, part.rank, numbers, texts, asked])
    return hashlib.sha256(what.encode()).hexdigest()[:24]


def _measure(prepared: Sequence[Prepared], rank: str, grid: _Grid) -> pd.DataFrame:
    """One ranking over the whole grid."""
    scored = [score_one(each, rank, deepest=int(grid.top_ks[-1])) for each in prepared]
    thresholds = grid.thresholds
    if rank == "bm25" and np.isfinite(thresholds).all():
        thresholds = np.quantile(np.concatenate([part.similarity.ravel() for part in scored]), thresholds)
    counts = [part.count(thresholds, grid.top_ks) for part in scored]
    talks = [part.talk for part in scored]
    return summarise(talks, counts, grid.thresholds.tolist(), grid.top_ks.tolist(), grid.by, grid.resamples)


def _titled(frame: pd.DataFrame, dataset: Dataset, part: _Part) -> pd.DataFrame:
    head = {"dataset": dataset.name, "embedder": part.embedder.model, "rank": part.rank, "template": part.template}
    for place, (name, value) in enumerate(head.items()):
        frame.insert(place, name, value)
    return frame


def _kept(frame: pd.DataFrame, path: Path | None) -> pd.DataFrame:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(frame.to_dict("list"), ensure_ascii=False), encoding="utf-8")
        part.replace(path)
    return frame


def _read(path: Path | None) -> pd.DataFrame:
    import pandas as pd

    assert path is not None
    return pd.DataFrame(json.loads(path.read_text(encoding="utf-8")))
