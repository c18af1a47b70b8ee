"""The repeated order: strategies x users x visits x seeds, measured visit by visit.

    frame = repeated_order(["vector, top 3", "order log + tastes"], users=5, visits=12, language=["zh", "en"])

Every visit runs through the real pipeline: providers, tool loop, endpoint. Strategies and controls are in
`memlab.experiments.orders`; `summarise_orders` makes the table of a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memlab.checks import check_type
from memlab.errors import InvalidInputError, MemlabError
from memlab.experiments.background import run_sync
from memlab.experiments.orders.cost import Budget, estimate_cost
from memlab.experiments.orders.part_files import PartFiles
from memlab.experiments.orders.parts import EVERYTHING, make_parts, run_part, visits_of
from memlab.experiments.orders.results import with_types
from memlab.experiments.orders.strategies import Strategy, chosen_strategies
from memlab.experiments.orders.visits import Visit
from memlab.experiments.regulars import Regular, load_regulars
from memlab.settings import Lab, connect

if TYPE_CHECKING:
    import pandas as pd

_TOO_MANY = 3  # parts in a row without a visit that went well

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
        its cost was measured offline and printed. Above `limit_usd` it is refused, and stopped when it gets there.
    resume : a folder for finished parts; an interrupted experiment goes on from there. Parts with a failed visit are
        run again.
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

    check_type("limit_usd", limit_usd, float)
    if not limit_usd >= 0:  # NaN, too
        raise InvalidInputError(f"limit_usd is {limit_usd}; it must be 0 or more")
    check_type("n_jobs", n_jobs, int, None)
    if n_jobs == 0:
        raise InvalidInputError("n_jobs is 0; it must be at least 1, or -1 for all cores")
    lab = _lab(lab)
    parts = list(make_parts(strategies, users, visits, seeds, language, chat_turns_between, menu, fresh_ties))
    files = PartFiles(resume, lab)
    rows = {part: found for part in parts if (found := files.read(part)) is not None}
    left = [part for part in parts if part not in rows]
    budget = None if lab.offline else Budget(lab, limit_usd)
    if budget is not None:
        budget.agree(estimate_cost(left, lab, progress))
    jobs = n_jobs if lab.offline else 1  # a key does not travel to other processes
    work = (delayed(run_part)(part, None if lab.offline else lab) for part in left)
    done = zip(left, Parallel(n_jobs=jobs, return_as="generator")(work), strict=True)
    lost = 0
    for part, found in tqdm(done, total=len(left), desc="orders", unit="part", disable=not progress):
        rows[part] = files.keep(part, found)
        lost = lost + 1 if all(row.get("failed") and not row["order"] for row in found) else 0
        if lost == min(_TOO_MANY, len(left)):
            raise MemlabError(f"nothing but failures in {lost} parts; the last: {found[-1]['failed']}")
        if budget is not None:
            budget.check()
    return with_types(pd.DataFrame([row for part in parts for row in rows[part]]))


def _lab(lab: Lab | None) -> Lab:
    check_type("lab", lab, Lab, None)
    return lab or connect()


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
    """The visits of one user with all that happened: prompts, searches with every score, orders.

    Parameters are those of `repeated_order`, each with one value; `user` is a name among the regular users, or one of
    your own. A control is no agent and has nothing to replay.
    """
    if isinstance(user, str):
        known = {regular.id: regular for regular in load_regulars()}
        if user not in known:
            raise InvalidInputError(f"there is no user {user!r}; there are {', '.join(known)}")
        user = known[user]
    check_type("strategy", strategy, str, Strategy, what="a name or a Strategy")
    check_type("language", language, str)
    chosen_strategies([strategy])
    check_type("seed", seed, int)
    (part, *_) = make_parts([strategy], 1, visits, 1, language, chat_turns_between, menu, False)
    return run_sync(visits_of(replace(part, user=user, seed=seed), _lab(lab)))
