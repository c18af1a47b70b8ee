"""What a prompt and a memory show of earlier orders: found by the names of the dishes, in any language.

A name is found in any case and most forms ("сибаса на пару" names Сибас на пару), over line breaks and hyphens. What a
text says of the dishes is not understood: one that names the dishes of an order shows it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache

from memlab.experiments.orders.visits import DishSet, Visit
from memlab.experiments.takeout import MOST_PORTIONS, Dish, Kitchen
from memlab.lexical import tokenize
from memlab.messages import Message
from memlab.stores.base import MemoryRecord

_MOST_DISHES = 2 * MOST_PORTIONS
"""A text that names more dishes than this is a menu, and no order."""


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
    >>> sorted(dishes_in("Заказал вам сибаса на пару", open_kitchen("ru")))
    ['sea_bass']
    """
    return _dishes_in(text, kitchen.dishes)


@lru_cache(maxsize=16384)
def _dishes_in(text: str, dishes: tuple[Dish, ...]) -> DishSet:
    chinese, stems, found = _without_spaces(text), _by_stems(text), set[str]()
    # The longest name first, so that a name that is part of another one is not found inside it.
    for dish in sorted(dishes, key=lambda dish: -len(dish.name)):
        if _CHINESE.search(dish.name):
            if (name := _without_spaces(dish.name)) in chinese:
                found.add(dish.id)
                chinese = chinese.replace(name, "\0")
        elif (name := _by_stems(dish.name)) in stems:
            found.add(dish.id)
            stems = stems.replace(name, " \0 ")
    return frozenset(found)


_CHINESE = re.compile(r"[\u3400-\u9fff]")
_WORD_OR_STOP = re.compile(r"[^\W_\u3400-\u9fff]+|[.,;:!?()…]")


def _without_spaces(text: str) -> str:
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=16384)
def _by_stems(text: str) -> str:
    """The words by their stems, a space around each, with the marks that end a phrase: names don't go over these."""
    plain = unicodedata.normalize("NFKC", text).lower().replace("ё", "е")
    return f" {' '.join((tokenize(part) or (part,))[0] for part in _WORD_OR_STOP.findall(plain))} "


def type_of(record: MemoryRecord, visit: Visit) -> RecordType:
    """What a record is about. One that holds a request and its answer counts as an order."""
    if dishes_in(record.text, visit.kitchen):
        return RecordType.ORDER
    if record.text == visit.customer.request:
        return RecordType.REQUEST
    return RecordType.FIRST_REQUEST if record.text == visit.customer.first_request else RecordType.CHAT


def visible_orders(visit: Visit) -> list[DishSet]:
    """The earlier orders that the model could see when it chose: in the history, and in memories in its prompt.

    What a tool brought after the choice, and a menu, which names more dishes than an order holds, do not count.
    """
    prompt = prompt_text(visit)
    remembered = [record.text for record in visit.retrieved if record.text in prompt]
    return _orders([*_said(visit.prompt), *remembered], visit.kitchen)


def _orders(texts: Iterable[str], kitchen: Kitchen) -> list[DishSet]:
    return [dishes for text in texts if 0 < len(dishes := dishes_in(text, kitchen)) <= _MOST_DISHES]


def _said(messages: Sequence[Message]) -> list[str]:
    """The answers and the order calls of the history."""
    history = [message for message in messages if message.source.kind == "history"]
    texts = [message.text for message in history if message.role == "assistant"]
    calls = [call for message in history for call in message.tool_calls if call.name == "PlaceOrder"]
    return [*texts, *(_readable(call.arguments) for call in calls)]


def _readable(arguments: str) -> str:
    """JSON arguments as a model wrote them, with their characters as they are."""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except ValueError:
        return arguments


def prompt_text(visit: Visit) -> str:
    """All that stood in the prompt: texts and tool results."""
    results = [result.result for message in visit.prompt for result in message.tool_results]
    return "\n".join([*(message.text for message in visit.prompt), *results])


def shows_last_order(visit: Visit, visible: Sequence[DishSet]) -> bool:
    """Whether the user's latest order is among the visible ones.

    Some text names all of its dishes, or several do so together that name no other: an order in two calls.
    """
    if not visit.previous:
        return False
    last = visit.previous[0]
    parts = frozenset(dish for dishes in visible if dishes <= last for dish in dishes)
    return last == parts or any(last <= dishes for dishes in visible)


def shows_texts(visit: Visit, texts: Sequence[str]) -> bool:
    """Whether the prompt holds all of these texts: the constraints as the user stated them."""
    prompt = prompt_text(visit)
    return all(text in prompt for text in texts)
