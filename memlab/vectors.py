"""Vector math: cosine similarity and top-k selection, on NumPy arrays and nothing else.

    cosine(a, b) = a·b / (|a| |b|),  in [-1, 1]: 1 same direction, 0 at right angles, -1 opposite.

Source: Manning, Raghavan, Schütze, Introduction to Information Retrieval (2008), section 6.3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.checks import check_type, fits
from memlab.errors import InvalidInputError

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.intp]

TIE = 1e-6
"""Scores closer than this are ties: one text embedded alone and in a batch differs by about 2e-7."""


def cosine_similarity(a: ArrayLike, b: ArrayLike) -> float:
    """The cosine of the angle between two vectors of shape (d,), a float in [-1, 1].

    Raises InvalidInputError for a zero, NaN or infinite vector, or two different dimensions.

    >>> cosine_similarity([1, 0], [1, 1])   # 45 degrees
    0.7071067811865475
    >>> cosine_similarity([3, 4], [-6, -8])
    -1.0
    """
    return float(cosine_matrix(np.atleast_2d(np.asarray(a)), np.atleast_2d(np.asarray(b)))[0, 0])


def cosine_matrix(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """All cosines between the rows of `a` (n, d) and of `b` (m, d): an array (n, m).

    float32 stays float32; integers become float64.
    Raises InvalidInputError naming the first row that is zero, NaN or infinite, or both dimensions if they differ.

    >>> cosine_matrix([[1.0, 0.0], [0.0, 2.0]], [[0.0, 1.0]])
    array([[0.],
           [1.]])
    """
    left, right = as_matrix(a, "a"), as_matrix(b, "b")
    if left.shape[1] != right.shape[1]:
        raise InvalidInputError(
            f"a has {left.shape[1]} dimensions, b has {right.shape[1]}: only vectors of one embedding model compare"
        )
    product = normalize(left, "a") @ normalize(right, "b").T
    return np.clip(product, -1.0, 1.0, out=product)


def normalize(vectors: ArrayLike, name: str = "vectors") -> FloatArray:
    """The rows of `vectors` (n, d), each divided by its length. A new array; the input stays as it is.

    Raises InvalidInputError naming the first row that is zero, NaN or infinite.
    """
    matrix = as_matrix(vectors, name)
    if matrix.dtype == np.float32:  # the usual case, in two passes
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
        if ((lengths > 1e-15) & (lengths < 1e15)).all():
            return matrix / lengths[:, None]
    # Dividing by the largest entry first keeps the squares of very large and very small numbers in range.
    largest = np.abs(matrix).max(axis=1, keepdims=True, initial=0.0)
    bad = ~(np.isfinite(largest) & (largest > 0)).ravel()
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInputError(f"{name}[{row}] is {_fault(matrix[row])}: it has no direction to compare")
    scaled = matrix / largest
    scaled /= np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    return scaled


def unit_vector(vector: ArrayLike, dimensions: int | None = None, name: str = "query") -> FloatArray:
    """`vector` (d,) at length 1. Raises InvalidInputError unless it is one finite, non-zero vector of `dimensions`."""
    array = np.asarray(vector)
    if array.ndim != 1 or (dimensions is not None and array.shape[0] != dimensions):
        raise InvalidInputError(f"{name} has shape {array.shape}; one vector of shape ({dimensions or 'd'},) is needed")
    if array.dtype == np.float32:  # the usual case, in one pass
        length = math.sqrt(array.dot(array))
        if 1e-15 < length < 1e15:
            return array if abs(length - 1.0) < 1e-7 else array / np.float32(length)
    return normalize(array[None, :], name)[0]


def as_matrix(vectors: ArrayLike, name: str = "vectors") -> FloatArray:
    """`vectors` as a floating array (n, d), without a copy where it is one already."""
    try:
        array = np.asarray(vectors)
    except ValueError:
        raise InvalidInputError(f"{name} holds rows of different lengths; all must have one dimension") from None
    if array.ndim != 2:
        raise InvalidInputError(f"{name} has shape {array.shape}; a matrix of shape (n, d) is needed")
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind not in "iub":
        raise InvalidInputError(f"{name} holds {array.dtype}; numbers are needed")
    return array.astype(np.float64)


def _fault(row: FloatArray) -> str:
    if np.isnan(row).any():
        return "not a number (NaN) somewhere"
    return "infinite somewhere" if np.isinf(row).any() else "a zero vector"


def select_top_k(scores: FloatArray, top_k: int, threshold: float | None = None) -> IntArray:
    """The positions of the best scores, best first: `score >= threshold`, at most `top_k`.

    `scores` (n,) stand oldest first. Scores within 1e-6 of each other are ties, and the newest goes first:
    a group of ties is opened by its best score and takes every score within 1e-6 of that.
    `top_k` larger than n returns all that pass. Raises InvalidInputError for a negative top_k or NaN scores.

    >>> select_top_k(np.array([0.9, 0.2, 0.9, 0.5]), top_k=3, threshold=0.3)
    array([2, 0, 3])
    """
    check_top_k(top_k, threshold)
    scores = np.asarray(scores)
    if scores.ndim != 1:
        raise InvalidInputError(f"scores have shape {scores.shape}; one score for each candidate, (n,), is needed")
    count = len(scores)
    if top_k == 0 or count == 0:
        return np.empty(0, dtype=np.intp)
    # partition finds the top_k best in linear time, the least of them first (and any NaN after them).
    best = (np.partition(scores, count - top_k)[count - top_k :] if top_k < count else scores).tolist()
    if any(map(math.isnan, best)):
        raise InvalidInputError("scores hold NaN: a vector was not a number")
    # A plain float is compared in the precision of the scores, so that 0.7 passes a threshold of 0.7 in float32, too.
    floor = -math.inf if threshold is None else float(threshold)
    if top_k < count:  # what ties with the last place competes for it; twice the tie leaves room for rounding
        floor = max(floor, best[0] - 2 * TIE)
    chosen = (scores >= floor).nonzero()[0]
    return np.array(_newest_first_in_ties(chosen.tolist(), scores[chosen].tolist())[:top_k], dtype=np.intp)


def check_top_k(top_k: int, threshold: float | None = None) -> None:
    """Refuse a top_k that is negative or no whole number, and a threshold that is no number or NaN."""
    if not fits(top_k, int) or top_k < 0:
        raise InvalidInputError(f"top_k is {top_k!r}; it must be a whole number, 0 or more")
    check_type("threshold", threshold, float, None)
    if threshold is not None and math.isnan(threshold):
        raise InvalidInputError("threshold is NaN; it must be a number, or None for no threshold")


def _newest_first_in_ties(positions: list[int], scores: list[float]) -> list[int]:
    order = sorted(zip(scores, positions, strict=True), reverse=True)
    result: list[int] = []
    group: list[int] = []
    opened = math.inf
    for score, position in order:
        if opened - score > TIE:
            result += sorted(group, reverse=True)
            group, opened = [], score
        group.append(position)
    return result + sorted(group, reverse=True)
