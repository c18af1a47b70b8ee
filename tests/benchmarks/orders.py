"""Visits of the repeated order: what a visit costs over the bare model calls in it, and what the whole table takes.

One core does the work here. `memlab orders` uses all cores; its 33,120 visits shall take less than 15 minutes on two,
so a visit may take 54 ms.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from measure import Row

from memlab.experiments.orders.parts import EVERYTHING, Part, run_part
from memlab.experiments.regulars import load_regulars

ALLOWED = 15 * 60 * 2 / 33_120  # seconds a visit


async def orders() -> AsyncIterator[Row]:
    """The mean visit over all strategies, with few and many chats between the visits, against what it may take."""
    user = load_regulars(1)[0]
    _timed(lambda: run_part(_part("vector, top 3", user, 3), None))  # loads the encoder, embeds the chats
    for chats in (3, 12):
        spent = [_timed(lambda name=name, c=chats: run_part(_part(name, user, c), None)) for name in EVERYTHING]
        mean = sum(spent) / len(spent) / 12
        yield Row(f"a visit, {chats} chats between, all strategies", [mean], [ALLOWED], "15 minutes on 2 cores", 1.0)


def _part(strategy: str, user: Any, chats: int) -> Part:
    return Part(strategy, user, visits=12, chat_turns=chats, language="en", seed=0)


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
