"""The figures of the repeated order say what their frame says, keep texts apart, and refuse what they can't use."""

from collections.abc import Callable
from itertools import combinations

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.text import Text

from memlab import show
from memlab.errors import InvalidInputError
from memlab.experiments.orders.results import with_types
from memlab.show.style import BLUE, GREEN, ORANGE, RED, png

KEPT = ("kept_orders", "kept_first_requests", "kept_requests", "kept_chats")
# strategy -> repeats of 10 later visits (of each user), prompt tokens, violations, records kept in visits 1 to 11
STRATEGIES = {
    "vector, top 3": (9, 2084, 3, [(0, 0, 0, 0), (1, 1, 0, 1), (0, 1, 1, 1), *[(0, 0, 3, 0)] * 8]),
    "vector, top 6": (9, 2090, 3, [(0, 0, 0, 0), *[(0, 1, 2, 3)] * 10]),
    "full history": (0, 12600, 0, [(0, 0, 0, 0)] * 11),
    "deduplicated": (10, 2120, 0, [(0, 0, 0, 0), *[(0, 1, 1, 1)] * 10]),
    "order log + tastes": (0, 2420, 0, [(0, 0, 0, 0), *[(2, 1, 0, 0)] * 10]),
    "oracle": (0, None, 0, None),
    "random": (1, None, 0, None),
}


def visits_of(strategy: str, user: str, language: str = "zh") -> list[dict[str, object]]:
    repeats, tokens, violations, kept = STRATEGIES[strategy]
    return [
        {
            "strategy": strategy,
            "language": language,
            "user": user,
            "visit": n,
            "repeat": None if n == 1 else n <= repeats + 1,
            "latest_visible": None if n == 1 or tokens is None else n > repeats + 1,
            "free_choice": None if tokens is None else True,
            "constraint_visible": None if kept is None else n == 1 or tokens > 3000 or kept[n - 1][1] > 0,
            "violation": n > 11 - violations,
            "utility": 0.5,
            "failed": "",
            "prompt_tokens": tokens,
            **(dict(zip(KEPT, kept[n - 1], strict=True)) if kept else dict.fromkeys(KEPT)),
        }
        for n in range(1, 12)
    ]


def frame(*strategies: str) -> pd.DataFrame:
    rows = [row for name in strategies or STRATEGIES for user in ("Alice", "Bob") for row in visits_of(name, user)]
    return with_types(pd.DataFrame(rows))


FRAME = frame()
FIGURES: dict[str, Callable[[Axes | None], Axes]] = {
    "pareto": lambda ax: show.plot_repeat_pareto(FRAME, ax=ax),
    "strategies": lambda ax: show.plot_strategies(FRAME, ax=ax),
    "retrieved": lambda ax: show.plot_retrieved(FRAME, "vector, top 3", ax=ax),
}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.filterwarnings("error")
def test_every_figure_draws_alone_and_on_given_axes_with_alt_text(name: str) -> None:
    ax = FIGURES[name](None)
    assert len(show.describe(ax)) > 60
    png(ax)
    assert plt.get_fignums() == []
    given = plt.figure(layout="constrained", figsize=(13, 8)).subplots()
    assert FIGURES[name](given) is given
    plt.close("all")


def texts(ax: Axes) -> list[Text]:
    """All that can be read in the figure; ticks beyond the limits are not drawn."""
    ax.figure.draw_without_rendering()
    found = [*ax.texts, ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [text for text in found if text.get_text()]


@pytest.mark.parametrize("name", FIGURES)
def test_texts_are_large_and_neither_cut_off_nor_on_one_another(name: str) -> None:
    ax = FIGURES[name](None)
    found = [(text.get_text(), Text.get_window_extent(text)) for text in texts(ax)]
    assert min(text.get_fontsize() for text in texts(ax)) >= 14
    width, height = ax.figure.bbox.size
    for text, box in found:
        assert min(box.x0, box.y0, width - box.x1, height - box.y1) >= 0, text
    for (one, box), (other, second) in combinations(found, 2):
        assert not box.padded(-1).overlaps(second.padded(-1)), (one, other)


# --- the Pareto figure ---


def markers(ax: Axes) -> dict[tuple[float, float], tuple[str, str]]:
    return {
        (float(line.get_xdata()[0]), round(float(line.get_ydata()[0]), 6)): (
            line.get_marker(),
            to_hex(line.get_color()),
        )
        for line in ax.lines
        if line.get_marker() in ("o", "X")
    }


def test_a_point_shows_rate_tokens_and_by_shape_and_colour_whether_a_constraint_broke() -> None:
    found = markers(show.plot_repeat_pareto(FRAME))
    assert found == {
        (2084, 90): ("X", to_hex(RED)),
        (2090, 90): ("X", to_hex(RED)),
        (12600, 0): ("o", to_hex(BLUE)),
        (2120, 100): ("o", to_hex(BLUE)),
        (2420, 0): ("o", to_hex(BLUE)),
    }


def test_labels_name_the_front_and_the_highlighted_and_group_points_that_lie_together() -> None:
    words = {text.get_text(): text.get_fontweight() for text in show.plot_repeat_pareto(FRAME).texts}
    assert words["vector, top 3 and 1 other"] == "normal"
    assert words["deduplicated"] == words["order log + tastes"] == "bold"
    assert words["full history"] == "normal"
    assert {"oracle", "random"} <= words.keys()
    chosen = {
        text.get_text(): text.get_fontweight() for text in show.plot_repeat_pareto(FRAME, None, "vector, top 6").texts
    }
    assert chosen["vector, top 6 and 1 other"] == "bold"
    both = [
        text.get_text() for text in show.plot_repeat_pareto(FRAME, highlight=["vector, top 3", "vector, top 6"]).texts
    ]
    assert {"vector, top 3", "vector, top 6"} <= set(both)


def test_the_alt_text_names_front_broken_ones_and_controls_with_their_numbers() -> None:
    assert show.describe(show.plot_repeat_pareto(FRAME)) == (
        "Repeat rate against prompt tokens a visit, 5 strategies. 3 never broke a constraint; of these on the Pareto "
        "front: deduplicated 100% for 2,120 tokens; order log + tastes 0% for 2,420 tokens. Broke a constraint: "
        "vector, top 3 90% for 2,084 tokens; vector, top 6 90% for 2,090 tokens. Controls: oracle 0%; random 10%."
    )


def test_controls_are_level_lines_and_those_at_one_height_share_a_name() -> None:
    ax = show.plot_repeat_pareto(FRAME.replace({"strategy": {"full history": "history"}}))
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert sorted(line.get_ydata()[0] for line in dashed) == [0, 10]
    same = pd.concat([FRAME, FRAME[FRAME["strategy"] == "oracle"].assign(strategy="seer")])
    assert "oracle, seer" in [text.get_text() for text in show.plot_repeat_pareto(same).texts]


def test_tokens_get_a_log_scale_only_where_they_span_much() -> None:
    assert "log scale of what is above 1,900" in show.plot_repeat_pareto(FRAME).get_xlabel()
    near = show.plot_repeat_pareto(frame("vector, top 3", "order log + tastes"))
    assert (near.get_xscale(), near.get_xlabel()) == ("linear", "prompt tokens a visit")


# --- the table as a figure ---


def test_a_row_for_each_strategy_in_the_order_of_the_frame_with_both_columns() -> None:
    ax = show.plot_strategies(FRAME)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(STRATEGIES)
    rows: dict[float, list[str]] = {}
    for text in ax.texts:
        rows.setdefault(getattr(text, "xy", text.get_position())[1], []).append(text.get_text())
    assert sorted(rows[0]) == ["10%", "90%", "✖ 27%"]
    assert sorted(rows[4]) == ["0%", "100%", "✓ never"]
    assert sorted(rows[6]) == ["10%", "–", "✓ never"]
    assert "vector, top 3: 90%, 10%, 27%. " in show.describe(ax)
    assert show.describe(ax).endswith("random: 10%, –, 0%.")


def test_a_share_that_is_small_does_not_look_like_zero() -> None:
    many = pd.concat([FRAME[FRAME["strategy"] == "full history"].assign(user=f"u{n}") for n in range(40)])
    many.iloc[5, many.columns.get_loc("violation")] = True
    assert "✖ <1%" in [text.get_text() for text in show.plot_strategies(many).texts]


# --- what was retrieved ---


def heights(ax: Axes, visit: int) -> dict[str, float]:
    bars = [bar for bar in ax.patches if round(bar.get_x() + bar.get_width() / 2) == visit and bar.get_height()]
    return {to_hex(bar.get_facecolor()): bar.get_height() for bar in bars}


def test_bars_stack_the_types_and_the_title_says_from_when_on_orders_and_constraint_are_gone() -> None:
    ax = show.plot_retrieved(FRAME, "vector, top 3")
    assert heights(ax, 1) == {}
    assert heights(ax, 3)[to_hex(BLUE)] == heights(ax, 3)[to_hex(ORANGE)] == 1
    assert heights(ax, 2)[to_hex(GREEN)] == 1
    assert heights(ax, 11) == {to_hex(ORANGE): 3}
    title = "vector, top 3\norders: none retrieved from visit 3 on\nconstraint: in no prompt from visit 4 on"
    assert ax.get_title("left") == title
    assert [text.get_text() for text in ax.texts] == [
        "orders: 0.0",
        "first request (holds the constraint): 0.0",
        "old requests: 3.0",
        "chats: 0.0",
    ]
    assert "mean over 2 users" in show.describe(ax)
    assert "orders 0.0, first request (holds the constraint) 0.0, old requests 3.0, chats 0.0." in show.describe(ax)


def test_what_is_never_there_or_stays_is_said_so() -> None:
    never = show.plot_retrieved(FRAME, "deduplicated").get_title("left")
    assert "orders: none retrieved in any visit" in never
    assert "constraint: in 100% of prompts in visit 11" in never
    assert "orders: 2.0 retrieved in visit 11" in show.plot_retrieved(FRAME, "order log + tastes").get_title("left")


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "empty": (lambda: show.plot_repeat_pareto(FRAME[:0]), "no rows"),
    "empty table": (lambda: show.plot_strategies(FRAME[:0]), "no rows"),
    "empty stack": (lambda: show.plot_retrieved(FRAME[:0], "vector, top 3"), "no rows"),
    "column": (lambda: show.plot_strategies(FRAME.drop(columns="violation")), "column violation is missing"),
    "tokens": (lambda: show.plot_repeat_pareto(FRAME.drop(columns="prompt_tokens")), "prompt_tokens is missing"),
    "kept": (lambda: show.plot_retrieved(FRAME.drop(columns="kept_chats"), "vector, top 3"), "kept_chats is missing"),
    "highlight": (lambda: show.plot_repeat_pareto(FRAME, highlight=["MMR"]), "no strategy MMR; it has vector, top 3"),
    "strategy": (lambda: show.plot_retrieved(FRAME, "MMR"), "no strategy MMR"),
    "no search": (lambda: show.plot_retrieved(FRAME, "full history"), "full history retrieves no record"),
    "control": (lambda: show.plot_retrieved(FRAME, "oracle"), "oracle retrieves no record"),
    "controls alone": (
        lambda: show.plot_repeat_pareto(frame("oracle", "random")),
        "no strategy of the frame has prompt",
    ),
    "one visit": (lambda: show.plot_strategies(FRAME[FRAME["visit"] == 1]), "at least 2 visits"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_what_is_wrong(name: str) -> None:
    call, message = BAD[name]
    with pytest.raises(InvalidInputError, match=message):
        call()
