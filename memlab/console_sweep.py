"""`memlab sweep`: measure retrieval on labelled conversations; a table, pictures, and the best settings."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memlab.console import show, styled
from memlab.errors import ConfigurationError, InvalidInputError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from memlab.experiments.datasets import Dataset
    from memlab.settings import Lab
    from memlab.stores.base import Embeds

_ASKS_NO_MODEL = "bm25"
_SERIES = ["rank", "embedder", "template"]


def run(given: argparse.Namespace, screen: Console) -> int:
    """Run the command; 0 when it is done.

    Raises a MemlabError for options and files that can't be used, before anything is embedded, and
    ConfigurationError when a live sweep would cost something and `--yes` is missing.
    """
    from memlab.experiments.open_dataset import open_dataset
    from memlab.experiments.sweep import sweep
    from memlab.settings import connect

    if given.jobs == 0:
        raise InvalidInputError("--jobs is 0; it must be at least 1, or -1 for all cores")
    top_ks, thresholds = parse_top_k(given.top_k), parse_threshold(given.threshold)
    ranks = _rankings(given.rank)
    dataset = open_dataset(*given.dataset, questions=given.questions)
    show(screen, styled(_summary(dataset)))
    folder = _folder(given.out)
    lab = connect()
    embedders = _embedders(lab, given.embedder)
    if not lab.offline and set(ranks) != {_ASKS_NO_MODEL} and not given.yes:
        _refuse_to_spend(dataset, embedders, given.template)
    frame = sweep(
        dataset,
        top_k=top_ks,
        threshold=thresholds,
        rank=ranks,
        embedder=embedders,
        template=given.template,
        by=("category", "language"),
        n_jobs=given.jobs,
        progress=sys.stderr.isatty(),
    )
    written = [_write_csv(frame, folder), *_write_pictures(frame, folder)]
    _print_best(frame, screen, sum(bool(talk.questions) for talk in dataset.conversations))
    show(screen, styled(f"\nwritten to {folder}: {', '.join(written)}"))
    return 0


# --- Options --------------------------------------------------------------------------------------------------------


def parse_top_k(text: str) -> list[int]:
    """The top-ks an option names: a range, a list, or both.

    >>> parse_top_k("1-4"), parse_top_k("1,3,6-8")
    ([1, 2, 3, 4], [1, 3, 6, 7, 8])
    """
    chosen: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= first <= last:
            raise InvalidInputError(f"--top-k is {text!r}; it takes whole numbers of at least 1, as 1-20 or 1,3,6")
        chosen |= set(range(first, last + 1))
    return sorted(chosen)


def parse_threshold(text: str) -> list[float] | None:
    """The thresholds an option names: from:to:how many, a list, or None for "none".

    >>> parse_threshold("0:1:5"), parse_threshold("0.2,0.3"), parse_threshold("none")
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.2, 0.3], None)
    """
    import numpy as np

    if text.strip().lower() == "none":
        return None
    wrong = InvalidInputError(
        f"--threshold is {text!r}; it takes numbers from -1 to 1, as 0:1:50 (from, to, how many), 0.2,0.3, or none"
    )
    try:
        numbers = [float(part) for part in re.split("[:,]", text)]
    except ValueError:
        raise wrong from None
    if ":" in text:
        if text.count(":") != 2 or "," in text or numbers[2] not in range(1, 10_001) or numbers[0] > numbers[1]:
            raise wrong
        numbers = np.linspace(numbers[0], numbers[1], int(numbers[2])).tolist()
    if not all(-1 <= number <= 1 for number in numbers):
        raise wrong
    return numbers


def _rankings(text: str) -> list[str]:
    from memlab.ranking import RANKS

    ranks = [part.strip() for part in text.split(",") if part.strip()]
    if not ranks or set(ranks) - set(RANKS):
        raise InvalidInputError(f"--rank is {text!r}; it takes {', '.join(RANKS)}, separated by commas")
    return list(dict.fromkeys(ranks))


def _embedders(lab: Lab, names: Sequence[str] | None) -> list[Embeds]:
    """Embedders that keep their vectors on disk: a second sweep embeds nothing."""
    chosen = list(dict.fromkeys(name for each in names or () for name in each.split(",") if name))
    if chosen and lab.offline and (unknown := set(chosen) - set(lab.embedding_models())):
        raise InvalidInputError(
            f"there is no embedding model {', '.join(sorted(unknown))}; offline there are "
            f"{', '.join(lab.embedding_models())} (a dataset stands before --embedder)"
        )
    return [lab.cached_embedder(lab.embedder_for(name)) for name in chosen] or [lab.cached_embedder()]


def _refuse_to_spend(dataset: Dataset, embedders: Sequence[Embeds], templates: Sequence[str]) -> None:
    from memlab.experiments.sweep import estimate_embedding_cost

    costs = [estimate_embedding_cost(dataset, embedder, each) for embedder in embedders for each in templates]
    total = sum(cost.tokens for cost in costs)
    if total:
        known = [cost.usd for cost in costs if cost.usd is not None]
        price = f"about ${sum(known):.4f} at list price" if len(known) == len(costs) else "an unknown price"
        models = ", ".join(embedder.model for embedder in embedders)
        raise ConfigurationError(f"embedding about {total:,} tokens with {models} costs {price}: add --yes to spend it")


def _folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"--out {name} can't be a folder: {error.strerror}; name another") from error
    return folder


# --- What comes out -------------------------------------------------------------------------------------------------


def _summary(dataset: Dataset) -> str:
    asked = [question for _, question in dataset.questions]
    turns = sum(len(talk.turns) for talk in dataset.conversations)
    faults = ", ".join(f"{count} x {what}" for what, count in dataset.faults.items() if count)
    return (
        f"{dataset.name}: {len(dataset.conversations)} conversations, {turns:,} turns, {len(asked):,} questions, "
        f"{sum(not question.answerable for question in asked)} of them unanswerable"
        + (f"; label faults: {faults}" if faults else "")
    )


def _write_csv(frame: pd.DataFrame, folder: Path) -> str:
    part = folder / "sweep.csv.part"
    frame.to_csv(part, index=False, encoding="utf-8")
    part.replace(folder / "sweep.csv")
    return "sweep.csv"


def _write_pictures(frame: pd.DataFrame, folder: Path) -> list[str]:
    from memlab.show import retrieval
    from memlab.show.style import png

    everyone = frame[frame["group"] == "all"]
    pictures = {"precision_recall": retrieval.plot_precision_recall(everyone)} if everyone["n"].iloc[0] else {}
    if pictures:
        pictures["tokens_recall"] = retrieval.plot_pareto(everyone)
        for names, rows in _series(everyone):
            pictures["_".join(["recall", *names])] = retrieval.plot_heat_map(rows)
    for name, ax in pictures.items():
        (folder / f"{_slug(name)}.png").write_bytes(png(ax))
    return [f"{_slug(name)}.png" for name in pictures]


def _slug(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name, flags=re.ASCII).strip("-")


def _series(everyone: pd.DataFrame) -> list[tuple[list[str], pd.DataFrame]]:
    """The rows of each rank, embedder and template with what tells them apart; of "bm25" those of one embedder."""
    first = everyone["embedder"].iloc[0]
    rows = everyone[(everyone["rank"] != _ASKS_NO_MODEL) | (everyone["embedder"] == first)]
    varying = [name for name in _SERIES if name == "rank" or rows[name].nunique() > 1]
    return [([str(name) for name in names], part) for names, part in rows.groupby(varying, sort=False)]


def _print_best(frame: pd.DataFrame, screen: Console, talks: int) -> None:
    everyone = frame[frame["group"] == "all"]
    if not everyone["n"].iloc[0]:
        show(screen, styled("No question has evidence, so there is no recall; sweep.csv has the abstention."))
        return
    show(screen, styled("\nThe setting with the best F1 of each:"))
    show(screen, styled(best_settings(everyone, interval=talks > 1).to_string(index=False)))
    if talks > 1:
        rough = ": so few make a rough one" if talks < 10 else ""
        show(screen, styled(f"Recall with a 95 % interval, a bootstrap over {talks} conversations{rough}."))
    show(screen, styled("Chosen on the questions they are measured with: expect less on others."))


def best_settings(everyone: pd.DataFrame, interval: bool = True) -> pd.DataFrame:
    """The setting with the best F1 of each rank, embedder and template, best first, ready to print.

    `interval`: write that of recall beside it; one conversation has none.
    """
    import pandas as pd

    best = pd.DataFrame([part.iloc[int(part["f1"].argmax())] for _, part in _series(everyone)])
    best = best.sort_values("f1", ascending=False)
    best["embedder"] = best["embedder"].where(best["rank"] != _ASKS_NO_MODEL, "-")
    recall = best["recall"].map("{:.3f}".format)
    if interval:
        recall += [
            f" [{low:.2f}, {high:.2f}]" for low, high in zip(best["recall_low"], best["recall_high"], strict=True)
        ]
    columns = {
        **{name: best[name] for name in _SERIES if name != "template" or best[name].nunique() > 1},
        "top-k": best["top_k"],
        "threshold": best["threshold"].map(lambda value: "none" if value == -float("inf") else f"{value:.2f}"),
        "F1": best["f1"].map("{:.3f}".format),
        "recall": recall,
        "precision": best["precision"].map("{:.3f}".format),
        "tokens": best["tokens"].map("{:.0f}".format),
    }
    return pd.DataFrame(columns)
