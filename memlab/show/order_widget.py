"""The order player: go from visit to visit, under one strategy or two side by side, and see why an order repeats."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import ipywidgets as widgets
from matplotlib.axes import Axes

from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.experiments.orders.visits import Visit
from memlab.messages import Message, Text, ToolCall
from memlab.show.explore import Explorer
from memlab.show.order_panel import HEIGHT, WIDTH, draw_visit
from memlab.show.style import new_panels
from memlab.trace import part_of

Runs = Mapping[str, Sequence[Visit]]

_PRE = "white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 0.8em; max-height: 18em; overflow-y: auto;"


def order_figure(runs: Runs, visit: int = 1) -> Axes:
    """One visit under one strategy, or under two side by side: the static twin of `order_player`.

    `runs`: the name of a strategy -> its visits, from `memlab.experiments.repeated_order.replay`. `visit`: the number
    of a visit, which all of them have. Returns the left axes; `describe` covers both.
    """
    found = {name: _visit_of(name, visits, visit) for name, visits in _checked(runs).items()}
    panels = new_panels(len(found), WIDTH * len(found), HEIGHT)
    for ax in panels:
        ax.set_axis_off()
    panels[0].figure.draw_without_rendering()  # type: ignore[union-attr]  # texts are fitted to the final layout
    for ax, (name, each) in zip(panels, found.items(), strict=True):
        draw_visit(ax, name, runs[name], each)
    return panels[0]


def order_player(runs: Runs, visit: int | None = None) -> Explorer:
    """Play the visits of one strategy, or of two side by side; the whole prompts unfold below.

    `runs` as in `order_figure`; `visit`: the number to begin with, by default the first.

        order_player({name: replay(name, "Alice") for name in ("vector, top 3", "order log + tastes")})
    """
    return _OrderPlayer(_checked(runs), visit)


class _OrderPlayer(Explorer):
    def __init__(self, runs: Runs, visit: int | None) -> None:
        numbers = sorted(set.intersection(*({each.number for each in visits} for visits in runs.values())))
        if not numbers:
            raise InvalidInputError(f"{' and '.join(runs)} have no visit number in common")
        start = numbers[0] if visit is None else visit
        for name, visits in runs.items():
            _visit_of(name, visits, start)
        self.runs = runs
        self.prompts = widgets.Accordion([widgets.HTML() for _ in runs])
        reach = {"value": start, "min": numbers[0], "max": numbers[-1]}
        slider = widgets.IntSlider(**reach, description="Visit", layout={"width": "34em"})
        self.play = widgets.Play(**reach, interval=2500, tooltip="Play the visits")
        widgets.link((self.play, "value"), (slider, "value"))
        super().__init__(lambda visit: order_figure(runs, visit), {"visit": slider})
        self.children = [widgets.HBox([self.play, slider]), self.picture, self.caption, self.prompts]

    def redraw(self) -> None:
        super().redraw()
        number = self.controls["visit"].value
        for place, (name, visits) in enumerate(self.runs.items()):
            found = next((each for each in visits if each.number == number), None)
            self.prompts.children[place].value = prompt_html(found) if found else ""
            count = len(found.prompt) if found else 0
            self.prompts.set_title(place, f"The prompt of visit {number} under “{name}”, {count} messages")


def prompt_html(visit: Visit) -> str:
    """All messages that the model had when it decided on the order, each with where it came from."""
    if not visit.prompt:
        return f"<p>There is no prompt: the run failed with {html.escape(visit.error or 'no request')}.</p>"
    return "".join(map(_message_html, visit.prompt))


def _message_html(message: Message) -> str:
    said = []
    for content in message.contents:
        if isinstance(content, Text):
            said.append(content.text)
        else:
            said.append(f"{content.name}({content.arguments})" if isinstance(content, ToolCall) else content.result)
    head = f"{message.role} ({part_of(message)})"
    return f'<b>{html.escape(head)}</b><pre style="{_PRE}">{html.escape(chr(10).join(said))}</pre>'


def _checked(runs: Runs) -> Runs:
    if not isinstance(runs, Mapping):
        raise InvalidTypeError(f"runs is a {type(runs).__name__}; pass {{name of the strategy: its visits}}")
    if len(runs) not in (1, 2):
        raise InvalidInputError(f"runs holds {len(runs)} strategies; pass one, or two to compare")
    if empty := [name for name, visits in runs.items() if not visits]:
        raise InvalidInputError(f"{', '.join(empty)} has no visits; make some with `replay`")
    return runs


def _visit_of(name: str, visits: Sequence[Visit], number: int) -> Visit:
    found = next((each for each in visits if each.number == number), None)
    if found is None:
        there = ", ".join(str(each.number) for each in visits)
        raise InvalidInputError(f"{name} has no visit {number!r}; it has {there}")
    return found
