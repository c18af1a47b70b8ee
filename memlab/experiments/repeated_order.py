"""The repeated order: strategies x users x visits x seeds, measured visit by visit.

    frame = repeated_order(["vector, top 3", "order log + tastes"], users=5, visits=12, language=["zh", "en"])

Every visit runs through the real pipeline: providers, tool loop, endpoint. Strategies and controls are in
`memlab.experiments.orders`; `summarise_orders` makes the table of a frame.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab import __version__, prices
from memlab.errors import ConfigurationError, InvalidInputError
from memlab.experiments.background import run_sync
from memlab.experiments.orders.controls import CONTROLS
from memlab.experiments.orders.embedding import RememberingEmbedder
from memlab.experiments.orders.measures import order_measures, row_of
from memlab.experiments.orders.results import with_types
from memlab.experiments.orders.strategies import STRATEGIES, Strategy, chosen_strategies
from memlab.experiments.orders.visits import Customer, DishSet, Visit, steps_of, walk
from memlab.experiments.regulars import Regular, load_chats, load_regulars
from memlab.experiments.takeout import LANGUAGES, open_kitchen
from memlab.settings import Lab, connect, read_settings

if TYPE_CHECKING:
    import pandas as pd

EVERYTHING = (*STRATEGIES, *CONTROLS)
"""All strategies and both controls."""


def repeated_order(
    strategies: Sequence[str | Strategy] | str | None = None,
    users: int = 20,
    visits: int = 12,
    seeds: int = 1,
    language: str | Sequence[str] = "zh",
    chat_turns_between: int | Sequence[int] = 3,
    *,
    menu: str = "large",
    fresh_ties: bool = False,
    lab: Lab | None = None,
    limit_usd: float = 0.05,
    resume: str | Path | None = None,
    n_jobs: int | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Let users order again and again under each strategy, and measure each visit.

    Parameters
    ----------
    strategies : names from `EVERYTHING`, or a `Strategy` of your own; None for all.
    users : how many of the 20 regular users.
    visits, chat_turns_between : visits of each, one a day, and exchanges about other things after each visit.
    seeds : how often all of it is done, with other ties in the model's choice.
    language : "zh", "en", "ru", or several.
    menu : "large" (20 dishes) or "small" (7, where some users can't avoid repeats).
    fresh_ties : break ties anew in each visit, as a model does at a temperature above 0. By default a user's ties are
        broken the same way in each visit: the same prompt gets the same order, as at temperature 0.
    lab : whose model and embedder; by default those of `memlab.connect()`. A live one runs in this process, after
        its cost was measured offline and printed; above `limit_usd` it is refused.
    resume : a folder for finished parts; an interrupted experiment goes on from there.
    n_jobs : parts at once, through joblib; None for what `joblib.parallel_config` says, else 1.

    Returns one row a visit: strategy, language, chat_turns, seed, user, visit, and the measures of
    `orders.measures`: order, repeat, repeat_in_window, latest_visible, free_choice (some feasible set is not among
    the visible orders), constraint_visible, violation, portions, over_limit, diversity, utility, prompt_tokens,
    memory_tokens (an estimate), model_calls, failed, why (a repeat happened) and what the memory retrieved.
    Raises InvalidInputError for values it can't use, ConfigurationError when a live run would cost too much.
    """
    import pandas as pd
    from joblib import Parallel, delayed
    from tqdm.auto import tqdm

    lab = lab or connect()
    parts = list(_parts(strategies, users, visits, seeds, language, chat_turns_between, menu, fresh_ties))
    if not lab.offline:
        _show_cost(estimate_cost(parts, lab), limit_usd)
    folder = Path(resume) if resume is not None else None
    # A strategy of one's own may change under its name, so its parts are not kept.
    files = {
        part: folder / f"{part.key(lab)}.json" if folder and isinstance(part.strategy, str) else None for part in parts
    }
    left = [part for part, path in files.items() if path is None or not path.exists()]
    jobs = n_jobs if lab.offline else 1  # a key does not travel to other processes
    work = (delayed(_run)(part, None if lab.offline else lab) for part in left)
    done = zip(left, Parallel(n_jobs=jobs, return_as="generator")(work), strict=True)
    rows = {
        part: _kept(found, files[part])
        for part, found in tqdm(done, total=len(left), desc="orders", unit="part", disable=not progress)
    }
    found = [row for part in parts for row in (rows[part] if part in rows else _read(files[part]))]
    return with_types(pd.DataFrame(found))


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

    def key(self, lab: Lab) -> str:
        """A name for the file of its rows: the same for the same experiment alone."""
        asked = [__version__, lab.model, lab.embedding_model, lab.settings.dimensions]
        what = [self.name, self.user.id, self.visits, self.chat_turns, self.language, self.seed, self.menu]
        what += [self.fresh_ties, asked]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:24]

    @property
    def chats(self) -> list[list[tuple[str, str]]]:
        """The exchanges after each visit: the list of all of them, begun elsewhere by each user, again and again."""
        all_chats = load_chats(self.language)
        start = int(hashlib.sha256(self.user.id.encode()).hexdigest()[:8], 16)
        places = range(start, start + self.visits * self.chat_turns)
        flat = [all_chats[place % len(all_chats)] for place in places]
        return [flat[self.chat_turns * n : self.chat_turns * (n + 1)] for n in range(self.visits)]


def _parts(
    strategies: Sequence[str | Strategy] | str | None,
    users: int,
    visits: int,
    seeds: int,
    language: str | Sequence[str],
    chat_turns: int | Sequence[int],
    menu: str,
    fresh_ties: bool,
) -> Iterator[Part]:
    names = EVERYTHING if strategies is None else [strategies] if isinstance(strategies, str) else strategies
    if unknown := [name for name in names if isinstance(name, str) and name not in EVERYTHING]:
        raise InvalidInputError(f"there is no strategy {', '.join(unknown)}; there are {', '.join(EVERYTHING)}")
    languages = [language] if isinstance(language, str) else list(language)
    turns = [chat_turns] if isinstance(chat_turns, int) else list(chat_turns)
    if strange := sorted(set(languages) - set(LANGUAGES)):
        raise InvalidInputError(f"language is {', '.join(strange)}; it must be among {', '.join(LANGUAGES)}")
    for name, value, least in [
        ("visits", visits, 1),
        ("seeds", seeds, 1),
        *(("chat_turns_between", t, 0) for t in turns),
    ]:
        if not isinstance(value, int) or value < least:
            raise InvalidInputError(f"{name} is {value!r}; it must be a whole number of at least {least}")
    for strategy, lang, between, seed, user in product(names, languages, turns, range(seeds), load_regulars(users)):
        yield Part(strategy, user, visits, between, lang, seed, menu, fresh_ties)


# --- running ---------------------------------------------------------------------------------------------------------


def replay(
    strategy: str | Strategy,
    user: Regular | str = "Alice",
    visits: int = 12,
    chat_turns_between: int = 3,
    language: str = "zh",
    seed: int = 0,
    *,
    menu: str = "large",
    lab: Lab | None = None,
) -> list[Visit]:
    """The visits of one user with all that happened: prompts, searches with every score, orders."""
    if isinstance(user, str):
        known = {regular.id: regular for regular in load_regulars()}
        if user not in known:
            raise InvalidInputError(f"there is no user {user!r}; there are {', '.join(known)}")
        user = known[user]
    strategy = strategy if isinstance(strategy, Strategy) else chosen_strategies([strategy])[0].name
    part = Part(strategy, user, visits, chat_turns_between, language, seed, menu)
    return run_sync(_visits(part, lab or connect(), keep_records=True))


async def _visits(part: Part, lab: Lab, keep_records: bool = False, all_chats: bool = False) -> list[Visit]:
    strategy = STRATEGIES[part.strategy] if isinstance(part.strategy, str) else part.strategy
    kitchen, embedder = open_kitchen(part.language, part.menu), _remembering(lab)
    customer = Customer(part.user.id, part.user.first_request(part.language), kitchen.texts["request"])
    exchanges = load_chats(part.language) if all_chats else [each for after in part.chats for each in after]
    embedder.prepare([text for exchange in exchanges for text in exchange])

    def seed_of(visit: int) -> int:
        return 1000 * part.seed + visit if part.fresh_ties else part.seed

    steps, dimensions = steps_of(customer, part.chats), lab.embedder.dimensions
    visits = walk(steps, strategy, kitchen, lab.chat, embedder, dimensions, seed_of, keep_records)
    return [visit async for visit in visits]


@lru_cache(maxsize=4)
def _remembering(lab: Lab) -> RememberingEmbedder:
    return RememberingEmbedder(lab.embedder)


@lru_cache(maxsize=1)
def _offline_lab() -> Lab:
    return Lab(read_settings({}, {}, "offline"))


def _run(part: Part, live: Lab | None) -> list[dict[str, Any]]:
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
    visits = run_sync(_visits(part, live or _offline_lab(), all_chats=live is None))
    return [{**head, "visit": visit.number, **row_of(visit, part.user, part.language)} for visit in visits]


def _control(part: Part) -> Iterator[dict[str, Any]]:
    menu = open_kitchen(part.language, part.menu).dishes
    choose, previous = CONTROLS[part.name](part.user, menu, part.seed), tuple[DishSet, ...]()
    for number in range(1, part.visits + 1):
        dishes = choose(previous, number)
        yield order_measures(dict.fromkeys(dishes, 1), previous, part.user, menu)
        previous = (dishes, *previous)


# --- what it costs, and what is kept ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """An estimate: requests, tokens in and out, tokens embedded, and the price (None: not known)."""

    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    embedded_tokens: int
    usd: float | None


def estimate_cost(parts: Sequence[Part], lab: Lab) -> Cost:
    """What `lab` would cost for these parts, measured by running them offline with the classroom model.

    A real model writes longer answers and may call tools more often: take it as a lower estimate.
    """
    offline = Lab(read_settings({}, {}, "offline"))
    for part in parts:
        if part.name not in CONTROLS:
            run_sync(_visits(part, offline))
    meter, chat, embeddings = offline.meter, offline.model, offline.embedding_model
    tokens_in, tokens_out = meter.input_tokens[chat], meter.output_tokens[chat]
    embedded = meter.input_tokens[embeddings]
    chat_usd, embedding_usd = (
        prices.cost_usd(lab.model, tokens_in, tokens_out),
        prices.cost_usd(lab.embedding_model, embedded),
    )
    usd = None if chat_usd is None or embedding_usd is None else chat_usd + embedding_usd
    return Cost(lab.model, sum(meter.requests.values()), tokens_in, tokens_out, embedded, usd)


def _show_cost(cost: Cost, limit_usd: float) -> None:
    price = "an unknown price" if cost.usd is None else f"about ${cost.usd:.4f}"
    print(
        f"live with {cost.model}: about {cost.requests:,} requests, {cost.input_tokens:,} tokens in, "
        f"{cost.output_tokens:,} out, {cost.embedded_tokens:,} embedded, for {price} (measured offline: at least that)"
    )
    if cost.usd is None or cost.usd > limit_usd:
        raise ConfigurationError(
            f"that is {price}, over limit_usd={limit_usd:g}; ask for fewer users, visits or strategies, or raise it"
        )


def _kept(rows: list[dict[str, Any]], path: Path | None) -> list[dict[str, Any]]:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
        part.replace(path)
    return rows


def _read(path: Path | None) -> list[dict[str, Any]]:
    assert path is not None
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows
