"""Agents are asynchronous; here they run for synchronous code, notebooks and widget callbacks included."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` on a private event loop in a thread of its own, and give its result or raise what it raises.

    The loop is the same each time, so that clients made on it can be used again. `asyncio.run` would fail where a loop
    is running already, as in a notebook.

    >>> async def answer() -> int:
    ...     return 42
    >>> run_sync(answer())
    42
    """
    waiting = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return waiting.result()
    except BaseException:
        waiting.cancel()  # Ctrl-C must stop the work, too
        raise


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="memlab-agents", daemon=True).start()
    return loop
