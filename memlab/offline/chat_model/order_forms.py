"""The two forms of an order: arguments of an order tool ({"orderItems": {"番茄炒蛋": 1}}), and words (番茄炒蛋×1).

The first is written here, as the tool's schema wants it. Both are read back, to see which orders were placed before:
a reply and a memory hold words, since tool calls aren't stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memlab.offline.chat_model.conversation import Conversation, Tool
from memlab.offline.chat_model.dishes import Dish


def order_arguments(tool: Tool, meal: tuple[Dish, ...]) -> dict[str, Any]:
    """`{"orderItems": {dish: 1, …}}`, or a list of objects where the schema wants one."""
    name = next((name for name, schema in tool.properties.items() if _holds_items(schema)), None) or "orderItems"
    schema = tool.properties.get(name)
    if isinstance(schema, Mapping) and schema.get("type") == "array":
        return {name: [_item(schema.get("items"), dish) for dish in meal]}
    return {name: {dish.name: 1 for dish in meal}}


def _holds_items(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") in ("object", "array")


def _item(schema: Any, dish: Dish) -> Any:
    """One ordered item by the item schema: a name, or an object with a string and a number field."""
    if not isinstance(schema, Mapping) or schema.get("type") == "string":
        return dish.name
    fields = {name: sub for name, sub in (schema.get("properties") or {}).items() if isinstance(sub, Mapping)}
    return {name: 1 if sub.get("type") in ("integer", "number") else dish.name for name, sub in fields.items()}


def ordered_dishes(arguments: Mapping[str, Any]) -> dict[str, int]:
    """Dish -> quantity from the arguments of an order call."""
    found: dict[str, int] = {}
    for value in arguments.values():
        if isinstance(value, Mapping):
            found |= {str(k): v for k, v in value.items() if isinstance(v, int)}
        for item in value if isinstance(value, list) else []:
            if isinstance(item, str):
                found[item] = 1
            elif isinstance(item, Mapping):
                texts = [v for v in item.values() if isinstance(v, str)]
                numbers = [v for v in item.values() if isinstance(v, int)]
                found |= {texts[0]: (numbers or [1])[0]} if texts else {}
    return found


def dishes_in(text: str, names: list[str]) -> frozenset[str]:
    """The dishes that a text names with a quantity: 番茄炒蛋×1."""
    if not re.search(r"[×xX*✕✖:：]\s*\d|\d+\s*(?:份|[×x])", text):
        return frozenset()
    return frozenset(
        n
        for n in names
        if re.search(
            re.escape(n) + r"[\"'”]?\s*(?:[×xX*✕✖:：]\s*\d|\d+\s*份)|\d\s*[×xX✕]\s*" + re.escape(n), text, re.I
        )
    )


def orders_in_view(conversation: Conversation, names: list[str]) -> list[frozenset[str]]:
    """Dish sets of the orders it can see, the latest first: conversation, then memory blocks as they list them."""
    said = [line.text for line in conversation.history if line.speaker == "assistant"]
    called = [frozenset(ordered_dishes(ex.arguments)) & frozenset(names) for ex in conversation.past_calls]
    remembered = [line.text for line in conversation.memories if line.speaker != "user"]
    found = [dishes_in(text, names) for text in [*reversed(said), *remembered]]
    return [dishes for dishes in [*reversed(called), *found] if dishes]
