"""Widgets follow their controls, equal their static twins, and leave no figure behind."""

from collections.abc import Sequence

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
import pytest

from memlab import show
from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.show import explore
from memlab.show.style import png

TEXTS = ["我叫张三", "Меня зовут Анна", "weather"]


class CountingEmbedder:
    """Texts at cosines 0.9, 0.5, 0.1 from any question; counts what it is asked."""

    model = "counting"

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def embed(self, texts: Sequence[str], role: str = "document") -> np.ndarray:
        self.calls.append((role, len(texts)))
        if role == "query":
            return np.array([[1, 0]], dtype=np.float32)
        return np.array([[c, (1 - c * c) ** 0.5] for c in (0.9, 0.5, 0.1)], dtype=np.float32)


def test_sliders_only_redraw_and_a_new_question_is_embedded_once() -> None:
    embedder = CountingEmbedder()
    widget = show.similarity_explorer(embedder, TEXTS, "who?")
    assert embedder.calls == [("document", 3), ("query", 1)]
    assert "Kept 2 of 3" in widget.caption.value
    before = widget.picture.value
    widget.controls["threshold"].value = 0.6
    widget.controls["top_k"].value = 5
    assert "Kept 1 of 3" in widget.caption.value
    assert widget.picture.value != before
    assert len(embedder.calls) == 2
    widget.controls["question"].value = "and now?"
    widget.controls["question"].value = "who?"
    assert embedder.calls[2:] == [("query", 1)]


def test_the_widget_shows_what_its_static_twin_shows() -> None:
    embedder = CountingEmbedder()
    widget = show.similarity_explorer(embedder, TEXTS, "who?", top_k=1, threshold=0.2)
    twin = show.similarity_figure(embedder, TEXTS, "who?", top_k=1, threshold=0.2)
    assert widget.picture.value == png(twin)
    assert show.describe(twin) in widget.caption.value


def test_a_value_that_cant_be_drawn_is_explained_not_raised() -> None:
    widget = show.similarity_explorer(CountingEmbedder(), TEXTS, "who?")
    widget.controls["question"].value = "  "
    assert "Not drawn: the question is blank" in widget.caption.value
    widget.controls["question"].value = "<b>who</b> & why?"
    assert "&lt;b&gt;who&lt;/b&gt; &amp; why?" in widget.caption.value


def test_no_figure_is_left_open() -> None:
    widget = show.token_cost_explorer()
    for turns in (10, 20, 30):
        widget.controls["turns"].value = turns
    assert plt.get_fignums() == []


def test_explore_takes_controls_only_and_static_takes_values() -> None:
    def figure(n: int) -> object:
        return show.plot_vectors_2d([[1, n]], ["a"])

    assert explore.explore(figure, n=ipywidgets.IntSlider(2)).picture.value == png(explore.static(figure, n=2))
    with pytest.raises(InvalidTypeError, match="n is a int"):
        explore.explore(figure, n=3)


def test_no_texts_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="no texts"):
        show.similarity_figure(CountingEmbedder(), [], "who?")


def test_full_history_grows_by_two_messages_a_turn_and_sums_to_a_square() -> None:
    tokens = show.prompt_tokens("full history", np.arange(1, 101), tokens_per_message=10, instructions=0)
    assert set(np.diff(tokens)) == {20.0}
    assert tokens.sum() == 10 * 100**2  # 1 + 3 + 5 + … = n²


def test_vector_memory_is_bounded_by_top_k_and_no_memory_is_flat() -> None:
    turns = np.arange(1, 201)
    vector = show.prompt_tokens("vector memory", turns, tokens_per_message=10, instructions=5, top_k=6)
    assert vector[0] == 15
    assert vector.max() == vector[-1] == 5 + 7 * 10
    assert set(show.prompt_tokens("no memory", turns, 10, 5)) == {15.0}
    assert show.prompt_tokens("last 20 messages", turns, 10, 5).max() == 5 + 21 * 10


def test_cost_curves_add_up_and_price_the_embeddings() -> None:
    curves = show.cost_curves(50, 60, price=1.0, embedding_price=0.5).set_index(["strategy", "turn"])
    full, vector = curves.loc["full history"], curves.loc["vector memory"]
    assert full["total"].iloc[-1] == full["tokens"].sum()
    assert full["usd"].iloc[-1] == pytest.approx(full["tokens"].sum() / 1e6)
    assert vector["usd"].iloc[-1] == pytest.approx((vector["tokens"].sum() + 50 * 120 * 0.5) / 1e6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: show.prompt_tokens("magic", 1), "unknown strategy 'magic'"),
        (lambda: show.prompt_tokens("full history", 0), "counted from 1"),
        (lambda: show.cost_curves(0), "at least one turn"),
        (lambda: show.cost_curves(5, strategies=()), "one strategy"),
    ],
)
def test_impossible_conversations_are_refused(call: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()  # type: ignore[operator]


def test_the_token_cost_figure_describes_both_panels() -> None:
    text = show.describe(show.token_cost_figure(turns=100, tokens_per_message=60, window=8192))
    assert "overflowed at turn 69" in text  # 40 + (2n - 1) 60 > 8192
    assert "Running total by turn. At turn 100: full history $" in text
