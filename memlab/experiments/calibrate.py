"""Calibration: the threshold that gives a wanted recall or precision, for one embedding model and ranking.

All pairs of a question and a turn of its conversation are pooled; a pair is positive when the turn is evidence.

    recall = kept positives / positives            (also: true positive rate)
    false positive rate = kept negatives / negatives
    precision = kept positives / kept pairs

Source of the curves: Fawcett, An Introduction to ROC Analysis (2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from memlab.errors import InvalidInputError
from memlab.experiments.datasets import Dataset
from memlab.experiments.scoring import score
from memlab.ranking import RANKS
from memlab.stores.base import Embeds

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Calibration:
    """A threshold, and what it gives on the data it was calibrated on.

    `curve` has a row for each threshold that lets another positive pass, strictest first, with the columns
    threshold, recall, fpr and precision. `auc` is the area under the ROC curve, recall over fpr: 0.5 is chance.
    """

    threshold: float
    recall: float
    precision: float
    auc: float
    model: str
    rank: str
    curve: pd.DataFrame = field(repr=False)


def calibrate(
    dataset: Dataset,
    embedder: Embeds | None = None,
    *,
    rank: str = "cosine",
    template: str = "{text}",
    recall: float | None = None,
    precision: float | None = None,
) -> Calibration:
    """Find the threshold for a wanted recall or a wanted precision.

    Parameters
    ----------
    dataset : labelled conversations; questions without evidence give pairs that should not pass.
    embedder : by default that of `memlab.connect()`.
    rank : one of `memlab.ranking.RANKS`. Since a threshold means cosine similarity in all of them but "bm25", only
        "bm25" differs: there it is a BM25 score.
    template : how a turn is written into a record.
    recall : the strictest threshold that keeps at least this share of the evidence, above 0 and at most 1.
    precision : the loosest threshold at which at least this share of what is kept is evidence.

    Raises InvalidInputError unless exactly one of `recall` and `precision` is given, and when no threshold reaches
    it, naming the best that one does.
    """
    _check(recall, precision)
    model, curve, auc = _curve(dataset, embedder, rank, template)
    row = _choose(curve, recall, precision)
    if row is None:
        best = curve.iloc[int(curve["precision"].to_numpy().argmax())]
        raise InvalidInputError(
            f"no threshold reaches a precision of {precision:g} with {model} ({rank}); the best is "
            f"{best['precision']:.3f}, at threshold {best['threshold']:.3f}, where recall is {best['recall']:.3f}"
        )
    threshold, kept, share = (float(curve[name].iloc[row]) for name in ("threshold", "recall", "precision"))
    return Calibration(threshold, kept, share, auc, model, rank, curve)


def calibrate_all(
    dataset: Dataset,
    embedders: Sequence[Embeds],
    *,
    rank: str | Sequence[str] = "cosine",
    template: str = "{text}",
    recall: float | None = None,
    precision: float | None = None,
) -> pd.DataFrame:
    """`calibrate` for each embedder and ranking, as a table: embedder, rank, threshold, recall, precision, auc.

    Where no threshold reaches what is wanted, threshold, recall and precision are NaN.
    """
    import pandas as pd

    _check(recall, precision)
    rows = []
    for embedder in embedders:
        for ranking in [rank] if isinstance(rank, str) else rank:
            model, curve, auc = _curve(dataset, embedder, ranking, template)
            row = _choose(curve, recall, precision)
            names = ("threshold", "recall", "precision")
            values = {name: np.nan if row is None else curve[name].iloc[row] for name in names}
            rows.append({"embedder": model, "rank": ranking, **values, "auc": auc})
    return pd.DataFrame(rows)


def _check(recall: float | None, precision: float | None) -> None:
    if (recall is None) == (precision is None):
        raise InvalidInputError("calibrate takes one aim: give either recall or precision")
    name, wanted = ("recall", recall) if recall is not None else ("precision", precision)
    if not 0 < (wanted or 0) <= 1:
        raise InvalidInputError(f"{name} is {wanted!r}; it must be above 0 and at most 1")


def _curve(dataset: Dataset, embedder: Embeds | None, rank: str, template: str) -> tuple[str, pd.DataFrame, float]:
    """The model's name, the ROC curve with precision, and the area under it."""
    import pandas as pd
    from sklearn.metrics import auc, roc_curve

    if rank not in RANKS:
        raise InvalidInputError(f"rank is {rank!r}; it must be one of {', '.join(RANKS)}")
    embedder = embedder or _connected()
    scored = score(dataset, embedder, "bm25" if rank == "bm25" else "cosine", template)
    gold = np.concatenate([np.empty(0, dtype=bool), *(part.gold().ravel() for part in scored)])
    positives, negatives = int(gold.sum()), int((~gold).sum())
    if not (positives and negatives):
        raise InvalidInputError(f"{dataset!r} has {positives} pairs with evidence and {negatives} without; both needed")
    similarity = np.concatenate([part.similarity.ravel() for part in scored])
    fpr, recall, thresholds = (each[1:] for each in roc_curve(gold, similarity, drop_intermediate=False))
    precision = recall * positives / (recall * positives + fpr * negatives)
    steps = np.diff(recall, prepend=0.0) > 0
    frame = pd.DataFrame({"threshold": thresholds, "recall": recall, "fpr": fpr, "precision": precision})
    return embedder.model, frame[steps].reset_index(drop=True), float(auc([0, *fpr], [0, *recall]))


def _connected() -> Embeds:
    from memlab.settings import connect

    return connect().embedder


def _choose(curve: pd.DataFrame, recall: float | None, precision: float | None) -> int | None:
    """The row with the strictest threshold for a recall, with the loosest for a precision."""
    if recall is not None:
        return int(np.argmax(curve["recall"].to_numpy() >= recall - 1e-12))  # the last row keeps everything
    reached = np.flatnonzero(curve["precision"].to_numpy() >= (precision or 0) - 1e-12)
    return int(reached[-1]) if len(reached) else None
