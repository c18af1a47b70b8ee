"""The pieces of the experiment: each is the visits of one user under one strategy, and runs by itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from memlab.checks import check_type, fits
from memlab.errors import InvalidInputError
from memlab.experiments.background import run_sync
from memlab.experiments.orders.controls import CONTROLS
from memlab.experiments.orders.embedding import RememberingEmbedder
from memlab.experiments.orders.measures import order_measures, row_of
from memlab.experiments.orders.strategies import STRATEGIES, Strategy
from memlab.experiments.orders.visits import Customer, DishSet, Visit, steps_of, walk
from memlab.experiments.regulars import Regular, load_chats, load_regulars
from memlab.experiments.takeout import LANGUAGES, open_kitchen
from memlab.settings import Lab, read_settings

EVERYTHING = (*STRATEGIES, *CONTROLS)
"""All strategies and both controls."""


@dataclass(frozen=True)
class Part:
    """What one process does at a time: the visits of one user under one strategy.

    `strategy` is a name from `EVERYTHING`, which travels better than a function, or a strategy of one's own.
    """

    strategy: str | Strategy
    user: Regular
    visits: int
    chat_turns: int
    language: str
    seed: int
    menu: str = "large"
    fresh_ties: bool = False

    @property
    def name(self) -> str:
        """The strategy's name."""
        return self.strategy if isinstance(self.strategy, str) else self.strategy.name

    @property
    def settings(self) -> list[Any]:
        """All that tells this part from others, as JSON values."""
        user = [self.user.id, self.user.wanted, self.user.constraints, self.user.taste]
        where = [self.language, self.menu, self.seed, self.fresh_ties]
        return [self.name, user, self.visits, self.chat_turns, *where]

    @property
    def chats(self) -> list[list[tuple[str, str]]]:
        """The exchanges after each visit: the list of all of them, begun elsewhere by each user, again and again."""
        all_chats = load_chats(self.language)
        start = int(hashlib.sha256(self.user.id.encode()).hexdigest()[:8], 16)
        places = range(start, start + self.visits * self.chat_turns)
        flat = [all_chats[place % len(all_chats)] for place in places]
        return [flat[self.chat_turns * n : self.chat_turns * (n + 1)] for n in range(self.visits)]


def make_parts(
    strategies: Sequence[str | Strategy] | str | None,
    users: int,
    visits: int,
    seeds: int,
    language: str | Sequence[str],
    chat_turns_between: int | Sequence[int],
    menu: str = "large",
    fresh_ties: bool = False,
) -> Iterator[Part]:
    """All parts, strategy by strategy. Raises InvalidInputError for values that can't be used, naming them."""
    names = _listed("strategies", EVERYTHING if strategies is None else strategies, str, Strategy)
    languages = _listed("language", language, str)
    turns = [int(each) for each in _listed("chat_turns_between", chat_turns_between, int)]
    _check_strategies(names)
    if strange := [each for each in languages if each not in LANGUAGES]:
        raise InvalidInputError(f"language is {', '.join(strange)}; it must be among {', '.join(LANGUAGES)}")
    for name, value, least in (
        ("visits", visits, 1),
        ("seeds", seeds, 1),
        *(("chat_turns_between", t, 0) for t in turns),
    ):
        check_type(name, value, int)
        if value < least:
            raise InvalidInputError(f"{name} is {value}; it must be at least {least}")
    check_type("users", users, int)
    check_type("fresh_ties", fresh_ties, bool)
    for strategy, lang, between, seed, user in product(names, languages, turns, range(seeds), load_regulars(users)):
        yield Part(strategy, user, int(visits), between, lang, seed, menu, fresh_ties)


def _listed(name: str, given: Any, *kinds: type) -> list[Any]:
    """One value or several as a list, each once."""
    values = [given] if any(fits(given, kind) for kind in kinds) else given
    check_type(name, values, Iterable, what=f"{' or '.join(kind.__name__ for kind in kinds)}, or a list of them")
    found = list(dict.fromkeys(values))
    for value in found:
        check_type(f"a value of {name}", value, *kinds)
    if not found:
        raise InvalidInputError(f"{name} is empty; it needs at least one value")
    return found


def _check_strategies(names: Sequence[object]) -> None:
    if unknown := [name for name in names if isinstance(name, str) and name not in EVERYTHING]:
        raise InvalidInputError(f"there is no strategy {', '.join(unknown)}; there are {', '.join(EVERYTHING)}")
    own = [each.name for each in names if isinstance(each, Strategy)]
    if taken := [name for name in own if name in EVERYTHING or own.count(name) > 1]:
        raise InvalidInputError(f"the name {taken[0]!r} is taken; give your strategy another one")


# --- running ----------------------------------------------------------------------------------------------------------


async def visits_of(part: Part, lab: Lab, all_chats: bool = False) -> list[Visit]:
    """The visits of a part; `all_chats` embeds all chats of the language at once, not only those of the part."""
    strategy = STRATEGIES[part.strategy] if isinstance(part.strategy, str) else part.strategy
    kitchen, embedder = open_kitchen(part.language, part.menu), _remembering(lab)
    customer = Customer(part.user.id, part.user.first_request(part.language), kitchen.texts["request"])
    exchanges = load_chats(part.language) if all_chats else [each for after in part.chats for each in after]
    embedder.prepare([text for exchange in exchanges for text in exchange])

    def seed_of(visit: int) -> int:
        return 1000 * part.seed + visit if part.fresh_ties else part.seed

    steps, dimensions = steps_of(customer, part.chats), lab.embedder.dimensions
    visits = walk(steps, strategy, kitchen, lab.chat, embedder, dimensions, seed_of)
    return [visit async for visit in visits]


@lru_cache(maxsize=4)
def _remembering(lab: Lab) -> RememberingEmbedder:
    return RememberingEmbedder(lab.embedder)


@lru_cache(maxsize=1)
def offline_lab() -> Lab:
    """The offline connection of this process."""
    return Lab(read_settings({}, {}, "offline"))


def run_part(part: Part, live: Lab | None) -> list[dict[str, Any]]:
    """The rows of one part; a worker process has an offline connection of its own."""
    head = {
        "strategy": part.name,
        "language": part.language,
        "chat_turns": part.chat_turns,
        "seed": part.seed,
        "user": part.user.id,
    }
    if part.name in CONTROLS:
        return [{**head, "visit": n, **row} for n, row in enumerate(_control(part), start=1)]
    # Offline all chats of the language are embedded in one batch, whichever part a process begins with.
    visits = run_sync(visits_of(part, live or offline_lab(), all_chats=live is None))
    return [{**head, "visit": visit.number, **row_of(visit, part.user, part.language)} for visit in visits]


def _control(part: Part) -> Iterator[dict[str, Any]]:
    menu = open_kitchen(part.language, part.menu).dishes
    choose, previous = CONTROLS[part.name](part.user, menu, part.seed), tuple[DishSet, ...]()
    for number in range(1, part.visits + 1):
        dishes = choose(previous, number)
        yield order_measures(dict.fromkeys(dishes, 1), previous, part.user, menu)
        previous = (dishes, *previous)
