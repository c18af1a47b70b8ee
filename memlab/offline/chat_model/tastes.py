"""What the user may and likes to eat, and which kinds of dishes an order is for.

Two sources say so, and they count alike: the facts in view ("I can't eat spicy food"), and wishes in the words of an
order ("no coriander, please"). One that restricts forbids a dish; one that likes only has to mention it.
"""

from __future__ import annotations

import re

from memlab.offline.chat_model import wording
from memlab.offline.chat_model.book import plain_value
from memlab.offline.chat_model.conversation import Conversation
from memlab.offline.chat_model.dishes import SPICY, Dish
from memlab.offline.chat_model.facts import Fact
from memlab.offline.chat_model.text import content_words, fold

MOST_PORTIONS = 3

_WISH = re.compile(
    r"(?:不要|别放|别点|不放|不加|别加|不能放|忌|不)(?:太|点|吃|有)?(?P<zh>辣|香菜|葱|姜|蒜|花生|海鲜|鱼|肉|蛋|牛肉|猪肉|羊肉|芹菜|番茄|土豆|豆腐)"
    r"|\b(?:no|not|nothing|without|non|avoid|hold the|leave out)[ -](?:too |very |any |the |anything )?(?P<en>[a-z]+(?: (?:and|or) [a-z]+)?)"  # noqa: E501
    r"|\b(?:без|не|ничего)\s+(?:слишком |очень )?(?P<ru>[а-яё]+(?: и [а-яё]+)?)",
    re.I,
)


def wishes(conversation: Conversation) -> list[Fact]:
    """What the orders asked for exclude: "no chilli", 不要辣, "без острого"."""
    texts = [
        line.text
        for line in conversation.everything
        if line.speaker in ("user", "any") and wording.asks_order(line.text)
    ]
    found = [match for text in texts for match in _WISH.finditer(text[:2000])]
    return [Fact("avoid", match[str(match.lastgroup)], lang=str(match.lastgroup)) for match in found]


_TWO = {
    "meat": r"(?:两|二|2)(?:个|份|道)?荤|two meat|2 meat|два мясн|две мясн",
    "veg": r"(?:两|二|2)(?:个|份|道)?素|two veg|2 veg|два овощн|две овощн",
}
_ONLY = {"meat": r"只(?:要|点|来)[^，。]{0,3}荤|only (?:a )?meat|just (?:a )?meat|только мясн", "veg": r"只(?:要|点|来)[^，。]{0,3}素|全素|only (?:a )?veg|just (?:a )?veg|только овощ"}  # fmt: skip  # noqa: E501


def wanted_kinds(conversation: Conversation) -> tuple[str, ...]:
    """The kinds asked for, at most three portions; one meat and one vegetable by default."""
    text = fold(conversation.question)[:1000]
    if any(fact.kind == "diet" and VEGETARIAN.search(fact.value) for fact in conversation.facts.facts):
        return ("veg", "veg")
    for kind, pattern in _ONLY.items():
        if re.search(pattern, text, re.I):
            return (kind,)
    twice = [kind for kind in ("meat", "veg") if re.search(_TWO[kind], text, re.I)]
    return tuple(sorted(["meat", "veg", *twice][:MOST_PORTIONS]))


VEGETARIAN = re.compile(r"veg(?:etarian|an|gie)|吃?素|斋|вегет|веган", re.I)
_MEATS = re.compile(r"^(?:any )?(?:meat|肉|荤|мяс[оа])", re.I)


def constraint(fact: Fact) -> bool:
    """Whether a fact restricts what may be ordered."""
    return fact.kind in ("avoid", "allergy", "dislike", "diet")


def forbids(fact: Fact, dish: Dish) -> bool:
    """Whether a fact rules a dish out: chilli, an ingredient, meat for a vegetarian."""
    if fact.kind == "diet":
        return bool(VEGETARIAN.search(fact.value)) and dish.kind == "meat"
    if not constraint(fact):
        return False
    value = fold(fact.value)
    if SPICY.search(value) and dish.spicy:
        return True
    return mentions(fact, dish) or (bool(_MEATS.match(plain_value(fact))) and dish.kind == "meat")


def mentions(fact: Fact, dish: Dish) -> bool:
    """Whether a fact's value and a dish share a word (in Chinese: one contains the other)."""
    value = plain_value(fact)
    text = f"{fold(dish.name).lower()} {dish.words}"
    if re.search(r"[\u3400-\u9fff]", value):
        value = re.sub(r"^(?:吃|炒|蒸)+|的?(?:菜|东西|食物|味道)$|类$", "", value)
        return any(
            part and (part in text or any(len(w) > 1 and w in part for w in text.split()))
            for part in re.split(r"[、和及与,，或]|还有|以及", value)
        )
    words = content_words(value) - _VAGUE
    return bool(words & content_words(text)) or (SPICY.search(value) is not None and dish.spicy)


_VAGUE = content_words("dish dishes food with hot fried stir eat any all kind блюда еда блюдо пищу")
