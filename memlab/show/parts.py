"""What the figures share: checks of their input, and pieces that are drawn in more than one of them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Arc
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from memlab.errors import InvalidInputError
from memlab.show.style import BLACK, GREEN, GREY, PALE, RED, SKY, ink, label_ends, new_axes, strategy_colours

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def shorten(text: str, width: int) -> str:
    """`text` on one line, cut to `width` columns with an ellipsis; a Chinese character takes two columns.

    >>> shorten("我对花生过敏，请记住", 12)
    '我对花生过…'
    """
    line, used = " ".join(text.split()), 0
    for place, letter in enumerate(line):
        used += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if used > width:
            return line[: max(place - 1, 0)].rstrip() + "…"
    return line


def check_frame(frame: pd.DataFrame, columns: Sequence[str], numbers: Iterable[str]) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        has = ", ".join(map(str, frame.columns)) or "none"
        raise InvalidInputError(
            f"column {', '.join(missing)} is missing; needed are {', '.join(columns)}; given: {has}"
        )
    if frame.empty:
        raise InvalidInputError("the table has no rows; there is nothing to draw")
    for column in columns:
        if frame[column].isna().any():
            raise InvalidInputError(
                f"column {column} holds NaN in {int(frame[column].isna().sum())} row(s); drop or fill them"
            )
    for column in numbers:
        if not pd.api.types.is_numeric_dtype(frame[column]) or not np.isfinite(frame[column]).all():
            raise InvalidInputError(f"column {column} must hold finite numbers")


def check_values(frame: pd.DataFrame, column: str, values: Sequence[str]) -> None:
    wrong = sorted(set(frame[column]) - set(values))
    if wrong:
        raise InvalidInputError(f"column {column} holds {', '.join(map(repr, wrong))}; allowed are {', '.join(values)}")


def check_scores(scores: ArrayLike, name: str) -> FloatArray:
    values = np.asarray(scores, dtype=float)
    if values.ndim != 1 or not len(values):
        raise InvalidInputError(f"{name} has shape {values.shape}; a row of scores (n,) with n at least 1 is needed")
    if not np.isfinite(values).all():
        raise InvalidInputError(
            f"{name}[{int(np.argmin(np.isfinite(values)))}] is NaN or infinite; scores must be numbers"
        )
    return values


def turn_axis(ax: Axes, ylabel: str) -> None:
    ax.set(xlabel="turn", ylabel=ylabel)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if ylabel:
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def strategy_lines(frame: pd.DataFrame, column: str, ax: Axes | None, room: float = 1.05) -> Axes:
    check_frame(frame, ["turn", "strategy", column], numbers=["turn", column])
    ax = new_axes(ax)
    colours, ends = strategy_colours(frame["strategy"]), {}
    for name, rows in frame.groupby("strategy", sort=False):
        rows = rows.sort_values("turn")
        marker = "o" if len(rows) == 1 else None
        ax.plot(rows["turn"], rows[column], color=colours[str(name)], marker=marker)
        if name != "":
            ends[str(name)] = (float(rows[column].iloc[-1]), colours[str(name)])
    turn_axis(ax, column)
    ax.set_ylim(0, max(float(frame[column].max()), 1e-9) * room)
    label_ends(ax, ends)
    return ax


def last_values(frame: pd.DataFrame, column: str, mark: str) -> str:
    last = frame.sort_values("turn", kind="stable").groupby("strategy", sort=False).last()
    return (
        f"At turn {frame['turn'].max()}: " + "; ".join(f"{n} {mark.format(v)}" for n, v in last[column].items()) + "."
    )


def draw_windows(ax: Axes, windows: Mapping[str, int], totals: Mapping[str, pd.Series[Any]]) -> str:
    """Draw each window that a prompt comes near, mark where it overflows, and say it in words."""
    largest, sentences = max(float(total.max()) for total in totals.values()), []
    near = {name: size for name, size in windows.items() if size <= 1.3 * largest}
    for size in near.values():
        ax.set_ylim(0, max(ax.get_ylim()[1], size * 1.12))
        ax.axhline(size, color=BLACK, linestyle="--", linewidth=2)
    _label_windows(ax, near, totals)
    for who, total in totals.items():
        for name, size in windows.items():
            over = total[total > size]
            if len(over):
                _mark_overflow(ax, int(over.index[0]), float(over.iloc[0]))
            fate = f"overflowed at turn {over.index[0]}" if len(over) else "not reached"
            sentences.append(f"{who}{': ' if who else ''}{name} of {size:,} tokens {fate}.")
    far = ", ".join(f"{name} {size:,}" for name, size in windows.items() if name not in near)
    if far:
        ax.set_ylim(0, max(ax.get_ylim()[1], largest * 1.18))
        ax.text(0.01, 0.99, f"far above: {far}", transform=ax.transAxes, va="top", color=ink(GREY))
    return " ".join(sentences)


def _label_windows(ax: Axes, windows: Mapping[str, int], totals: Mapping[str, pd.Series[Any]]) -> None:
    # At the left, unless a prompt crosses the line there.
    for name, size in windows.items():
        crossed = any((total.iloc[: int(0.4 * len(total))] > size).any() for total in totals.values())
        place, side = (0.99, "right") if crossed else (0.01, "left")
        ax.text(place, size, f"{name} {size:,}", transform=ax.get_yaxis_transform(), va="bottom", ha=side)


def _mark_overflow(ax: Axes, turn: int, tokens: float) -> None:
    # A prompt that grows leaves room below right of the point, or above left of it near the end.
    early = ax.transAxes.inverted().transform(ax.transData.transform((turn, tokens)))[0] < 0.6
    ax.plot(turn, tokens, "o", color=RED, markersize=13, zorder=5)
    ax.annotate(
        f"overflows at turn {turn}" if early else f"overflows\nat turn {turn}",
        (turn, tokens),
        (12, -8) if early else (-12, 8),
        textcoords="offset points",
        ha="left" if early else "right",
        va="top" if early else "bottom",
        color=ink(RED),
        weight="bold",
    )


def reason_of(kept: bool, score: float, threshold: float | None, top_k: int | None) -> str:
    if kept:
        return "kept"
    return "below threshold" if threshold is not None and score < threshold else f"beyond top {top_k}"


def draw_arrow(ax: Axes, x: float, y: float, label: str, colour: str, reach: float) -> None:
    style = {"arrowstyle": "-|>,head_width=0.5,head_length=0.8", "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (x, y), (0, 0), arrowprops={**style, "lw": 4, "color": colour})
    longer = 1 + 0.08 * reach / math.hypot(x, y)
    side = "left" if x > 0.2 * reach else "right" if x < -0.2 * reach else "center"
    place = "bottom" if y >= 0 else "top"
    ax.text(x * longer, y * longer, label, color=ink(colour), weight="bold", ha=side, va=place)


def draw_angle(ax: Axes, a: ArrayLike, b: ArrayLike, cosine: float, radius: float) -> str:
    first, second = (math.degrees(math.atan2(y, x)) for x, y in (np.asarray(a), np.asarray(b)))
    start, end = sorted((first, second))
    if end - start > 180:
        start, end = end, start + 360
    angle = end - start
    ax.add_patch(Arc((0, 0), 2 * radius, 2 * radius, theta1=start, theta2=end, linewidth=2.5))
    middle = math.radians((start + end) / 2)
    ax.text(
        1.3 * radius * math.cos(middle),
        1.3 * radius * math.sin(middle),
        f"{angle:.0f}°",
        ha="center",
        va="center",
    )
    ax.set_title(f"angle {angle:.0f}°, cosine {cosine:.2f}")
    return f"The first two stand at {angle:.0f} degrees, cosine {cosine:.2f}."


def draw_strip(ax: Axes, row: int, name: str, messages: pd.DataFrame) -> str:
    turns = messages["turn"].to_numpy(dtype=float)
    slot = messages.groupby("turn").cumcount().to_numpy()
    width = 1 / (int(slot.max()) + 1)
    fact, sent = (messages["kind"] == "fact").to_numpy(), (messages["status"] == "sent").to_numpy()
    left, line = turns - 0.5 + slot * width, 0.5 if len(messages) < 120 else 0
    wide = max(width, 0.011 * (turns.max() - turns.min()))  # a fact stays visible among 200 messages
    for chosen, sizes, colours in ((~fact, (width, 0.46), (SKY, PALE)), (fact, (wide, 0.76), (GREEN, RED))):
        colour = [colours[0] if each else colours[1] for each in sent[chosen]]
        bottom = row - sizes[1] / 2
        ax.bar(
            left[chosen],
            sizes[1],
            sizes[0],
            bottom,
            align="edge",
            color=colour,
            edgecolor="white",
            linewidth=line,
        )
    text = f"{int((fact & sent).sum())} of {int(fact.sum())} facts"
    ax.text(1.015, row, text, transform=ax.get_yaxis_transform(), va="center", weight="bold")
    return f"{name}: {text} and {int((~fact & sent).sum())} of {int((~fact).sum())} other messages sent."
