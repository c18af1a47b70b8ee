"""The strategies against the repeated order, each a configuration of the providers that exist.

The agent, its instructions and its tools are the same for all of them. What differs is the list of providers, and
whether one session goes on from visit to visit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memlab.errors import InvalidInputError
from memlab.experiments.takeout import Kitchen, user_of
from memlab.messages import Message
from memlab.providers.base import ContextProvider
from memlab.providers.history import InMemoryHistoryProvider
from memlab.providers.memory import ChatHistoryMemoryProvider
from memlab.providers.memory_options import ChatHistoryMemoryProviderOptions, SearchTime, State, all_messages
from memlab.providers.reducers import MessageCountReducer
from memlab.providers.tracking import MessageProvider
from memlab.session import AgentSession
from memlab.stores.base import MemoryScope, VectorStore

NEWEST_ORDERS = 5


@dataclass(frozen=True)
class Shop:
    """What the providers of a strategy are built from: the kitchen, a store for memories, and the time."""

    kitchen: Kitchen
    store: VectorStore
    dimensions: int
    clock: Callable[[], datetime]

    def memory(self, collection: str = "chat_history_memory", **options: Any) -> ChatHistoryMemoryProvider:
        """A memory of the session's user; `options` are those of `ChatHistoryMemoryProviderOptions`."""
        chosen = {"clock": self.clock, "state_key": collection, **options}
        return ChatHistoryMemoryProvider(
            self.store,
            collection,
            self.dimensions,
            _of_the_user,
            ChatHistoryMemoryProviderOptions(**chosen),
        )

    def order_log(self, **options: Any) -> ChatHistoryMemoryProvider:
        """A log of the orders that were placed, and of nothing else; asked for the newest, whatever the request."""
        chosen: dict[str, Any] = {
            "rank": "newest",
            "where": {"kind": "order"},
            "max_results": NEWEST_ORDERS,
            "record_template": "{date}: {text}",
            "context_prompt": self.kitchen.texts["order_log_prompt"],
            "storage_input_request_message_filter": nothing,
            "storage_input_response_message_filter": nothing,
        }
        return self.memory("orders", **{**chosen, **options})


def _of_the_user(session: AgentSession) -> State:
    return State(MemoryScope(user_id=user_of(session)))


def nothing(messages: list[Message]) -> list[Message]:
    """The filter that lets no message through."""
    return []


@dataclass(frozen=True)
class Strategy:
    """A name, one sentence, and the providers; `one_session` keeps a session from visit to visit.

    `logs_orders`: the order tool reports a placed order as an event, which a memory provider stores at once.
    """

    name: str
    about: str
    providers: Callable[[Shop], list[ContextProvider]]
    one_session: bool = False
    logs_orders: bool = False


def _vector(name: str, about: str, **options: Any) -> Strategy:
    return Strategy(name, about, lambda shop: [shop.memory(**options)])


def _history(name: str, about: str, reducer: MessageCountReducer | None = None) -> Strategy:
    return Strategy(name, about, lambda shop: [InMemoryHistoryProvider(reducer=reducer)], one_session=True)


def _instruction(shop: Shop) -> MessageProvider:
    return MessageProvider(shop.kitchen.texts["variety"])


def _log_and_tastes(shop: Shop) -> list[ContextProvider]:
    """The log tells what was ordered. The search asks, whatever the request, what the user may not and likes to eat."""
    question = [Message("user", shop.kitchen.texts["taste_question"])]
    tastes = shop.memory(
        rank="hybrid",  # a chat may be nearer to the question than what the user said once; its words are not
        where={"kind": "message", "role": "user"},
        deduplicate=True,
        search_input_message_filter=lambda said: question,
    )
    return [shop.order_log(), tastes]


def _last_orders_tool(shop: Shop) -> list[ContextProvider]:
    return [
        shop.order_log(
            search_time=SearchTime.ON_DEMAND_FUNCTION_CALLING,
            function_tool_name="GetLastOrders",
            function_tool_description=shop.kitchen.texts["last_orders_description"],
        )
    ]


_ALL = (
    Strategy("no memory", "Each request goes alone.", lambda shop: []),
    _history("full history", "One session goes on for ever, and all of it is sent."),
    _history("last 6 messages", "One session; the newest 6 messages are sent.", MessageCountReducer(6)),
    _history("last 20 messages", "One session; the newest 20 messages are sent.", MessageCountReducer(20)),
    _vector("vector, top 3", "The 3 memories most similar to the request."),
    _vector("vector, top 6", "The 6 most similar.", max_results=6),
    _vector("vector, top 20", "The 20 most similar.", max_results=20),
    _vector("vector, threshold 0.3", "The 3 most similar, if their cosine is 0.3 or more.", threshold=0.3),
    Strategy(
        "instruction after memory",
        "“Vary the orders” as a message, added after the memory has searched.",
        lambda shop: [shop.memory(), _instruction(shop)],
    ),
    Strategy(
        "instruction before memory",
        "The same message, added before; the search looks at the caller's messages alone.",
        lambda shop: [_instruction(shop), shop.memory()],
    ),
    Strategy(
        "instruction in the search",
        "The same message, added before, and the search filter widened to all messages.",
        lambda shop: [_instruction(shop), shop.memory(search_input_message_filter=all_messages)],
    ),
    _vector("requests not stored", "Only answers are remembered.", storage_input_request_message_filter=nothing),
    _vector("turn as one record", "Request and answer are one record.", store_turns_as_one=True),
    _vector("MMR", "The 3 most similar that are unlike one another.", rank="mmr"),
    _vector("recency", "Similarity and recency, half and half.", rank="recency"),
    _vector("deduplicated", "The same text is stored once.", deduplicate=True),
    Strategy(
        "orders by similarity",
        "Orders are records of their own kind; of these the 3 most similar.",
        lambda shop: [shop.memory(where={"kind": "order"})],
        logs_orders=True,
    ),
    Strategy(
        "orders by recency",
        "Of the order records, similarity and recency, half and half.",
        lambda shop: [shop.memory(where={"kind": "order"}, rank="recency")],
        logs_orders=True,
    ),
    Strategy(
        "order log",
        f"The newest {NEWEST_ORDERS} orders of the user.",
        lambda shop: [shop.order_log()],
        logs_orders=True,
    ),
    Strategy(
        "last-orders tool", "The same log behind a tool that the model calls.", _last_orders_tool, logs_orders=True
    ),
    Strategy(
        "order log + tastes",
        "The log for what was ordered, similarity for what the user may and likes to eat.",
        _log_and_tastes,
        logs_orders=True,
    ),
)

STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in _ALL}
"""All strategies by name, in the order of the lesson."""


def chosen_strategies(names: Sequence[str | Strategy] | None = None) -> list[Strategy]:
    """Strategies by name; None for all. A `Strategy` of one's own stays as it is."""
    found = []
    for name in STRATEGIES if names is None else names:
        if isinstance(name, str) and name not in STRATEGIES:
            raise InvalidInputError(f"there is no strategy {name!r}; there are {', '.join(STRATEGIES)}")
        found.append(STRATEGIES[name] if isinstance(name, str) else name)
    return found
