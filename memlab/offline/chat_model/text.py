"""Small text tools: which language, folded spelling, sentences, content words."""

from __future__ import annotations

import re
from functools import lru_cache

# Traditional characters beside their simplified twins. Rules are written in simplified characters and match
# the folded text; values are cut from the original, so a learner's own spelling comes back.
_PAIRS = (
    "歡欢愛爱對对過过嗎吗麼么誰谁裡里裏里記记憶忆說说話话個个們们這这還还會会來来從从兒儿歲岁養养隻只貓猫討讨厭厌飯饭應应該该請请問问訴诉"
    "聽听讀读寫写書书電电腦脑學学師师醫医員员職职業业樂乐運运動动顏颜魚鱼雞鸡鴨鸭蝦虾麵面點点單单葷荤絲丝湯汤媽妈爺爷孫孙張张陳陈劉刘"
    "黃黄趙赵吳吴楊杨許许鄭郑謝谢馬马韓韩葉叶蘇苏鄧邓馮冯盧卢賴赖幾几為为沒没給给讓让認认識识現现東东車车開开號号碼码國国區区總总結结"
    "換换樣样儘尽盡尽與与複复間间時时訂订買买賣卖辦办種种類类興兴離离後后係系嚴严難难蔥葱親亲華华廣广灣湾臺台龍龙鳳凤麗丽甚什嘅的鍾钟"
    "錯错稱称產产實实際际長长歐欧陽阳羅罗蕭萧錢钱衛卫鄒邹陸陆賀贺龔龚嚐尝壽寿氣气門门戶户紅红藍蓝綠绿齡龄齋斋據据練练彈弹騎骑"
)
_FOLD = {ord(a): b for a, b in zip(_PAIRS[::2], _PAIRS[1::2], strict=True)}
_FOLD |= {ord(c): "'" for c in "’‘ʼ`´"} | {ord(c): " " for c in "\u3000\u00a0\t\r"} | {ord("ё"): "е", ord("Ё"): "Е"}

_CJK = re.compile(r"[\u3400-\u9fff]")
_CYRILLIC = re.compile(r"[а-яё]+", re.I)
_LATIN = re.compile(r"[a-z]+(?:'[a-z]+)?", re.I)
_FIRST = re.compile(r"([\u3400-\u9fff])|([а-яё])|([a-z])", re.I)
_ORDER = ("zh", "ru", "en")


def fold(text: str) -> str:
    """The same text, character for character, in one spelling: 我喜歡 -> 我喜欢, I’m -> I'm, ё -> е."""
    return text.translate(_FOLD)


@lru_cache(maxsize=4096)
def language(text: str) -> str | None:
    """`zh`, `en` or `ru`; None when there is no letter of any.

    Counts Chinese characters against words, with one vote extra for the script that comes first:
    "My name is Анна" is English, "我叫 Anna" is Chinese.
    """
    text = text[:600]
    first = _FIRST.search(text)
    if not first:
        return None
    counts = [len(_CJK.findall(text)), len(_CYRILLIC.findall(text)), len(_LATIN.findall(text))]
    counts[(first.lastindex or 1) - 1] += 1
    return _ORDER[counts.index(max(counts))]


_SENTENCE = re.compile(
    r"(?:[^.!?。！？；;…\n]|(?<=\b[Dd]r)\.|(?<=\b[Mm]r)\.|(?<=\b[Mm]rs)\.|(?<=\b[Mm]s)\.|(?<=\bSt)\.|(?<=\bул)\.|(?<=\bкв)\.|(?<=\bг)\.|\.(?=\w)(?!(?:i|my|i'm|im)\b))+[.!?。！？；;…]*"
)
_LONGEST_SENTENCE = 300  # what nobody says in one breath is data, not a statement


def sentences(text: str) -> list[str]:
    """Sentences with their end marks; over-long runs of text are left out."""
    parts = (match.group().strip() for match in _SENTENCE.finditer(text))
    return [part for part in parts if part and len(part) <= _LONGEST_SENTENCE]


_STOP = frozenset(
    """
    a an the is are was were be been do does did i me my mine you your we our it its of in on at to for from
    with and or but not no so what who whom whose where when why how which that this these those there can
    could will would should have has had am if about tell say said remember know recall please again any
    some ever name called told think как что кто где когда какой какая какое какие чем о об в на у с и а но
    я мы ты вы мой моя мое мои моего моей моих мне меня ли не из по для это был была было помнишь помните
    знаешь знаете скажи скажите напомни зовут имя же мою
    """.split()  # noqa: SIM905
)
_ZH_STOP = re.compile(
    r"你|您|我|什么时候|什么|哪里|哪儿|哪个|哪些|哪|谁|吗|呢|啊|吧|的|了|是|在|有|会|还|记得|知道|告诉|说过|说|多少|几|怎么|为什么|啥|呀|和|都|也|请|过|么|叫|名字|想|能|可以|到底|去|来|个|那|这"
)


def content_words(text: str) -> frozenset[str]:
    """The words that carry meaning, crudely stemmed (a Chinese character counts as a word)."""
    plain = fold(text).lower()
    words = {_stem(word) for word in _LATIN.findall(plain) + _CYRILLIC.findall(plain) if word not in _STOP}
    return frozenset(words | set(_CJK.findall(_ZH_STOP.sub("", plain))))


def _stem(word: str) -> str:
    word = word.split("'")[0]
    if word >= "а":
        return word[: max(3, len(word) - 2)][:5]
    for ending in ("ing", "ies", "es", "ed", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def alike(one: str, other: str) -> bool:
    """Whether two Russian words are forms of one word, going by their beginnings: "пауки" and "пауков"."""
    if one == other or not (one > "а" and other > "а") or _CJK.match(one):
        return one == other
    longest = max(len(one), len(other))
    shared = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return shared >= max(3, longest - (1 if longest <= 5 else 2))


_EDGE = " \t\n.,;:!?。，；：！？、…~～-–—\"'“”‘’«»「」『』()（）[]【】*_"
_TAIL_SYMBOLS = re.compile(r"[^\w)）%+#°'’!]+$|^[^\w(（#+'’-]+")


def trim(value: str) -> str:
    """A value without quotes, end marks and emoji around it."""
    return _TAIL_SYMBOLS.sub("", value.strip(_EDGE)).strip(_EDGE)
