"""Fill a JSON schema from the conversation: known facts by property name, else the text or a neutral value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memlab.offline.chat_model.book import FactBook
from memlab.offline.chat_model.conversation import Conversation, read
from memlab.offline.chat_model.text import content_words

_BY_NAME = (
    ("name", r"^(?:user_?|full_?|first_?)?name$|姓名|名字|имя"), ("like", r"like(?!ly)|favou?rite|hobb|interest|喜欢|爱好|люб"), ("dislike", r"dislike|hate|讨厌|не_?люб"),  # noqa: E501
    ("allergy", r"allerg|过敏|аллерг"), ("lives", r"city|address|location|live|residence|住|城市|地址|город|адрес"), ("from", r"home_?town|origin|country|来自|家乡|откуда"),  # noqa: E501
    ("job", r"job|occupation|profession|职业|工作|професс|работа"), ("age", r"^age$|年龄|возраст"), ("birthday", r"birth|生日|рожд"),  # noqa: E501
)  # fmt: skip
_PLACE_LEAD = re.compile(r"^(?:in|at|near|on|в|во|на)\s+", re.I)
_DEEPEST = 12


def fill_schema(schema: Mapping[str, Any], request: Mapping[str, Any], text: str) -> Any:
    """A JSON value that conforms to `schema`.

    Knows object, array, string, number, integer, boolean, null, enum, const, $ref into $defs, anyOf/oneOf/allOf,
    required, and type lists. Strings come from known facts by property name ("name" -> the user's name), else
    from `text`; numbers from facts or the bounds; a required property is always filled.

    >>> fill_schema({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    ...             {"messages": [{"role": "user", "content": "I'm Anna"}]}, "ok")
    {'name': 'Anna'}
    """
    return _Filler(schema, read(request), text).value(schema, "", 0)


class _Filler:
    def __init__(self, root: Any, conversation: Conversation, text: str) -> None:
        self.root, self.facts, self.text = root, conversation.facts, text

    def value(self, schema: Any, name: str, depth: int) -> Any:
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._of_enum(schema["enum"])
        kind = self._type(schema)
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        if kind == "string":
            return self._string(schema, name)
        if kind in ("number", "integer"):
            return self._number(schema, name, kind)
        return False if kind == "boolean" else None

    def _resolved(self, schema: Any) -> dict[str, Any]:
        """The schema behind $ref, with the first fitting branch of anyOf/oneOf and all of allOf merged in."""
        for _ in range(_DEEPEST):
            if not isinstance(schema, Mapping):
                return {}
            merged = dict(schema)
            if isinstance(merged.get("$ref"), str):
                merged = {**self._target(merged.pop("$ref")), **merged}
            branches = [self._branch(merged.pop(word)) for word in ("anyOf", "oneOf") if word in merged]
            parts = [*branches, *(merged.pop("allOf", None) or [])]
            for part in parts:
                merged = {**merged, **part} if isinstance(part, Mapping) else merged
            if not parts and merged == schema:
                return merged
            schema = merged
        return dict(schema)

    def _branch(self, branches: Any) -> Any:
        real = [b for b in branches or [] if isinstance(b, Mapping)]
        return next((b for b in real if b.get("type") != "null"), real[0] if real else {})

    def _target(self, ref: str) -> dict[str, Any]:
        node: Any = self.root
        for part in ref.lstrip("#/").split("/") if ref != "#" else []:
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
        return dict(node) if isinstance(node, Mapping) else {}

    def _type(self, schema: Mapping[str, Any]) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((k for k in kind if k != "null"), "null")
        if isinstance(kind, str):
            return kind
        return "object" if "properties" in schema else "array" if "items" in schema else "string"

    def _of_enum(self, options: list[Any]) -> Any:
        """The option that the text names, else the first."""
        return next((o for o in options if isinstance(o, str) and o and o.lower() in self.text.lower()), options[0])

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties") or {}
        required = schema.get("required") or []
        names = [name for name in properties if depth < _DEEPEST // 2 or name in required]
        if depth > _DEEPEST:
            names = []
        filled = {name: self.value(properties[name], name, depth + 1) for name in names}
        return filled | {name: self.text for name in required if name not in filled and depth <= _DEEPEST}

    def _array(self, schema: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        items = self._resolved(schema.get("items"))
        kind = _kind_of(name)
        most = schema.get("maxItems")
        if self._type(items) == "string" and kind and not items.get("enum"):
            values: list[Any] = [fact.value for fact in self.facts.of(kind)]
        else:
            values = []
        while len(values) < int(schema.get("minItems") or 0) and depth <= _DEEPEST:
            values.append(self.value(schema.get("items"), name, depth + 1))
        return values[: int(most)] if isinstance(most, int) else values

    def _string(self, schema: Mapping[str, Any], name: str) -> str:
        text = fact_value(self.facts, name) or self.text
        if schema.get("format") in _FORMATS:
            return _FORMATS[str(schema["format"])]
        text = text.ljust(int(schema.get("minLength") or 0), ".")
        return text[: int(schema["maxLength"])] if isinstance(schema.get("maxLength"), int) else text

    def _number(self, schema: Mapping[str, Any], name: str, kind: str) -> int | float:
        digits = re.search(r"-?\d+(?:\.\d+)?", fact_value(self.facts, name))
        number = float(digits.group()) if digits else 0.0
        low, high = schema.get("minimum"), schema.get("maximum")
        above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        low = above + 1 if isinstance(above, int | float) else low
        high = below - 1 if isinstance(below, int | float) else high
        number = max(number, low) if isinstance(low, int | float) else number
        number = min(number, high) if isinstance(high, int | float) else number
        step = schema.get("multipleOf")
        if isinstance(step, int | float) and step > 0:
            number = -(-number // step) * step
        return int(number) if kind == "integer" or float(number).is_integer() else number


_FORMATS = {"date": "1970-01-01", "date-time": "1970-01-01T00:00:00Z", "time": "00:00:00Z", "email": "unknown@example.org", "uri": "https://example.org", "uuid": "00000000-0000-0000-0000-000000000000"}  # fmt: skip  # noqa: E501


def _kind_of(name: str) -> str | None:
    name = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
    hits = [kind for kind, pattern in _BY_NAME if re.search(pattern, name)]
    return "dislike" if "dislike" in hits else (hits[0] if hits else None)


def fact_value(facts: FactBook, name: str) -> str:
    """The latest fact for a property name, or ""."""
    wanted = content_words(re.sub(r"([a-z])([A-Z])", r"\1 \2", name).replace("_", " "))
    values = [f.value for f in facts.of("attr") if wanted and wanted == content_words(f.key)]
    kind = _kind_of(name)
    values = values or ([fact.value for fact in facts.of(kind)] if kind else [])
    return _PLACE_LEAD.sub("", values[-1]) if values else ""
