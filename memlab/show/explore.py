"""A figure function and controls make a widget; the same function with values makes its static twin.

The widget shows the figure as a picture (so it works under any Matplotlib backend, without flicker) and its
alt text under it. Two explorers stand on it: similarity (lesson 3) and token cost (lesson 2).
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import ipywidgets as widgets
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from memlab.errors import InvalidInputError, InvalidTypeError, MemlabError
from memlab.show.plots import plot_context_windows, plot_cumulative_cost, plot_similarities
from memlab.show.style import describe, new_panels, png
from memlab.vectors import FloatArray, cosine_matrix

STRATEGIES = ("no memory", "full history", "last 20 messages", "vector memory")


class Embeds(Protocol):
    """What the similarity explorer needs of an embedder."""

    def embed(self, texts: Sequence[str], role: str = "document") -> FloatArray: ...


class Explorer(widgets.VBox):
    """Controls above a figure that follows them: `controls` by name, `picture` (PNG), `caption` (alt text)."""

    def __init__(self, figure: Callable[..., Axes], controls: dict[str, widgets.ValueWidget]) -> None:
        self.figure, self.controls = figure, controls
        self.picture = widgets.Image(format="png", layout=widgets.Layout(max_width="100%"))
        self.caption = widgets.HTML()
        super().__init__([*controls.values(), self.picture, self.caption])
        for control in controls.values():
            control.observe(lambda change: self.redraw(), names="value")
        self.redraw()

    def redraw(self) -> None:
        """Draw for the values of the controls. A value that can't be used is explained in place of the picture."""
        try:
            ax = self.figure(**{name: control.value for name, control in self.controls.items()})
        except MemlabError as error:
            self._put(b"", f"Not drawn: {error}")
        else:
            self._put(png(ax), describe(ax))

    def _put(self, picture: bytes, text: str) -> None:
        self.picture.value = picture
        self.picture.layout.display = None if picture else "none"
        self._say(text)

    def _say(self, text: str) -> None:
        self.caption.value = f'<p aria-live="polite">{html.escape(text)}</p>'


def explore(figure: Callable[..., Axes], **controls: widgets.ValueWidget) -> Explorer:
    """A widget that redraws `figure(**values)` whenever a control changes.

    `controls`: parameter name -> an ipywidgets control with a value. Raises InvalidTypeError for anything else.

        explore(lambda n: plot_token_cost(costs(n)), n=ipywidgets.IntSlider(10, 1, 100))
    """
    for name, control in controls.items():
        if not isinstance(control, widgets.ValueWidget):
            raise InvalidTypeError(f"{name} is a {type(control).__name__}; pass an ipywidgets control, e.g. IntSlider")
    return Explorer(figure, controls)


def static(figure: Callable[..., Axes], **values: Any) -> Axes:
    """The figure that `explore` shows when its controls have these values, for print and stored outputs."""
    return figure(**values)


# --- Similarity explorer --------------------------------------------------------------------------------------


def similarity_figure(
    embedder: Embeds, texts: Sequence[str], question: str, top_k: int = 6, threshold: float | None = 0.3
) -> Axes:
    """Embed `texts` and `question`, and show which texts are kept: the static twin of `similarity_explorer`."""
    scores = _scores_of(embedder, _embed_texts(embedder, texts), question)
    return plot_similarities(texts, scores, threshold, top_k, question=question)


def similarity_explorer(
    embedder: Embeds, texts: Sequence[str], question: str, top_k: int = 6, threshold: float = 0.3
) -> Explorer:
    """Type a question, move top-k and threshold, and watch which texts are kept.

    The texts are embedded once and each new question once; the sliders only redraw.
    """
    documents = _embed_texts(embedder, texts)
    asked: dict[str, FloatArray] = {}

    def figure(question: str, top_k: int, threshold: float) -> Axes:
        if question not in asked:
            asked[question] = _scores_of(embedder, documents, question)
        return plot_similarities(texts, asked[question], threshold, top_k, question=question)

    wide = {"width": "34em"}
    return explore(
        figure,
        question=widgets.Text(question, description="Question", continuous_update=False, layout={"width": "95%"}),
        top_k=widgets.IntSlider(top_k, 0, max(len(texts), top_k), description="Top-k", layout=wide),
        threshold=widgets.FloatSlider(threshold, min=-1, max=1, step=0.05, description="Threshold", layout=wide),
    )


def _embed_texts(embedder: Embeds, texts: Sequence[str]) -> FloatArray:
    if not texts:
        raise InvalidInputError("there are no texts to compare with; pass at least one")
    return embedder.embed(list(texts), role="document")


def _scores_of(embedder: Embeds, documents: FloatArray, question: str) -> FloatArray:
    if not question.strip():
        raise InvalidInputError("the question is blank; type one")
    return cosine_matrix(documents, embedder.embed([question], role="query"))[:, 0]


# --- Token-cost explorer --------------------------------------------------------------------------------------


def prompt_tokens(
    strategy: str,
    turn: ArrayLike,
    tokens_per_message: float = 60,
    instructions: float = 40,
    top_k: int = 6,
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Prompt tokens at turn n (1, 2, …; any shape) when every message takes m tokens: an estimate by formula.

        no memory          instructions + m
        full history       instructions + (2n - 1) m              two messages a turn, and the new question
        last 20 messages   instructions + (min(2n - 2, 20) + 1) m
        vector memory      instructions + (min(2n - 2, top_k) + 1) m      never more than top_k memories

    >>> prompt_tokens("full history", [1, 2, 100], tokens_per_message=10, instructions=0)
    array([  10.,   30., 1990.])
    """
    past = 2.0 * np.asarray(turn, dtype=float) - 2
    if past.size and past.min() < 0:
        raise InvalidInputError("turns are counted from 1")
    limits = dict(zip(STRATEGIES, (0, np.inf, 20, top_k), strict=True))
    if strategy not in limits:
        raise InvalidInputError(f"unknown strategy {strategy!r}: use {', '.join(STRATEGIES)}")
    return instructions + (np.minimum(past, limits[strategy]) + 1) * tokens_per_message


def cost_curves(
    turns: int,
    tokens_per_message: float = 60,
    price: float = 0.15,
    strategies: Sequence[str] = STRATEGIES,
    top_k: int = 6,
    instructions: float = 40,
    embedding_price: float = 0.02,
) -> pd.DataFrame:
    """Columns turn, strategy, tokens, total (tokens so far), usd (cost so far): estimates for a conversation.

    Prices are US dollars per million tokens. Only prompt tokens are priced, since all strategies pay the same
    for the answers; vector memory also embeds the question and the answer of each turn.
    """
    if turns < 1 or not strategies:
        raise InvalidInputError("at least one turn and one strategy are needed")
    turn = np.arange(1, turns + 1)
    frames = []
    for strategy in strategies:
        tokens = prompt_tokens(strategy, turn, tokens_per_message, instructions, top_k)
        embedded = 2 * tokens_per_message * embedding_price if strategy == "vector memory" else 0.0
        usd = (tokens * price + embedded).cumsum() / 1e6
        columns = {"turn": turn, "strategy": strategy, "tokens": tokens, "total": tokens.cumsum(), "usd": usd}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def token_cost_figure(
    turns: int = 100,
    tokens_per_message: float = 60,
    window: int = 8192,
    price: float = 0.15,
    strategies: Sequence[str] = ("full history", "vector memory"),
    top_k: int = 6,
) -> Axes:
    """Tokens of each turn against the window, and cost so far, side by side: the twin of `token_cost_explorer`.

    Returns the left axes; `describe` covers both panels.
    """
    curves = cost_curves(turns, tokens_per_message, price, strategies, top_k)
    left, right = new_panels(2, 13.5, 5.4)
    plot_context_windows(curves[["turn", "strategy", "tokens"]], {"window": window}, ax=left)
    plot_cumulative_cost(curves[["turn", "strategy"]].assign(total=curves["usd"]), ax=right, unit="usd")
    left.set_title("Each turn (estimate)")
    right.set_title("All turns so far (estimate)")
    return left


def token_cost_explorer(
    turns: int = 100,
    tokens_per_message: int = 60,
    window: int = 8192,
    price: float = 0.15,
    strategies: Sequence[str] = ("full history", "vector memory"),
    top_k: int = 6,
) -> Explorer:
    """Move the length of a conversation, its messages, the window and the price, and compare strategies."""
    windows = sorted({8192, 32768, 131072, window})
    wide = {"style": {"description_width": "11em"}, "layout": {"width": "34em"}}
    return explore(
        token_cost_figure,
        turns=widgets.IntSlider(turns, 1, max(300, turns), description="Turns", **wide),
        tokens_per_message=widgets.IntSlider(
            tokens_per_message, 5, max(1000, tokens_per_message), 5, description="Tokens per message", **wide
        ),
        window=widgets.Dropdown(
            options=[(f"{size:,} tokens", size) for size in windows],
            value=window,
            description="Window",
            **wide,
        ),
        price=widgets.BoundedFloatText(price, min=0, max=1000, step=0.05, description="US$ per million tokens", **wide),
        strategies=widgets.SelectMultiple(
            options=STRATEGIES, value=tuple(strategies), description="Strategies", **wide
        ),
        top_k=widgets.IntSlider(top_k, 0, max(20, top_k), description="Top-k of vector memory", **wide),
    )
