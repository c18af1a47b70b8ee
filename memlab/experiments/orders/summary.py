"""From visits to a table: rates of each strategy, with intervals over users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memlab.errors import InvalidInputError
from memlab.experiments.regulars import Regular
from memlab.experiments.summary import bootstrap_interval
from memlab.experiments.takeout import Dish

if TYPE_CHECKING:
    import pandas as pd

RATES = {
    "repeat_rate": "repeat",
    "window_violations": "repeat_in_window",
    "latest_visible": "latest_visible",
    "constraint_visible": "constraint_visible",
    "constraint_violations": "violation",
    "over_limit": "over_limit",
    "diversity": "diversity",
    "utility": "utility",
    "prompt_tokens": "prompt_tokens",
    "memory_tokens": "memory_tokens",
    "model_calls": "model_calls",
}
"""The columns of the table that are means over visits, and what they are means of."""

COUNTS = ("conditional_repeats", "violations_in_view", "no_order", "failed")


def summarise_orders(
    frame: pd.DataFrame, by: str | Sequence[str] = ("language", "chat_turns", "strategy"), resamples: int = 1000
) -> pd.DataFrame:
    """One row for each group, in the order of the frame: means over visits, intervals, and four counts.

    Means are those of `RATES`; visits without a value (the first has no previous order) are left out. Each mean of
    `repeat_rate`, `latest_visible`, `constraint_violations` and `utility` has a 95 % interval, `…_low` and `…_high`,
    from a bootstrap that draws users; NaN with 0 `resamples`. Counts: `conditional_repeats`, repeats though the last
    order was visible and a feasible set outside of the visible ones was left; `violations_in_view`, violations though
    the constraint was in the prompt; `no_order`, visits in which none was placed; `failed`, runs that failed in part or
    as a whole. Raises InvalidInputError for a frame without visits.
    """
    import pandas as pd

    if frame.empty:
        raise InvalidInputError("the frame has no visits to summarise")
    rows, by = [], [by] if isinstance(by, str) else list(by)
    for key, group in frame.groupby(by, sort=False, observed=True):
        row = dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True))
        row |= {"users": group["user"].nunique(), "visits": len(group)}
        row |= {name: _mean(group, column) for name, column in RATES.items()}
        for name in ("repeat_rate", "latest_visible", "constraint_violations", "utility"):
            row[f"{name}_low"], row[f"{name}_high"] = _interval(group, RATES[name], resamples)
        rows.append(row | _counts(group))
    return pd.DataFrame(rows)


def _mean(group: pd.DataFrame, column: str) -> float:
    return float(group[column].astype(float).mean())


def _interval(group: pd.DataFrame, column: str, resamples: int) -> tuple[float, float]:
    of_users = group[column].astype(float).groupby(group["user"])
    if not resamples:
        return float("nan"), float("nan")
    low, high = bootstrap_interval(of_users.sum().to_numpy(), of_users.count().to_numpy().astype(np.intp), resamples)
    return float(low), float(high)


def _counts(group: pd.DataFrame) -> dict[str, int]:
    ignored = group["repeat"] & group["latest_visible"] & group["free_choice"]
    broken = group["violation"] & group["constraint_visible"]
    missing, failed = (group["order"] == "").sum(), (group["failed"] != "").sum()
    counts = (ignored.fillna(False).sum(), broken.fillna(False).sum(), missing, failed)
    return {name: int(count) for name, count in zip(COUNTS, counts, strict=True)}


def feasible_table(users: Sequence[Regular], menu: Sequence[Dish], visits: int = 12) -> pd.DataFrame:
    """For each user: constraints, taste, how many feasible sets, how many of them liked, and unavoidable repeats.

    `unavoidable_repeats` is the share of later visits that repeat the previous order whatever is chosen: all of them
    with one feasible set, none with more. `unavoidable_in_window`: that repeat one of the last three.
    """
    import pandas as pd

    rows = []
    for user in users:
        sets = user.feasible_sets(menu)
        liked = {dish.id for dish in menu if user.likes(dish)}
        rows.append(
            {
                "user": user.id,
                "constraints": ", ".join(user.constraints),
                "taste": user.taste or "",
                "feasible_sets": len(sets),
                "liked_sets": sum(bool(meal & liked) for meal in sets),
                "unavoidable_repeats": _unavoidable(len(sets), 1, visits),
                "unavoidable_in_window": _unavoidable(len(sets), 3, visits),
            }
        )
    return pd.DataFrame(rows)


def _unavoidable(sets: int, window: int, visits: int) -> float:
    """With more sets than the window holds, one can go round; with fewer, only the first round is new."""
    if not 0 < sets <= window or visits <= sets:
        return 0.0
    return (visits - sets) / (visits - 1)
