"""Every figure: DataFrame or arrays in, `Axes` out, alt text attached (`describe(ax)`).

Each function draws on `ax`, or on a new figure when it is None, and raises InvalidInputError for input
that is empty, lacks a column or holds NaN. Token counts are what the caller measured or estimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from numpy.typing import ArrayLike

from memlab.errors import InvalidInputError
from memlab.show.parts import (
    check_frame,
    check_scores,
    check_values,
    draw_angle,
    draw_arrow,
    draw_strip,
    draw_windows,
    last_values,
    reason_of,
    shorten,
    strategy_lines,
    turn_axis,
)
from memlab.show.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PART_COLOURS,
    RED,
    SKY,
    ink,
    label_ends,
    new_axes,
    set_alt,
    strategy_colours,
)
from memlab.vectors import cosine_matrix, select_top_k

MAX_BARS = 20  # more rows than this are unreadable from the last row of a classroom


def plot_token_cost(frame: pd.DataFrame, ax: Axes | None = None, window: int | None = None) -> Axes:
    """Prompt tokens per turn, stacked by part of the prompt.

    `frame`: columns turn, part (instructions, history, memories, input, tools), tokens.
    `window`: context window in tokens, drawn as a line where the prompt comes near it.
    """
    check_frame(frame, ["turn", "part", "tokens"], numbers=["turn", "tokens"])
    table = frame.pivot_table(index="turn", columns="part", values="tokens", aggfunc="sum", fill_value=0)
    unknown = sorted(set(table.columns) - set(PART_COLOURS))
    if unknown:
        raise InvalidInputError(f"unknown part {', '.join(map(repr, unknown))}: use {', '.join(PART_COLOURS)}")
    parts = [part for part in PART_COLOURS if part in table and table[part].any()]
    ax = new_axes(ax)
    tops = table[parts].cumsum(axis=1)
    for part in parts:
        bottom = tops[part] - table[part]
        if len(table) > 30:
            ax.fill_between(table.index, bottom, tops[part], color=PART_COLOURS[part], step="mid", linewidth=0)
        else:
            ax.bar(table.index, table[part], bottom=bottom, width=0.8, color=PART_COLOURS[part])
    total = table.sum(axis=1)
    turn_axis(ax, "prompt tokens")
    ax.set_ylim(0, total.max() * 1.05)
    overflow = draw_windows(ax, {"window": window} if window else {}, {"": total})
    label_ends(ax, {p: (float(tops[p].iloc[-1] - table[p].iloc[-1] / 2), PART_COLOURS[p]) for p in parts})
    last = ", ".join(f"{part} {table[part].iloc[-1]:,.0f}" for part in parts)
    return set_alt(ax, f"Prompt tokens by part over {len(table)} turns. Last turn: {last}. {overflow}".strip())


def plot_cumulative_cost(frame: pd.DataFrame, ax: Axes | None = None, unit: str = "tokens") -> Axes:
    """Running total per strategy, one line each.

    `frame`: columns turn, strategy, total (summed up to that turn). `unit`: "tokens" or "usd".
    """
    if unit not in ("tokens", "usd"):
        raise InvalidInputError(f"unit is {unit!r}; it is 'tokens' or 'usd'")
    ax = strategy_lines(frame, "total", ax)
    ax.set_ylabel("total tokens" if unit == "tokens" else "total cost in US dollars")
    if unit == "usd":
        step = f"{ax.get_yticks()[1]:.8f}".rstrip("0")
        decimals = max(2, len(step.partition(".")[2]))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"${value:,.{decimals}f}"))
    mark = "{:,.0f} tokens" if unit == "tokens" else "${:,.4f}"
    return set_alt(ax, f"Running total by turn. {last_values(frame, 'total', mark)}")


def plot_tokens_by_strategy(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Prompt tokens of each turn, one line per strategy. `frame`: columns turn, strategy, tokens."""
    ax = strategy_lines(frame, "tokens", ax)
    ax.set_ylabel("prompt tokens")
    return set_alt(ax, f"Prompt tokens by turn. {last_values(frame, 'tokens', '{:,.0f} tokens')}")


def plot_context_windows(frame: pd.DataFrame, windows: Mapping[str, int], ax: Axes | None = None) -> Axes:
    """Prompt tokens per turn against the context windows, with the first turn that overflows each.

    `frame`: columns turn, tokens, and optionally strategy (one line each); rows of one turn are added up.
    `windows`: name -> size in tokens.
    """
    named = frame if "strategy" in frame else frame.assign(strategy="")
    check_frame(named, ["turn", "strategy", "tokens"], numbers=["turn", "tokens"])
    summed = named.groupby(["turn", "strategy"], sort=False, as_index=False)["tokens"].sum()
    ax = strategy_lines(pd.DataFrame(summed), "tokens", ax, room=1.25)
    ax.set_ylabel("prompt tokens")
    totals = {str(name): rows.set_index("turn")["tokens"] for name, rows in summed.groupby("strategy", sort=False)}
    return set_alt(ax, f"Prompt tokens by turn against context windows. {draw_windows(ax, windows, totals)}")


def plot_similarity_distribution(
    related: ArrayLike,
    unrelated: ArrayLike,
    ax: Axes | None = None,
    title: str = "",
    threshold: float | None = None,
) -> Axes:
    """How the cosine scores of related and of unrelated pairs are spread.

    `related`, `unrelated`: scores, shapes (n,) and (m,). With a `threshold`, the labels say what it keeps.
    """
    groups = {
        "unrelated": (check_scores(unrelated, "unrelated"), ORANGE),
        "related": (check_scores(related, "related"), BLUE),
    }
    together = np.concatenate([scores for scores, _ in groups.values()])
    low, high = min(0.0, float(together.min())), float(together.max())
    bins = np.linspace(low - 0.02, high + 0.02, 31).tolist()
    ax, sentences = new_axes(ax), []
    first = min(groups, key=lambda name: float(np.median(groups[name][0])))
    for name, (scores, colour) in groups.items():
        heights = np.histogram(scores, bins, density=True)[0]
        ax.stairs(heights, bins, color=colour, alpha=0.55, fill=True)
        text = name if threshold is None else f"{name}: {np.mean(scores >= threshold):.0%} kept"
        peak = int(np.argmax(heights))
        side = "right" if name == first else "left"  # away from each other
        ax.text(bins[peak + 1], heights[peak], f"{text} \n", ha=side, color=ink(colour), weight="bold")
        sentences.append(f"{text}, median {np.median(scores):.2f}.")
    ax.set_ylim(0, ax.get_ylim()[1] * 1.2)
    if threshold is not None:
        ax.axvline(threshold, color=BLACK, linestyle="--")
        ax.text(threshold, ax.get_ylim()[1], f" threshold {threshold:g}", va="top")
    ax.set(xlabel="cosine similarity", ylabel="pairs (density)", title=title, yticks=[])
    return set_alt(ax, " ".join([f"{title}: distribution of cosine scores.".lstrip(": "), *sentences]))


def plot_similarities(
    texts: Sequence[str],
    scores: ArrayLike,
    threshold: float | None = None,
    top_k: int | None = None,
    ax: Axes | None = None,
    question: str = "",
) -> Axes:
    """Each text's cosine with the question, best first: which are kept, which dropped, and why.

    `scores`: shape (len(texts),). Kept are `score >= threshold`, at most `top_k`. At most 20 bars are shown.
    """
    values = check_scores(scores, "scores")
    if len(values) != len(texts):
        raise InvalidInputError(f"{len(texts)} texts but {len(values)} scores: one score for each text is needed")
    order = select_top_k(values, len(values))
    kept = set(select_top_k(values, len(values) if top_k is None else top_k, threshold).tolist())
    shown = order[:MAX_BARS]
    ax = new_axes(ax, height=1.9 + 0.42 * len(shown))
    for row, index in enumerate(shown.tolist()):
        reason = reason_of(index in kept, float(values[index]), threshold, top_k)
        colour = {"kept": GREEN, "below threshold": PALE}.get(reason, ORANGE)
        ax.barh(row, values[index], color=colour, hatch="" if index in kept else "//", edgecolor="white")
        near = threshold is not None and abs(values[index] - threshold) < 0.005  # 0.299 is not "0.30, below 0.3"
        ax.annotate(
            f"{values[index]:.{3 if near else 2}f}  {reason}",
            (max(values[index], 0), row),
            (8, 0),
            textcoords="offset points",
            va="center",
            color=ink(GREY if colour == PALE else colour),
            weight="bold" if index in kept else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},  # the threshold line passes behind it
        )
    ax.set_yticks(range(len(shown)), [shorten(texts[index], 38) for index in shown], fontsize=15)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlim(min(0.0, float(values.min())) * 1.1, max(float(values.max()), threshold or 0.0, 0.05) * 1.45)
    ax.set_xticks([tick for tick in ax.get_xticks() if ax.get_xlim()[0] <= tick <= 1])  # no cosine beyond 1
    if threshold is not None:
        ax.axvline(threshold, color=BLACK, linestyle="--", linewidth=2.5)
    hidden = f", {len(values) - len(shown)} lower ones not shown" if len(values) > len(shown) else ""
    ax.set_xlabel(
        f"cosine similarity{hidden}" + (f" (dashed: threshold {threshold:g})" if threshold is not None else "")
    )
    ax.set_title(shorten(question, 60))
    best = "; ".join(f"{texts[i]} ({values[i]:.2f})" for i in order.tolist() if i in kept) or "none"
    asked = f"Question: {question} " if question else ""
    return set_alt(ax, f"{asked}Kept {len(kept)} of {len(values)} texts, best first: {best}.")


def plot_vectors_2d(vectors: ArrayLike, labels: Sequence[str], ax: Axes | None = None) -> Axes:
    """Vectors in the plane as arrows from the origin, with the angle and cosine of the first two.

    `vectors`: shape (n, 2), none of length zero; `labels`: n names.
    """
    arrows = np.asarray(vectors, dtype=float)
    if arrows.ndim != 2 or arrows.shape[1] != 2 or not len(arrows):
        raise InvalidInputError(f"vectors have shape {arrows.shape}; (n, 2) is needed, with n at least 1")
    if len(labels) != len(arrows):
        raise InvalidInputError(f"{len(arrows)} vectors but {len(labels)} labels: one label for each is needed")
    cosines = cosine_matrix(arrows, arrows)  # refuses NaN and zero vectors
    ax = new_axes(ax, width=7, height=6.4)
    reach = float(np.abs(arrows).max())
    colours = (BLUE, RED, GREEN, ORANGE, SKY, BLACK)
    for index, ((x, y), label) in enumerate(zip(arrows.tolist(), labels, strict=True)):
        draw_arrow(ax, x, y, label, colours[index % len(colours)], reach)
    (left, bottom), (right, top) = arrows.min(axis=0), arrows.max(axis=0)
    ax.set_xlim(min(left, 0) - 0.3 * reach, max(right, 0) + 0.3 * reach)
    ax.set_ylim(min(bottom, 0) - 0.3 * reach, max(top, 0) + 0.3 * reach)
    ax.set_aspect("equal")
    ax.axhline(0, color=GREY, linewidth=1)
    ax.axvline(0, color=GREY, linewidth=1)
    text = f"Arrows from the origin: {', '.join(labels)}."
    if len(arrows) > 1:
        text += " " + draw_angle(ax, arrows[0], arrows[1], float(cosines[0, 1]), 0.35 * reach)
    return set_alt(ax, text)


def plot_similarity_matrix(matrix: ArrayLike, labels: Sequence[str], ax: Axes | None = None) -> Axes:
    """All cosines of n texts as a heat map with values. `matrix`: shape (n, n); `labels`: n texts."""
    values = np.asarray(matrix, dtype=float)
    if values.shape != (len(labels), len(labels)) or not len(labels):
        raise InvalidInputError(
            f"matrix has shape {values.shape}, but there are {len(labels)} labels: (n, n) and n needed"
        )
    if not np.isfinite(values).all():
        raise InvalidInputError("matrix holds NaN or infinite values; every cosine must be a number")
    size = len(labels)
    ax = new_axes(ax, width=5.4 + 0.75 * size, height=1.8 + 0.68 * size)
    ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        colour = "white" if abs(value) > 0.6 else BLACK
        ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
    ax.set_xticks(range(size), [str(number) for number in range(1, size + 1)])
    ax.set_yticks(range(size), [f"{shorten(label, 30)}  {number}" for number, label in enumerate(labels, 1)])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    alt = f"Heat map of the cosine similarities of {size} texts."
    if size > 1:
        one, other = divmod(int(np.argmax(values - 3 * np.eye(size))), size)
        alt += f" Closest pair: {labels[one]} and {labels[other]}, {values[one, other]:.2f}."
    return set_alt(ax, alt)


def plot_kept_by_reducer(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Which messages each strategy still sends: a strip of tiles per strategy, facts standing out.

    `frame`: a row per message; columns turn, strategy, status ("sent", "dropped"), kind ("fact", "other").
    """
    check_frame(frame, ["turn", "strategy", "status", "kind"], numbers=["turn"])
    check_values(frame, "status", ["sent", "dropped"])
    check_values(frame, "kind", ["fact", "other"])
    names = list(dict.fromkeys(frame["strategy"]))
    ax = new_axes(ax, height=2.2 + 0.9 * len(names))
    sentences = []
    for row, name in enumerate(names):
        messages = frame[frame["strategy"] == name].sort_values("turn", kind="stable")
        sentences.append(draw_strip(ax, row, str(name), messages))
    ax.set_yticks(range(len(names)), names, fontsize=15)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    turn_axis(ax, "")
    key = [
        (0, "■ fact sent", GREEN),
        (0.23, "■ fact forgotten", RED),
        (0.55, "■ rest sent", SKY),
        (0.8, "■ rest dropped", GREY),
    ]
    for place, text, colour in key:
        ax.text(place, 1.02, text, color=ink(colour), transform=ax.transAxes, va="bottom", weight="bold")
    return set_alt(ax, "Messages each strategy still sends. " + " ".join(sentences))


def plot_probe_answers(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The share of probe questions answered, with its interval, per strategy.

    `frame`: columns strategy, share_answered, low, high; shares and the ends of the interval lie in [0, 1].
    """
    columns = ["share_answered", "low", "high"]
    check_frame(frame, ["strategy", *columns], numbers=columns)
    if not ((frame["low"] <= frame["share_answered"]) & (frame["share_answered"] <= frame["high"])).all():
        raise InvalidInputError("each row needs low <= share_answered <= high")
    if frame["low"].min() < 0 or frame["high"].max() > 1:
        raise InvalidInputError("shares and their intervals must lie between 0 and 1")
    ax = new_axes(ax, height=1.8 + 0.75 * len(frame))
    colours = strategy_colours(frame["strategy"].astype(str))
    rows = list(zip(frame["strategy"].astype(str), *(frame[column] for column in columns), strict=True))
    for row, (name, share, low, high) in enumerate(rows):
        ax.plot([low, high], [row, row], color=colours[name], linewidth=6, solid_capstyle="round")
        ax.plot(share, row, "o", color=colours[name], markersize=17)
        ax.text(share, row - 0.2, f"{share:.0%}", ha="center", va="bottom", weight="bold")
    ax.set_yticks(range(len(frame)), frame["strategy"], fontsize=15)
    ax.set(xlim=(-0.03, 1.03), ylim=(len(frame) - 0.5, -0.75), xlabel="share of probe questions answered")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    ax.grid(axis="x", color="#E0E0E0")
    shares = [f"{name} {share:.0%} (interval {low:.0%} to {high:.0%})" for name, share, low, high in rows]
    return set_alt(ax, f"Share of probe questions answered: {'; '.join(shares)}.")
