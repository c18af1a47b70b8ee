"""The endpoint's clock. It can be set, so that a run gives the same answers, times included, every day."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from memlab.errors import ConfigurationError

_clock: Callable[[], float] | None = None


def set_clock(clock: Callable[[], float] | None) -> None:
    """Take the time from `clock`, a function that returns Unix seconds; None goes back to the default."""
    global _clock
    _clock = clock


def now() -> int:
    """Unix seconds: from the clock that was set, else from `MEMLAB_CLOCK`, else from the computer."""
    if _clock is not None:
        return int(_clock())
    fixed = os.environ.get("MEMLAB_CLOCK", "").strip()
    if not fixed:
        return int(time.time())
    if not fixed.isdecimal():
        raise ConfigurationError(f"MEMLAB_CLOCK is {fixed!r}; it must be whole Unix seconds like 1764547200.")
    return int(fixed)
