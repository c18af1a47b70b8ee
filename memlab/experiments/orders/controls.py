"""Two controls that are no agents: one that knows everything, and one that chooses at random.

oracle    lower bound: never repeats where it can be avoided, and takes what the user likes best of what is left
random    a reference, not a bound: any set that breaks no constraint
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence

from memlab.experiments.orders.measures import WINDOW
from memlab.experiments.orders.visits import DishSet
from memlab.experiments.regulars import Regular
from memlab.experiments.takeout import Dish

Chooser = Callable[[Sequence[DishSet], int], DishSet]


def oracle(user: Regular, menu: Sequence[Dish], seed: int) -> Chooser:
    """Avoids the previous order; then takes what the user likes most, then none of the last three, then the rarest."""
    likes = {dish.id: user.likes(dish) for dish in menu}
    meals = _meals(user, menu, seed)

    def choose(previous: Sequence[DishSet], visit: int) -> DishSet:
        return min(
            meals,
            key=lambda meal: (
                meal in previous[:1],
                -sum(likes[dish] for dish in meal),
                meal in previous[:WINDOW],
                previous.count(meal),
            ),
        )

    return choose


def at_random(user: Regular, menu: Sequence[Dish], seed: int) -> Chooser:
    """Any feasible set, each as likely as the other."""
    meals = _meals(user, menu, seed)
    return lambda previous, visit: meals[_random(user, seed, visit).randrange(len(meals))]


CONTROLS: dict[str, Callable[[Regular, Sequence[Dish], int], Chooser]] = {"oracle": oracle, "random": at_random}


def _meals(user: Regular, menu: Sequence[Dish], seed: int) -> list[DishSet]:
    meals = user.feasible_sets(menu)
    _random(user, seed, 0).shuffle(meals)
    return meals


def _random(user: Regular, seed: int, visit: int) -> random.Random:
    # A hash of its own, since Python's changes from process to process.
    digest = hashlib.sha256(f"{user.id}/{seed}/{visit}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))
