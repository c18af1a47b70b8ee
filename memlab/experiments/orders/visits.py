"""Visits through the real pipeline: request, memory, tool loop, order; after each, chats about other things."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from memlab.agent import Agent
from memlab.errors import MemlabError
from memlab.experiments.orders.clock import SimulatedClock
from memlab.experiments.orders.strategies import Shop, Strategy
from memlab.experiments.takeout import Kitchen
from memlab.messages import Message, new_id
from memlab.providers.base import SessionContext
from memlab.response import AgentResponse, ChatClient
from memlab.session import AgentSession
from memlab.stores.base import Embeds, MemoryRecord, MemoryScope
from memlab.stores.in_memory import InMemoryVectorStore
from memlab.trace import Search, Trace
from memlab.turn import AgentRunError

DishSet = frozenset[str]

_TOO_MANY = 3  # failures in a row
_MAY_PASS = (408, 409, 429)  # and what a server says of itself, from 500 on


@dataclass(frozen=True)
class Customer:
    """Who comes, and what they say: the first request states taste and constraints, the later ones do not."""

    id: str
    first_request: str
    request: str


@dataclass(frozen=True)
class Visit:
    """One visit: the request, the trace of the run and what was ordered.

    `order` maps dish ids to quantities, all orders of the visit together. An order counts once it was placed, even if
    the run failed after it: `error` then says how, and `response` is None. `previous` holds the earlier orders, the
    latest first; visits without an order left out. `stored` are all records of the user when the visit began.
    """

    number: int
    customer: Customer
    request: str
    order: dict[str, int]
    previous: tuple[DishSet, ...]
    kitchen: Kitchen
    response: AgentResponse | None = None
    trace: Trace = field(default_factory=Trace, repr=False)
    error: str = ""
    stored: Sequence[MemoryRecord] = field(default=(), repr=False)

    @property
    def dishes(self) -> DishSet:
        """The canonical ids of the dishes that were ordered."""
        return frozenset(self.order)

    @property
    def prompt(self) -> Sequence[Message]:
        """The messages that the model had when it decided on the order: those of the request before the order."""
        before = [call for call in self.trace.calls if not _places_order(call.messages[self._sent :])]
        return before[-1].messages if before else []

    @property
    def _sent(self) -> int:
        return len(self.trace.sent)

    @property
    def searches(self) -> list[Search]:
        """What the memory searched."""
        return self.trace.searches

    @property
    def retrieved(self) -> list[MemoryRecord]:
        """The records that the searches kept, best first, a search after the other."""
        return [search.candidates[place] for search in self.searches for place in search.kept]


def _places_order(messages: Sequence[Message]) -> bool:
    return any(call.name == "PlaceOrder" for message in messages for call in message.tool_calls)


@dataclass(frozen=True)
class Step:
    """One visit to come: who, with which request, and the exchanges (said, answered) that follow it."""

    customer: Customer
    request: str
    chats: Sequence[tuple[str, str]] = ()


def steps_of(customer: Customer, chats: Sequence[Sequence[tuple[str, str]]]) -> list[Step]:
    """A visit for each entry of `chats`, the exchanges that follow it."""
    requests = [customer.first_request, *[customer.request] * (len(chats) - 1)]
    return [Step(customer, *pair) for pair in zip(requests, chats, strict=True)]


async def walk(
    steps: Sequence[Step],
    strategy: Strategy,
    kitchen: Kitchen,
    client: ChatClient,
    embedder: Embeds,
    dimensions: int,
    seed_of: Callable[[int], int] | None = None,
) -> AsyncIterator[Visit]:
    """The visits, one a day, each followed by its chats; all customers share one agent and one store.

    Parameters
    ----------
    kitchen : one without orders; `logs_orders` is set as the strategy wants it.
    client, embedder, dimensions : the model, and what makes the vectors of the memories.
    seed_of : the seed of a visit, by its number; it breaks ties in the classroom model. None for none.

    A run that fails for a reason that may pass is a visit with an `error`. What no later run could do better, a wrong
    key, an empty account, a bug, is raised, and so is the third failure in a row.
    Chats go through the storing of the providers as a run's exchange does; no model is called for them.
    """
    kitchen.logs_orders = strategy.logs_orders
    clock, store = SimulatedClock(), InMemoryVectorStore(embedder)
    providers = strategy.providers(Shop(kitchen, store, dimensions, clock))
    agent = kitchen.agent(client, providers)
    going_on: dict[str, AgentSession] = {}
    previous: dict[str, tuple[DishSet, ...]] = {}
    failures = 0
    for number, step in enumerate(steps, start=1):
        who = step.customer.id
        session = _session(agent, who)
        if strategy.one_session:
            session = going_on.setdefault(who, session)
        before, stored = len(kitchen.orders), _all_records(store, who)
        response, trace, error = None, Trace(), ""
        try:
            options = {"seed": seed_of(number)} if seed_of else {}
            response = await agent.run(step.request, session=session, options=options)
            trace, failures = response.trace, 0
        except Exception as failure:
            failures += 1
            if failures == _TOO_MANY or not _may_pass(failure):
                raise
            error = _in_words(failure)
            trace = getattr(failure, "trace", trace)
        order, past = _together(kitchen.orders[before:]), previous.get(who, ())
        yield Visit(number, step.customer, step.request, order, past, kitchen, response, trace, error, stored)
        previous[who] = (frozenset(order), *past) if order else past
        clock.forward(hours=1)
        later = going_on.get(who) or _session(agent, who)
        for said, answered in step.chats:
            clock.forward(minutes=1)
            await store_exchange(agent, later, said, answered)
        clock.forward(hours=23, minutes=-len(step.chats))


def _may_pass(failure: Exception) -> bool:
    """Whether the next visit may do better: the service was busy or away, or the model went on calling tools."""
    import openai

    cause = failure.__cause__ if isinstance(failure, AgentRunError) else failure
    if cause is None or isinstance(cause, openai.APIConnectionError | ConnectionError):
        return True
    status, code = getattr(cause, "status_code", None), getattr(cause, "code", None)
    return isinstance(status, int) and (status in _MAY_PASS or status >= 500) and code != "insufficient_quota"


def _in_words(failure: Exception) -> str:
    cause = failure.__cause__ if isinstance(failure, AgentRunError) and failure.__cause__ else failure
    return f"{type(failure).__name__}: {cause}"[:200]


def _session(agent: Agent, user_id: str) -> AgentSession:
    session = agent.create_session()
    session.state["user_id"] = user_id
    return session


def _together(orders: Sequence[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for order in orders:
        for dish, count in order.items():
            total[dish] = total.get(dish, 0) + count
    return total


def _all_records(store: InMemoryVectorStore, user_id: str) -> list[MemoryRecord]:
    scope = MemoryScope(user_id=user_id)
    return [record for name in ("chat_history_memory", "orders") for record in store.scan(name, scope=scope)]


async def store_exchange(agent: Agent, session: AgentSession, said: str, answered: str) -> None:
    """Let the agent's providers store an exchange as if a run had just ended with it. No model is called.

    Raises MemlabError when a provider failed to store it.
    """
    answer = Message("assistant", answered, message_id=new_id(), author_name=agent.name)
    context = SessionContext(
        [Message("user", said, message_id=new_id())], session_id=session.session_id, response=AgentResponse([answer])
    )
    for provider in reversed(agent.context_providers):
        state = session.state.setdefault(provider.source_id, {})
        await provider.after_run(agent=agent, session=session, context=context, state=state)
    if context.trace.failures:
        raise MemlabError(f"an exchange could not be stored: {context.trace.failures[0]}")
