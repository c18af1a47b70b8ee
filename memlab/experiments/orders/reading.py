"""What a prompt and a memory show of earlier orders: found by the names of the dishes, in any language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from memlab.experiments.orders.visits import DishSet, Visit
from memlab.experiments.takeout import Kitchen
from memlab.messages import Message
from memlab.stores.base import MemoryRecord


class RecordType(StrEnum):
    """What a memory of the ordering agent is about."""

    FIRST_REQUEST = "first request"
    REQUEST = "request"
    ORDER = "order"
    CHAT = "chat"


def dishes_in(text: str, kitchen: Kitchen) -> DishSet:
    """The ids of the dishes that a text names.

    >>> from memlab.experiments.takeout import open_kitchen
    >>> sorted(dishes_in("荤菜：番茄炒蛋×1，素菜：清炒菜心×1", open_kitchen("zh")))
    ['choy_sum', 'egg_tomato']
    """
    lower, found = text.lower(), set[str]()
    # The longest name first, so that a name that is part of another one is not found inside it.
    for dish in sorted(kitchen.dishes, key=lambda dish: -len(dish.name)):
        if dish.name.lower() in lower:
            found.add(dish.id)
            lower = lower.replace(dish.name.lower(), "\0")
    return frozenset(found)


def type_of(record: MemoryRecord, visit: Visit) -> RecordType:
    """What a record is about. One that holds a request and its answer counts as an order."""
    if dishes_in(record.text, visit.kitchen):
        return RecordType.ORDER
    if record.text == visit.customer.request:
        return RecordType.REQUEST
    return RecordType.FIRST_REQUEST if record.text == visit.customer.first_request else RecordType.CHAT


def orders_in(records: Iterable[MemoryRecord], kitchen: Kitchen) -> list[DishSet]:
    """The orders that records tell of."""
    return [dishes for record in records if (dishes := dishes_in(record.text, kitchen))]


def visible_orders(visit: Visit) -> list[DishSet]:
    """The earlier orders that the model could see: in the history it was sent, and in retrieved memories.

    A menu in the history names every dish and is no order.
    """
    return [*_orders_said(visit.prompt, visit.kitchen), *orders_in(visit.retrieved, visit.kitchen)]


def _orders_said(messages: Sequence[Message], kitchen: Kitchen) -> list[DishSet]:
    history = [message for message in messages if message.source.kind == "history"]
    texts = [message.text for message in history if message.role == "assistant"]
    texts += [call.arguments for message in history for call in message.tool_calls if call.name == "PlaceOrder"]
    return [dishes for text in texts if (dishes := dishes_in(_readable(text), kitchen))]


def _readable(text: str) -> str:
    return text.encode().decode("unicode_escape") if "\\u" in text else text


def shows_last_order(visit: Visit, visible: Sequence[DishSet]) -> bool:
    """Whether the user's latest order is among the visible ones: some text names all of its dishes."""
    return bool(visit.previous) and any(visit.previous[0] <= dishes for dishes in visible)


def shows_texts(visit: Visit, texts: Sequence[str]) -> bool:
    """Whether the prompt holds all of these texts: the constraints as the user stated them."""
    prompt = "\n".join(message.text for message in visit.prompt)
    return all(text in prompt for text in texts)
