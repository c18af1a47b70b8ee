"""Each figure shows what its input says, describes itself, and refuses input it can't show."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

from memlab import show
from memlab.errors import InvalidInputError
from memlab.show.parts import shorten

TURNS = range(1, 11)
COST = pd.DataFrame(
    [{"turn": t, "part": p, "tokens": n} for t in TURNS for p, n in (("history", 90 * t), ("input", 30))]
)
STRATEGIES = pd.DataFrame(
    [
        {"turn": t, "strategy": s, "tokens": n, "total": n}
        for t in TURNS
        for s, n in (("full history", 100 * t), ("vector memory", 250))
    ]
)
KEPT = pd.DataFrame(
    [
        {"turn": t, "strategy": s, "status": "sent" if t > first else "dropped", "kind": k}
        for s, first in (("full history", 0), ("last 4 messages", 8))
        for t in TURNS
        for k in (("fact" if t in (1, 9) else "other"), "other")
    ]
)
PROBES = pd.DataFrame(
    [("full history", 0.95, 0.8, 1.0), ("vector memory", 0.8, 0.7, 0.9)],
    columns=["strategy", "share_answered", "low", "high"],
)
TEXTS = ["我叫张三", "Меня зовут Анна", "weather", "a joke for $5 or $6"]

FIGURES: dict[str, Callable[[Any], Axes]] = {
    "token cost": lambda ax: show.plot_token_cost(COST, ax=ax, window=800),
    "cumulative": lambda ax: show.plot_cumulative_cost(STRATEGIES, ax=ax, unit="usd"),
    "tokens by strategy": lambda ax: show.plot_tokens_by_strategy(STRATEGIES, ax=ax),
    "windows": lambda ax: show.plot_context_windows(STRATEGIES, {"small": 500, "huge": 10**6}, ax=ax),
    "distribution": lambda ax: show.plot_similarity_distribution([0.6, 0.7], [0.1, 0.2], ax=ax, threshold=0.3),
    "similarities": lambda ax: show.plot_similarities(TEXTS, [0.9, 0.5, 0.2, -0.1], 0.3, 1, ax=ax, question="我?"),
    "vectors": lambda ax: show.plot_vectors_2d([[1, 0], [0, 2]], ["猫", "кот"], ax=ax),
    "matrix": lambda ax: show.plot_similarity_matrix(np.eye(4), TEXTS, ax=ax),
    "kept": lambda ax: show.plot_kept_by_reducer(KEPT, ax=ax),
    "probes": lambda ax: show.plot_probe_answers(PROBES, ax=ax),
}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.filterwarnings("error")
def test_every_figure_draws_alone_and_on_given_axes_with_alt_text(name: str) -> None:
    ax = FIGURES[name](None)
    assert len(show.describe(ax)) > 30
    assert "without a description" not in show.describe(ax)
    ax.figure.canvas.draw()
    assert plt.get_fignums() == []
    given = plt.figure(layout="constrained").subplots()
    assert FIGURES[name](given) is given
    plt.close("all")


@pytest.mark.parametrize("name", FIGURES)
def test_every_text_of_a_figure_can_be_read_from_the_last_row(name: str) -> None:
    ax = FIGURES[name](None)
    ax.figure.canvas.draw()
    texts = ax.findobj(Text)
    assert min(text.get_fontsize() for text in texts if text.get_text()) >= 14
    assert all(line.get_linewidth() >= 2 for line in ax.lines if len(line.get_xdata()) > 2)


def test_token_cost_stacks_the_parts_and_marks_the_window() -> None:
    ax = show.plot_token_cost(COST, window=800)
    assert max(bar.get_y() + bar.get_height() for bar in ax.patches) == 930
    assert "history 900, input 30" in show.describe(ax)
    assert "overflowed at turn 9" in show.describe(ax)


def test_token_cost_of_a_long_conversation_is_drawn_as_areas() -> None:
    long = pd.DataFrame({"turn": range(1, 101), "part": "history", "tokens": range(100)})
    assert len(show.plot_token_cost(long).patches) == 0


def test_windows_name_the_first_turn_over_each_and_leave_far_ones_off_the_chart() -> None:
    ax = show.plot_context_windows(COST, {"small": 500, "huge": 10**6})
    text = show.describe(ax)
    assert "small of 500 tokens overflowed at turn 6" in text  # 90 t + 30 > 500
    assert "huge of 1,000,000 tokens not reached" in text
    assert ax.get_ylim()[1] < 3000


def test_similarities_say_what_is_kept_and_why_the_rest_is_not() -> None:
    ax = show.plot_similarities(TEXTS, [0.2, 0.5, 0.9, 0.31], threshold=0.3, top_k=2, question="Who?")
    assert [text.get_text() for text in ax.texts] == [
        "0.90  kept",
        "0.50  kept",
        "0.31  beyond top 2",
        "0.20  below threshold",
    ]
    assert "Kept 2 of 4 texts, best first: weather (0.90); Меня зовут Анна (0.50)." in show.describe(ax)


def test_a_score_just_under_the_threshold_shows_the_digit_that_decides() -> None:
    ax = show.plot_similarities(["a", "b"], [0.5, 0.299], threshold=0.3)
    assert ax.texts[1].get_text() == "0.299  below threshold"


def test_similarities_of_many_texts_show_the_best_twenty() -> None:
    ax = show.plot_similarities([f"text {n}" for n in range(100)], np.linspace(0, 1, 100), top_k=3)
    assert len(ax.texts) == 20
    assert "80 lower ones not shown" in ax.get_xlabel()


def test_distribution_says_which_share_a_threshold_keeps() -> None:
    ax = show.plot_similarity_distribution([0.6, 0.2], [0.1, 0.2, 0.3, 0.1], threshold=0.3)
    assert "related: 50% kept" in show.describe(ax)
    assert "unrelated: 25% kept" in show.describe(ax)


def test_vectors_show_angle_and_cosine() -> None:
    ax = show.plot_vectors_2d([[1, 0], [1, 1]], ["a", "b"])
    assert ax.get_title("left") == "angle 45°, cosine 0.71"
    across = show.plot_vectors_2d([[-1, 0.1], [-1, -0.1]], ["a", "b"])  # the short way round, over 180 degrees
    assert across.get_title("left").startswith("angle 11°")


def test_matrix_names_the_closest_pair() -> None:
    ax = show.plot_similarity_matrix([[1, 0.2, 0.7], [0.2, 1, 0.1], [0.7, 0.1, 1]], ["a", "b", "c"])
    assert "Closest pair: a and c, 0.70." in show.describe(ax)


def test_kept_counts_facts_and_other_messages() -> None:
    assert "last 4 messages: 1 of 2 facts and 3 of 18 other messages sent." in show.describe(
        show.plot_kept_by_reducer(KEPT)
    )


BAD: dict[str, tuple[Callable[[], Axes], str]] = {
    "missing column": (lambda: show.plot_token_cost(COST[["turn", "tokens"]]), "column part is missing"),
    "empty": (lambda: show.plot_tokens_by_strategy(STRATEGIES[:0]), "no rows"),
    "NaN": (lambda: show.plot_cumulative_cost(STRATEGIES.assign(total=np.nan)), "column total holds NaN in 20"),
    "infinite": (lambda: show.plot_tokens_by_strategy(STRATEGIES.assign(tokens=np.inf)), "finite numbers"),
    "text": (lambda: show.plot_tokens_by_strategy(STRATEGIES.assign(tokens="many")), "finite numbers"),
    "unknown part": (lambda: show.plot_token_cost(COST.replace("input", "question")), "unknown part 'question'"),
    "unknown unit": (lambda: show.plot_cumulative_cost(STRATEGIES, unit="eur"), "'tokens' or 'usd'"),
    "no tokens": (lambda: show.plot_context_windows(COST[["turn", "part"]], {"w": 1}), "column tokens is missing"),
    "no scores": (lambda: show.plot_similarity_distribution([], [0.1]), "related has shape"),
    "NaN score": (lambda: show.plot_similarity_distribution([0.1], [0.1, np.nan]), r"unrelated\[1\] is NaN"),
    "lengths": (lambda: show.plot_similarities(["a"], [0.1, 0.2]), "1 texts but 2 scores"),
    "3-d": (lambda: show.plot_vectors_2d([[1, 2, 3]], ["a"]), r"\(n, 2\) is needed"),
    "zero vector": (lambda: show.plot_vectors_2d([[1, 2], [0, 0]], ["a", "b"]), "zero vector"),
    "labels": (lambda: show.plot_vectors_2d([[1, 2]], ["a", "b"]), "1 vectors but 2 labels"),
    "not square": (lambda: show.plot_similarity_matrix([[1, 2]], ["a"]), "matrix has shape"),
    "NaN matrix": (lambda: show.plot_similarity_matrix([[np.nan]], ["a"]), "NaN"),
    "status": (lambda: show.plot_kept_by_reducer(KEPT.replace("dropped", "lost")), "holds 'lost'"),
    "kind": (lambda: show.plot_kept_by_reducer(KEPT.replace("other", "chat")), "holds 'chat'"),
    "interval": (lambda: show.plot_probe_answers(PROBES.assign(low=0.99)), "low <= share_answered <= high"),
    "share": (lambda: show.plot_probe_answers(PROBES.assign(high=1.2)), "between 0 and 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_what_is_wrong(name: str) -> None:
    call, message = BAD[name]
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_shortening_counts_chinese_twice_and_joins_lines() -> None:
    assert shorten("a\n  b", 10) == "a b"
    assert shorten("我对花生过敏，请记住", 12) == "我对花生过…"
    assert shorten("exactly ten", 11) == "exactly ten"
