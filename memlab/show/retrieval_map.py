"""Where memories lie, and where the evidence stands: a map of vectors, and a histogram of ranks."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from numpy.typing import ArrayLike

from memlab.errors import InvalidInputError
from memlab.show.parts import shorten
from memlab.show.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    ink,
    new_axes,
    set_alt,
)
from memlab.vectors import FloatArray, IntArray, normalize, unit_vector

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
_BINS = {"1": 1, "2": 2, "3": 3, "4-6": 6, "7-10": 10, "11-20": 20, "> 20": np.inf}


def plot_memory_map(
    vectors: ArrayLike,
    labels: Sequence[str],
    question: ArrayLike | None = None,
    neighbours: Sequence[int] | IntArray | None = None,
    ax: Axes | None = None,
    title: str = "",
    texts: Sequence[str] | None = None,
) -> Axes:
    """The memory space on a plane: the first two principal components of the vectors at length 1.

    `vectors` (n, d), n at least 2; `labels`: n scopes or sessions, which give the colours; `question`: a vector
    (d,); `neighbours`: positions of its nearest memories, joined to it by lines; `texts`: n texts, which name the
    neighbours. More than 6 labels share a scale of colours, in the order of their first appearance.
    """
    points, query, share = _project(vectors, question)
    near = _checked_map(points, labels, query, neighbours, texts)
    ax, colours = new_axes(ax, height=6.6), _label_colours(labels)
    names = np.asarray(labels, dtype=object)
    for name, colour in colours.items():
        ax.plot(*points[names == name].T, "o", color=colour, alpha=0.75, markersize=9, markeredgecolor="white")
    if query is not None:
        _draw_question(ax, query, points[near], [texts[place] for place in near] if texts else [])
    ax.set(xlabel=f"component 1 ({share[0]:.0%} of the variance)", ylabel=f"component 2 ({share[1]:.0%})")
    ax.set(title=shorten(title, 60), xticks=[], yticks=[])
    _label_groups(ax, colours)
    asked = f" A question and its {len(near)} neighbours are marked." if query is not None else ""
    return set_alt(
        ax,
        f"{title + ': ' if title else ''}{len(points)} memories on a plane that shows {share.sum():.0%} of their "
        f"variance, coloured by {len(colours)} labels: {', '.join(map(str, colours))}.{asked}",
    )


def plot_evidence_ranks(ranks: ArrayLike, ax: Axes | None = None, title: str = "", top_k: int | None = None) -> Axes:
    """At which place the evidence stands: how often at 1, 2, 3, 4-6, 7-10, 11-20, beyond 20, never.

    `ranks`: whole numbers (n,) from `memlab.experiments.sweep.evidence_ranks`, 0 for never. With a `top_k`, the bars
    within it are green, and the title says what share of all they are.
    """
    values = _checked_ranks(ranks)
    bins = np.searchsorted(list(_BINS.values()), values)
    counts = np.bincount(np.where(values == 0, len(_BINS), bins), minlength=len(_BINS) + 1)
    names, lasts = [*_BINS, "never"], [*_BINS.values(), np.inf]
    ax = new_axes(ax)
    inside = [top_k is not None and last <= top_k for last in lasts]
    colours = [GREEN if within else BLUE if top_k is None else ORANGE for within in inside]
    ax.bar(names, counts, color=colours, width=0.8)
    for place, count in enumerate(counts.tolist()):
        ax.text(place, count, f"{count / len(values):.0%}", ha="center", va="bottom", weight="bold")
    hit = "" if top_k is None else f"{np.mean((values > 0) & (values <= top_k)):.0%} within the first {top_k}"
    ax.set(xlabel="place of the evidence", ylabel=f"how often (of {len(values)})", ylim=(0, counts.max() * 1.15))
    ax.set_title(" · ".join(part for part in (title, hit) if part))
    words = ", ".join(f"{name}: {count}" for name, count in zip(names, counts.tolist(), strict=True))
    head = f"{title + ': ' if title else ''}place of the evidence, {len(values)} times"
    return set_alt(ax, f"{head}. {words}.{' ' + hit + '.' if hit else ''}")


# --- Pieces of the map --------------------------------------------------------------------------------------------


def _project(vectors: ArrayLike, question: ArrayLike | None) -> tuple[FloatArray, FloatArray | None, FloatArray]:
    """Places of the vectors (n, 2) and of the question (2,), and the shares of variance the two axes show."""
    from sklearn.decomposition import PCA

    units = normalize(vectors)
    if len(units) < 2 or units.shape[1] < 2:
        raise InvalidInputError(f"vectors have shape {units.shape}; a map needs (n, d) with both at least 2")
    pca = PCA(n_components=2, svd_solver="full")
    with np.errstate(invalid="ignore"):  # equal vectors vary not at all
        points = pca.fit_transform(units)
    share = np.nan_to_num(pca.explained_variance_ratio_)
    if question is None:
        return points, None, share
    return points, pca.transform(unit_vector(question, units.shape[1], "question")[None, :])[0], share


def _checked_map(
    points: FloatArray,
    labels: Sequence[str],
    query: FloatArray | None,
    neighbours: Sequence[int] | IntArray | None,
    texts: Sequence[str] | None,
) -> IntArray:
    for what, given in (("labels", labels), ("texts", texts)):
        if given is not None and len(given) != len(points):
            raise InvalidInputError(f"{len(points)} vectors but {len(given)} {what}: one for each vector is needed")
    near = np.asarray([] if neighbours is None else neighbours, dtype=np.intp)
    if len(near) and query is None:
        raise InvalidInputError("neighbours need the question that they are near to; pass question=")
    if len(near) and (near.min() < 0 or near.max() >= len(points)):
        raise InvalidInputError(f"neighbours are {near.tolist()}; they must be positions from 0 to {len(points) - 1}")
    return near


def _label_colours(labels: Sequence[str]) -> dict[str, str]:
    names = list(dict.fromkeys(labels))
    if len(names) <= len(_COLOURS):
        return dict(zip(names, _COLOURS, strict=False))
    scale = matplotlib.colormaps["viridis"](np.linspace(0, 0.92, len(names)))
    return {name: to_hex(colour) for name, colour in zip(names, scale, strict=True)}


def _label_groups(ax: Axes, colours: dict[str, str]) -> None:
    """The names at the right, in their order; of many labels the first, the last and some between."""
    names = list(colours)
    some = names
    if len(names) > len(_COLOURS):
        some = [names[place] for place in np.unique(np.linspace(0, len(names) - 1, 7).astype(int))]
    for place, name in enumerate(some):
        text = f"● {shorten(str(name), 18)}"
        ax.text(1.015, 0.96 - 0.09 * place, text, color=ink(colours[name]), transform=ax.transAxes, weight="bold")


def _draw_question(ax: Axes, query: FloatArray, near: FloatArray, texts: Sequence[str]) -> None:
    for place in near:
        ax.plot([query[0], place[0]], [query[1], place[1]], color=BLACK, linewidth=2)
        ax.plot(*place, "o", markersize=15, markerfacecolor="none", markeredgecolor=BLACK, markeredgewidth=2.5)
    ax.plot(*query, "*", color=BLACK, markeredgecolor="white", markersize=28, zorder=5)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
    for place, text in zip(near, texts, strict=False):
        ax.annotate(shorten(text, 34), (place[0], place[1]), (10, 8), textcoords="offset points", size=14, bbox=box)
    ax.annotate("question", (query[0], query[1]), (14, -18), textcoords="offset points", weight="bold", bbox=box)


def _checked_ranks(ranks: ArrayLike) -> IntArray:
    values = np.asarray(ranks)
    if values.ndim != 1 or not len(values):
        raise InvalidInputError(f"ranks have shape {values.shape}; (n,) is needed, with n at least 1")
    if not np.issubdtype(values.dtype, np.integer) or values.min() < 0:
        raise InvalidInputError("ranks must be whole numbers: 1 for the first place, 0 for never")
    return values.astype(np.intp)
