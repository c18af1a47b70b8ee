"""The skill that sums a conversation up: the facts and orders it finds, one a line."""

from __future__ import annotations

import re

from memlab.offline.chat_model import wording
from memlab.offline.chat_model.book import FactBook
from memlab.offline.chat_model.conversation import Conversation
from memlab.offline.chat_model.facts import RULES, Fact, extract
from memlab.offline.chat_model.telling import said_value
from memlab.offline.chat_model.text import fold, language
from memlab.offline.chat_model.turn import Turn

_ASKS = re.compile(r"\b(?:summari[sz]e|summary of|sum up|recap)\b|总结|概括|摘要|归纳|小结|(?:кратко|коротко) (?:перескаж|излож|опиш)|подведи\w* итог|резюмируй|сделай\w* (?:краткое )?(?:резюме|сводку|саммари)|суммируй|обобщи", re.I)  # fmt: skip  # noqa: E501
_SPEAKER = re.compile(
    r"^\s*[-*•]?\s*(?:\**)(?P<role>user|assistant|human|ai|用户|助手|пользователь|ассистент|system)(?:\**)\s*[:：]\s*",
    re.I,
)
_ROLES = {
    "human": "user",
    "用户": "user",
    "пользователь": "user",
    "ai": "assistant",
    "助手": "assistant",
    "ассистент": "assistant",
}
_ORDERED = re.compile(r"[^\s,，。;；:：.!！]+(?: [^\s,，。;；:：.!！×]+){0,5}\s*×\s*\d+")
HEAD = {"zh": "对话摘要：", "en": "Summary of the conversation:", "ru": "Краткое содержание:"}
NOTHING = {
    "zh": "对话里没有我能识别的事实或订单。",
    "en": "I found no facts or orders in the conversation.",
    "ru": "В разговоре нет фактов или заказов, которые я понимаю.",
}
ORDERS = {"zh": "点过的餐", "en": "orders", "ru": "заказы"}


def summarise(conversation: Conversation) -> Turn | None:
    """A list of facts and orders when the system or user message asks for a summary."""
    instruction = _instruction(conversation)
    if instruction is None:
        return None
    lang = language(instruction[:200]) or conversation.lang
    book, orders = FactBook(conversation.facts.facts), _orders(conversation)
    for speaker, text in transcript(conversation.question):
        for fact in extract(text, speaker):
            book.add(fact)
    lines = [*_fact_lines(book, lang), *([f"- {ORDERS[lang]}: {'; '.join(orders[-3:])}"] if orders else [])]
    return Turn("\n".join([HEAD[lang], *lines]) if lines else NOTHING[lang], skill="summary")


def _instruction(conversation: Conversation) -> str | None:
    """The text that asks for a summary: at the start or end of the user's message, or in a system message."""
    text = conversation.question
    lines = [line for line in text.strip().split("\n") if line.strip()]
    for line in lines[:3] + lines[-1:]:
        if len(line) < 400 and _ASKS.search(fold(line)) and not _SPEAKER.match(line):
            return line
    system = [line.text for line in conversation.history if line.speaker == "system"]
    asking = [
        s
        for s in system
        if re.match(r"\W*(?:you (?:are|will)[^.]{0,40})?(?:please )?(?:" + _ASKS.pattern + ")", fold(s), re.I)
    ]
    return asking[-1] if asking else None


def transcript(text: str) -> list[tuple[str, str]]:
    """(speaker, text) of the lines of a transcript; lines without a role are left out."""
    found: list[tuple[str, str]] = []
    for line in text.split("\n"):
        match = _SPEAKER.match(line)
        if match:
            role = match["role"].lower()
            found.append((_ROLES.get(role, role), line[match.end() :]))
        elif found and line.strip():
            found.append((found[-1][0], line))
    return found


def _fact_lines(book: FactBook, lang: str) -> list[str]:
    """`- name: Anna`, one fact a line; kinds without a label as sentences. The facts skill can read it back."""
    labels = {kind: label for label, kind in reversed(RULES[lang].LABELS.items())}
    return [f"- {labels[f.kind]}: {f.value}" if f.kind in labels else "- " + told(f, lang) for f in book.facts]


def told(fact: Fact, lang: str) -> str:
    """A fact said to the user, as part of a list."""
    return wording.polish(fact.say.replace("{v}", said_value(fact.value, lang)), lang)


def _orders(conversation: Conversation) -> list[str]:
    """Orders in view: the dishes with their quantities."""
    texts = [line.text for line in conversation.everything]
    found = [wording.COMMA["en"].join(m.strip() for m in _ORDERED.findall(text)) for text in texts if "×" in text]
    return list(dict.fromkeys(order for order in found if order))
