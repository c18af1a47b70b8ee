"""The facts that answer an open question: where to look for each kind, and which of those found there fit.

"What do I like to drink?" looks among the likes and keeps tea, not football; "What is my cat's name?" finds the
attribute "cat name", but no dog's. Nothing is said here: see `telling`.
"""

from __future__ import annotations

import re

from memlab.offline.chat_model.book import FactBook
from memlab.offline.chat_model.facts import Fact
from memlab.offline.chat_model.questions import Query
from memlab.offline.chat_model.text import alike, content_words, fold

# Where to look for a kind of fact, best first.
LOOK = {
    "name": ("name", "surname"), "surname": ("surname", "name"), "like": ("like",), "dislike": ("dislike", "avoid"), "avoid": ("avoid", "allergy", "diet"), "allergy": ("allergy",),  # noqa: E501
    "lives": ("lives",), "from": ("from",), "work": ("work", "study", "job"), "job": ("job", "work", "study"), "study": ("study", "work"), "diet": ("diet", "avoid"),  # noqa: E501
}  # fmt: skip


def find(query: Query, book: FactBook, lang: str) -> list[Fact]:
    """The facts that answer an open question."""
    if query.kind == "attr":
        return _attributes(query.key, book, lang)
    if query.kind == "pet":
        return [
            f
            for f in book.facts
            if (f.kind == "have" and PET.search(f.value)) or (f.kind == "attr" and PET.search(f.key))
        ]
    if query.kind in ("does", "have"):
        return _matching(query, book)
    for kind in LOOK.get(query.kind, (query.kind,)):
        facts = [f for f in book.of(kind) if fits(f, query.about, lang)]
        if facts:
            return facts
    if query.kind == "like":
        return [f for f in book.of("attr") if FAVOURITE.search(f.key) and fits(f, query.about, lang)]
    return []


PET = re.compile(
    r"cat|dog|kitten|puppy|hamster|guinea pig|gecko|lizard|ferret|budgie|parrot|rabbit|fish|turtle|horse|pet|bird|snake"
    r"|[猫狗兔鱼鸟龟]|鹦鹉|仓鼠|宠物|кот|кошк|собак|пес|попуга|хомяк|рыбк|черепах|питом|кролик|щен",
    re.I,
)
FAVOURITE = re.compile(r"favorite|喜欢的|最喜欢|любим", re.I)

# A narrow question ("what do I like to drink?") isn't answered by a fact of another sort.
_SORTS = {
    "drink": (r"\bdrink|喝|饮料|\bпить\b|\bпью\b|напит", r"tea|coffee|juice|milk|water|wine|beer|cola|drink|smoothie|lemonade|kvass|茶|咖啡|汁|奶|水|酒|可乐|喝|饮|чай|чая|кофе|сок|молок|вод|вин|пив|кол|квас|пить|компот|лимонад"),  # noqa: E501
    "food": (r"\beat|\bfood|\bdish|\bmeal|\bfruit|\bcook|吃|食物|菜|水果|美食|\bесть\b|\bед[ауы]\b|блюд|кушать|фрукт", None),  # noqa: E501
    "music": (r"\bmusic|\bsong|\bband|听|音乐|歌|музык|песн|групп", r"music|jazz|rock|pop|rap|song|band|classical|blues|metal|opera|听|音乐|歌|曲|摇滚|爵士|музык|джаз|рок|поп|рэп|песн|опер"),  # noqa: E501
    "sport": (r"\bsports?\b|运动|спорт", r"ball|tennis|swim|run|ski|box|yoga|chess|hockey|golf|cycling|sport|skat|climb|surf|rugby|球|泳|跑|步|滑|山|运动|瑜伽|健身|骑|футбол|теннис|плав|бег|лыж|хоккей|бокс|йог|спорт|баскетбол|волейбол|шахмат"),  # noqa: E501
    "read": (r"\bread\b|\bbooks?\b|读|书|читать|книг", r"read|book|novel|fiction|poe|读|书|小说|诗|чита|книг|роман|фантаст|детектив|стих"),  # noqa: E501
    "watch": (r"\bwatch|\bfilms?\b|\bmovies?\b|看|电影|смотреть|фильм|кино", r"film|movie|series|anime|watch|看|电影|剧|动漫|фильм|кино|сериал|аниме|смотр"),  # noqa: E501
    "colour": (r"\bcolou?rs?\b|颜色|цвет", r"red|blue|green|yellow|black|white|purple|pink|orange|brown|gr[ae]y|colou?r|色|[红蓝绿黄黑白紫粉橙灰]|красн|син|зелен|желт|черн|бел|фиолет|розов|голуб|цвет|оранж"),  # noqa: E501
    "animal": (r"\banimals?\b|动物|животн", r"cat|dog|horse|bird|fish|rabbit|panda|animal|[猫狗马鸟鱼兔]|熊|动物|кош|кот|собак|лошад|птиц|животн|панд|кролик"),  # noqa: E501
    "play": (r"\bplay|\bgames?\b|玩|游戏|играть|игр", r"play|game|ball|chess|guitar|piano|lego|tennis|hockey|玩|游戏|球|棋|игр|футбол|шахмат|теннис|хоккей"),  # noqa: E501
    "city": (r"\bcit(?:y|ies)\b|\bcountr|城市|国家|город|стран", r"[A-Z]|市|京|海|国|[А-Я]"),
}  # fmt: skip
_ACTIVITY = re.compile(r"^(?:to )?(?!eat|drink|cook)\w+ing\b|^to (?!eat|drink|cook)|^(?:play|watch|read|swim|listen)|music|football|soccer|tennis|basketball|chess|movies?|films?|books?|jazz|rock|guitar|piano|dogs?$|cats?$|hik|danc|travel|"  # noqa: E501
                       r"^(?:打|看|听|玩|喝|读|跑|游|唱|跳|旅|做|学|画|写|骑|爬|逛|收集|养|摄影|拍|下棋|运动|篮球|足球|音乐|电影|编程|弹|健身|钓|滑|种|猫|狗|小猫|小狗|书)|"
                       r"^(?:играть|читать|смотреть|слушать|плавать|бегать|рисовать|танцевать|петь|гулять|путешеств|писать|музык|футбол|теннис|шахмат|кино|фильм|книг|джаз|рок|собак|кошек|котов|спорт|хоккей)", re.I)  # fmt: skip  # noqa: E501


def fits(fact: Fact, about: str, lang: str) -> bool:
    """Whether a like can answer a question about one sort of thing (food, music, ...)."""
    asked = fold(about).lower()
    for sort, (question, value) in _SORTS.items():
        if not re.search(question, asked):
            continue
        text = f"{fact.key} {fold(fact.value)}" if sort == "city" else f"{fact.key} {fold(fact.value)}".lower()
        if sort == "food":
            return not _ACTIVITY.search(fold(fact.value)) and not re.search(
                r"color|颜色|цвет|city|城市|город|song|film|book", fact.key
            )
        return bool(re.search(str(value), text))
    return True


_NAME_WORD = {"name"}


def _attributes(key: str, book: FactBook, lang: str) -> list[Fact]:
    """Attributes whose words agree with the words asked for, the latest first choice."""
    wanted = key_words(key)
    named = "name" in key.split()
    exact = [f for f in book.of("attr") if key_words(f.key) == wanted and ("name" in f.key.split()) == named]
    near = [
        f
        for f in book.of("attr")
        if agree(key_words(f.key), wanted) and _name_fits(f, named) and not _anothers(f.key, key)
    ]
    counted = [f for f in book.of("have") if not named and wanted and _within(wanted, content_words(f.value))]
    return exact[-1:] or near[-2:] or counted[-2:]


def key_words(key: str) -> frozenset[str]:
    """The words of an attribute's key that name the thing: "cat name" -> cat."""
    return content_words(" ".join(word for word in key.split() if word not in _NAME_WORD).replace("'s", ""))


def _within(wanted: frozenset[str], words: frozenset[str]) -> bool:
    return all(any(alike(one, other) for other in words) for one in wanted)


def agree(stored: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether two keys share enough words to mean one thing."""
    shared = sum(any(alike(one, other) for other in wanted) for one in stored)
    return bool(stored and wanted) and (shared >= min(len(stored), len(wanted)) or shared >= max(2, len(wanted) * 0.7))


_OWNER = re.compile(
    r"\b(?:mother|father|mum|mom|dad|brother|sister|son|daughter|wife|husband|friend|girlfriend|boyfriend|grandma|grandpa|grandmother|grandfather|uncle|aunt|cousin|boss|neighbor|roommate|partner|teacher)\b"
    r"|[爸妈哥姐弟妹爷奶舅姑姨叔]|老公|老婆|朋友|同学|室友|女友|男友|\b(?:мам|пап|брат|сестр|сын|доч|жен[аыуе]|муж|друг|подруг|бабуш|дедуш)",
    re.I,
)


def _anothers(stored: str, wanted: str) -> bool:
    """ "My dad's car" is no answer to a question about my car."""
    return bool(_OWNER.search(stored)) and not _OWNER.search(wanted)


def _name_fits(fact: Fact, named: bool) -> bool:
    """A question for a name isn't answered by "my cat is cute"; "my wife is Anna" is fine."""
    return not named or "name" in fact.key.split() or fact.value[:1].isupper()


def _matching(query: Query, book: FactBook) -> list[Fact]:
    """ "I play the guitar" for "what do I play?": the verb or noun must be the same."""
    wanted = content_words(f"{query.key}")
    hits = [
        f for f in book.of("does", "have") if wanted & content_words(f"{f.key} {f.value if f.kind == 'have' else ''}")
    ]
    return hits[-2:] if wanted else []
