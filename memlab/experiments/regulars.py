"""The regular users of the repeated order: what each may eat and likes, how they say so, and their small talk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

from memlab.errors import InvalidInputError
from memlab.experiments.takeout import LANGUAGES, Dish, scenario

MOST_REGULARS = 20


@dataclass(frozen=True)
class Regular:
    """A user who comes again: what they must not eat, what they like, what a meal is for them.

    `constraints` are "no_chilli", "vegetarian", "allergy:<ingredient>" and "avoid:<ingredient>"; `taste` is an
    ingredient or None; `wanted` has the kind of each dish of a meal, e.g. ("meat", "veg").
    """

    id: str
    wanted: tuple[str, ...]
    constraints: tuple[str, ...]
    taste: str | None

    def __post_init__(self) -> None:
        known, ingredients = ("no_chilli", "vegetarian"), scenario("regulars")["ingredients"]
        for constraint in self.constraints:
            kind, _, ingredient = constraint.partition(":")
            if constraint not in known and not (kind in ("allergy", "avoid") and ingredient in ingredients):
                raise InvalidInputError(
                    f"constraint is {constraint!r}; there are {', '.join(known)}, and allergy: or avoid: with one of "
                    f"{', '.join(ingredients)}"
                )

    def allows(self, dish: Dish) -> bool:
        """Whether a dish breaks none of the constraints."""
        return not any(_breaks(constraint, dish) for constraint in self.constraints)

    def likes(self, dish: Dish) -> bool:
        """Whether a dish has the ingredient that the user likes."""
        return self.taste in dish.ingredients

    def feasible_sets(self, dishes: Sequence[Dish]) -> list[frozenset[str]]:
        """Every meal of the wanted kinds that breaks no constraint, as dish ids, in the menu's order."""
        allowed = [dish for dish in dishes if self.allows(dish)]
        choices = [
            combinations([dish.id for dish in allowed if dish.kind == kind], self.wanted.count(kind))
            for kind in dict.fromkeys(self.wanted)
        ]
        return [frozenset(name for part in parts for name in part) for parts in product(*choices)]

    def first_request(self, language: str) -> str:
        """What the user says on the first visit: the kinds wanted, the constraints, the taste."""
        phrases = scenario("regulars")["phrases"]
        opening = phrases["wanted"]["+".join(self.wanted)][_known(language)]
        taste = [] if self.taste is None else [phrases["tastes"][self.taste][language]]
        return str(phrases["between"][language].join([opening, *self.constraint_texts(language), *taste]))

    def constraint_texts(self, language: str) -> tuple[str, ...]:
        """The phrases that state the constraints, as they stand in the first request."""
        phrases = scenario("regulars")["phrases"]["constraints"]
        return tuple(phrases[constraint][_known(language)] for constraint in self.constraints)


def _breaks(constraint: str, dish: Dish) -> bool:
    """The rule itself; menus and models state it in words."""
    if constraint == "no_chilli":
        return dish.spicy
    if constraint == "vegetarian":
        return dish.kind == "meat"
    return constraint.partition(":")[2] in dish.ingredients


def load_regulars(count: int = MOST_REGULARS) -> tuple[Regular, ...]:
    """The first `count` regular users; Alice, who can't eat spicy food, is the first."""
    if not 1 <= count <= MOST_REGULARS:
        raise InvalidInputError(f"count is {count}; there are regular users for 1 to {MOST_REGULARS}")
    return tuple(
        Regular(user["id"], tuple(user["wanted"]), tuple(user["constraints"]), user["taste"])
        for user in scenario("regulars")["users"][:count]
    )


@cache
def load_chats(language: str) -> tuple[tuple[str, str], ...]:
    """Small talk for between the visits, as (question, reply); the n-th is the same in each language."""
    chats = scenario("chats")["exchanges"]
    return tuple((question, reply) for question, reply in (chat[_known(language)] for chat in chats))


def _known(language: str) -> str:
    if language not in LANGUAGES:
        raise InvalidInputError(f"language is {language!r}; the scenario is written in {', '.join(LANGUAGES)}")
    return language
