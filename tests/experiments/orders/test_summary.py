"""The table: means, intervals over users, counts; and what a user can order at all."""

import numpy as np
import pandas as pd
import pytest

from memlab import InvalidInputError
from memlab.experiments.orders.results import with_types
from memlab.experiments.orders.summary import feasible_table, summarise_orders
from memlab.experiments.regulars import load_regulars
from memlab.experiments.takeout import open_kitchen


def made_frame(repeats: dict[str, list[bool]], **columns: object) -> pd.DataFrame:
    rows = [
        {"strategy": "s", "language": "en", "chat_turns": 3, "user": user, "visit": visit, "repeat": repeat}
        for user, of_user in repeats.items()
        for visit, repeat in enumerate([None, *of_user], start=1)
    ]
    given = {
        "repeat_in_window": False,
        "latest_visible": True,
        "free_choice": True,
        "constraint_visible": False,
        "violation": False,
        "over_limit": False,
        "diversity": 1.0,
        "utility": 0.5,
        "failed": "",
        "order": "soup",
    }
    return with_types(pd.DataFrame(rows).assign(**{**given, **columns}))


def test_a_mean_is_over_visits_that_have_a_previous_order() -> None:
    row = summarise_orders(made_frame({"a": [True, False], "b": [False, False]})).iloc[0]
    assert (row["users"], row["visits"], row["repeat_rate"], row["utility"]) == (2, 6, 0.25, 0.5)
    assert np.isnan(row["prompt_tokens"]), "a frame of controls has no tokens"


def test_an_interval_draws_users_and_not_visits() -> None:
    alike = made_frame({name: [True, False] * 5 for name in "abcdefgh"})
    row = summarise_orders(alike).iloc[0]
    assert row["repeat_rate_low"] == row["repeat_rate_high"] == 0.5
    apart = made_frame({name: [name < "e"] * 10 for name in "abcdefgh"})
    row = summarise_orders(apart).iloc[0]
    assert row["repeat_rate_low"] < 0.3 < 0.7 < row["repeat_rate_high"]


def test_repeats_count_as_ignored_only_where_they_were_seen_and_avoidable() -> None:
    repeats = {"a": [True, True]}
    assert summarise_orders(made_frame(repeats))["conditional_repeats"].item() == 2
    assert summarise_orders(made_frame(repeats, latest_visible=False))["conditional_repeats"].item() == 0
    assert summarise_orders(made_frame(repeats, free_choice=False))["conditional_repeats"].item() == 0


def test_violations_in_view_and_failures_are_counted() -> None:
    frame = made_frame({"a": [False]}, violation=True, failed="AgentRunError")
    assert summarise_orders(frame)[["violations_in_view", "failed", "no_order"]].values.tolist() == [[0, 2, 0]]
    frame = made_frame({"a": [False]}, violation=True, constraint_visible=True)
    assert summarise_orders(frame)["violations_in_view"].item() == 2


def test_visits_without_an_order_are_counted_and_dilute_nothing() -> None:
    frame = made_frame({"a": [True]})
    frame.loc[1, ["order", "violation", "utility", "repeat"]] = ["", pd.NA, np.nan, pd.NA]
    row = summarise_orders(frame, by="user").iloc[0]
    assert (row["no_order"], row["utility"], row["constraint_violations"]) == (1, 0.5, 0.0)


def test_without_resamples_there_is_no_interval_and_without_visits_no_table() -> None:
    assert np.isnan(summarise_orders(made_frame({"a": [True]}), resamples=0)["repeat_rate_low"].item())
    with pytest.raises(InvalidInputError, match="no visits"):
        summarise_orders(made_frame({"a": []}).iloc[:0])


def test_everybody_can_vary_on_the_large_menu() -> None:
    table = feasible_table(load_regulars(), open_kitchen("zh", "large").dishes)
    assert table["feasible_sets"].min() >= 6
    assert (table[["unavoidable_repeats", "unavoidable_in_window"]] == 0).all(axis=None)


def test_the_small_menu_forces_repeats_on_some() -> None:
    table = feasible_table(load_regulars(), open_kitchen("zh", "small").dishes, visits=12).set_index("user")
    assert table.loc["Alice", "feasible_sets"] == 4
    assert table.loc["Alice", "unavoidable_in_window"] == 0
    three = table[table["feasible_sets"] == 3]
    assert len(three)
    assert np.allclose(three["unavoidable_in_window"], 9 / 11)
    assert feasible_table(load_regulars(), [])["unavoidable_repeats"].eq(0).all(), "nothing to order, nothing repeated"
    one = table[table["feasible_sets"] == 1]
    assert (one["unavoidable_repeats"] == 1).all()
