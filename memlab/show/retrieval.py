"""Figures of retrieval sweeps: the tidy frame of `memlab.experiments.sweep.sweep` in, `Axes` out.

A frame has a row for each setting (top_k, threshold) of each rank, embedder and template, and for "all" questions
and each group of them. A figure draws one group; those that compare name a line by what differs between the lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from memlab.errors import InvalidInputError
from memlab.show.style import BLACK, RED, ink, label_ends, new_axes, set_alt
from memlab.show.sweep_frame import (
    for_title,
    group_rows,
    one_series,
    series_colours,
    setting_of,
    threshold_name,
    title_of,
    with_series,
)

_NAMES = {"f1": "F1", "hit_rate": "hit rate", "empty_rate": "nothing retrieved", "tokens": "injected tokens"}
_PALE_BOX = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1}  # lines pass behind it


def plot_heat_map(frame: pd.DataFrame, metric: str = "recall", ax: Axes | None = None, group: str = "all") -> Axes:
    """A metric over top-k and threshold, with lines of equal value and the setting of the best F1 marked.

    `frame`: of one rank, embedder and template; columns top_k, threshold, the metric, and optionally f1 and group.
    """
    rows = one_series(group_rows(frame, ["top_k", "threshold", metric], group))
    table = rows.pivot(index="threshold", columns="top_k", values=metric).sort_index()
    values = table.to_numpy(dtype=float)
    ax = new_axes(ax, width=10.5, height=6.2)
    mesh = ax.pcolormesh(np.arange(len(table.columns) + 1), np.arange(len(table) + 1), values, cmap="cividis")
    _write_values(ax, values, metric)
    _ticks(ax, table)
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.set_label(_NAMES.get(metric, metric))
    best = _mark_best(ax, table, rows)
    ax.set(xlabel="top-k", ylabel=threshold_name(rows))
    ax.set_title(title_of(rows), pad=36 if best else None)
    low, high = table.stack().agg(["min", "max"])
    return set_alt(
        ax,
        f"Heat map of {_NAMES.get(metric, metric)}{for_title(rows)} over {len(table.columns)} top-ks and {len(table)} "
        f"thresholds, from {low:.3g} to {high:.3g}. {best}".strip(),
    )


def plot_precision_recall(
    frame: pd.DataFrame, ax: Axes | None = None, along: str = "top_k", group: str = "all"
) -> Axes:
    """Precision against recall, one curve for each rank, embedder and template of the frame.

    `along`: what grows along a curve: "top_k" (at the lowest threshold of the frame) or "threshold" (at its largest
    top-k). Nothing retrieved counts as precision 0, so a curve along thresholds ends in the corner.
    """
    if along not in ("top_k", "threshold"):
        raise InvalidInputError(f"along is {along!r}; it is 'top_k' or 'threshold'")
    rows = group_rows(frame, ["rank", "top_k", "threshold", "recall", "precision"], group)
    rows = with_series(rows)
    ax, colours, ends = new_axes(ax), series_colours(rows["series"]), {}
    curves = {str(name): _curve(part, along) for name, part in rows.groupby("series", sort=False)}
    for name, curve in curves.items():
        ax.plot(curve["recall"], curve["precision"], color=colours[name], marker="o", markersize=6)
        ends[name] = (float(curve["precision"].iloc[-1]), colours[name])
    _name_steps(ax, max(curves.values(), key=_area), along)
    ax.set(xlabel="recall", ylabel="precision", title=title_of(rows, shared=True))
    ax.set_xlim(0, min(1.0, float(rows["recall"].max()) * 1.12))
    ax.set_ylim(0, max(min(1.0, max(float(curve["precision"].max()) for curve in curves.values()) * 1.2), 1e-9))
    ax.grid(color="#E0E0E0")
    label_ends(ax, ends)
    words = "; ".join(f"{name} {_ends_of(curve, along)}" for name, curve in curves.items())
    return set_alt(
        ax, f"Precision against recall along {along.replace('_', '-')}{for_title(rows, shared=True)}: {words}."
    )


def plot_pareto(
    frame: pd.DataFrame, x: str = "tokens", y: str = "recall", ax: Axes | None = None, group: str = "all"
) -> Axes:
    """Every setting as a point, cost against gain, and the Pareto front: no setting gives more `y` for less `x`.

    `frame`: columns rank, top_k, threshold, `x` (less is better) and `y` (more is better). Up to 5 points of the
    front are labelled with their setting.
    """
    rows = with_series(group_rows(frame, ["rank", "top_k", "threshold", x, y], group))
    front = pareto_front(rows, x, y)
    ax, colours = new_axes(ax, height=6.2), series_colours(rows["series"])
    ends = {}
    for name, part in rows.groupby("series", sort=False):
        ax.plot(part[x], part[y], "o", color=colours[str(name)], alpha=0.25, markersize=6, markeredgewidth=0)
        ends[str(name)] = (float(part[y].max()), colours[str(name)])
    ax.step(front[x], front[y], where="post", color=BLACK, linewidth=2)
    for name, part in front.groupby("series", sort=False):
        ax.plot(part[x], part[y], "o", color=colours[str(name)], markeredgecolor=BLACK, markersize=9)
    ax.set(xlabel=f"{_NAMES.get(x, x)} a question", ylabel=_NAMES.get(y, y), title=title_of(rows, shared=True))
    ax.set_xlim(left=0)
    ax.set_ylim(0, max(float(rows[y].max()) * 1.12, 1e-9))
    labelled = _spread_rows(front[front[y] > 0], y, 5)
    named = [_name_setting(ax, row, x, y, setting_of(row, rows)) for _, row in labelled.iterrows()]
    label_ends(ax, ends)
    words = (
        f"{len(front)} of {len(rows)} settings are on the Pareto front: {'; '.join(named) or 'none finds anything'}."
    )
    head = f"{_NAMES.get(y, y)} against {_NAMES.get(x, x)}{for_title(rows, shared=True)}"
    return set_alt(ax, f"{head[0].upper()}{head[1:]}. {words}")


def pareto_front(frame: pd.DataFrame, x: str = "tokens", y: str = "recall") -> pd.DataFrame:
    """The rows of `frame` that no other row beats: none has less or equal `x` and more `y`. Cheapest first."""
    ordered = frame.sort_values([x, y], ascending=[True, False], kind="stable")
    before = ordered[y].astype(float).cummax().shift(fill_value=-np.inf)
    return ordered[ordered[y] > before]


# --- Pieces of the heat map ---------------------------------------------------------------------------------------


def _write_values(ax: Axes, values: np.ndarray[Any, np.dtype[np.float64]], metric: str) -> None:
    """Numbers in the cells of a small grid, lines of equal value over a large one."""
    form = "{:,.0f}" if metric == "tokens" else "{:.2f}"
    if _is_small(values.shape):
        middle = (values.min() + values.max()) / 2
        for (row, column), value in np.ndenumerate(values):
            colour = BLACK if value > middle else "white"
            ax.text(column + 0.5, row + 0.5, form.format(value), ha="center", va="center", color=colour)
    elif min(values.shape) > 1 and np.ptp(values) > 0:
        places = np.arange(values.shape[1]) + 0.5, np.arange(values.shape[0]) + 0.5
        levels = MaxNLocator(6).tick_values(*np.quantile(values, [0, 1]))
        inner = [level for level in levels if np.quantile(values, 0.05) < level < values.max()]
        if inner:
            lines = ax.contour(*places, values, levels=inner, colors="white", linewidths=2)
            ax.clabel(lines, fmt=lambda value: form.format(value), fontsize=14)


def _is_small(shape: tuple[int, ...]) -> bool:
    return shape[0] <= 8 and shape[1] <= 10


def _ticks(ax: Axes, table: pd.DataFrame) -> None:
    columns, rows = (np.arange(0, size, -(-size // 11)) for size in table.shape[::-1])
    names = [f"{value:.2f}" if np.isfinite(value) else "none" for value in table.index[rows]]
    ax.set_xticks(columns + 0.5, [str(value) for value in table.columns[columns]])
    ax.set_yticks(rows + 0.5, names)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _mark_best(ax: Axes, table: pd.DataFrame, rows: pd.DataFrame) -> str:
    if "f1" not in rows or rows["f1"].isna().all():
        return ""
    best = rows.iloc[int(rows["f1"].argmax())]
    x, y = list(table.columns).index(best["top_k"]), list(table.index).index(best["threshold"])
    if _is_small(table.shape):
        ax.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor=RED, linewidth=5, clip_on=False, zorder=5))
    else:
        ax.plot(x + 0.5, y + 0.5, "*", color=RED, markeredgecolor="white", markersize=24, clip_on=False)
    text = f"best F1 {best['f1']:.2f} at {setting_of(best, rows)}"
    mark = "□" if _is_small(table.shape) else "★"
    ax.text(0, 1.015, f"{mark} {text}", transform=ax.transAxes, va="bottom", color=ink(RED), weight="bold")
    return f"The {text}."


# --- Pieces of the curves -----------------------------------------------------------------------------------------


def _curve(part: pd.DataFrame, along: str) -> pd.DataFrame:
    """The points of one curve, from few retrieved to many."""
    if along == "top_k":
        return part[part["threshold"] == part["threshold"].min()].sort_values("top_k")
    return part[part["top_k"] == part["top_k"].max()].sort_values("threshold", ascending=False)


def _area(curve: pd.DataFrame) -> float:
    return float((curve["recall"] * curve["precision"]).max())


def _name_steps(ax: Axes, curve: pd.DataFrame, along: str) -> None:
    """Name a few points of the uppermost curve by what grows along it."""
    form, sign = ("{:.0f}", "k") if along == "top_k" else ("{:.2f}", "t")
    for _, row in _spread_rows(curve[curve["recall"] > 0], "recall", 5).iterrows():
        text = f"{sign} = {form.format(row[along])}"
        ax.annotate(
            text, (row["recall"], row["precision"]), (7, 10), textcoords="offset points", size=14, bbox=_PALE_BOX
        )


def _ends_of(curve: pd.DataFrame, along: str) -> str:
    first, last = curve.iloc[0], curve.iloc[-1]
    sign, form = ("top-k", "{:.0f}") if along == "top_k" else ("threshold", "{:.2f}")
    points = [
        f"{row['recall']:.2f}/{row['precision']:.2f} at {sign} {form.format(row[along])}" for row in (first, last)
    ]
    return "recall/precision from " + " to ".join(points)


def _spread_rows(rows: pd.DataFrame, column: str, count: int) -> pd.DataFrame:
    """At most `count` of the rows, first and last among them, about evenly spread over `column`."""
    values = rows[column].to_numpy(dtype=float)
    if not len(values):
        return rows
    wanted = np.linspace(values.min(), values.max(), count)
    return rows.iloc[np.unique([int(np.abs(values - value).argmin()) for value in wanted])]


def _name_setting(ax: Axes, row: pd.Series[Any], x: str, y: str, setting: str) -> str:
    far = row[x] > 0.2 * ax.get_xlim()[1]
    ax.annotate(
        setting,
        (row[x], row[y]),
        (-10, 6) if far else (10, -6),
        textcoords="offset points",
        ha="right" if far else "left",
        va="bottom" if far else "top",
        size=14,
        bbox=_PALE_BOX,
    )
    return f"{row['series']} {setting} with {row[y]:.2f} for {row[x]:.0f}"
