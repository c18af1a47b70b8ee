"""Ratios, measured side by side in one run: ours against what it stands on, and against others.

    python tests/benchmarks/run.py [--strict] [--only turn|memory|search|stores|sweep|orders|start]

The members of a row are measured in turns (ours, reference, ours, ...), so that a slow moment of the machine hits
all of them. Times are medians over the rounds, and the ratio is the median of the ratios of each round.
With --strict the exit code is 1 when an aim is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))


def not_installed(missing: ModuleNotFoundError) -> SystemExit:
    """What to run where a package of the tests is missing."""
    command = f'{sys.executable} -m pip install -c constraints.txt -e ".[tests]"'
    return SystemExit(f"{missing.name} is not installed; run: {command}")


try:
    import numpy as np
    from measure import Row, interleaved
    from memory import memories
    from orders import orders
    from rich.console import Console
    from rich.table import Table
    from stores import stores
    from sweep import sweeps
    from threadpoolctl import threadpool_info, threadpool_limits

    from memlab import EVERYONE, InMemoryVectorStore, MemoryRecord, MemoryScope, Message
    from memlab.messages import to_wire
    from memlab.settings import Lab, read_settings
except ModuleNotFoundError as missing:
    raise not_installed(missing) from None

DIMENSIONS, TOP_K = 512, 6


# --- one turn of an agent ---


async def turns() -> AsyncIterator[Row]:
    """A turn that sends 1 and 100 messages, against the bare client with the same request to the same endpoint."""
    lab = Lab(read_settings({}, {}))
    for count in (1, 100):
        said = [Message(("user", "assistant")[i % 2], f"message number {i}, in a few words") for i in range(count - 1)]
        question = "My name is Alice."
        wire = to_wire([*said, Message("user", question)])
        ours, framework = _our_turn(lab, said, question), _framework_turn(lab, said, question)
        checked, unchecked = _bare_call(lab, messages=wire), _bare_call(lab, messages=[], extra_body={"messages": wire})
        times = await interleaved([ours, checked, unchecked, framework], repeats=150 if count == 1 else 20, warm_up=5)
        what = f"agent turn, {count} message{'s' if count > 1 else ''}"
        yield Row(what, times[0], times[1], "bare openai call", 1.3)
        yield Row(what, times[0], times[2], "the same, messages unchecked")
        yield Row(what, times[0], times[3], "Agent Framework's agent", 1.0)


def _our_turn(lab: Lab, said: list[Message], question: str) -> Callable[[], Any]:
    agent = lab.chat.as_agent()

    async def turn() -> None:
        session = agent.create_session()
        session.state["in_memory"] = {"messages": list(said)}
        await agent.run(question, session=session)

    return turn


def _framework_turn(lab: Lab, said: list[Message], question: str) -> Callable[[], Any]:
    from agent_framework import Agent
    from agent_framework import Message as TheirMessage
    from agent_framework.openai import OpenAIChatCompletionClient

    agent = Agent(OpenAIChatCompletionClient(model=lab.model, async_client=lab.client))
    theirs = [TheirMessage(message.role, [message.text]) for message in said]

    async def turn() -> None:
        session = agent.create_session()
        session.state["in_memory"] = {"messages": list(theirs)}
        await agent.run(question, session=session)

    return turn


def _bare_call(lab: Lab, **request: Any) -> Callable[[], Any]:
    async def call() -> None:
        await lab.client.chat.completions.create(model=lab.model, **request)

    return call


# --- search in memory ---


async def searches() -> AsyncIterator[Row]:
    """Search in all records, against the bare product and against faiss, with one thread and with all."""
    rng = np.random.default_rng(0)
    for size, repeats, calls in ((1_000, 60, 50), (10_000, 40, 5), (100_000, 15, 1)):
        matrix = rng.normal(size=(size, DIMENSIONS)).astype(np.float32)
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        query = matrix[0] + 0.05 * rng.normal(size=DIMENSIONS).astype(np.float32)
        query /= np.linalg.norm(query)
        actions = [_our_search(matrix, query), lambda m=matrix, q=query: m @ q, _faiss_search(matrix, query)]
        for threads in (1, os.cpu_count() or 1):
            with _threads(threads):
                times = await interleaved(actions, repeats, calls)
            what = f"search, {size // 1000}k x {DIMENSIONS}, {threads} thread{'s' if threads > 1 else ''}"
            yield Row(what, times[0], times[1], "bare product X @ q", 2.0 if size == 1_000 else 1.2)
            yield Row(what, times[0], times[2], "faiss.IndexFlatIP", None if size == 1_000 else 1.0)


def _our_search(matrix: np.ndarray, query: np.ndarray) -> Callable[[], Any]:
    store = InMemoryVectorStore()
    scopes = [MemoryScope(user_id=f"user {i}") for i in range(10)]
    store.upsert("c", [MemoryRecord(str(i), scope=scopes[i % 10], embedding=v) for i, v in enumerate(matrix)])
    assert store.search("c", query, scope=EVERYONE, top_k=TOP_K)[0].record.text == "0"
    return lambda: store.search("c", query, scope=EVERYONE, top_k=TOP_K)


def _faiss_search(matrix: np.ndarray, query: np.ndarray) -> Callable[[], Any]:
    import faiss

    index = faiss.IndexFlatIP(DIMENSIONS)
    index.add(matrix)
    return lambda: index.search(query[None], TOP_K)


@contextmanager
def _threads(count: int) -> Any:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    with threadpool_limits(count):
        yield
    faiss.omp_set_num_threads(before)


# --- start-up ---


async def starts() -> AsyncIterator[Row]:
    """New processes: importing memlab against starting Python, and the tour against its minute."""
    times = await interleaved([_process("-c", "import memlab"), _process("-c", "pass")], repeats=9)
    yield Row("import memlab, in a new process", *times, "python -c pass")
    if find_spec("memlab.tour"):
        (tour,) = await interleaved([_process("-m", "memlab.cli", "tour")], repeats=1, warm_up=0)
        yield Row("memlab tour, in a new process", tour, [60.0], "a minute", 1.0)
    else:
        print("memlab tour: not measured, there is none yet")


def _process(*arguments: str) -> Callable[[], Any]:
    return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


# --- the table ---

PARTS = {
    "turn": turns,
    "memory": memories,
    "search": searches,
    "stores": stores,
    "sweep": sweeps,
    "orders": orders,
    "start": starts,
}


async def measure(parts: Sequence[str]) -> list[Row]:
    return [row for part in parts async for row in PARTS[part]()]


def threads_in_use() -> str:
    """The thread pools of this process, for example "openblas: 2 threads"."""
    pools = {
        f"{pool['internal_api']} {pool['version'] or ''}: {pool['num_threads']} threads" for pool in threadpool_info()
    }
    return ", ".join(sorted(pools))


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure memlab beside what it stands on and beside others.")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when an aim is missed")
    parser.add_argument("--only", choices=PARTS, help="measure one part")
    given = parser.parse_args()
    try:
        rows = asyncio.run(measure([given.only] if given.only else list(PARTS)))
    except ModuleNotFoundError as missing:
        raise not_installed(missing) from None
    table = Table(title=f"{os.cpu_count()} CPUs, by default {threads_in_use()}")
    for heading in ("what", "ours", "against", "reference", "ratio", "aim", ""):
        table.add_column(heading, justify="right" if heading in ("ours", "reference", "ratio") else "left")
    for row in rows:
        table.add_row(*row.cells())
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    return int(given.strict and any(row.verdict == "MISSED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
