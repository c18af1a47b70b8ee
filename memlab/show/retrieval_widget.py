"""Choose a question, top-k, threshold and ranking; see what is kept, and what the setting does to all questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets
import numpy as np
from matplotlib.axes import Axes

from memlab.errors import InvalidInputError
from memlab.experiments.datasets import Conversation, Dataset, Question
from memlab.ranking import RANKS
from memlab.show.explore import Explorer, explore
from memlab.show.parts import shorten
from memlab.show.retrieval_scores import DEEPEST, Ranking, RetrievalScores, Table
from memlab.show.style import BLACK, BLUE, GREEN, GREY, ORANGE, PALE, ink, new_panels, set_alt
from memlab.stores.base import Embeds

_ROWS, _EVIDENCE = 10, 3  # turns to draw; evidence among them, however far down
_OWN_SCALE = ("cosine", "bm25", "mmr")  # rankings whose scores are what a threshold is compared with
_LINES = {
    "recall": "recall",
    "precision": "precision",
    "f1": "F1",
    "empty_rate": "kept nothing",
    "abstention": "unanswerable:\nkept nothing",
    "tokens": "injected tokens",
}


def retrieval_figure(
    dataset: Dataset,
    embedder: Embeds,
    conversation: int = 0,
    question: int = 0,
    rank: str = "cosine",
    top_k: int = 3,
    threshold: float = 0.3,
) -> Axes:
    """Which memories one question gets, and the metrics of it and of all questions: twin of `retrieval_explorer`.

    `conversation`, `question`: positions in the dataset. `rank`: one of `memlab.ranking.RANKS`. `threshold`: of
    cosine similarity; for "bm25" a quantile of its scores, as in `sweep`. Returns the left axes.
    """
    return _draw(RetrievalScores(dataset, embedder), conversation, question, rank, top_k, threshold)


def retrieval_explorer(
    dataset: Dataset,
    embedder: Embeds,
    conversation: int = 0,
    rank: str = "cosine",
    top_k: int = 3,
    threshold: float = 0.3,
) -> Explorer:
    """Choose a question and move top-k, threshold and ranking: memories kept and dropped, metrics, tokens.

    The dataset is embedded once and scored once for each ranking; the sliders only count and draw. Parameters as in
    `retrieval_figure`.
    """
    scores = RetrievalScores(dataset, embedder)
    asked = [(_in_list(number, each), number) for number, each in enumerate(_talk(dataset, conversation).questions)]

    def figure(question: int, rank: str, top_k: int, threshold: float) -> Axes:
        return _draw(scores, conversation, question, rank, top_k, threshold)

    wide = {"width": "34em"}
    return explore(
        figure,
        question=widgets.Dropdown(options=asked, value=0, description="Question", layout={"width": "95%"}),
        rank=widgets.Dropdown(options=RANKS, value=rank, description="Rank", layout=wide),
        top_k=widgets.IntSlider(top_k, 1, max(DEEPEST, top_k), description="Top-k", layout=wide),
        threshold=widgets.FloatSlider(
            threshold, min=min(0.0, threshold), max=1, step=0.01, description="Threshold", layout=wide
        ),
    )


def _in_list(number: int, question: Question) -> str:
    kind = question.category or ("" if question.answerable else "unanswerable")
    return f"{number}. {shorten(question.ask, 90)}" + (f" [{kind}]" if kind else "")


def _talk(dataset: Dataset, conversation: int) -> Conversation:
    if not 0 <= conversation < len(dataset.conversations):
        raise InvalidInputError(
            f"conversation is {conversation}; it must be from 0 to {len(dataset.conversations) - 1}"
        )
    talk = dataset.conversations[conversation]
    if not talk.questions:
        raise InvalidInputError(f"conversation {conversation} ({talk.id}) has no questions; choose another")
    return talk


def _draw(scores: RetrievalScores, conversation: int, question: int, rank: str, top_k: int, threshold: float) -> Axes:
    talk = _talk(scores.dataset, conversation)
    if not 0 <= question < len(talk.questions):
        raise InvalidInputError(f"question is {question}; it must be from 0 to {len(talk.questions) - 1}")
    if top_k < 1:
        raise InvalidInputError(f"top_k is {top_k}; it must be at least 1")
    found = _Found(scores.ranking(rank), talk, question, top_k, threshold)
    left, right = new_panels(2, 15.5, 7.0)
    left.get_gridspec().set_width_ratios([1.7, 1])  # type: ignore[union-attr]
    _draw_turns(left, found)
    _write_metrics(right, found)
    return set_alt(left, found.in_words())


class _Found:
    """What one setting finds for one question: its turns best first, and the metrics of this and of all questions."""

    def __init__(self, ranking: Ranking, talk: Conversation, row: int, top_k: int, threshold: float) -> None:
        self.question, self.rank = talk.questions[row], ranking.rank
        self.top_k, self.threshold, self.least = top_k, threshold, ranking.least(threshold)
        tables = ranking.tables(self.least, top_k)
        metrics = [table.count(top_k, self.least).metrics() for table in tables]
        place = next(number for number, table in enumerate(tables) if table.talk is talk)
        self.table: Table = tables[place]
        self.row = row
        self.kept = self.table.kept(top_k, self.least)[row]
        self.gold = self.table.gold[row]
        self.this = {name: float(values[row, 0, 0]) for name, values in metrics[place].items()}
        everyone = {name: np.concatenate([each[name] for each in metrics]) for name in _LINES}
        self.all = {name: _mean(values) for name, values in everyone.items()}
        self.questions = len(everyone["tokens"])

    @property
    def shown(self) -> list[int]:
        """The places to draw: what was kept, the evidence, and then the best of the others."""
        first = [*np.flatnonzero(self.kept)[:_ROWS].tolist(), *np.flatnonzero(self.gold)[:_EVIDENCE].tolist()]
        rows = max(_ROWS, len(dict.fromkeys(first)))
        return sorted(list(dict.fromkeys([*first, *range(len(self.kept))]))[:rows])

    def reason(self, place: int) -> str:
        """Why a place is kept or not."""
        if self.kept[place]:
            return "kept"
        return "below threshold" if self.table.similarity[self.row, place] < self.least else f"beyond top {self.top_k}"

    def in_words(self) -> str:
        """The figure for readers who can't see it."""
        gold = (np.flatnonzero(self.gold) + 1).tolist()
        where = f"evidence at place {', '.join(map(str, gold))}" if gold else "the answer was never said"
        ours, everyone = (_listed(values) for values in (self.this, self.all))
        return (
            f"Question: {self.question.ask} Rank {self.rank}, top-k {self.top_k}, threshold {self.threshold:g}: "
            f"kept {int(self.kept.sum())} of {len(self.kept)} memories; {where}. "
            f"This question: {ours}. All {self.questions} questions: {everyone}."
        )


def _mean(values: np.ndarray[Any, Any]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _listed(values: Mapping[str, float]) -> str:
    known = {name: values[name] for name in _LINES if not np.isnan(values[name])}
    return ", ".join(f"{_LINES[name]} {_number(name, value)}".replace("\n", " ") for name, value in known.items())


def _number(name: str, value: float) -> str:
    if np.isnan(value):
        return "–"
    return f"{value:,.0f}" if name == "tokens" else f"{value:.2f}"


def _draw_turns(ax: Axes, found: _Found) -> None:
    table, row, shown = found.table, found.row, found.shown
    turns = [table.talk.turns[place] for place in table.order[row].tolist()]
    for height, place in enumerate(shown):
        reason = found.reason(place)
        colour = {"kept": GREEN, "below threshold": PALE}.get(reason, ORANGE)
        value = float(table.scores[row, place])
        ax.barh(height, value, color=colour, hatch="" if found.kept[place] else "//", edgecolor="white")
        ax.annotate(
            f"{value:.2f}  {_with_cosine(found, place, reason)}",
            (max(value, 0), height),
            (8, 0),
            textcoords="offset points",
            va="center",
            color=ink(GREY if colour == PALE else colour),
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},  # the threshold line passes behind it
        )
    marks = ["★ " if found.gold[place] else "" for place in shown]
    names = [f"{marks[i]}{shorten(turns[place].text, 34)}  {place + 1}" for i, place in enumerate(shown)]
    for label, mark in zip(ax.set_yticks(range(len(shown)), names), marks, strict=False):
        label.label1.set(weight="bold" if mark else "normal", color=ink(BLUE) if mark else BLACK)
    _frame(ax, found, table.scores[row, shown])


def _with_cosine(found: _Found, place: int, reason: str) -> str:
    if reason == "below threshold" and found.rank not in _OWN_SCALE:
        return f"cosine {found.table.similarity[found.row, place]:.2f}: {reason}"
    return reason


def _frame(ax: Axes, found: _Found, values: np.ndarray[Any, Any]) -> None:
    own = found.rank in _OWN_SCALE
    ax.set_ylim(len(found.shown) - 0.4, -0.6)
    reach = max(float(values.max()), float(found.least) if own else 0.0, 0.05)
    ax.set_xlim(min(0.0, float(values.min())) * 1.1, reach * 1.6)
    ax.set_xticks([tick for tick in ax.get_xticks() if ax.get_xlim()[0] <= tick <= max(reach, 1)])
    if own:
        ax.axvline(found.least, color=BLACK, linestyle="--", linewidth=2.5)
    dashed = f" (dashed: threshold {found.least:.2f})" if own else f" (threshold: cosine {found.threshold:g})"
    ax.set_xlabel(("cosine similarity" if found.rank in ("cosine", "mmr") else f"{found.rank} score") + dashed)
    ax.set_title(shorten(found.question.ask, 60))


def _write_metrics(ax: Axes, found: _Found) -> None:
    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    for x, head in ((0.78, "this\nquestion"), (1.0, f"all\n{found.questions}")):
        ax.text(x, 0.96, head, ha="right", va="center", color=ink(GREY))
    for place, (name, label) in enumerate(_LINES.items()):
        y = 0.83 - 0.125 * place
        ax.text(0.0, y, label, va="center")
        for x, values in ((0.78, found.this), (1.0, found.all)):
            ax.text(x, y, _number(name, values[name]), ha="right", va="center", weight="bold", size=18)
    ax.text(
        0, 0.06, "★ evidence" if found.question.answerable else "never said:\nright to keep nothing", color=ink(BLUE)
    )
