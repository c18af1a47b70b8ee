"""The skill that answers a statement: it says the new facts back, in one or two sentences."""

from __future__ import annotations

from memlab.offline.chat_model import wording
from memlab.offline.chat_model.book import FactBook
from memlab.offline.chat_model.conversation import Conversation
from memlab.offline.chat_model.facts import Fact
from memlab.offline.chat_model.telling import tell
from memlab.offline.chat_model.turn import Turn

GREET = {
    "zh": "你好，{v}！我记住了。",
    "en": "Nice to meet you, {v}! I'll remember that.",
    "ru": "Приятно познакомиться, {v}! Запомню.",
}
NOTED = {"zh": "好的，记住了：", "en": "Noted: ", "ru": "Понятно: "}


def acknowledge(conversation: Conversation) -> Turn | None:
    """Say back what the message states; None when it states nothing."""
    facts = conversation.new_facts
    if not facts:
        return None
    lang = conversation.lang
    told = [f if f.kind != "it" else resolved(f, conversation) for f in facts]
    told = [f for f in told if f.kind != "it"]
    if not told:
        return None  # a correction of nothing: "sorry, I was asleep"
    stated = {f.kind for f in told if not f.denied}
    told = [f for f in told if not (f.denied and f.kind in stated)]  # "coffee, not tea": the coffee is enough
    told = [f for f in told if f.denied or f in FactBook(told).facts]  # "I'm 17, no, 18": the last one is enough
    names = [f for f in told if f.kind == "name" and not f.denied]
    others = [f for f in told if f not in names]
    greeting = GREET[lang].replace("{v}", names[-1].value) if names else ""
    rest = _noted(others, lang) if others else ""
    text = (" " if lang != "zh" else "").join(part for part in (greeting, rest) if part)
    return Turn(text or wording.sentence(NOTED[lang].rstrip(": ："), lang), skill="facts")


def resolved(fact: Fact, conversation: Conversation) -> Fact:
    """A correction ("no, it's Bob") as the fact it corrects, or as it is when it corrects nothing."""
    facts = [f for f in conversation.facts.facts if f.value.endswith(fact.value) and not fact.denied]
    return facts[-1] if facts else fact


def _noted(facts: list[Fact], lang: str) -> str:
    text = tell(facts, lang)
    return NOTED[lang] + text[:1].lower() + text[1:]
