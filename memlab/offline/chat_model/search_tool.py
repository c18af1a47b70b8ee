"""The skill that looks a missing fact up with a search tool, once a turn."""

from __future__ import annotations

import re

from memlab.offline.chat_model import recall, wording
from memlab.offline.chat_model.conversation import Conversation, Tool
from memlab.offline.chat_model.questions import asks_about_self
from memlab.offline.chat_model.turn import Call, Turn

_SEARCH = re.compile(
    r"search|history|memor|recall|remember|retriev|搜索|搜尋|检索|查找|记忆|回忆|历史|поиск|найти|памят|истори|искать",
    re.I,
)


_QUESTION = re.compile(r"^(?:q|s|text|input|prompt)$|quer|question|search|term|keyword|topic|phrase|问题|查询|关键|запрос|вопрос", re.I)  # fmt: skip  # noqa: E501
_LOOKS_UP = re.compile(
    r"get|list|show|find|search|look|lookup|recall|retriev(?:e|al)|read|fetch|query|check|view|load|browse"
)
_NOUN = re.compile(
    r"last|latest|recent|previous|past|earlier|orders?|histor(?:y|ies)|logs?|memor(?:y|ies)|chats?|users?|conversations?"
    r"|messages?|my|tool|the|of|for|from"
)
_CHANGES = re.compile(
    r"\b(?:cancel|delet|remov|clear|eras|wip|purg|reset|forget|refund|send|mail|re-?order|updat|edit|sav|stor|add|creat|"
    r"writ|archiv|export|shar|pay|charg|отмен|удал|очист|стир|стере|возвра|отправ|повтор|измен|сохран)"
    r"|取消|删除|清空|清除|退款|发送|重新|修改|保存",
    re.I,
)


def search_tool(conversation: Conversation) -> Tool | None:
    """A tool that looks like a search over earlier chats: such a word, and one required text that is a question."""
    found = (tool for tool in conversation.tools if _SEARCH.search(tool.label) and parameter(tool))
    return next((tool for tool in found if only_looks_up(tool)), None)


def parameter(tool: Tool) -> str | None:
    """The name of the one required string parameter, if there is exactly one and it is meant for a question."""
    if len(tool.required) != 1 or not _QUESTION.search(tool.required[0]):
        return None
    schema = tool.properties.get(tool.required[0])
    is_string = isinstance(schema, dict) and schema.get("type", "string") == "string" and "enum" not in schema
    return tool.required[0] if is_string else None


def only_looks_up(tool: Tool) -> bool:
    """Whether a tool reads and changes nothing: its name begins or ends with a verb of looking up ("GetLastOrders",
    "memory_search"), or is made of nouns ("order_history") and its description speaks of no change."""
    words = re.findall(r"[a-z]+|\d+", re.sub(r"([a-z])([A-Z])", r"\1 \2", tool.name).lower())
    if words and (_LOOKS_UP.fullmatch(words[0]) or words[-1] in ("search", "lookup", "recall", "retrieval")):
        return True
    return all(map(_NOUN.fullmatch, words)) and not _CHANGES.search(f"{tool.name} {tool.description}")


def call_search(conversation: Conversation) -> Turn | None:
    """The call that searches for the question's text; None without a tool, or when it was already called."""
    tool = search_tool(conversation)
    if tool is None or any(exchange.name == tool.name for exchange in conversation.exchanges):
        return None
    name = parameter(tool)
    return Turn(None, (Call(tool.name, {str(name): conversation.question}),), skill="search")


def search(conversation: Conversation) -> Turn | None:
    """Search when the question needs a fact that isn't in view."""
    if not conversation.tools:
        return None
    about_self = asks_about_self(conversation.question, conversation.lang)
    if recall.missing(conversation) or (about_self and not recall.answerable(conversation)):
        return call_search(conversation)
    return None


_FAILED = re.compile(r"^\W*(?:error|exception|failed|failure|traceback|错误|失败|ошибка)|\"(?:error|is_?error)\"\s*:\s*(?!null|false|\"\"|0)|\"(?:status|success|ok)\"\s*:\s*(?:\"(?:error|failed)|false)", re.I)  # fmt: skip  # noqa: E501


def failed(result: str | None) -> bool:
    """Whether a tool's result reports an error."""
    return result is not None and bool(_FAILED.search(result[:2000]))


FAILED = {
    "zh": "抱歉，工具调用失败了：{t}",
    "en": "Sorry, the tool call failed: {t}",
    "ru": "К сожалению, вызов инструмента не удался: {t}",
}


def failure(result: str, lang: str) -> str:
    """The honest sentence about a failed call."""
    return wording.sentence(FAILED[lang].replace("{t}", result.strip()[:200]), lang)
