"""One visit as one row of the result: what was ordered, what the model could see, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from memlab.experiments.orders.reading import RecordType, shows_last_order, shows_texts, type_of, visible_orders
from memlab.experiments.orders.reasons import explain
from memlab.experiments.orders.visits import DishSet, Visit
from memlab.experiments.regulars import Regular
from memlab.experiments.takeout import MOST_PORTIONS, Dish

WINDOW = 3
"""A repeat within so many of the latest orders violates the window."""


def row_of(visit: Visit, user: Regular, language: str) -> dict[str, Any]:
    """The measures of one visit; those that need an earlier order are None in the first visit."""
    visible = visible_orders(visit)
    free = set(user.feasible_sets(visit.kitchen.dishes)) - set(visible)
    explained = explain(visit)
    kept = Counter(type_of(record, visit) for record in visit.retrieved)
    usage, parts = (visit.response.usage_details if visit.response else {}), visit.trace.tokens_by_part()
    return {
        **order_measures(visit.order, visit.previous, user, visit.kitchen.dishes),
        "latest_visible": shows_last_order(visit, visible) if visit.previous else None,
        "free_choice": bool(free),
        "constraint_visible": shows_texts(visit, user.constraint_texts(language)),
        "prompt_tokens": usage.get("input_token_count"),
        "memory_tokens": (parts["history"] + parts["memories"]) if visit.response else None,
        "model_calls": len(visit.trace.calls) if visit.response else None,
        "failed": visit.error or "; ".join(f"{each.where}: {each.error}" for each in visit.trace.failures),
        "why": str(explained.reason) if explained else "",
        "needed_rank": explained.rank if explained else None,
        "needed_score": explained.score if explained else None,
        "lowest_kept": explained.lowest_kept if explained else None,
        **{f"kept_{kind.replace(' ', '_')}s": kept[kind] for kind in RecordType},
    }


def order_measures(
    order: dict[str, int], previous: Sequence[DishSet], user: Regular, menu: Sequence[Dish]
) -> dict[str, Any]:
    """What an order alone tells, given the earlier ones (latest first) and the user's canonical rules.

    repeat              the same dish set as the user's previous order
    repeat_in_window    the same dish set as one of the last three
    violation           some dish breaks a constraint
    portions, over_limit    how many portions, and whether they are more than the agent may order
    diversity           1 - |shared| / |all dishes of both|, against the previous order (Jaccard distance)
    utility             the share of its dishes that the user likes; 0 for a violation
    """
    dishes = frozenset(order)
    chosen = [dish for dish in menu if dish.id in dishes]
    violation = not all(map(user.allows, chosen))
    liked = sum(map(user.likes, chosen)) / len(chosen) if chosen else 0.0
    compared = bool(previous and dishes)
    return {
        "order": "+".join(sorted(f"{dish}×{count}" if count > 1 else dish for dish, count in order.items())),
        "repeat": dishes == previous[0] if compared else None,
        "repeat_in_window": dishes in previous[:WINDOW] if compared else None,
        "violation": violation,
        "portions": sum(order.values()),
        "over_limit": sum(order.values()) > MOST_PORTIONS,
        "diversity": 1 - len(dishes & previous[0]) / len(dishes | previous[0]) if compared else None,
        "utility": 0.0 if violation else liked,
    }
