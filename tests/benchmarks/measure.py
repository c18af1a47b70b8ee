"""How a row of the table is measured: its members in turns, medians over the rounds."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds of ours and of the reference in each round, and the ratio that was aimed at."""

    what: str
    ours: Sequence[float]
    reference: Sequence[float]
    against: str
    aim: float | None = None

    @property
    def ratio(self) -> float:
        return median(ours / reference for ours, reference in zip(self.ours, self.reference, strict=True))

    @property
    def verdict(self) -> str:
        return "" if self.aim is None else "ok" if self.ratio <= self.aim else "MISSED"

    def cells(self) -> list[str]:
        aim = "" if self.aim is None else f"<= {self.aim:g}"
        ours, reference = _time(median(self.ours)), _time(median(self.reference))
        return [self.what, ours, self.against, reference, f"{self.ratio:.2f}", aim, self.verdict]


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} us"


async def interleaved(
    actions: Sequence[Callable[[], Any]], repeats: int, calls: int = 1, warm_up: int = 2
) -> list[list[float]]:
    """The seconds of one call of each action (a function or a coroutine function) in each round, in turns."""
    times: list[list[float]] = [[] for _ in actions]
    gc.collect()
    gc.disable()  # a pause of the collector would hit whoever happens to run
    try:
        for repeat in range(repeats + warm_up):
            for action, seconds in zip(actions, times, strict=True):
                taken = await _timed(action, calls)
                if repeat >= warm_up:
                    seconds.append(taken / calls)
    finally:
        gc.enable()
    return times


async def _timed(action: Callable[[], Any], calls: int) -> float:
    wait = asyncio.iscoroutinefunction(action)
    started = time.perf_counter()
    for _ in range(calls):
        if wait:
            await action()
        else:
            action()
    return time.perf_counter() - started
