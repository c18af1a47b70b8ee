"""Any other tool: call it when the question names what it does and its arguments can be read off."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memlab.offline.chat_model import search_tool
from memlab.offline.chat_model.conversation import Conversation, Tool
from memlab.offline.chat_model.schema import fill_schema
from memlab.offline.chat_model.text import content_words, fold, trim
from memlab.offline.chat_model.turn import Call, Turn

# One row a topic: words that mean the same in a question and in a tool's name, whatever the language.
_TOPICS = (
    r"weather|temperature|forecast|天气|气温|预报|погод|температур", r"\btime\b|clock|几点|时间|который час|время", r"translat|翻译|перевод|переведи",  # noqa: E501
    r"calculat|\badd\b|\bsum\b|plus|multipl|计算|加|乘|等于|вычисл|сложи|плюс|сколько будет", r"price|stock|cost|价格|股价|多少钱|цен[аы]|стоит|курс", r"news|新闻|новост", r"\bdate\b|\btoday\b|日期|今天几号|какое сегодня|дата",  # noqa: E501
)  # fmt: skip
_TOPIC_RE = tuple(re.compile(pattern, re.I) for pattern in _TOPICS)
_GENERIC = content_words(
    "get find fetch list return returns current given user tool function for use call provide lookup show make new information data value text string number city location name set run"  # noqa: E501
)
_NOISE = re.compile(
    r"怎么样|如何|是多少|多少|什么|现在|今天|明天|请问|请|帮我|查一下|查查|查询|查|告诉我|的|呢|吗|？|\?|。|，|！|在|一下|几点|了|有|是|会|度"
)
RESULT = {"zh": "工具 {n} 的结果：{t}", "en": "The tool {n} says: {t}", "ru": "Инструмент {n} отвечает: {t}"}
_LONGEST_RESULT = 1500


def use_tool(conversation: Conversation) -> Turn | None:
    """Phrase a result that has come back, or call the tool that the question names."""
    done = [ex for ex in conversation.exchanges if ex.result is not None and not _is_search(conversation, ex.name)]
    if done:
        return Turn(" ".join(_phrase(ex.name, ex.result or "", conversation.lang) for ex in done[-4:]), skill="tool")
    calls = [call for tool in conversation.tools if (call := _call(tool, conversation)) is not None]
    if not calls:
        return None
    single = conversation.request.get("parallel_tool_calls") is False
    return Turn(None, tuple(calls[:1] if single else calls[:3]), skill="tool")


def _phrase(name: str, result: str, lang: str) -> str:
    if search_tool.failed(result):
        return search_tool.failure(result, lang)
    return RESULT[lang].replace("{n}", name).replace("{t}", result.strip()[:_LONGEST_RESULT])


def _is_search(conversation: Conversation, name: str) -> bool:
    tool = search_tool.search_tool(conversation)
    return tool is not None and tool.name == name


def _call(tool: Tool, conversation: Conversation) -> Call | None:
    text = conversation.question
    if len(text) > 500 or not names_tool(tool, text):
        return None
    arguments = {name: read_argument(name, tool.properties.get(name), text) for name in tool.required}
    return (
        None
        if any(value is None for value in arguments.values())
        else Call(tool.name, _spread_numbers(arguments, text))
    )


def names_tool(tool: Tool, text: str) -> bool:
    """Whether a question speaks of what the tool does: a shared topic, or a shared word of its name."""
    label = re.sub(r"([a-z])([A-Z])", r"\1 \2", tool.name).replace("_", " ")
    if any(topic.search(fold(text)) and topic.search(f"{label} {tool.description}") for topic in _TOPIC_RE):
        return True
    words = content_words(label) - _GENERIC
    return bool(words) and words <= content_words(text)


def read_argument(name: str, schema: Any, text: str) -> Any:
    """One argument read off the question; None when it isn't there."""
    schema = schema if isinstance(schema, Mapping) else {}
    if schema.get("enum"):
        return next(
            (option for option in schema["enum"] if isinstance(option, str) and option.lower() in text.lower()), None
        )
    kind = schema.get("type", "string")
    numbers = re.findall(r"-?\d+(?:\.\d+)?", text)
    if kind in ("integer", "number"):
        return (int(float(numbers[0])) if kind == "integer" else float(numbers[0])) if numbers else None
    return _string_argument(name, text) if kind == "string" else None


def _string_argument(name: str, text: str) -> str | None:
    quoted = re.search(r"[\"“«「]([^\"”»」]{1,200})[\"”»」]", text)
    if quoted:
        return quoted[1]
    if re.search(r"expression|formula|equation", name, re.I):
        found = re.search(r"[\d(][\d\s+\-*/().^]*\d\)?", text)
        return found.group().strip() if found else None
    place = re.search(
        r"\b(?:in|for|at|of|from|to|в|во|на|для)\s+(?P<v>[A-ZА-ЯЁ][\w'-]*(?:[ -][A-ZА-ЯЁ][\w'-]*)*)", text
    )
    if place:
        return place["v"]
    if re.search(r"[\u3400-\u9fff]", text):
        rest = _NOISE.sub("", text)
        for topic in _TOPIC_RE:
            rest = topic.sub("", fold(rest)) if topic.search(fold(rest)) else rest
        return trim(rest) or None
    loose = re.search(
        r"\b(?:in|for|of|about|в|во|о|про)\s+(?P<v>[\w' -]{2,40}?)\s*(?:today|tomorrow|now|right now|сегодня|сейчас|завтра)?\W*$",  # noqa: E501
        text,
        re.I,
    )
    if loose:
        return loose["v"]
    return text if re.search(r"query|question|text|message|input|prompt", name, re.I) else None


def _spread_numbers(arguments: dict[str, Any], text: str) -> dict[str, Any]:
    """Several number parameters take the numbers of the question in order."""
    numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", text)]
    slots = [
        name for name, value in arguments.items() if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if len(slots) > 1 and len(numbers) >= len(slots):
        return arguments | {
            n: int(v) if isinstance(arguments[n], int) else v for n, v in zip(slots, numbers, strict=False)
        }
    return arguments


def forced(conversation: Conversation) -> Turn | None:
    """Obey `tool_choice`: a named function, or (when no skill wanted a call) "required"."""
    choice = conversation.request.get("tool_choice")
    named = choice.get("function", {}).get("name") if isinstance(choice, Mapping) else None
    tool = next((tool for tool in conversation.tools if tool.name == named), None)
    return _forced_call(tool, conversation) if tool else None


def required(conversation: Conversation) -> Turn | None:
    """ "required" when no skill has asked for a call: the tool the question names, else the first."""
    if conversation.request.get("tool_choice") != "required" or not conversation.tools:
        return None
    tool = next((t for t in conversation.tools if names_tool(t, conversation.question)), conversation.tools[0])
    return _forced_call(tool, conversation)


def _forced_call(tool: Tool, conversation: Conversation) -> Turn:
    read_off = _call(tool, conversation)
    if read_off is not None:
        return Turn(None, (read_off,), skill="tool")
    schema = {**tool.parameters, "type": "object"}
    filled = fill_schema(schema, conversation.request, conversation.question)
    wanted = set(tool.required) or set(filled)
    return Turn(None, (Call(tool.name, {k: v for k, v in filled.items() if k in wanted}),), skill="tool")
