"""One visit of the ordering agent as a panel: what was retrieved, what the prompt held, what was ordered."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from memlab.experiments.orders.reading import shows_last_order, shows_texts, type_of, visible_orders
from memlab.experiments.orders.reasons import explain
from memlab.experiments.orders.visits import Customer, Visit
from memlab.experiments.regulars import Regular, load_regulars
from memlab.experiments.takeout import LANGUAGES
from memlab.show.orders import TYPES
from memlab.show.parts import shorten
from memlab.show.style import BLACK, BLUE, GREY, RED, ink, set_alt
from memlab.trace import Search

WIDTH, HEIGHT = 7.8, 9.7
"""A panel in inches; its data units are inches, from the upper left corner."""

_ROWS, _ROW = 10, 0.37  # lines for what was retrieved, and the height of one
_SEARCHES = 5
_TOLD = 8  # records that the alt text names
_END = WIDTH - 0.2
_VALUES = 1.75  # where the values in the lower half begin


def draw_visit(ax: Axes, name: str, visits: Sequence[Visit], visit: Visit) -> None:
    """Fill `ax`, whose layout is final, and describe it."""
    ax.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    _write(ax, 0, 0.25, name, 5.3, size=20, weight="bold")
    _write(ax, 5.5, 0.25, "■ repeat", _END, color=ink(RED), weight="bold")
    _write(ax, 6.75, 0.25, "□ new", _END, color=ink(BLUE), weight="bold")
    _draw_strip(ax, visits, visit)
    who = f"Visit {visit.number}, {visit.customer.id}: “{visit.request}”"
    _write(ax, 0, 1.6, who, _END, size=16)
    _draw_retrieved(ax, visit, 2.2)
    _draw_outcome(ax, visit, 2.45 + _ROWS * _ROW)
    set_alt(ax, in_words(name, visits, visit))


def is_repeat(visit: Visit) -> bool:
    """Whether a visit orders the same dishes as the one before."""
    return bool(visit.previous) and visit.dishes == visit.previous[0]


def _write(ax: Axes, x: float, y: float, text: str, right: float, **style: Any) -> Text:
    """A line of text from `x`, cut where it would pass `right`."""
    text = "".join(letter for letter in text.replace("✅", "✓") if letter <= "\uffff")  # the fonts have no emoji
    drawn = ax.text(x, y, " ".join(text.split()), va="center", **style)
    drawn.set_in_layout(False)
    (start, _), (end, _) = ax.transData.transform([(x, y), (right, y)])
    width = 2 * len(text)
    while width > 2 and drawn.get_window_extent().width > end - start:
        width = min(width - 1, int(width * (end - start) / drawn.get_window_extent().width))
        drawn.set_text(shorten(text, width))
    return drawn


# --- the strip of all visits ---------------------------------------------------------------------------------------


def _draw_strip(ax: Axes, visits: Sequence[Visit], now: Visit) -> None:
    step = min(0.5, _END / len(visits))
    for place, visit in enumerate(visits):
        colour = GREY if not visit.order else RED if is_repeat(visit) else BLUE
        here = visit is now
        face = colour if is_repeat(visit) else "white"
        edge, line = (BLACK, 4) if here else (colour, 2)
        ax.add_patch(
            Rectangle((place * step + 0.03, 0.7), 0.84 * step, 0.42, facecolor=face, edgecolor=edge, linewidth=line)
        )
        if step > 0.38:
            letter = "white" if is_repeat(visit) else ink(colour)
            ax.text(place * step + 0.03 + 0.42 * step, 0.91, str(visit.number), ha="center", va="center", color=letter)


# --- what was retrieved --------------------------------------------------------------------------------------------


def _draw_retrieved(ax: Axes, visit: Visit, top: float) -> None:
    history = sum(message.source.kind == "history" for message in visit.prompt)
    if not visit.searches:
        _write(ax, 0, top, "No memory is searched.", _END, weight="bold")
        _write(ax, 0, top + _ROW, f"Messages of the history in the prompt: {history}", _END)
    searches = visit.searches[:_SEARCHES]
    wanted = sum(1 + len(search.kept) for search in searches)
    share = _ROWS if wanted <= _ROWS else _ROWS // len(searches)
    for search in searches:
        top = _draw_search(ax, visit, search, top, share)


def _draw_search(ax: Axes, visit: Visit, search: Search, top: float, lines: int) -> float:
    """The records that one search kept, on so many lines; gives where the next one starts."""
    kept = search.kept.tolist()
    outcome = f"kept {len(kept)} of {len(search.candidates)}" if len(search.candidates) else "nothing to search yet"
    head = f"{search.source_id}: {search.rank}, top {search.top_k}, {outcome}"
    _write(ax, 0, top, head, _END, weight="bold")
    shown = kept if len(kept) < lines else kept[: lines - 2]
    for place in shown:
        top += _ROW
        word, colour = TYPES[type_of(search.candidates[place], visit)]
        ax.add_patch(Rectangle((0, top - 0.12), 0.2, 0.24, color=colour))
        _write(ax, 0.32, top, f"{search.scores[place]:.2f}", 1)
        _write(ax, 0.95, top, word, 2.6, color=ink(colour), weight="bold")
        _write_record(ax, top, search.candidates[place].text, visit)
    if rest := kept[len(shown) :]:
        top += _ROW
        types = Counter(TYPES[type_of(search.candidates[place], visit)][0] for place in rest)
        more = ", ".join(f"{count} × {word}" for word, count in types.most_common())
        _write(ax, 0.32, top, f"… and {len(rest)} more: {more}", _END, color=ink(GREY))
    return top + _ROW


def _write_record(ax: Axes, y: float, text: str, visit: Visit) -> None:
    """A record's text; of one that is too long, from the constraint or the first dish on that it names."""
    drawn = _write(ax, 2.65, y, text, _END)
    rules = _rules_of(visit.customer)
    names = [*(rules[1] if rules else ()), *(dish.name for dish in visit.kitchen.dishes)]
    start = min((place for name in names if (place := text.lower().find(name.lower())) >= 0), default=0)
    if start and drawn.get_text().endswith("…"):
        drawn.remove()
        _write(ax, 2.65, y, f"… {text[start:]}", _END)


# --- what came of it -----------------------------------------------------------------------------------------------


def _draw_outcome(ax: Axes, visit: Visit, top: float) -> None:
    ax.plot([0, _END], [top - 0.25] * 2, color="#D0D0D0", linewidth=1.5)
    seen = visible_in_prompt(visit)
    _write(ax, 0, top, "in the prompt", _VALUES, color=ink(GREY))
    for x, (what, shown) in zip((_VALUES, 3.75), seen.items(), strict=True):
        mark, colour = ("–", GREY) if shown is None else ("✓", BLUE) if shown else ("✗", RED)
        _write(ax, x, top, f"{mark} {what}", _END, color=ink(colour), weight="bold")
    usage = visit.response.usage_details if visit.response else {}
    _write(ax, 5.75, top, f"{usage.get('input_token_count', 0):,} tokens", _END)
    last = ", ".join(dish.name for dish in visit.kitchen.dishes if visit.previous and dish.id in visit.previous[0])
    _write_dishes(ax, top + 0.42, "last order", last or "none yet")
    _write_dishes(ax, top + 1.17, "ordered now", ordered(visit))
    x = 0.0
    for mark, colour in verdicts(visit):
        x = _draw_mark(ax, x, top + 2.0, mark, colour)
    why = explain(visit)
    if why:
        _write(ax, 0, top + 2.5, f"why: {why.reason}", _END, weight="bold")
        for number, line in enumerate(textwrap.wrap(_detail(visit).replace(" × ", "\u00a0×\u00a0"), 62)[:2]):
            _write(ax, 0, top + 2.85 + 0.35 * number, line, _END)


def _write_dishes(ax: Axes, y: float, head: str, dishes: str) -> None:
    """An order on one line, or on two where it is too long."""
    _write(ax, 0, y, head, _VALUES, color=ink(GREY))
    drawn, names = _write(ax, _VALUES, y, dishes, _END), dishes.split(", ")
    if drawn.get_text().endswith("…") and len(names) > 1:
        drawn.remove()
        half = (len(names) + 1) // 2
        for number, part in enumerate((names[:half], names[half:])):
            _write(ax, _VALUES, y + 0.34 * number, ", ".join(part), _END)


def _draw_mark(ax: Axes, x: float, y: float, text: str, colour: str) -> float:
    box = {"facecolor": colour, "edgecolor": "none", "boxstyle": "square,pad=0.3"}
    _write(ax, x + 0.08, y, text, _END - 0.15, color="white", weight="bold", size=17, bbox=box)
    return float(ax.transData.inverted().transform(ax.texts[-1].get_window_extent().max)[0]) + 0.25


def verdicts(visit: Visit) -> list[tuple[str, str]]:
    """What is to be said of the order, with colours: a repeat or not, and a constraint that it breaks."""
    kind = ("NO ORDER", GREY) if not visit.order else ("REPEAT", RED) if is_repeat(visit) else ("NEW", BLUE)
    if visit.order and not visit.previous:
        kind = ("FIRST ORDER", BLUE)
    rules = _rules_of(visit.customer)
    chosen = [dish for dish in visit.kitchen.dishes if dish.id in visit.order]
    broken = [dish.name for dish in chosen if rules and not rules[0].allows(dish)]
    return [kind, *([(f"BREAKS CONSTRAINT: {', '.join(broken)}", BLACK)] if broken else [])]


def visible_in_prompt(visit: Visit) -> dict[str, bool | None]:
    """Whether the model could see the last order and the user's constraint; None where there is none."""
    rules = _rules_of(visit.customer)
    return {
        "last order": shows_last_order(visit, visible_orders(visit)) if visit.previous else None,
        "constraint": shows_texts(visit, rules[1]) if rules else None,
    }


def ordered(visit: Visit) -> str:
    """The order as text, or what happened instead."""
    if visit.error:
        return f"{visit.kitchen.named(visit.order) or 'nothing'} (the run failed: {visit.error.partition(':')[0]})"
    return visit.kitchen.named(visit.order) or "nothing"


def _rules_of(customer: Customer) -> tuple[Regular, tuple[str, ...]] | None:
    """The regular user behind a customer, and the constraints as the first request states them."""
    for user in load_regulars():
        for language in LANGUAGES if user.id == customer.id else ():
            texts = user.constraint_texts(language)
            if all(text in customer.first_request for text in texts):
                return user, texts
    return None


def _detail(visit: Visit) -> str:
    """The explanation, with the figure's words for the types of records."""
    why = explain(visit)
    return why.detail.replace("× request", "× old request") if why else ""


def in_words(name: str, visits: Sequence[Visit], visit: Visit) -> str:
    """The panel for readers who can't see it."""
    found = [
        f"{TYPES[type_of(search.candidates[place], visit)][0]} {search.scores[place]:.2f}"
        for search in visit.searches
        for place in search.kept
    ]
    more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    said = {None: "none", True: "yes", False: "no"}
    seen = ", ".join(f"{what} {said[shown]}" for what, shown in visible_in_prompt(visit).items())
    why = explain(visit)
    return " ".join(
        [
            f"“{name}”, visit {visit.number} of {len(visits)}: {visit.customer.id} asks “{visit.request}”.",
            f"Retrieved: {', '.join(found[:_TOLD]) or 'nothing'}{more}. In the prompt: {seen}.",
            f"Ordered: {ordered(visit)}: {'; '.join(mark for mark, _ in verdicts(visit))}.",
            *([f"Why: {why.reason}: {_detail(visit)}."] if why else []),
            f"Visits that repeat: {', '.join(str(v.number) for v in visits if is_repeat(v)) or 'none'}.",
        ]
    )
