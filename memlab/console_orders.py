"""`memlab orders`: the repeated order under every strategy; a table, the visits as a file, and a picture.

All strategies in all settings take about six minutes on two cores. An interrupted run goes on when it is called again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.console import show, styled
from memlab.errors import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

FULL_VISITS, FULL_SEEDS = 40, 5
PARTS = ".memlab-orders"  # in the folder of the result, while the experiment runs


def add_options(orders: argparse.ArgumentParser) -> None:
    """The options of the command."""
    orders.add_argument("strategy", nargs="*", metavar="STRATEGY", help="names in quotes; all when none is given")
    orders.add_argument("--list", action="store_true", help="list the strategies and stop")
    orders.add_argument("--users", type=int, default=20, help="how many of the 20 regular users")
    orders.add_argument("--visits", type=int, default=12, help="visits of each user")
    orders.add_argument("--seeds", type=int, default=1, help="how often all of it is done, with other ties")
    orders.add_argument("--language", default="zh,en,ru", help="separated by commas")
    orders.add_argument("--chat-turns", default="3,12", help="exchanges between two visits, separated by commas")
    orders.add_argument("--menu", choices=("large", "small"), default="large", help="20 dishes, or 7")
    orders.add_argument("--fresh-ties", action="store_true", help="break ties anew in each visit")
    full = f"{FULL_VISITS} visits and {FULL_SEEDS} seeds: about 17 times the work"
    orders.add_argument("--full", action="store_true", help=full)
    orders.add_argument("--out", default="memlab-orders", metavar="DIR", help="where the visits and the picture go")
    orders.add_argument("--jobs", type=int, default=-1, help="processes at once; -1 for all cores")
    orders.add_argument("--limit-usd", type=float, default=0.05, help="live: refuse what would cost more")


def run(given: argparse.Namespace, screen: Console) -> int:
    """Run the command; 0 when it is done. An interrupted one goes on from what it finished.

    Raises a MemlabError for options that can't be used, and when a live run would cost more than the limit.
    """
    from memlab.experiments.orders.part_files import PartFiles
    from memlab.experiments.orders.parts import make_parts
    from memlab.experiments.orders.results import write_visits
    from memlab.experiments.repeated_order import repeated_order
    from memlab.settings import connect

    if given.list:
        _list(screen)
        return 0
    if given.jobs == 0:
        raise InvalidInputError("--jobs is 0; it must be at least 1, or -1 for all cores")
    folder = Path(given.out)
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"--out is {given.out}, a file; name a folder")
    parts = folder / PARTS
    experiment: dict[str, Any] = {
        "strategies": given.strategy or None,
        "users": given.users,
        "visits": FULL_VISITS if given.full else given.visits,
        "seeds": FULL_SEEDS if given.full else given.seeds,
        "language": [part.strip() for part in given.language.split(",")],
        "chat_turns_between": _numbers("--chat-turns", given.chat_turns),
        "menu": given.menu,
        "fresh_ties": given.fresh_ties,
    }
    try:
        frame = repeated_order(
            **experiment,
            limit_usd=given.limit_usd,
            resume=parts,
            n_jobs=given.jobs,
            progress=sys.stderr.isatty(),
        )
    except KeyboardInterrupt:
        done = len(list(parts.glob("*.json")))
        print(f"\ninterrupted: {done} finished parts are kept in {parts}; the same command goes on", file=sys.stderr)
        raise
    _print_table(frame, screen)
    written = [write_visits(frame, folder).name, *_draw(frame, folder)]
    show(screen, styled(f"\nwritten to {folder}: {', '.join(written)}"))
    if (frame["failed"] == "").all():
        PartFiles(parts, connect()).forget(make_parts(**experiment))  # of no other experiment
    else:
        show(screen, styled("The same command runs the failed parts again, and only those.", "cyan"))
    return 0


def _numbers(option: str, text: str) -> list[int]:
    try:
        return list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise InvalidInputError(f"{option} is {text!r}; it takes whole numbers, as 3,12") from None


def _list(screen: Console) -> None:
    from memlab.experiments.orders.controls import CONTROLS
    from memlab.experiments.orders.strategies import STRATEGIES

    for strategy in STRATEGIES.values():
        show(screen, styled(f"{strategy.name:27}{strategy.about}"))
    for name, control in CONTROLS.items():
        show(screen, styled(f"{name:27}A control: {(control.__doc__ or '').splitlines()[0]}"))


def _draw(frame: pd.DataFrame, folder: Path) -> list[str]:
    """The names of the pictures: none where there is nothing to compare, as with controls alone."""
    from memlab import show as figures
    from memlab.show.style import png

    if not (frame["prompt_tokens"].notna() & frame["repeat"].notna()).any():
        return []
    path = folder / "pareto.png"
    path.write_bytes(png(figures.plot_repeat_pareto(frame)))
    return [path.name]


def _print_table(frame: pd.DataFrame, screen: Console) -> None:
    from rich.table import Table

    from memlab.experiments.orders.summary import summarise_orders

    heads = ("repeats", "95 %", "last order\nvisible", "constraint\nbroken", "utility", "tokens")
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("strategy", no_wrap=True)
    for head in heads:
        table.add_column(head, justify="right")
    for row in summarise_orders(frame, by=["strategy"]).to_dict("records"):
        table.add_row(
            row["strategy"],
            _share(row["repeat_rate"]),
            _range(row["repeat_rate_low"], row["repeat_rate_high"]),
            _share(row["latest_visible"]),
            _share(row["constraint_violations"]),
            "–" if row["utility"] != row["utility"] else f"{row['utility']:.2f}",
            _whole(row["prompt_tokens"]),
        )
    screen.print(table)
    cells = len(frame[["language", "chat_turns"]].drop_duplicates())
    settings = f"{cells} setting{'' if cells == 1 else 's'} of language and chats"
    show(screen, styled(f"\n{len(frame):,} visits; means over {settings}, intervals over users."))
    failures = frame.loc[frame["failed"] != "", "failed"]
    if len(failures):
        text = f"{len(failures):,} visits failed in part or as a whole; the first: {failures.iloc[0]}"
        show(screen, styled(text, "bold red"))


def _share(value: float) -> str:
    return "–" if value != value else f"{value:.0%}"


def _range(low: float, high: float) -> str:
    return "–" if low != low else f"{low:.0%}–{high:.0%}"


def _whole(value: float) -> str:
    return "–" if value != value else f"{value:,.0f}"
