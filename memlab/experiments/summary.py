"""From counts of single questions to a table: means of each group, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memlab.experiments.datasets import Conversation, Question
from memlab.experiments.metrics import METRICS, Counts
from memlab.vectors import FloatArray

if TYPE_CHECKING:
    import pandas as pd

Rows = NDArray[np.intp]


def summarise(
    talks: Sequence[Conversation],
    counts: Sequence[Counts],
    thresholds: Sequence[float],
    top_ks: Sequence[int],
    by: Sequence[str] = (),
    resamples: int = 0,
) -> pd.DataFrame:
    """One row for each group, threshold and top-k: means over the group's questions.

    With `resamples`, `recall_low` and `recall_high` are a 95 % interval of recall over conversations.
    """
    import pandas as pd

    grid = {"top_k": np.tile(top_ks, len(thresholds)), "threshold": np.repeat(thresholds, len(top_ks))}
    chosen = groups(talks, by)
    totals = [_totals(each, [rows[number] for rows in chosen.values()]) for number, each in enumerate(counts)]
    frames = []
    for place, name in enumerate(chosen):
        sums = {metric: np.stack([total[metric][0][place] for total in totals]) for metric in METRICS}
        sizes = {metric: np.array([total[metric][1][place] for total in totals]) for metric in METRICS}
        columns = grid | {"group": name, "n": sizes["recall"].sum()}
        columns |= {metric: _ratio(sums[metric].sum(axis=0), sizes[metric].sum()) for metric in METRICS}
        if resamples:
            low, high = bootstrap_interval(sums["recall"], sizes["recall"], resamples)
            columns |= {"recall_low": low, "recall_high": high}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _totals(counts: Counts, groups: Sequence[Rows]) -> dict[str, tuple[FloatArray, Rows]]:
    """Of one conversation: the sum of each metric in each group (groups, cells), and over how many questions."""
    members = np.zeros((len(groups), len(counts.gold)))
    for place, rows in enumerate(groups):
        members[place, rows] = 1
    found: dict[str, tuple[FloatArray, Rows]] = {}
    for name in METRICS:
        counted = members * counts.defined(name)
        sums = counted @ counts.values(name).reshape(len(counts.gold), -1)
        found[name] = sums, counted.sum(axis=1).astype(np.intp)
    return found


def _ratio(total: FloatArray, count: int) -> FloatArray:
    return total / count if count else np.full_like(total, np.nan)


def groups(talks: Sequence[Conversation], by: Sequence[str]) -> dict[str, list[Rows]]:
    """The questions of each group in each conversation: "all", then each value of `by`.

    A value that names two groups is told apart by what it is a value of.
    """
    found = {"all": [np.arange(len(talk.questions)) for talk in talks]}
    for what in by:
        labels = [np.array([_label(talk, question, what) for question in talk.questions]) for talk in talks]
        for label in sorted({str(label) for each in labels for label in each} - {""}):
            name = label if label not in found else f"{what} {label}"
            found[name] = [np.flatnonzero(each == label) for each in labels]
    return found


def _label(talk: Conversation, question: Question, what: str) -> str:
    return question.category if what == "category" else talk.language


def bootstrap_interval(
    sums: FloatArray, sizes: Rows, resamples: int = 1000, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """The 95 % interval of a mean over questions, by drawing whole conversations again and again.

    `sums` (conversations, ...) and `sizes` (conversations,) are the total and the number of questions of each; one
    without questions is left out. As many conversations are drawn as there are, with replacement; the interval goes
    from the 2.5th to the 97.5th percentile of the means. Few conversations make a rough one; of a single one nothing
    can be said of others, so it is NaN.
    Source: Efron, Tibshirani, An Introduction to the Bootstrap (1993), chapter 13; clusters are drawn whole.
    """
    shape, count = sums.shape[1:], np.count_nonzero(sizes)
    if count < 2:
        return np.full(shape, np.nan), np.full(shape, np.nan)
    totals = sums[sizes > 0].reshape(count, -1)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=resamples)
    means = (drawn @ totals) / (drawn @ sizes[sizes > 0])[:, None]
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return low.reshape(shape), high.reshape(shape)
