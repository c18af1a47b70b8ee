"""Repeat rate against tokens, and the Pareto front of the strategies that never broke a constraint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from memlab.errors import InvalidInputError
from memlab.show.label_places import PointLabel, Spot, place_labels
from memlab.show.orders import order_table, percent, percent_axis, rows_of, size_of, strategy_names
from memlab.show.retrieval import pareto_front
from memlab.show.style import BLACK, BLUE, GREY, RED, ink, label_ends, new_axes, set_alt

_NEAR_X, _NEAR_Y = 0.04, 0.02  # points that near (share of the width, repeat rate) share a label


def plot_repeat_pareto(
    frame: pd.DataFrame, ax: Axes | None = None, highlight: Sequence[str] | str | None = None
) -> Axes:
    """Repeat rate against mean prompt tokens a visit, a point for each strategy, with 95 % intervals over users.

    A round point never broke a constraint, a cross did in some visit. The line is the Pareto front of the round
    ones: none of them repeats less for less. Strategies without tokens (the controls) are dashed lines.
    `frame`: what `repeated_order` returns. `highlight`: names of strategies that get a label of their own.
    """
    table = order_table(frame)
    chosen = strategy_names(highlight, table)
    agents = table[table["prompt_tokens"].notna()]
    if agents.empty:
        raise InvalidInputError("no strategy of the frame has prompt tokens; take some that are no controls")
    kept = agents[agents["constraint_violations"] == 0]
    front = pareto_front(kept.assign(spared=-kept["repeat_rate"]), "prompt_tokens", "spared")
    ax = new_axes(ax, 13, 8)
    _draw_points(ax, agents, chosen)
    ax.step(front["prompt_tokens"], 100 * front["repeat_rate"], where="post", color=BLUE, linewidth=2.5, zorder=2)
    _token_axis(ax, agents["prompt_tokens"])
    percent_axis(ax.yaxis, "repeat rate (same dishes as the last order)")
    ax.set_ylim(-8, 106)
    _key(ax, [("● constraint never broken", BLUE), ("— their Pareto front", BLUE), ("✖ broken in some visit", RED)])
    ax.set_title(size_of(frame), pad=40)
    controls = table[table["prompt_tokens"].isna()]
    _draw_controls(ax, controls)
    own = [*dict.fromkeys([*front["strategy"], *chosen])]
    points = list(zip(agents["prompt_tokens"], 100 * agents["repeat_rate"], strict=True))
    place_labels(ax, _labels(ax, agents, own), points, _lines(ax, agents, front, controls))
    return set_alt(ax, _pareto_words(agents, front, controls))


def _token_axis(ax: Axes, tokens: pd.Series[Any]) -> None:
    low, high = float(tokens.min()), float(tokens.max())
    room = max(0.15 * (high - low), 0.02 * high)
    ax.set_xlim(low - room, high + room)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.set_xlabel("prompt tokens a visit")
    if high > 3 * low > 0:
        digit = 10.0 ** (math.floor(math.log10(0.95 * low)) - 1)
        _stretch(ax, digit * math.floor(0.95 * low / digit), low, high)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.grid(axis="x", color="#E8E8E8")


def _stretch(ax: Axes, floor: float, low: float, high: float) -> None:
    """A log scale of the tokens above `floor`: what all prompts share would press most points together."""
    ax.set_xscale("function", functions=(lambda x: np.log(np.maximum(x - floor, 1e-9)), lambda y: np.exp(y) + floor))
    ax.set_xlim(floor + 0.45 * (low - floor), floor + 1.6 * (high - floor))
    ticks: list[float] = []
    for value in (step * 10.0**power for power in range(1, 8) for step in (1, 1.5, 2, 2.2, 2.5, 3, 4, 5, 7)):
        apart = not ticks or np.log((value - floor) / (ticks[-1] - floor)) > 0.4
        if low <= value <= high and apart:
            ticks.append(value)
    ax.set_xticks(ticks)
    ax.set_xlabel(f"prompt tokens a visit (log scale of what is above {floor:,.0f})")


def _lines(ax: Axes, agents: pd.DataFrame, front: pd.DataFrame, controls: pd.DataFrame) -> list[tuple[Spot, Spot]]:
    """What labels must not lie on: intervals, the front, and the lines of the controls."""
    ends = agents[["prompt_tokens", "repeat_rate_low", "repeat_rate_high"]].to_numpy(dtype=float).tolist()
    bars = [((x, 100 * low), (x, 100 * high)) for x, low, high in ends]
    steps = list(zip(front["prompt_tokens"], 100 * front["repeat_rate"], strict=True))
    stairs = [line for (x, y), (x2, y2) in pairwise(steps) for line in (((x, y), (x2, y)), ((x2, y), (x2, y2)))]
    left, right = ax.get_xlim()
    return [*bars, *stairs, *(((left, 100 * rate), (right, 100 * rate)) for rate in controls["repeat_rate"])]


def _draw_points(ax: Axes, agents: pd.DataFrame, chosen: Sequence[str]) -> None:
    for row in rows_of(agents):
        colour, marker = (RED, "X") if row["constraint_violations"] else (BLUE, "o")
        x, rate = row["prompt_tokens"], 100 * row["repeat_rate"]
        interval = [100 * row["repeat_rate_low"], 100 * row["repeat_rate_high"]]
        ax.plot([x, x], interval, color=colour, alpha=0.35, linewidth=2.5, zorder=3)
        size, edge, level = (17, BLACK, 5) if row["strategy"] in chosen else (13, "white", 4)
        ax.plot(x, rate, marker, color=colour, markersize=size, markeredgecolor=edge, zorder=level)


def _draw_controls(ax: Axes, controls: pd.DataFrame) -> None:
    """Dashed lines, named at their right end; those at the same height share a name."""
    names: dict[float, list[str]] = {}
    for row in rows_of(controls):
        names.setdefault(100 * round(row["repeat_rate"], 2), []).append(row["strategy"])
    for rate in names:
        ax.axhline(rate, color=GREY, linestyle="--", linewidth=2, zorder=1)
    label_ends(ax, {", ".join(there): (rate, GREY) for rate, there in names.items()})


def _labels(ax: Axes, agents: pd.DataFrame, own: Sequence[str]) -> list[PointLabel]:
    """A label for each of `own`, and one for each group of points that lie together; the most wanted first."""
    labels = []
    for group in _groups(ax, agents):
        named = [row for row in group if row["strategy"] in own] or group[:1]
        others = len(group) - len(named)
        for row in named:
            text = f"{row['strategy']} and {others} other{'s' if others > 1 else ''}" if others else row["strategy"]
            colour, is_own = ink(RED if row["constraint_violations"] else BLUE), row["strategy"] in own
            at = row["prompt_tokens"], 100 * row["repeat_rate"]
            labels.append(PointLabel(*at, text, colour, "bold" if is_own else "normal"))
            others = 0
    return sorted(labels, key=lambda label: label.weight != "bold")


def _groups(ax: Axes, agents: pd.DataFrame) -> list[list[pd.Series[Any]]]:
    """Strategies whose points nearly touch: about the same repeat rate, and a cross or a round point alike."""
    to_axes = (ax.transData + ax.transAxes.inverted()).transform
    groups: list[list[tuple[float, pd.Series[Any]]]] = []
    for row in rows_of(agents.sort_values("prompt_tokens", kind="stable")):
        x, broken = float(to_axes((row["prompt_tokens"], 0))[0]), bool(row["constraint_violations"])
        for group in groups:
            last, other = group[-1]
            level = abs(other["repeat_rate"] - row["repeat_rate"]) < _NEAR_Y
            if level and x - last < _NEAR_X and bool(other["constraint_violations"]) == broken:
                group.append((x, row))
                break
        else:
            groups.append([(x, row)])
    return [[row for _, row in group] for group in groups]


def _key(ax: Axes, entries: Sequence[tuple[str, str]]) -> None:
    for (text, colour), place in zip(entries, (0, 250, 450), strict=True):
        ax.annotate(text, (0, 1), (place, 8), "axes fraction", "offset points", color=ink(colour), weight="bold")


def _pareto_words(agents: pd.DataFrame, front: pd.DataFrame, controls: pd.DataFrame) -> str:
    broken = agents[agents["constraint_violations"] > 0]
    sentences = [
        f"Repeat rate against prompt tokens a visit, {len(agents)} strategies",
        f"{len(agents) - len(broken)} never broke a constraint; of these on the Pareto front: {_listed(front)}",
        f"Broke a constraint: {_listed(broken)}",
    ]
    if known := "; ".join(f"{row['strategy']} {percent(row['repeat_rate'])}" for row in rows_of(controls)):
        sentences.append(f"Controls: {known}")
    return ". ".join(sentences) + "."


def _listed(rows: pd.DataFrame) -> str:
    said = [f"{r['strategy']} {percent(r['repeat_rate'])} for {r['prompt_tokens']:,.0f} tokens" for r in rows_of(rows)]
    return "; ".join(said) or "none"
