"""Why an order was repeated: where on its way into the prompt the last order was lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from memlab.experiments.orders.reading import dishes_in, shows_last_order, type_of, visible_orders
from memlab.experiments.orders.visits import Visit
from memlab.trace import Search


class Reason(StrEnum):
    """Where it failed."""

    NEVER_STORED = "never stored"
    NOT_RETRIEVED = "stored but not retrieved"
    IGNORED = "retrieved but ignored"


@dataclass(frozen=True)
class Explanation:
    """Why the last order did not keep the model from repeating it.

    Of an order that was stored but not retrieved: `rank` (from 1) and `score` among the candidates of the search,
    `lowest_kept`, the score it would have had to beat, and `crowded_by`, the types of the records that were kept
    instead. `detail` says the same, or what else happened, in words.
    """

    reason: Reason
    detail: str
    rank: int | None = None
    score: float | None = None
    lowest_kept: float | None = None
    crowded_by: dict[str, int] = field(default_factory=dict)


def explain(visit: Visit) -> Explanation | None:
    """Where the last order was lost, for a visit that repeats it; None for any other visit."""
    if not visit.previous or visit.dishes != visit.previous[0]:
        return None
    if shows_last_order(visit, visible_orders(visit)):
        return Explanation(Reason.IGNORED, "the last order was in the prompt, and was ordered again")
    missed = [found for search in visit.searches if (found := _missed(visit, search))]
    if missed:
        return missed[0]
    if any(_tells_of_last_order(visit, record.text) for record in visit.stored):
        return Explanation(Reason.NOT_RETRIEVED, "the last order is stored, but no search looks at such records")
    dropped = [m for each in visit.trace.dropped for m in each.messages]
    if any(_tells_of_last_order(visit, message.text) for message in dropped):
        return Explanation(Reason.NOT_RETRIEVED, "the history holds the last order, but the reducer dropped it")
    return Explanation(Reason.NEVER_STORED, "no memory holds the last order")


def _tells_of_last_order(visit: Visit, text: str) -> bool:
    return visit.previous[0] <= dishes_in(text, visit.kitchen)


def _missed(visit: Visit, search: Search) -> Explanation | None:
    """The best-ranked record of the last order among the candidates of a search, none of which was kept."""
    needed = [i for i, record in enumerate(search.candidates) if _tells_of_last_order(visit, record.text)]
    if not needed:
        return None
    best = max(needed, key=lambda place: (search.scores[place], place))
    score, rank = float(search.scores[best]), 1 + int((search.scores > search.scores[best]).sum())
    kept = [float(search.scores[place]) for place in search.kept]
    crowd = Counter(str(type_of(search.candidates[place], visit)) for place in search.kept)
    if best in search.kept:
        return Explanation(
            Reason.NOT_RETRIEVED, "a tool brought the last order after the new one was chosen", rank, score
        )
    taken = ", ".join(f"{count} × {name}" for name, count in crowd.most_common()) or "nothing"
    detail = f"rank {rank} of {len(search.candidates)}, score {score:.2f}: {search.why(best)}; kept: {taken}"
    return Explanation(Reason.NOT_RETRIEVED, detail, rank, score, min(kept, default=None), dict(crowd))
