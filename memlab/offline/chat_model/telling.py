"""Facts said to the user: "I like tea" becomes "You like tea.", and facts of one shape share a sentence."""

from __future__ import annotations

import re

from memlab.offline.chat_model import wording
from memlab.offline.chat_model.facts import RULES, Fact
from memlab.offline.chat_model.questions import Query


def tell(facts: list[Fact], lang: str) -> str:
    """Facts as sentences to the user; facts of one shape share a sentence."""
    groups: dict[str, list[str]] = {}
    for fact in facts:
        groups.setdefault(saying(fact, lang), []).append(said_value(fact.value, lang))
    texts = [
        wording.polish(say.replace("{v}", wording.join(list(dict.fromkeys(values)), lang)), lang)
        for say, values in groups.items()
    ]
    return glue([wording.sentence(text, lang) for text in texts], lang)


def saying(fact: Fact, lang: str) -> str:
    """How to say a fact: as its own rule says, or generically when the question is in another language."""
    if fact.lang == lang:
        return fact.say
    generic = RULES[lang].SAY.get(fact.kind)
    return generic if generic else fact.say


_ABOUT_ME = {
    "en": {"my": "your", "me": "you", "i": "you", "mine": "yours", "myself": "yourself", "i'm": "you're", "am": "are"},
    "ru": {
        "мой": "ваш",
        "моя": "ваша",
        "мою": "вашу",
        "мои": "ваши",
        "моего": "вашего",
        "моей": "вашей",
        "моих": "ваших",
        "себя": "себя",
    },
}


def said_value(value: str, lang: str) -> str:
    """A value said to the user: "my dog" -> "your dog"."""
    if lang == "zh":
        return value.replace("我", "你")
    return re.sub(r"[\w']+", lambda m: _ABOUT_ME[lang].get(m.group().lower(), m.group()), value)


def shown_key(query: Query, lang: str) -> str:
    """An attribute's key as a reader would write it."""
    if query.kind != "attr" or not query.key:
        return ""
    owner = query.key.removesuffix(" name")
    if owner == query.key:
        return query.shown or query.key
    return {"zh": f"{owner}叫什么名字", "en": f"{owner}'s name", "ru": f"имя: {owner}"}[lang]


def glue(texts: list[str], lang: str) -> str:
    """Sentences in a row; Chinese needs no space between them."""
    return ("" if lang == "zh" else " ").join(texts)
