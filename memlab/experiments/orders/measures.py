"""One visit as one row of the result: what was ordered, what the model could see, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from memlab import tokens
from memlab.experiments.orders.reading import RecordType, shows_last_order, shows_texts, type_of, visible_orders
from memlab.experiments.orders.reasons import explain
from memlab.experiments.orders.visits import DishSet, Visit
from memlab.experiments.regulars import Regular
from memlab.experiments.takeout import MOST_PORTIONS, Dish
from memlab.trace import ModelCall, Trace

WINDOW = 3
"""A repeat within so many of the latest orders violates the window."""

_OF_THE_KITCHEN = ("GetMenu", "PlaceOrder")


def row_of(visit: Visit, user: Regular, language: str) -> dict[str, Any]:
    """The measures of one visit. What can't be known is None: a repeat in the first visit, a prompt never sent."""
    visible, trace, asked = visible_orders(visit), visit.trace, bool(visit.prompt)
    free = set(user.feasible_sets(visit.kitchen.dishes)) - set(visible)
    explained = explain(visit)
    kept = Counter(type_of(record, visit) for record in visit.retrieved)
    return {
        **order_measures(visit.order, visit.previous, user, visit.kitchen.dishes),
        "latest_visible": shows_last_order(visit, visible) if asked and visit.previous else None,
        "free_choice": bool(free) if asked else None,
        "constraint_visible": shows_texts(visit, user.constraint_texts(language)) if asked else None,
        "prompt_tokens": sum(call.usage.get("input_token_count", 0) for call in trace.calls) if asked else None,
        "memory_tokens": memory_tokens(trace) if asked else None,
        "model_calls": len(trace.calls) if asked else None,
        "failed": visit.error or "; ".join(f"{each.where}: {each.error}" for each in trace.failures),
        "why": str(explained.reason) if explained else "",
        "needed_rank": explained.rank if explained else None,
        "needed_score": explained.score if explained else None,
        "lowest_kept": explained.lowest_kept if explained else None,
        **{f"kept_{kind.replace(' ', '_')}s": kept[kind] for kind in RecordType},
    }


def memory_tokens(trace: Trace) -> int:
    """Estimated tokens of all that a memory brought: history, memories, and results of its tools, over all calls."""
    parts = trace.tokens_by_part()
    return parts["history"] + parts["memories"] + sum(map(_tool_tokens, trace.calls))


def _tool_tokens(call: ModelCall) -> int:
    messages = [message for message in call.messages if message.source.kind != "history"]
    names = {made.call_id: made.name for message in messages for made in message.tool_calls}
    results = [result for message in messages for result in message.tool_results]
    found = [result.result for result in results if names.get(result.call_id) not in _OF_THE_KITCHEN]
    return sum(tokens.count_text(text, call.model) for text in found)


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

    Without an order all of them are None, and `portions` is 0; without a previous one, what compares with it.
    """
    dishes = frozenset(order)
    chosen = [dish for dish in menu if dish.id in dishes]
    violation = not all(map(user.allows, chosen))
    compared = bool(previous and dishes)
    return {
        "order": "+".join(sorted(f"{dish}×{count}" if count > 1 else dish for dish, count in order.items())),
        "repeat": dishes == previous[0] if compared else None,
        "repeat_in_window": dishes in previous[:WINDOW] if compared else None,
        "violation": violation if dishes else None,
        "portions": sum(order.values()),
        "over_limit": sum(order.values()) > MOST_PORTIONS if dishes else None,
        "diversity": 1 - len(dishes & previous[0]) / len(dishes | previous[0]) if compared else None,
        "utility": (0.0 if violation else sum(map(user.likes, chosen)) / len(chosen)) if dishes else None,
    }
