"""Corrections without the full frame: "sorry, it's Joan", "typo, 15", "не Том, а Тим", "打错了，是章伟".

Such a message says nothing by itself: it needs a marker (or a contrast: "X, not Y") AND a value that has the
shape of a fact told just before. Small talk has neither: "it's late as always", "sorry, I was asleep".
"""

# ruff: noqa: E501  (one pattern a row: a table reads better than wrapped strings)

from __future__ import annotations

import re
from typing import NamedTuple

from memlab.offline.chat_model.text import fold, trim


class Turned(NamedTuple):
    """A correction: the new value, the value it rejects (or ""), and how much it proves.

    `proof`: "strong" (the user says it was a slip), "form" (a weak marker and "it's X"), "bare" (a weak marker
    and nothing but X), "contrast" (no marker, but "X, not Y").
    """

    value: str
    rejected: str
    proof: str


# Words that can stand before a marker, then markers that say it was a slip, then those that may say so.
_MARKERS: dict[str, tuple[str, str, str]] = {
    "en": (
        r"(?:oh|ah|um+|uh|er+|hmm+|well|ok|okay|hey|lol|haha|ha|omg|argh|ugh|my|so|and|but|sorry|oops|whoops)",
        r"(?:typo|correction|autocorrect|scratch that|strike that|i meant|i mean|i meant to (?:say|type|write)|(?:i )?changed my mind|change of plans?|i take that back|forget that|update|wait,? no|no,? wait|actually,? no|no,? actually|my (?:bad|mistake)|i misspoke|i made a mistake|i mistyped|i got (?:that|it) wrong|i was wrong|that'?s wrong|not anymore|jk|just kidding|make that|make it)",
        r"(?:no|nope|nah|sorry|oops|whoops|wait|actually|rather|or rather|hold on|hmm+|well)",
    ),
    "zh": (
        r"(?:哦|噢|喔|啊|呃|额|嗯|哎呀?|诶|唉|哈哈+|对了|那个|抱歉|对不起|不好意思|等等|等一下|刚才|刚刚|我)",
        r"(?:打错(?:字)?了?|说错(?:话)?了?|写错(?:字)?了?|记错了?|算错了?|数错了?|看错了?|搞错了?|弄错了?|讲错了?|口误|手滑|笔误|更正(?:一下)?|纠正(?:一下)?|不对不对|不对|不是不是|错了|改一下|改主意了?|改了|换一个|骗你的|开玩笑的?|逗你的|我是说|准确(?:地)?说)",
        r"(?:不(?=[，, ])|不是(?=[，, ])|其实|等等|等一下|抱歉|对不起|不好意思|算了|哦)",
    ),
    "ru": (
        r"(?:ой|ох|ах|а|э+|эм+|ну|упс|блин|тьфу|хм+|так|ай|извини(?:те)?|прости(?:те)?|сорри|пардон)",
        r"(?:опечатка|опечатал(?:ся|ась)|описка|ошиб(?:ся|лась|очка|ка)|перепутал[аи]?|оговорил(?:ся|ась)|поправка|хотя нет|то есть|т\.?е\.|точнее|вернее|вру|шучу|имел[аи]? в виду|я имел[аи]? в виду|имелось в виду|на самом деле нет|не так|неправильно|передумал[аи]?|исправляюсь|поправляюсь|забудь|наоборот|нет,? наоборот|неверно|оговорка|наврал[аи]?|стоп,? нет|нет,? стоп|ой,? нет|вообще-то нет|правильно)",
        r"(?:нет|не(?=,)|неа|ой|упс|извини(?:те)?|прости(?:те)?|сорри|на самом деле|вообще-то|стоп|погоди|подожди)",
    ),
}  # fmt: skip
_GAP = r"[\s,:;.!…，。：！、*~～)(—–-]*"
_STRONG = {
    lang: re.compile(rf"{_GAP}(?:(?:{lead}|{weak})(?![\w'])(?:{_GAP}))*(?:(?:{strong})(?!['\w]){_GAP})+" if lang != "zh" else rf"{_GAP}(?:{lead}{_GAP})*(?:(?:{strong})(?=[\s，,。.！!：:~～…、]|$|应该|是|叫|其实|我|换|改|[\d\u4e00-\u9fff]*不对){_GAP})+", re.I)
    for lang, (lead, strong, weak) in _MARKERS.items()
}  # fmt: skip
_WEAK = {
    lang: re.compile(rf"{_GAP}(?:(?:{lead}|{weak})(?!['\w]){_GAP})*(?:{weak})(?!['\w]){_GAP}" if lang != "zh" else rf"{_GAP}(?:{lead}{_GAP})*{weak}(?=[\s，,。.！!：:~～…、]|应该|是|叫|还是){_GAP}", re.I)
    for lang, (lead, _, weak) in _MARKERS.items()
}  # fmt: skip

# "it's X": the frame a correction may have after its marker; the rest is the value.
_FORM = {
    "en": re.compile(r"(?:it'?s|it is|that'?s|it should be|that should be|should be|i meant?|i meant to say|make (?:that|it)|rather|more like|the (?:right|correct) (?:one|name|answer) is)\s+", re.I),
    "zh": re.compile(r"(?:应该)?(?:还是|其实是|是|叫做?|我是说|而是|改成|换成)"),
    "ru": re.compile(r"(?:это|а|все-таки|лучше|теперь|правильно|скорее|точнее|вернее)[\s,:—–-]+", re.I),
}  # fmt: skip
_CONTRAST = {
    "en": (re.compile(r"(?P<yes>.{1,40}?),? (?:and )?(?:not|rather than|instead of) (?P<no>.{1,40})", re.I), re.compile(r"(?:it'?s |it is )?(?:not|isn'?t) (?P<no>.{1,40}?),? (?:but|it'?s|it is|rather) (?P<yes>.{1,40})", re.I)),
    "zh": (re.compile(r"(?:不是|不叫|并不是)(?P<no>[^，,。]{1,15})[，,。 ]*(?:而是|是|叫|应该是)(?P<yes>[^，,。]{1,15})"), re.compile(r"(?P<yes>[^，,。]{1,15})[，,]?(?:而不是|不是|不叫)(?P<no>[^，,。]{1,15})")),
    "ru": (re.compile(r"(?:это )?(?:уже )?не (?P<no>.{1,40}?),? а (?P<yes>.{1,40})", re.I), re.compile(r"не (?P<no>(?P<p>на|в|из|с) [^,]{1,30}), (?P<yes>(?P=p) .{1,30})", re.I), re.compile(r"(?P<yes>[^,]{1,40}?), а? ?не (?P<no>.{1,40})", re.I)),
}  # fmt: skip
_STARRED = re.compile(r"\s*\*(?=\w)")  # "*Stephen"
_LONGEST = 90


def marked(text: str, lang: str) -> bool:
    """Whether a text begins by saying that something before it was wrong."""
    plain = fold(text[:200])
    return bool(_STRONG[lang].match(plain) or _WEAK[lang].match(plain))


def begin(text: str, lang: str) -> int:
    """Where the text goes on after a marker that says it was a slip; 0 without one."""
    match = _STRONG[lang].match(fold(text[:200]))
    return match.end() if match else 0


def read(sentence: str, lang: str) -> Turned | None:
    """The correction that a sentence is, if it is one."""
    plain = fold(sentence)
    if len(plain) > _LONGEST or "?" in plain or "？" in plain:
        return None
    strong = _STRONG[lang].match(plain) or _STARRED.match(plain)
    start = strong or _WEAK[lang].match(plain)
    rest = sentence[start.end() :] if start else sentence
    form = _FORM[lang].match(fold(rest))
    value = rest[form.end() :] if form else rest
    turned = next((m for p in _CONTRAST[lang] if (m := p.fullmatch(fold(trim(rest))))), None)
    if turned:
        whole = trim(rest)
        yes = whole[turned.start("yes") : turned.end("yes")]
        lead = _FORM[lang].match(fold(yes))
        return Turned(
            trim(yes[lead.end() if lead else 0 :]),
            trim(whole[turned.start("no") : turned.end("no")]),
            "strong" if strong else "contrast",
        )
    if not start or not trim(value):
        return None
    if strong and (
        form or _PAUSE.search(plain[: strong.end()]) or _MEANT.search(plain[: strong.end()]) or _STARRED.match(plain)
    ):
        return Turned(trim(value), "", "strong")
    return Turned(trim(value), "", "form" if form else "bare")


_MEANT = re.compile(r"(?:meant?(?: to (?:say|type|write))?|в виду|то есть|точнее|вернее|我是说)\s*$", re.I)
_PAUSE = re.compile(r"[,:;.!…，。：！、—–~～-]\s*$")  # "typo, 15"; but "got the wrong chat" goes on without one
_NUMBER = re.compile(
    r"(?:i'?m |now |мне |уже |我|才|今年)?(?:\d{1,2}|(?:twenty|thirty|forty|fifty)?[ -]?(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen)|[一二三四五六七八九十]{1,3}|\w+надцать)(?: years(?: old)?| yo|岁|了| лет| года?)?",
    re.I,
)
_PLACE = re.compile(
    r"(?:(?:in|near|at|outside|from|to|в|во|на|из|с|со) )?(?:[A-ZА-ЯЁ][\w'’.-]+)(?:[ -][A-ZА-ЯЁ][\w'’.-]+){0,2}|[\u3400-\u9fff]{2,6}"
)
_ZH_PLACE = re.compile(
    r"(?:北京|上海|天津|重庆|[\u3400-\u9fff]{1,5}(?:市|省|县|区|镇|州|海|京|安|阳|江|山|南|北|东|西|门|岛|庆|津|沙|汉|都|明|波|圳|莞|林|台))"
)
_DATE = re.compile(r"(?:\w+ )?(?:the )?\d{1,2}\D{0,3}(?: \w+){0,3}|\d{1,2}[./月-]\d{1,2}.{0,6}")
_LED = re.compile(
    r"(?:(the|my|your|his|her|our|this|that)|(an?)|(in|at|on|to|for|from|with)|(в|во|на|с|со|из|у|по|за|к|от|для))\b",
    re.I,
)


def fits(fact: tuple[str, str, str], value: str, proof: str, rules: object) -> bool:
    """Whether a correction's value has the shape of a fact, given as (kind, key, value)."""
    kind, key, before = fact
    is_name, is_valid = rules.is_name, rules.is_valid  # type: ignore[attr-defined]
    if (
        kind == "name"
        or key.endswith(" name")
        or (kind == "attr" and " " not in before and before < "\u3400" and is_name(before, "?"))
    ):
        strict = "" if proof == "strong" and value > "\u3400" else "?"
        known = value < "\u3400" and is_name(value, "!")
        return bool(is_name(value, strict)) and bool(proof != "bare" or known or resembles(before, value))
    if kind == "age":
        return bool(_NUMBER.fullmatch(value))
    if kind == "birthday":
        return bool(_DATE.fullmatch(value))
    if rules.CHATTER.search(fold(value)) or len(value.split()) > 4 or (len(value) > 8 and value > "\u3400"):  # type: ignore[attr-defined]
        return False
    if kind in ("lives", "from", "work"):
        shape = _ZH_PLACE if value > "\u3400" and proof in ("bare", "form") else _PLACE
        return bool(shape.fullmatch(value)) and (proof == "strong" or bool(is_name(value.split()[-1], "")))
    if proof != "strong" and (kind != "attr" or len(value.split()) > len(before.split())):
        return False  # "sorry, it's loud here" corrects nobody's likes
    return proof != "bare" and _led(value) == _led(before) and bool(is_valid(kind, value, ""))


def _led(value: str) -> int | None:
    """Which sort of small word a value begins with: "the", "a" and "in" don't stand for each other."""
    match = _LED.match(value)
    return match.lastindex if match else None


def resembles(one: str, other: str) -> bool:
    """Whether a name may be a slip for the other: half of its letters are there, or it begins like it."""
    one, other = fold(one).lower(), fold(other).lower()
    shared = len(set(one) & set(other))
    return bool(one and other) and shared * 2 >= max(len(set(one)), len(set(other)))
