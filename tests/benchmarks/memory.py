"""What a memory provider adds to a turn, with many records in one scope and in a thousand.

The embedder is a stub, so that the provider and the store are measured, not an encoder.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import numpy as np
from measure import Row, interleaved

from memlab import Agent, ChatHistoryMemoryProvider, InMemoryVectorStore, MemoryRecord, MemoryScope, State
from memlab.settings import Lab, read_settings

DIMENSIONS = 512
ME = MemoryScope(user_id="user 0")


class StubEmbedder:
    """Vectors from a seed, at no cost."""

    model, dimensions = "stub", DIMENSIONS

    def embed(self, texts: Sequence[str], role: str = "document") -> np.ndarray:
        """Random unit vectors that depend on the number of texts alone."""
        return _vectors(len(texts))


def _vectors(count: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, DIMENSIONS)).astype(np.float32)


async def memories() -> AsyncIterator[Row]:
    """A turn with memory against one without, and against the same provider within Agent Framework."""
    lab = Lab(read_settings({}, {}))
    sizes = [(1_000, 1), (10_000, 1), (100_000, 1), (1_000, 1_000), (10_000, 1_000), (100_000, 1_000)]
    turns = {}
    for size, scopes in sizes:
        memory = ChatHistoryMemoryProvider(_filled(size, scopes), "c", DIMENSIONS, lambda session: State(ME))
        turns[size, scopes] = _turn(Agent(lab.chat, context_providers=[memory]))
        actions = [turns[size, scopes], _turn(Agent(lab.chat)), _framework_turn(lab, memory)]
        times = await interleaved(actions, repeats=60, warm_up=5)
        what = f"turn with memory, {size // 1000}k records in {scopes} scope{'s' if scopes > 1 else ''}"
        yield Row(what, times[0], times[1], "a turn without memory")
        yield Row(what, times[0], times[2], "the same provider in Agent Framework", 1.0)
    # Both hold 100 records for this user: the cost must follow the scope, not the store.
    small = _turn(
        Agent(lab.chat, context_providers=[ChatHistoryMemoryProvider(_filled(100, 1), "c", 512, lambda s: State(ME))])
    )
    times = await interleaved([turns[100_000, 1_000], small], repeats=60, warm_up=5)
    yield Row("a scope of 100 in a store of 100k", *times, "a scope of 100 alone", 1.5)


def _filled(size: int, scopes: int) -> InMemoryVectorStore:
    store = InMemoryVectorStore(StubEmbedder())
    stamps = [MemoryScope(user_id=f"user {number}") for number in range(scopes)]
    rows = enumerate(_vectors(size))
    store.upsert("c", [MemoryRecord(f"record {i}", scope=stamps[i % scopes], embedding=row) for i, row in rows])
    return store


def _turn(agent: Agent) -> Callable[[], Any]:
    async def turn() -> None:
        await agent.run("My name is Alice.", session=agent.create_session())

    return turn


def _framework_turn(lab: Lab, memory: ChatHistoryMemoryProvider) -> Callable[[], Any]:
    import agent_framework
    from agent_framework.openai import OpenAIChatCompletionClient

    from memlab.interop.agent_framework import adapt

    client = OpenAIChatCompletionClient(model=lab.model, async_client=lab.client)
    agent = agent_framework.Agent(client, context_providers=[adapt(memory)])

    async def turn() -> None:
        await agent.run("My name is Alice.", session=agent.create_session())

    return turn
