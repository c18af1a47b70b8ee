"""Names beside the points of a figure, moved until no name touches another one, a point or the frame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from memlab.show.style import GREY

_ANGLES = (0, 180, 35, -35, 145, -145, 65, -65, 115, -115)
_SHARES = (0.5, 0.3, 0.7, 0.1, 0.9)  # how much of a name above or below its point lies left of it
_RADII = (15, 30, 50, 72, 98, 128, 162, 200, 242, 288, 338, 392)  # points, from a point to its name
_NEAR = 20  # a name no farther away needs no line
_POINT = 8  # points, half of what a marker takes up

Box = tuple[float, float, float, float]  # left, bottom, right, top, in points
Spot = tuple[float, float]


@dataclass(frozen=True)
class PointLabel:
    """What to write beside the point (x, y), given in data units."""

    x: float
    y: float
    text: str
    colour: str
    weight: str = "normal"


def place_labels(
    ax: Axes,
    labels: Sequence[PointLabel],
    points: Sequence[Spot],
    lines: Sequence[tuple[Spot, Spot]] = (),
    size: float = 14,
) -> list[PointLabel]:
    """Write each label as near to its point as there is room, with a line where it is far; gives those written.

    `points`, `lines` (level or upright, from one end to the other): what labels keep off, in data units. Earlier
    labels choose first, and one that finds no room is left out. Call it when limits and all that stands outside of
    the axes are final.
    """
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    room = _Room(ax, points, lines)
    return [label for label in labels if _write(ax, label, room, size)]


def _write(ax: Axes, label: PointLabel, room: _Room, size: float) -> bool:
    style = {"size": size, "weight": label.weight, "color": label.colour, "ha": "left", "va": "bottom", "zorder": 6}
    at = (label.x, label.y)
    text = ax.annotate(label.text, at, (0, 0), textcoords="offset points", **style)  # type: ignore[arg-type]
    text.set_in_layout(False)
    extent = text.get_window_extent()
    found = room.find(at, extent.width / room.scale, extent.height / room.scale)
    if found is None:
        text.remove()
        return False
    corner, end = found
    text.set_position(corner)
    if end is not None:
        arrow = {"arrowstyle": "-", "color": GREY, "lw": 1.5, "shrinkA": 0, "shrinkB": _POINT}
        ax.annotate("", at, end, textcoords="offset points", arrowprops=arrow).set_in_layout(False)
    return True


class _Room:
    """What is taken: by points, lines, names and the lines to them. All in typographic points."""

    def __init__(self, ax: Axes, points: Sequence[Spot], lines: Sequence[tuple[Spot, Spot]]) -> None:
        self.ax, self.scale = ax, ax.figure.dpi / 72
        left, bottom, right, top = (float(edge) / self.scale for edge in ax.get_window_extent().extents)
        self.frame: Box = left, bottom, right, top
        self.points = [_around(self._place(point), _POINT) for point in points]
        self.taken = self.points + [_along(self._place(start), self._place(end)) for start, end in lines]
        self.names: list[Box] = []

    def _place(self, point: Spot) -> Spot:
        x, y = self.ax.transData.transform(point) / self.scale
        return float(x), float(y)

    def find(self, point: Spot, width: float, height: float) -> tuple[Spot, Spot | None] | None:
        """Where a name of that size goes, as an offset from its point, and the end of its line, if it needs one."""
        x, y = self._place(point)
        mine = _around((x, y), _POINT)
        in_the_way = [other for other in self.points if not _touch(other, mine)]
        for left, bottom in _corners(width, height):
            box = (x + left - 2, y + bottom, x + left + width + 2, y + bottom + height)
            end = min(max(0.0, left), left + width), min(max(0.0, bottom), bottom + height)
            line = _line((x, y), (x + end[0], y + end[1])) if math.hypot(*end) > _NEAR else []
            crossed = any(_touch(_around(spot, 1), other) for spot in line for other in (*in_the_way, *self.names))
            if not crossed and self._is_free(box):
                self.names.append(box)
                self.taken += [box, *(_around(spot, 1) for spot in line)]
                return (left, bottom), end if line else None
        return None

    def _is_free(self, box: Box) -> bool:
        left, bottom, right, top = self.frame
        inside = left <= box[0] and bottom <= box[1] and box[2] <= right and box[3] <= top
        return inside and not any(_touch(box, other) for other in self.taken)


def _corners(width: float, height: float) -> Iterator[Spot]:
    """Lower left corners of a name around its point, from near to far: beside it, then above and below."""
    for radius in _RADII:
        for angle in _ANGLES:
            dx, dy = radius * math.cos(math.radians(angle)), radius * math.sin(math.radians(angle))
            yield (dx if dx > 0 else dx - width), dy - height / 2
        for share in _SHARES:
            yield -share * width, radius - 4
            yield -share * width, 4 - radius - height


def _line(start: Spot, end: Spot) -> list[Spot]:
    """Spots along a line, its first and last bit left out."""
    return [(start[0] + t * (end[0] - start[0]), start[1] + t * (end[1] - start[1])) for t in np.linspace(0.1, 0.9, 25)]


def _around(spot: Spot, half: float) -> Box:
    return spot[0] - half, spot[1] - half, spot[0] + half, spot[1] + half


def _along(start: Spot, end: Spot, half: float = 2) -> Box:
    (left, right), (bottom, top) = (sorted(pair) for pair in zip(start, end, strict=True))
    return left - half, bottom - half, right + half, top + half


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
