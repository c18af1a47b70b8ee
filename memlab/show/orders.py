"""Figures of the repeated order: visits as `repeated_order` gives them in, `Axes` out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from memlab.errors import InvalidInputError
from memlab.experiments.orders.reading import RecordType
from memlab.experiments.orders.summary import summarise_orders
from memlab.show.parts import check_frame
from memlab.show.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED, ink, label_ends, new_axes, set_alt

TYPES = {
    RecordType.ORDER: ("order", GREEN),
    RecordType.FIRST_REQUEST: ("first request", BLUE),
    RecordType.REQUEST: ("old request", ORANGE),
    RecordType.CHAT: ("chat", GREY),
}
"""What each type of record is called, and its colour, in the figures of the lesson."""

_STACK = {
    "kept_orders": ("orders", GREEN),
    "kept_first_requests": ("first request (holds the constraint)", BLUE),
    "kept_requests": ("old requests", ORANGE),
    "kept_chats": ("chats", GREY),
}
_KNOWN = ("strategy", "user", "visit", "violation", "utility", "failed")
_MAY_MISS = ("repeat", "latest_visible", "free_choice", "constraint_visible", "prompt_tokens")
_SEEN, _BROKEN = 85, 205  # where the columns beside the bars end, in points


def plot_strategies(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """A row for each strategy: its repeat rate, how often it saw the last order, how often it broke a constraint.

    "Last order visible" leaves out the first visit; "constraint broken" counts all. The 95 % intervals are over users.
    `frame`: what `repeated_order` returns; the rows keep its order.
    """
    table = order_table(frame)
    ax = new_axes(ax, 13, 2.2 + 0.38 * len(table))
    for place, row in enumerate(rows_of(table)):
        _draw_rate(ax, place, row)
        seen, broken = row["latest_visible"], row["constraint_violations"]
        _write(ax, _SEEN, place, percent(seen), BLACK)
        _write(ax, _BROKEN, place, f"✖ {percent(broken)}" if broken else "✓ never", RED if broken else BLUE)
    _write(ax, _SEEN, -0.9, "last order\nvisible", BLACK, "bottom")
    _write(ax, _BROKEN, -0.9, "constraint\nbroken", BLACK, "bottom")
    ax.text(0, -0.9, "repeat rate", va="bottom", weight="bold")
    ax.set_yticks(range(len(table)), table["strategy"], fontsize=15)
    ax.set_ylim(len(table) - 0.4, -0.6)
    percent_axis(ax.xaxis, "")
    ax.set_xlim(0, 118)
    ax.tick_params(axis="y", length=0, pad=12)
    ax.set_title(size_of(frame), pad=54)
    words = " ".join(map(_row_words, rows_of(table)))
    return set_alt(ax, f"Repeat rate, last order visible, constraint broken. {words}")


def _draw_rate(ax: Axes, place: int, row: pd.Series[Any]) -> None:
    is_control = pd.isna(row["prompt_tokens"])
    rate, low, high = (100 * row[name] for name in ("repeat_rate", "repeat_rate_low", "repeat_rate_high"))
    ax.barh(place, rate, 0.62, color="#E8E8E8" if is_control else "#CFE3F1")
    ax.plot([low, high], [place, place], color=GREY if is_control else BLUE, linewidth=3)
    ax.plot(rate, place, "o", color=GREY if is_control else BLUE, clip_on=False)
    ax.text(max(high, rate) + 2.5, place, percent(row["repeat_rate"]), va="center", weight="bold")


def _write(ax: Axes, right: float, place: float, text: str, colour: str, va: str = "center") -> None:
    """A cell of the columns beside the axes; `right` is its right end, in points from them."""
    across = ax.get_yaxis_transform()
    style = {"ha": "right", "va": va, "color": ink(colour), "weight": "bold"}
    ax.annotate(text, (1, place), (right, 0), across, "offset points", **style, annotation_clip=False)  # type: ignore[arg-type]


def _row_words(row: pd.Series[Any]) -> str:
    rates = (row[name] for name in ("repeat_rate", "latest_visible", "constraint_violations"))
    return f"{row['strategy']}: {', '.join(map(percent, rates))}."


# --- what a memory retrieves ------------------------------------------------------------------------------------


def plot_retrieved(frame: pd.DataFrame, strategy: str, ax: Axes | None = None) -> Axes:
    """The mean number of records that a strategy retrieves in each visit, stacked by what they are about.

    The title says from which visit on no order is retrieved and no prompt holds the constraint.
    `frame`: what `repeated_order` returns. Raises InvalidInputError for a strategy that is not in it, or that
    retrieves nothing.
    """
    rows = _retrieved(frame, strategy)
    visits = rows.groupby("visit")
    means = visits[list(_STACK)].mean().astype(float)
    ax = new_axes(ax, 13, 6.4)
    _draw_stack(ax, means)
    orders = _fate(means["kept_orders"], "orders: none retrieved", "orders: {:.1f} retrieved")
    seen = visits["constraint_visible"].mean().astype(float)
    constraint = _fate(seen, "constraint: in no prompt", "constraint: in {:.0%} of prompts")
    ax.set_title(f"{strategy}\n{orders}\n{constraint}")
    last = ", ".join(f"{name} {means[column].iloc[-1]:.1f}" for column, (name, _) in _STACK.items())
    return set_alt(
        ax,
        f"Records that “{strategy}” retrieves, mean over {rows['user'].nunique()} users. {orders}; {constraint}. "
        f"In visit {means.index[-1]}: {last}.",
    )


def _retrieved(frame: pd.DataFrame, strategy: str) -> pd.DataFrame:
    columns = [*_STACK, "constraint_visible"]
    filled = frame.assign(**{name: 0 for name in columns if name in frame})
    check_frame(filled, ["strategy", "user", "visit", *columns], ["visit"])
    strategy_names(strategy, frame)
    rows = frame[frame["strategy"] == strategy].dropna(subset=columns)
    if not rows[list(_STACK)].to_numpy(float).any():
        raise InvalidInputError(f"{strategy} retrieves no record in any visit; choose one that searches a memory")
    return rows


def _draw_stack(ax: Axes, means: pd.DataFrame) -> None:
    bottom = pd.Series(0.0, means.index)
    ends: dict[str, tuple[float, str]] = {}
    for column, (name, colour) in _STACK.items():
        ax.bar(means.index, means[column], 0.82, bottom, color=colour, edgecolor="white", linewidth=1.5)
        if means[column].any():
            middle = float((bottom + means[column] / 2).iloc[-1]) + 1e-6 * len(ends)  # names in the order of the stack
            ends[f"{name}: {means[column].iloc[-1]:.1f}"] = (middle, colour)
        bottom = bottom + means[column]
    ax.set(xlabel="visit", ylabel="records retrieved (mean)", ylim=(0, float(bottom.max()) * 1.05))
    ax.set_xlim(means.index[0] - 0.6, means.index[-1] + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    label_ends(ax, ends)


def _fate(values: pd.Series[float], gone: str, left: str) -> str:
    """From which visit on there is none, to the last one; or how much is left in the last one."""
    if not values.any():
        return f"{gone} in any visit"
    last = values[values > 0].index[-1]
    if last == values.index[-1]:
        return f"{left.format(values.iloc[-1])} in visit {last}"
    return f"{gone} from visit {values.index[values.index > last][0]} on"


# --- shared with the Pareto figure ------------------------------------------------------------------------------


def order_table(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each strategy, as `summarise_orders` makes it, from a frame that has all it takes."""
    filled = frame.assign(**{name: 0 for name in _MAY_MISS if name in frame})
    check_frame(filled, [*_KNOWN, *_MAY_MISS], ["visit"])
    rated = frame.groupby("strategy", sort=False)["repeat"].count()
    if silent := [str(name) for name, count in rated.items() if not count]:
        raise InvalidInputError(
            f"{', '.join(silent)}: no visit has an earlier order to repeat; run at least 2 visits, or leave it out"
        )
    return summarise_orders(frame, by=["strategy"])


def strategy_names(asked: Sequence[str] | str | None, frame: pd.DataFrame) -> list[str]:
    """The strategies asked for, once they are known to be in the frame."""
    names = [asked] if isinstance(asked, str) else list(asked or ())
    there = list(dict.fromkeys(frame["strategy"]))
    if unknown := [name for name in names if name not in there]:
        raise InvalidInputError(f"the frame has no strategy {', '.join(unknown)}; it has {', '.join(there)}")
    return names


def rows_of(table: pd.DataFrame) -> list[pd.Series[Any]]:
    return [row for _, row in table.iterrows()]


def size_of(frame: pd.DataFrame) -> str:
    """What the figure stands on: users, visits, languages, chat turns, and seeds if there are several."""
    languages, chats, seeds = (
        list(frame[name].dropna().unique()) if name in frame else [] for name in ("language", "chat_turns", "seed")
    )
    parts = [f"{frame['user'].nunique()} users, {frame['visit'].nunique()} visits each"]
    parts += [", ".join(languages)] if languages else []
    parts += [f"{' or '.join(str(int(turns)) for turns in chats)} chats between"] if chats else []
    parts += [f"{len(seeds)} seeds"] if len(seeds) > 1 else []
    return "; ".join(parts)


def percent(share: float) -> str:
    """A share in whole percents; a small one that is not zero does not look like zero."""
    return "–" if share != share else f"{share:.0%}" if share == 0 or share >= 0.005 else "<1%"


def percent_axis(axis: Axis, label: str) -> None:
    axis.set_major_locator(FixedLocator(range(0, 101, 20)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}%"))
    axis.set_label_text(label)
