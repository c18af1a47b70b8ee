"""Figures of sweeps: what they draw is what the frame holds, and what they can't draw they refuse by name."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from memlab import show
from memlab.errors import InvalidInputError
from memlab.show.style import BLUE, GREEN, ORANGE, png

ELEVEN = np.linspace(0, 1, 11)


def frame(ranks=("cosine",), embedders=("use",), top_ks=range(1, 21), thresholds=ELEVEN, **columns) -> pd.DataFrame:
    """A sweep by formula: recall grows with k, falls with the threshold, and "hybrid" finds most."""
    strength = {"cosine": 1.0, "bm25": 0.8, "hybrid": 1.2}
    rows = [
        {
            "dataset": "toy",
            "embedder": embedder,
            "rank": rank,
            "template": "{text}",
            "top_k": k,
            "threshold": t,
            "group": "all",
            "recall": 0.8 * strength[rank] * (1 - max(t, 0)) * k / 20,
            "precision": strength[rank] * (1 - max(t, 0)) / (k + 2),
            "f1": strength[rank] * (1 - max(t, 0)) / (1 + abs(k - 4)),
            "tokens": 20.0 * k * (1 - max(t, 0)),
        }
        for embedder in embedders
        for rank in ranks
        for k in top_ks
        for t in thresholds
    ]
    return pd.DataFrame(rows).assign(**columns)


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


# --- heat map ---


def test_the_heat_map_has_a_cell_for_each_setting_and_marks_the_best_f1() -> None:
    ax = show.plot_heat_map(frame())
    cells = np.asarray(ax.collections[0].get_array()).reshape(11, 20)
    assert cells[0, 19] == pytest.approx(0.8)
    assert cells[5, 9] == pytest.approx(0.2)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("top-k", "threshold (cosine)")
    star = next(line for line in ax.lines if line.get_marker() == "*")
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (3.5, 0.5)
    assert "best F1 1.00 at k = 4, t = 0.00" in show.describe(ax)
    assert "from 0 to 0.8" in show.describe(ax)


def test_a_small_grid_shows_its_numbers_and_a_large_one_lines_of_equal_value() -> None:
    small = show.plot_heat_map(frame(top_ks=[1, 4], thresholds=[0.0, 0.5]), "tokens")
    assert {"20", "80", "10", "40"} <= set(texts(small))
    large = show.plot_heat_map(frame(), "tokens")
    assert "160" in texts(large)
    assert len(texts(large)) < 20, "a number in each of 220 cells"


def test_a_frame_without_thresholds_and_one_of_bm25_are_named_as_such() -> None:
    ax = show.plot_heat_map(frame(thresholds=[-np.inf]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["none"]
    assert "at k = 4." in show.describe(ax)
    bm25 = show.plot_heat_map(frame(["bm25"]))
    assert bm25.get_ylabel() == "threshold (quantile of BM25)"
    assert "use" not in bm25.get_title("left"), "bm25 asks no embedding model"


def test_a_heat_map_draws_one_series_and_shows_the_way_to_it() -> None:
    with pytest.raises(InvalidInputError, match=r"more than one rank: cosine, hybrid.*frame\['rank'\] == 'cosine'"):
        show.plot_heat_map(frame(["cosine", "hybrid"]))
    with pytest.raises(InvalidInputError, match="more than one embedder: use, e5"):
        show.plot_heat_map(frame(embedders=["use", "e5"]))


# --- precision against recall ---


def test_one_curve_for_each_rank_and_embedder_named_by_what_differs() -> None:
    ax = show.plot_precision_recall(frame(["cosine", "bm25", "hybrid"]))
    assert {"cosine", "bm25", "hybrid"} <= set(texts(ax))
    assert [to_rgba(line.get_color()) for line in ax.lines] == [to_rgba(each) for each in (BLUE, ORANGE, GREEN)]
    two = show.plot_precision_recall(frame(["cosine", "bm25"], ["use", "e5"]))
    assert {"cosine · use", "cosine · e5", "bm25"} <= set(texts(two))
    assert len(two.lines) == 3, "bm25 is the same, whoever embeds"


def test_a_curve_runs_along_top_k_at_the_lowest_threshold_or_along_the_threshold_at_the_largest_top_k() -> None:
    line = show.plot_precision_recall(frame()).lines[0]
    assert line.get_xdata() == pytest.approx(0.8 * np.arange(1, 21) / 20)
    assert line.get_ydata() == pytest.approx(1 / (np.arange(1, 21) + 2))
    along = show.plot_precision_recall(frame(), along="threshold")
    assert along.lines[0].get_xdata() == pytest.approx(0.8 * np.linspace(0, 1, 11))
    assert "recall/precision from 0.04/0.33 at top-k 1 to 0.80/0.05 at top-k 20" in show.describe(
        show.plot_precision_recall(frame())
    )


# --- tokens against recall ---


def test_nothing_beats_a_point_of_the_front_and_something_beats_every_other() -> None:
    random = np.random.default_rng(0)
    points = pd.DataFrame({"tokens": random.integers(0, 30, 200), "recall": random.integers(0, 30, 200)})
    front = show.pareto_front(points)
    beaten = [
        bool(
            (
                (points["tokens"] <= x) & (points["recall"] >= y) & ((points["tokens"] < x) | (points["recall"] > y))
            ).any()
        )
        for x, y in zip(points["tokens"], points["recall"], strict=True)
    ]
    on_front = set(zip(front["tokens"], front["recall"], strict=True))
    for (x, y), loses in zip(points.itertuples(index=False), beaten, strict=True):
        assert ((x, y) in on_front) != loses
    assert front["tokens"].is_monotonic_increasing


def test_the_pareto_figure_labels_settings_of_the_front() -> None:
    ax = show.plot_pareto(frame(["cosine", "hybrid"]))
    assert "k = 20, t = 0.00" in texts(ax)
    assert {"cosine", "hybrid"} <= set(texts(ax))
    assert "hybrid k = 20, t = 0.00 with 0.96 for 400" in show.describe(ax)
    assert "cosine k" not in show.describe(ax), "cosine finds less for as many tokens"
    one = show.plot_pareto(frame(["cosine"], thresholds=[-np.inf], recall=0.5))
    assert "1 of 20 settings are on the Pareto front: cosine k = 1 with 0.50" in show.describe(one)


@pytest.mark.parametrize("plot", [show.plot_heat_map, show.plot_precision_recall, show.plot_pareto])
def test_a_group_of_questions_is_drawn_on_request(plot: Callable) -> None:
    both = pd.concat([frame(), frame(group="time", recall=0.25)])
    assert png(plot(both)) == png(plot(frame()))
    assert png(plot(both, group="time")) != png(plot(frame()))
    with pytest.raises(InvalidInputError, match="no group 'tims'; it has 'all', 'time'"):
        plot(both, group="tims")


@pytest.mark.parametrize("plot", [show.plot_heat_map, show.plot_precision_recall, show.plot_pareto])
def test_a_frame_that_is_no_sweep_is_refused(plot: Callable) -> None:
    with pytest.raises(InvalidInputError, match="column recall is missing"):
        plot(frame().drop(columns="recall"))
    with pytest.raises(InvalidInputError, match="no rows"):
        plot(frame().iloc[:0])
    with pytest.raises(InvalidInputError, match="recall holds NaN"):
        plot(frame(recall=np.nan))


def test_what_else_can_not_be_drawn() -> None:
    with pytest.raises(InvalidInputError, match="along is 'rank'"):
        show.plot_precision_recall(frame(), along="rank")
    with pytest.raises(InvalidInputError, match="twice"):
        show.plot_heat_map(pd.concat([frame(), frame()]))


# --- the map of memories ---

ROOM = np.random.default_rng(1).normal(size=(30, 8))


def test_the_map_is_the_plane_of_the_first_two_principal_components() -> None:
    labels = ["alice"] * 10 + ["bob"] * 20
    ax = show.plot_memory_map(ROOM, labels, title="rooms")
    drawn = np.concatenate([np.column_stack(line.get_data()) for line in ax.lines[:2]])
    units = ROOM / np.linalg.norm(ROOM, axis=1, keepdims=True)
    centred = units - units.mean(axis=0)
    singular = np.linalg.svd(centred, compute_uv=False)
    assert np.linalg.norm(drawn, axis=0) == pytest.approx(singular[:2])
    assert [len(line.get_xdata()) for line in ax.lines[:2]] == [10, 20]
    share = (singular[:2] ** 2).sum() / (singular**2).sum()
    assert f"rooms: 30 memories on a plane that shows {share:.0%} of their variance" in show.describe(ax)
    assert {"● alice", "● bob"} <= set(texts(ax))


def test_the_question_is_joined_to_its_neighbours() -> None:
    ax = show.plot_memory_map(
        ROOM, ["s"] * 30, question=ROOM[3], neighbours=[3, 7], texts=[f"text {n}" for n in range(30)]
    )
    star = next(line for line in ax.lines if line.get_marker() == "*")
    points = np.column_stack(ax.lines[0].get_data())
    assert np.ravel(star.get_data()) == pytest.approx(points[3], abs=1e-9)
    joins = [np.column_stack(line.get_data()) for line in ax.lines if len(line.get_xdata()) == 2]
    assert [join[1] for join in joins] == [pytest.approx(points[3]), pytest.approx(points[7])]
    assert {"text 3", "text 7", "question"} <= set(texts(ax))
    assert "text 8" not in texts(ax)


def test_many_labels_share_a_scale_and_some_are_named() -> None:
    ax = show.plot_memory_map(ROOM, [f"s{number}" for number in range(30)])
    assert {"● s0", "● s29"} <= set(texts(ax))
    assert len(texts(ax)) == 7
    assert len({line.get_color() for line in ax.lines}) == 30


def test_equal_vectors_have_a_map_too() -> None:
    assert "shows 0% of their variance" in show.describe(show.plot_memory_map(np.ones((3, 4)), ["a", "b", "c"]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: show.plot_memory_map(ROOM, ["a"]), "30 vectors but 1 labels"),
        (lambda: show.plot_memory_map(ROOM, ["a"] * 30, texts=["a"]), "30 vectors but 1 texts"),
        (lambda: show.plot_memory_map(ROOM[:1], ["a"]), "at least 2"),
        (lambda: show.plot_memory_map(ROOM, ["a"] * 30, question=ROOM[0, :4]), r"\(8,\) is needed"),
        (lambda: show.plot_memory_map(ROOM, ["a"] * 30, neighbours=[1]), "need the question"),
        (lambda: show.plot_memory_map(ROOM, ["a"] * 30, ROOM[0], [30]), "from 0 to 29"),
        (lambda: show.plot_evidence_ranks([]), r"shape \(0,\)"),
        (lambda: show.plot_evidence_ranks([1.5]), "whole numbers"),
        (lambda: show.plot_evidence_ranks([-1]), "whole numbers"),
    ],
)
def test_what_has_no_map_and_no_ranks_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


# --- where the evidence stands ---


def test_each_rank_falls_into_its_bin() -> None:
    ax = show.plot_evidence_ranks([1, 2, 2, 3, 4, 6, 7, 10, 11, 20, 21, 900, 0], title="toy")
    assert [bar.get_height() for bar in ax.patches] == [1, 2, 1, 2, 2, 2, 2, 1]
    assert "toy: place of the evidence, 13 times. 1: 1, 2: 2, 3: 1, 4-6: 2" in show.describe(ax)
    assert "never: 1." in show.describe(ax)


def test_a_top_k_colours_what_it_reaches_and_counts_it() -> None:
    ax = show.plot_evidence_ranks([1, 5, 8, 0], top_k=6)
    colours = [bar.get_facecolor() for bar in ax.patches]
    assert colours == [to_rgba(GREEN)] * 4 + [to_rgba(ORANGE)] * 4
    assert "50% within the first 6" in ax.get_title("left")
