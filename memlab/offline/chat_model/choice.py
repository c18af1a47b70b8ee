"""Which dishes to order: the whole rule, in one place.

Of all meals (one dish of each kind wanted) that break no constraint, take the best by, in this order:
1. told to vary: a meal that none of the orders in view equals;
2. told to vary: the fewest dishes shared with the latest order in view;
3. the most dishes that match the user's stated taste;
4. the menu's order, or, with a seed, an order shuffled by that seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import combinations

from memlab.offline.chat_model.dishes import Dish

Meal = tuple[Dish, ...]


def choose(
    menu: Sequence[Dish],
    wanted: Sequence[str],
    allowed: Callable[[Dish], bool],
    liked: Callable[[Dish], bool],
    orders: Sequence[frozenset[str]] = (),
    vary: bool = False,
    seed: int | None = None,
) -> Meal:
    """The meal to order; empty when no dish is allowed.

    `wanted` are kinds, e.g. ("meat", "veg"). `orders` are the dish names of the orders in view, the latest
    first; they count only under `vary`. A kind with no allowed dish is left out.
    """
    meals = possible_meals([dish for dish in menu if allowed(dish)], wanted)
    if seed is not None:
        random.Random(seed).shuffle(meals)
    seen = orders if vary else ()

    def preference(meal: Meal) -> tuple[bool, int, int]:
        names = frozenset(dish.name for dish in meal)
        shared = len(names & seen[0]) if seen else 0
        return names in seen, shared, -sum(map(liked, meal))

    return min(meals, key=preference, default=())


def possible_meals(dishes: Sequence[Dish], wanted: Sequence[str]) -> list[Meal]:
    """Every combination with the wanted number of dishes of each kind, in menu order."""
    meals: list[Meal] = [()]
    for kind in dict.fromkeys(wanted):
        of_kind = [dish for dish in dishes if dish.kind == kind]
        size = min(list(wanted).count(kind), len(of_kind))
        meals = [(*meal, *more) for meal in meals for more in combinations(of_kind, size)]
    return [meal for meal in meals if meal]
