"""A sweep over a full grid, against a plain loop of searches and against the product and the sort alone.

LoCoMo's conversations are read from `MEMLAB_SHARED_DATA` or `shared/data` beside the repository; without them, made
ones of the same size stand in. The vectors are random and given: the sweep is measured, not an encoder.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row, interleaved
from threadpoolctl import threadpool_limits

from memlab.experiments.datasets import Conversation, Dataset, Question, Turn, load_locomo
from memlab.experiments.sweep import sweep
from memlab.vectors import normalize, select_top_k

DIMENSIONS = 512
TOP_KS, THRESHOLDS = range(1, 21), np.linspace(-0.1, 0.2, 50)  # where random vectors have their best cosines
LOOPED = 40  # the plain loop runs over every so many-th question, and its time is multiplied


class GivenVectors:
    """Random vectors, made beforehand. The name is that of a free model, so that no price is worked out."""

    model, dimensions = "use-multilingual", DIMENSIONS

    def __init__(self, dataset: Dataset) -> None:
        rng = np.random.default_rng(0)
        self.talks = [
            (rng.normal(size=(len(t.turns), DIMENSIONS)), rng.normal(size=(len(t.questions), DIMENSIONS)))
            for t in dataset.conversations
        ]
        self.talks = [(turns.astype(np.float32), asked.astype(np.float32)) for turns, asked in self.talks]
        self._of_first: dict[tuple[str, str], np.ndarray] = {}
        for talk, (turns, asked) in zip(dataset.conversations, self.talks, strict=True):
            self._of_first["document", talk.turns[0].text.strip()] = turns
            self._of_first["query", talk.questions[0].ask] = asked

    def embed(self, texts: Sequence[str], role: str = "document") -> np.ndarray:
        """The vectors of the conversation that begins with this text."""
        return self._of_first[role, texts[0]]


def locomo() -> tuple[str, Dataset]:
    """LoCoMo if it is there, else conversations of its size."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    path = Path(os.environ.get("MEMLAB_SHARED_DATA", beside), "locomo_dev.json")
    if path.exists():
        return "LoCoMo", load_locomo(path)
    talks = []
    for number in range(5):
        turns = tuple(Turn(str(i), "user", f"turn {i} of talk {number}, in a few words") for i in range(552))
        asked = tuple(Question(str(i), f"question {i} of talk {number}", (str(i),)) for i in range(200))
        talks.append(Conversation(str(number), turns, asked))
    return "made talks", Dataset("made", talks)


async def sweeps() -> AsyncIterator[Row]:
    """The full grid, 20 top-k x 50 thresholds, over all questions; the bootstrap apart. With one thread: all but the
    product runs in one anyway."""
    name, dataset = locomo()
    given = GivenVectors(dataset)
    count = sum(1 for _ in dataset.questions)
    what = f"sweep, 20 x 50, {count} questions of {name}, 1 thread"
    actions = [_sweep(dataset, given), _product_and_sort(given)]
    with threadpool_limits(1):
        ours, alone = await interleaved(actions, repeats=15)
        (loop,) = await interleaved([_plain_loop(dataset, given)], repeats=1, warm_up=0)
    yield Row(what, ours, alone, "product and full sort alone", 5.0)
    yield Row(what, ours, [1.0] * len(ours), "a second", 1.0)
    share = len(range(0, count, LOOPED)) / count
    yield Row(what, ours, [loop[0] / share / 100] * len(ours), "a hundredth of a plain loop", 1.0)
    for rank in ("bm25", "hybrid", "mmr"):
        seconds, reference = await interleaved([_sweep(dataset, given, rank), actions[0]], repeats=3, warm_up=1)
        yield Row(f"the same, {rank}", seconds, reference, "cosine")
    seconds, reference = await interleaved([_sweep(dataset, given, resamples=1000), actions[0]], repeats=3, warm_up=1)
    yield Row("the same, 1000 resamples", seconds, reference, "none")


def _sweep(dataset: Dataset, given: GivenVectors, rank: str = "cosine", resamples: int = 0) -> Callable[[], Any]:
    thresholds = np.linspace(0, 1, 50) if rank == "bm25" else THRESHOLDS
    settings = {"top_k": TOP_KS, "threshold": thresholds, "resamples": resamples, "progress": False}
    return lambda: sweep(dataset, rank=rank, embedder=given, **settings)


def _product_and_sort(given: GivenVectors) -> Callable[[], Any]:
    units = [(normalize(turns), normalize(asked)) for turns, asked in given.talks]
    return lambda: [np.argsort(-(asked @ turns.T), axis=1) for turns, asked in units]


def _plain_loop(dataset: Dataset, given: GivenVectors) -> Callable[[], Any]:
    """What a sweep replaces: for each setting and question one search, and the evidence counted."""
    questions = []
    for talk, (turns, asked) in zip(dataset.conversations, given.talks, strict=True):
        place, units = {turn.id: i for i, turn in enumerate(talk.turns)}, normalize(turns)
        questions += [
            (units, vector, {place[name] for name in question.evidence})
            for question, vector in zip(talk.questions, normalize(asked), strict=True)
        ]

    def loop() -> list[float]:
        recalls = []
        for threshold in THRESHOLDS:
            for top_k in TOP_KS:
                for turns, question, gold in questions[::LOOPED]:
                    found = select_top_k(turns @ question, top_k, threshold)
                    recalls.append(len(gold.intersection(found.tolist())) / max(len(gold), 1))
        return recalls

    return loop
