"""One look for every figure: large type, thick lines, colours that colour-blind readers can tell apart.

Palette: Okabe and Ito, Color Universal Design (2008). Chinese comes from the font in `data/fonts`.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from memlab.assets import data_path
from memlab.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, RED, PURPLE, GREY, PALE = "#0072B2", "#D55E00", "#CC79A7", "#8C8C8C", "#C8C8C8"

# A part of the prompt or a strategy keeps its colour from figure to figure.
PART_COLOURS = {"instructions": GREY, "history": BLUE, "memories": GREEN, "input": ORANGE, "tools": PURPLE}
_STRATEGY_COLOURS = {"no memory": GREY, "amnesia": GREY, "full": RED, "vector": GREEN}
_OTHER_COLOURS = (BLUE, ORANGE, PURPLE, SKY, BLACK, GREY)

RC: dict[Any, Any] = {
    "font.family": ["DejaVu Sans", "Noto Sans SC"],  # a list in font.sans-serif would not fall back by glyph
    "font.size": 15,
    "axes.titlesize": 18,
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.labelsize": 15,
    "xtick.labelsize": 14,
    "ytick.labelsize": 14,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "lines.linewidth": 3.5,
    "lines.markersize": 10,
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "figure.constrained_layout.h_pad": 0.12,
    "figure.constrained_layout.w_pad": 0.12,
    "savefig.dpi": 100,
    "text.parse_math": False,  # a learner's "$5 or $6" is a text, not a formula
}


def use_style() -> None:
    """Apply the style to Matplotlib, and let notebooks show an `Axes` as its figure, with alt text.

    Every plot function of memlab calls this once; call it yourself to style your own figures. Calling again
    restores the style. Raises ConfigurationError when the font file is missing.
    """
    import matplotlib

    _register_font()
    matplotlib.rcParams.update(RC)
    _register_formatter()


@cache
def ensure_style() -> None:
    """`use_style()` the first time only, so that a setting the learner changed later stays."""
    use_style()


@cache
def _register_font() -> None:
    from matplotlib import font_manager

    path = data_path("fonts", "NotoSansSC-GB2312.otf")
    if not path.is_file():
        raise ConfigurationError(f"the font data/fonts/{path.name} is missing: restore it from the repository")
    manager = font_manager.fontManager
    manager.addfont(str(path))
    # Bold Chinese takes the regular face; without this entry Matplotlib logs a warning for each bold label.
    manager.ttflist.append(dataclasses.replace(manager.ttflist[-1], weight=700))


def _register_formatter() -> None:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None:
        from matplotlib.axes import Axes

        shell.display_formatter.mimebundle_formatter.for_type(Axes, lambda ax, **_: mime_bundle(ax))


def new_axes(ax: Axes | None, width: float = 10.0, height: float = 5.6) -> Axes:
    """`ax`, or the axes of a new figure of that size in inches. The figure never enters pyplot's list,
    so nothing has to be closed."""
    ensure_style()
    return new_panels(1, width, height)[0] if ax is None else ax


def new_panels(count: int, width: float, height: float) -> list[Axes]:
    """`count` axes side by side in one new figure."""
    from matplotlib.figure import Figure

    ensure_style()
    figure = Figure(figsize=(width, height), layout="constrained")
    return list(figure.subplots(1, count, squeeze=False)[0])


def set_alt(ax: Axes, text: str) -> Axes:
    """Attach alt text; returns `ax`, so that a plot function can end with it."""
    ax.alt_text = text  # type: ignore[attr-defined]
    return ax


def describe(ax: Axes) -> str:
    """The alt text of the figure that `ax` belongs to: what a reader who can't see it should know."""
    texts = [getattr(each, "alt_text", "") for each in ax.figure.axes]
    return " ".join(text for text in texts if text) or "A figure without a description."


def png(ax: Axes) -> bytes:
    """The figure of `ax` as a PNG, the same bytes for the same figure on one machine."""
    buffer = io.BytesIO()
    ax.figure.savefig(buffer, format="png", metadata={"Software": None})  # type: ignore[union-attr]
    return buffer.getvalue()


def mime_bundle(ax: Axes) -> tuple[dict[str, str], dict[str, Any]]:
    """What Jupyter shows for `ax`: the picture, its alt text as metadata (nbconvert makes it the `alt` of the
    `<img>`) and as plain text (for readers without pictures)."""
    image, alt = png(ax), describe(ax)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:  # the inline backend would show a pyplot figure a second time
        pyplot.close(ax.figure)
    return {"image/png": base64.b64encode(image).decode(), "text/plain": alt}, {"image/png": {"alt": alt}}


def show_figure(ax: Axes) -> None:
    """Show the figure of `ax` in a notebook, with its alt text, anywhere in a cell."""
    from IPython.display import display

    bundle, metadata = mime_bundle(ax)
    display(bundle, metadata=metadata, raw=True)


def ink(colour: str) -> str:
    """A darker shade of `colour`, for text on white."""
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part * 0.68):02x}" for part in parts)


def strategy_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each strategy: full history is always red, vector memory green, no memory grey."""
    colours: dict[str, str] = {}
    spare = iter(_OTHER_COLOURS * 9)
    for name in dict.fromkeys(names):
        known = next((colour for key, colour in _STRATEGY_COLOURS.items() if key in name.lower()), None)
        colours[name] = known if known and known not in colours.values() else next(spare)
    return colours


def label_ends(ax: Axes, ends: Mapping[str, tuple[float, str]]) -> None:
    """Write names right of the axes, each at its height in its colour, moved apart where they touch.

    Call it last, when the limits of the axes are final. `ends`: name -> (y in data units, colour).
    """
    height = ax.get_position().height * ax.figure.get_figheight()  # type: ignore[union-attr]
    gap = 1.35 * RC["font.size"] / 72 / height  # one line of text, as a share of the axes
    to_axes = ax.transAxes.inverted()
    wanted = sorted((to_axes.transform(ax.transData.transform((0, y)))[1], name) for name, (y, _) in ends.items())
    places = _spread([float(place) for place, _ in wanted], gap)
    for place, (_, name) in zip(places, wanted, strict=True):
        ax.text(1.015, place, name, color=ink(ends[name][1]), transform=ax.transAxes, va="center", weight="bold")


def _spread(places: list[float], gap: float) -> list[float]:
    """Sorted places pushed up to be `gap` apart, then down from 1.0 where they left the axes."""
    spread: list[float] = []
    for place in places:
        spread.append(max(place, spread[-1] + gap) if spread else place)
    for index in range(len(spread) - 1, -1, -1):
        limit = spread[index + 1] - gap if index + 1 < len(spread) else 1.0
        spread[index] = min(spread[index], limit)
    return spread
