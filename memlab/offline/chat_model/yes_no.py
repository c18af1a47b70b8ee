"""A yes-or-no question as the statement it asks about: "Do I like tea?" is about "I like tea".

The rules that read statements then find the fact in it, so that no table of yes-or-no questions is needed.
"""

# ruff: noqa: E501  (long patterns)

from __future__ import annotations

import re

from memlab.offline.chat_model.facts import RULES, split
from memlab.offline.chat_model.text import fold


def as_statement(sentence: str, lang: str) -> list[str]:
    """The statement that a question asks about, as its clauses; nothing when it is no such question."""
    plain = fold(sentence).strip()
    if lang == "en":
        return _statement_en(plain)
    if lang == "zh":
        return _statement_zh(plain)
    if "?" not in plain and not re.search(r"\bли\b", plain):
        return []
    plain = re.sub(
        r"\s+ли\b|^\W*(?:(?:а|и|так|ну|скажи(?:те)?|ты|вы|помнишь|помните|знаешь|знаете|разве|неужели|правда|верно)(?:,? что)?[\s,]+)+|[,\s]*(?:верно|правда|да|правильно|не так)?\s*\?\W*$",
        "",
        plain,
        flags=re.I,
    )
    plain = re.sub(r"^(люблю|живу|работаю|ем|нравится|могу|есть) (я|мне|у меня)\b", r"\2 \1", plain, flags=re.I)
    return [re.sub(r"^(?:можно|могу) (?:ли )?(?:мне|я)\b", "мне можно", plain, flags=re.I)]


_YES_NO_EN = re.compile(
    r"^\W*(?:(?:so|and|but|ok|hey|hi|hello|please|then|well|also|now|tell me|(?:do|can) you (?:still )?(?:know|remember|tell me|think)|i wonder|did i (?:say|tell you|mention)(?: that)?)[\s,]+)*(?:if |whether |that )*(?:(?P<am>am|was) i|(?P<do>do|did|can|could|should|may|have|must) i|is my|are my|is it true that|is it (?:right|correct) that|did you know that|do you know that)\b",
    re.I,
)


def _statement_en(plain: str) -> list[str]:
    body = re.sub(r"[?.!\s]+$", "", plain)
    tagged = re.sub(
        r"[,\s]+(?:right|correct|isn'?t it|aren'?t i|don'?t i|true|am i right|huh|is that right|is that correct|yes or no|or not)$",
        "",
        body,
        flags=re.I,
    )
    match = _YES_NO_EN.match(body)
    if not match:
        return [RULES["en"].FILLER.sub("", tagged, count=1)] if tagged != body or plain.rstrip().endswith("?") else []
    rest = body[match.end() :].strip()
    if match["am"]:
        return [f"I am {rest}"]
    if match["do"]:
        return [f"I {match['do'] + ' ' if match['do'].lower() in ('can', 'have', 'could', 'must') else ''}{rest}"]
    if re.search(r"\b(?:is|are) my$", match.group(), re.I):
        return [_my_is(rest)]
    return [rest]


def _my_is(rest: str) -> str:
    """ "name Bob" -> "my name is Bob"; "favourite colour blue" -> "my favourite colour is blue"."""
    words = rest.split()
    return f"my {' '.join(words[:-1])} is {words[-1]}" if len(words) > 1 else f"my {rest}"


_ZH_ANOTA = (
    (r"喜不喜欢|喜欢不喜欢|喜歡不喜歡", "喜欢"),
    (r"爱不爱", "爱"),
    (r"能不能", "能"),
    (r"会不会", "会"),
    (r"是不是", "是"),
    (r"可不可以|可以不可以", "可以"),
    (r"吃不吃", "吃"),
    (r"过不过敏", "过敏"),
    (r"住不住", "住"),
    (r"讨不讨厌|讨厌不讨厌", "讨厌"),
    (r"敢不敢", "敢"),
    (r"叫不叫", "叫"),
    (r"有没有", "有"),
)
_ZH_META = re.compile(
    r"^(?:那么?|请问|你好|你|您|还|知道|记得|觉得|认为|知不知道|记不记得|是否|说|告诉我|猜|想一想|，|,|\s|所以|嗨|嘿)+"
)
_ZH_END = re.compile(r"[，,]?\s*(?:对吗|对吧|是吗|是吧|是不是|对不对|没错吧|吗|么|吧|嘛|呢|来着)?[?？\s。!！]*$")


def _statement_zh(plain: str) -> list[str]:
    asked = re.search(r"[吗么?？]|对吧|是吧|吧\W*$", plain) or any(re.search(p, plain) for p, _ in _ZH_ANOTA)
    if not asked:
        return []
    for pattern, verb in _ZH_ANOTA:
        plain = re.sub(pattern, verb, plain)
    body = _ZH_END.sub("", _ZH_META.sub("", plain))
    body = re.sub(r"^我(?=[吃喝])", "我能", body)
    body = re.sub(r"^我家?(?:有|养)了?(?![一两二三几没\d什])(?=.{1,4}$)", "我有一只", body)
    parts = split(RULES["zh"].SPLIT, body)
    return parts[-1:]
