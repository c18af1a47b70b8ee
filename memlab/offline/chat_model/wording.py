"""What the classroom model says, by language: unknowns, headings, joins. Also the standing-instruction test."""

# ruff: noqa: E501  (one text or pattern a row)

from __future__ import annotations

import re

from memlab.offline.chat_model import rules_en, rules_ru, rules_zh
from memlab.offline.chat_model.text import fold, language

RULES = {"zh": rules_zh, "en": rules_en, "ru": rules_ru}

# What to say when a fact is missing. The name's entry is also how a later request sees that the name was asked for.
UNKNOWN: dict[str, dict[str, str]] = {
    "zh": {
        "name": "我不知道你叫什么名字", "like": "我不知道你喜欢什么", "dislike": "我不知道你不喜欢什么", "allergy": "我不知道你对什么过敏",
        "avoid": "我不知道你不能吃什么", "lives": "我不知道你住在哪里", "from": "我不知道你来自哪里", "job": "我不知道你做什么工作",
        "work": "我不知道你在哪里工作", "age": "我不知道你多大", "birthday": "我不知道你的生日", "everything": "我还不知道关于你的任何事", "other": "这个我不知道，你没有告诉过我", "attr": "我不知道你的{k}",
    },
    "en": {
        "name": "I don't know your name", "like": "I don't know what you like", "dislike": "I don't know what you dislike", "allergy": "I don't know what you are allergic to",
        "avoid": "I don't know what you can't eat", "lives": "I don't know where you live", "from": "I don't know where you are from", "job": "I don't know what you do for work",
        "work": "I don't know where you work", "age": "I don't know how old you are", "birthday": "I don't know your birthday", "everything": "I don't know anything about you yet", "other": "I don't know that: you haven't told me", "attr": "I don't know your {k}",
    },
    "ru": {
        "name": "Я не знаю, как вас зовут", "like": "Я не знаю, что вы любите", "dislike": "Я не знаю, чего вы не любите", "allergy": "Я не знаю, на что у вас аллергия",
        "avoid": "Я не знаю, чего вам нельзя", "lives": "Я не знаю, где вы живёте", "from": "Я не знаю, откуда вы", "job": "Я не знаю, кем вы работаете",
        "work": "Я не знаю, где вы работаете", "age": "Я не знаю, сколько вам лет", "birthday": "Я не знаю, когда у вас день рождения", "everything": "Я пока ничего о вас не знаю", "other": "Этого я не знаю: вы мне не говорили", "attr": "Этого я о вас не знаю ({k})",
    },
}  # fmt: skip
ASK = {"zh": "。你能告诉我吗？", "en": ". Could you tell me?", "ru": ". Подскажете?"}
END = {"zh": "。", "en": ".", "ru": "."}
AND = {"zh": "和", "en": " and ", "ru": " и "}
COMMA = {"zh": "、", "en": ", ", "ru": ", "}
YES = {"zh": "是的，", "en": "Yes, ", "ru": "Да, "}
NO = {"zh": "不，", "en": "No, ", "ru": "Нет, "}

_VARIETY = re.compile(
    r"多样|尽可能.{0,6}不同|尽量.{0,6}不同|不要重复|别重复|不重复|与上.{0,4}不同|跟上.{0,4}不一样|和上.{0,4}不同|换(?:个|点|一)?花样|变化"
    r"|\bdiffer(?:ent|s)?\b.{0,25}\b(?:last|previous|before|earlier|order|time)|\bvar(?:y|iety|ied)\b|as different|don'?t repeat|do not repeat|never repeat|not the same"
    r"|разнообраз|отлича(?:л|ть|ющ|й)|не повторя|как можно (?:более )?(?:отлич|непохож|разн)|по-другому|не так,? как в прошлый",
    re.I,
)
_ORDER = re.compile(
    r"(?:点|订|叫|来|要|送)(?:一|个|份|点|些|了)*(?:外卖|餐|饭|菜|吃的|午饭|晚饭|午餐|晚餐|晚饭|早餐)|点一份|来一份|下单|点外卖|点单"
    r"|\border\b.{0,40}\b(?:take-?(?:away|out)|food|meal|lunch|dinner|breakfast|something|me|delivery|dish|for me|us|again|one|supper|a)\b|\b(?:get|bring) me\b.{0,30}\b(?:food|meal|lunch|dinner|take-?(?:away|out)|eat)|take-?(?:away|out),? please"
    r"|закаж|заказать|закажи|сделай(?:те)? заказ|оформи(?:те)? заказ|хочу (?:поесть|заказ)|доставк\w+ еды",
    re.I,
)


def asks_variety(text: str) -> bool:
    """Whether a text asks for variety in the orders."""
    return bool(_VARIETY.search(fold(text)[:4000]))


def asks_order(text: str) -> bool:
    """Whether a text asks for food to be ordered."""
    return bool(_ORDER.search(fold(text)[:2000]))


def is_instruction(text: str) -> bool:
    """A standing instruction ("vary your orders") rather than something to answer."""
    return asks_variety(text) and not re.match(
        r"\W*(?:请|麻烦)?(?:帮|给|替)我(?:点|订|叫)|\W*(?:please )?order me|\W*закажи", fold(text), re.I
    )


def join(values: list[str], lang: str) -> str:
    """["tea", "cake", "jazz"] -> "tea, cake and jazz"."""
    return COMMA[lang].join(values[:-1]) + AND[lang] + values[-1] if len(values) > 1 else "".join(values)


_TWICE = {
    "en": re.compile(r"\b(?:in|at|on|from|as|to) (?=(?:in|at|on|near|from|outside|by|just outside|close to|next to|as|to)\b)", re.I),
    "ru": re.compile(r"\b(?:в|на|из|с) (?=(?:в|во|на|из|с|со|под|около) )|(?<=аллергия )(?=(?:аллергия) )", re.I),
    "zh": re.compile(r"在(?=在)|对(?=对)|岁(?=岁)"),
}  # fmt: skip
_UNLED = re.compile(r"(?<=\byou live )(?=[A-Z\u3400-\u9fffА-ЯЁ])|(?<=\byou work )(?=[A-Z])(?!As\b)")


def polish(text: str, lang: str) -> str:
    """Exactly one preposition between a saying and its value: no "live in in Gdansk", no "you live Gdansk"."""
    text = _TWICE[lang].sub("", text)
    return _UNLED.sub("in ", text) if lang == "en" else text


def sentence(text: str, lang: str) -> str:
    """The text with a capital letter and an end mark."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text[-1:] in "。.!?！？" else END[lang])


def unknown(kind: str, lang: str, key: str = "") -> str:
    """The honest "I don't know" for a kind of fact, with a request to be told."""
    words = UNKNOWN[lang]
    text = words["attr"].replace("{k}", key) if kind == "attr" and key else words.get(kind, words["other"])
    text = words["other"] if "{k}" in text else text
    return text + ASK[lang]


def name_saying(lang: str | None) -> str:
    """How to say a name back."""
    return RULES[lang or "en"].SAY["name"]


def bare_name(value: str) -> bool:
    """Whether a message that is nothing but `value` can be a name."""
    return RULES[language(value) or "en"].is_name(value, True)
