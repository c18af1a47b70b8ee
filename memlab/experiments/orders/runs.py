"""Runs A and B of the ordering scenario, order by order, beside what was published of them.

    A    Alice says once that she can't eat spicy food, comes back twice, and then Bob comes twice
    B    Alice comes five times, and "vary the orders" is added to each request as a user message

Both with the memory's defaults: the 3 most similar records, in the scope of the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memlab.errors import InvalidInputError
from memlab.experiments.background import run_sync
from memlab.experiments.orders.reading import shows_last_order, shows_texts, type_of, visible_orders
from memlab.experiments.orders.strategies import STRATEGIES, Strategy
from memlab.experiments.orders.visits import Customer, Step, Visit, walk
from memlab.experiments.takeout import open_kitchen, scenario
from memlab.settings import Lab, connect

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Published:
    """What was published of one order, with a large model: the earlier order it equals, whether it is spicy."""

    same_as: int | None = None
    spicy: bool = False
    note: str = ""


@dataclass(frozen=True)
class Run:
    """Who comes, in which order; the strategy; and what was published, by the number of the visit."""

    name: str
    users: tuple[str, ...]
    strategy: Strategy
    published: dict[int, Published]


RUNS = {
    "A": Run(
        "A",
        ("Alice", "Alice", "Alice", "Bob", "Bob"),
        STRATEGIES["vector, top 3"],
        {
            3: Published(same_as=2, note="equals order 2, though the reply says it differs"),
            4: Published(spicy=True, note="spicy"),
            5: Published(spicy=True, note="spicy"),
        },
    ),
    "B": Run(
        "B",
        ("Alice",) * 5,
        STRATEGIES["instruction after memory"],
        {
            3: Published(same_as=2, note="equals order 2"),
            4: Published(same_as=1, note="equals order 1"),
            5: Published(spicy=True, note="holds 剁椒鱼头, which is spicy"),
        },
    ),
}


def replay_run(
    name: str,
    language: str = "zh",
    visits: int | None = None,
    strategy: Strategy | None = None,
    lab: Lab | None = None,
) -> list[Visit]:
    """Run "A" or "B" again. `visits` goes on with the last user, `strategy` puts another one in its place."""
    if name not in RUNS:
        raise InvalidInputError(f"there is no run {name!r}; there are {' and '.join(RUNS)}")
    run, kitchen, lab = RUNS[name], open_kitchen(language), lab or connect()
    count = len(run.users) if visits is None else visits
    users = [*run.users, *run.users[-1:] * (count - len(run.users))][:count]
    first, later = kitchen.texts["first_request"], kitchen.texts["request"]
    customers = {user: Customer(user, first if user == "Alice" else later, later) for user in users}
    steps = [Step(customers[user], first if number == 0 else later) for number, user in enumerate(users)]
    dimensions = lab.embedder.dimensions
    going = walk(steps, strategy or run.strategy, kitchen, lab.chat, lab.embedder, dimensions)

    async def all_visits() -> list[Visit]:
        return [visit async for visit in going]

    return run_sync(all_visits())


def run_table(name: str, visits: Sequence[Visit], language: str = "zh") -> pd.DataFrame:
    """One row an order: what was retrieved and at what score, what was ordered, and what was published.

    `same_as` is the latest earlier order of that user with the same dishes; `same_pattern` says whether ours
    is as what was published of it: which earlier order it equals, or that it is spicy. The dishes may differ.
    """
    import pandas as pd

    published = RUNS[name].published
    rows = []
    for visit in visits:
        theirs, same_as = published.get(visit.number), _same_as(visit, visits)
        spicy = visit.kitchen.spicy(visit.order)
        rows.append(
            {
                "visit": visit.number,
                "user": visit.customer.id,
                "retrieved": _retrieved(visit),
                "constraint_in_prompt": shows_texts(visit, constraint_words(language)),
                "last_order_in_prompt": shows_last_order(visit, visible_orders(visit)),
                "order": visit.kitchen.named(visit.order),
                "spicy": spicy,
                "same_as": same_as,
                "published": theirs.note if theirs else "",
                "same_pattern": _same_pattern(theirs, same_as, spicy),
            }
        )
    return pd.DataFrame(rows).astype({"same_as": "Int64", "same_pattern": "boolean"})


def constraint_words(language: str) -> tuple[str, ...]:
    """The words of Alice's first request that state her constraint."""
    return (str(scenario("regulars")["phrases"]["constraints"]["no_chilli"][language]),)


def _same_as(visit: Visit, visits: Sequence[Visit]) -> int | None:
    earlier = [
        other.number
        for other in visits
        if other.number < visit.number and other.customer == visit.customer and other.dishes == visit.dishes
    ]
    return max(earlier, default=None)


def _retrieved(visit: Visit) -> str:
    found = [
        f"{type_of(search.candidates[place], visit)} {search.scores[place]:.2f}"
        for search in visit.searches
        for place in search.kept
    ]
    return " | ".join(found) or "nothing"


def _same_pattern(theirs: Published | None, same_as: int | None, spicy: bool) -> bool | None:
    if theirs is None:
        return None
    return (theirs.same_as is None or theirs.same_as == same_as) and (not theirs.spicy or spicy)
