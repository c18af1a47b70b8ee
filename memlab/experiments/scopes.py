"""Who sees whose memories: asked, not assumed. Every participant stores a secret and then asks for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from memlab.agent import Agent
from memlab.providers.memory import ChatHistoryMemoryProvider
from memlab.providers.memory_options import ChatHistoryMemoryProviderOptions, State
from memlab.session import AgentSession
from memlab.settings import Lab
from memlab.stores.base import EVERYONE, SCOPE_FIELDS, MemoryScope, SearchScope
from memlab.stores.in_memory import InMemoryVectorStore

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Who:
    """One participant: a user who talks to an agent of an application, in a session."""

    application_id: str
    agent_id: str
    session_id: str
    user_id: str

    @property
    def label(self) -> str:
        """For the axes of a figure."""
        return f"{self.user_id} {self.session_id} {self.agent_id} {self.application_id}"

    def scope(self, fields: Collection[str]) -> MemoryScope:
        """A scope that sets those of the four fields."""
        return MemoryScope(**{name: getattr(self, name) for name in SCOPE_FIELDS if name in fields})


def participants() -> list[Who]:
    """Two of each: 2 users × 2 sessions × 2 agents × 2 applications."""
    parts = product(("alice", "bob"), ("s1", "s2"), ("waiter", "doctor"), ("web", "app"))
    return [Who(application, agent, session, user) for user, session, agent, application in parts]


async def who_sees_whom(
    lab: Lab,
    storage_fields: Collection[str],
    search_fields: Collection[str] | None = None,
    who: Sequence[Who] | None = None,
) -> pd.DataFrame:
    """Run an agent for each participant and look at which secrets reached its prompt.

    `storage_fields` stamp the records, `search_fields` filter the search: None for the same ones, an empty
    collection for EVERYONE. Returns a Boolean frame: rows ask, columns are asked about.
    """
    import pandas as pd

    who = participants() if who is None else who
    store = InMemoryVectorStore(lab.embedder)
    agents = [_agent(lab, store, one, storage_fields, search_fields, len(who)) for one in who]
    for number, agent in enumerate(agents):
        await agent.run(f"My locker number is {1000 + number}.", session=agent.create_session())
    seen = []
    for agent in agents:
        response = await agent.run("What is my locker number?", session=agent.create_session())
        memories = "".join(m.text for m in response.trace.sent if m.source.kind == "provider")
        seen.append([str(1000 + number) in memories for number in range(len(who))])
    labels = [one.label for one in who]
    return pd.DataFrame(seen, index=labels, columns=labels)


def _agent(
    lab: Lab,
    store: InMemoryVectorStore,
    who: Who,
    storage_fields: Collection[str],
    search_fields: Collection[str] | None,
    max_results: int,
) -> Agent:
    search: SearchScope | None = None
    if search_fields is not None:
        search = who.scope(search_fields) if search_fields else EVERYONE

    def state(session: AgentSession) -> State:
        return State(who.scope(storage_fields), search)

    # All of them are asked for, so that the scope alone decides who is seen.
    options = ChatHistoryMemoryProviderOptions(max_results=4 * max_results)
    return Agent(
        lab.chat,
        context_providers=[ChatHistoryMemoryProvider(store, "lockers", lab.embedder.dimensions, state, options)],
    )


def leaks(seen: pd.DataFrame, who: Sequence[Who] | None = None) -> int:
    """How many pairs of different users see each other's secrets."""
    users = [one.user_id for one in (participants() if who is None else who)]
    return sum(bool(seen.iloc[i, j]) for i, asks in enumerate(users) for j, owner in enumerate(users) if asks != owner)
