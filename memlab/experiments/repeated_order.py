"""The repeated order: strategies x users x visits x seeds, measured visit by visit.

    frame = repeated_order(["vector, top 3", "order log + tastes"], users=5, visits=12, language=["zh", "en"])

Every visit runs through the real pipeline: providers, tool loop, endpoint. Strategies and controls are in
`memlab.experiments.orders`; `summarise_orders` makes the table of a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memlab.errors import InvalidInputError
from memlab.experiments.background import run_sync
from memlab.experiments.orders.cost import agree_on_cost, estimate_cost
from memlab.experiments.orders.parts import EVERYTHING, Part, make_parts, run_part, visits_of
from memlab.experiments.orders.results import keep_rows, read_rows, with_types
from memlab.experiments.orders.strategies import Strategy, chosen_strategies
from memlab.experiments.orders.visits import Visit
from memlab.experiments.regulars import Regular, load_regulars
from memlab.settings import Lab, connect

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EVERYTHING", "repeated_order", "replay"]


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
    parts = list(make_parts(strategies, users, visits, seeds, language, chat_turns_between, menu, fresh_ties))
    folder = Path(resume) if resume is not None else None
    # A strategy of one's own may change under its name, so its parts are not kept.
    files = {
        part: folder / f"{part.key(lab)}.json" if folder and isinstance(part.strategy, str) else None for part in parts
    }
    left = [part for part, path in files.items() if path is None or not path.exists()]
    if not lab.offline:
        agree_on_cost(estimate_cost(left, lab), limit_usd)
    jobs = n_jobs if lab.offline else 1  # a key does not travel to other processes
    work = (delayed(run_part)(part, None if lab.offline else lab) for part in left)
    done = zip(left, Parallel(n_jobs=jobs, return_as="generator")(work), strict=True)
    rows = {
        part: keep_rows(found, files[part])
        for part, found in tqdm(done, total=len(left), desc="orders", unit="part", disable=not progress)
    }
    found = [row for part in parts for row in (rows[part] if part in rows else read_rows(files[part]))]
    return with_types(pd.DataFrame(found))


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
    return run_sync(visits_of(part, lab or connect(), keep_records=True))
