"""The skill that answers questions about the user from the facts it can see, or says that it doesn't know."""

from __future__ import annotations

import re

from memlab.offline.chat_model import wording
from memlab.offline.chat_model.book import OPPOSITES, FactBook, same
from memlab.offline.chat_model.conversation import Conversation, own_words
from memlab.offline.chat_model.facts import RULES, Fact
from memlab.offline.chat_model.questions import Query, asks_about_self, queries
from memlab.offline.chat_model.text import alike, content_words, fold, sentences
from memlab.offline.chat_model.turn import Turn

# Where to look for a kind of fact, best first.
LOOK = {
    "name": ("name", "surname"), "surname": ("surname", "name"), "like": ("like",), "dislike": ("dislike", "avoid"), "avoid": ("avoid", "allergy", "diet"), "allergy": ("allergy",),  # noqa: E501
    "lives": ("lives",), "from": ("from",), "work": ("work", "study", "job"), "job": ("job", "work", "study"), "study": ("study", "work"), "diet": ("diet", "avoid"),  # noqa: E501
}  # fmt: skip


def answer(conversation: Conversation) -> Turn | None:
    """Answer the question about the user; None when there is no such question."""
    asked = queries(conversation.question, conversation.lang)
    if not asked:
        return None
    parts = [reply(query, conversation) for query in asked[:4]]
    known = [text for text, found in parts if found] + [text for text, found in parts if not found]
    return Turn(_glue(list(dict.fromkeys(known)), conversation.lang), skill="recall")


def missing(conversation: Conversation) -> bool:
    """Whether the question needs a fact that isn't in view."""
    return any(not reply(query, conversation)[1] for query in queries(conversation.question, conversation.lang))


def answerable(conversation: Conversation) -> bool:
    """Whether every fact asked for is in view, or an earlier sentence answers the question."""
    asked = queries(conversation.question, conversation.lang)
    return all(reply(query, conversation)[1] for query in asked) if asked else quote(conversation) is not None


def loose_answer(conversation: Conversation) -> Turn | None:
    """For a question that no table knows: an earlier sentence that fits, quoted, or the honest unknown."""
    if not asks_about_self(conversation.question, conversation.lang):
        return None
    found = quote(conversation)
    return Turn(found[0] if found else wording.unknown("other", conversation.lang), skill="recall")


def _glue(texts: list[str], lang: str) -> str:
    return ("" if lang == "zh" else " ").join(texts)


def reply(query: Query, conversation: Conversation) -> tuple[str, bool]:
    """(sentence, whether it holds the fact asked for)."""
    lang, book = conversation.lang, conversation.facts
    if query.fact is not None:
        return _yes_or_no(query, book, lang)
    if query.kind == "everything":
        return (tell(book.facts[-8:], lang), True) if book.facts else (wording.unknown("everything", lang), False)
    facts = find(query, book, lang)
    if facts:
        return tell(facts, lang), True
    related = quote(conversation, query)
    return related if related else (wording.unknown(query.kind, lang, shown_key(query, lang)), False)


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
    wanted = _key_words(key)
    named = "name" in key.split()
    exact = [f for f in book.of("attr") if _key_words(f.key) == wanted and ("name" in f.key.split()) == named]
    near = [
        f
        for f in book.of("attr")
        if _near(_key_words(f.key), wanted) and _name_fits(f, named) and not _anothers(f.key, key)
    ]
    counted = [f for f in book.of("have") if not named and wanted and _within(wanted, content_words(f.value))]
    return exact[-1:] or near[-2:] or counted[-2:]


def _key_words(key: str) -> frozenset[str]:
    return content_words(" ".join(word for word in key.split() if word not in _NAME_WORD).replace("'s", ""))


def _within(wanted: frozenset[str], words: frozenset[str]) -> bool:
    return all(any(alike(one, other) for other in words) for one in wanted)


def _near(stored: frozenset[str], wanted: frozenset[str]) -> bool:
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


def shown_key(query: Query, lang: str) -> str:
    """An attribute's key as a reader would write it."""
    if query.kind != "attr" or not query.key:
        return ""
    owner = query.key.removesuffix(" name")
    if owner == query.key:
        return query.shown or query.key
    return {"zh": f"{owner}叫什么名字", "en": f"{owner}'s name", "ru": f"имя: {owner}"}[lang]


def tell(facts: list[Fact], lang: str) -> str:
    """Facts as sentences to the user; facts of one shape share a sentence."""
    groups: dict[str, list[str]] = {}
    for fact in facts:
        groups.setdefault(saying(fact, lang), []).append(said_value(fact.value, lang))
    texts = [
        wording.polish(say.replace("{v}", wording.join(list(dict.fromkeys(values)), lang)), lang)
        for say, values in groups.items()
    ]
    return _glue([wording.sentence(text, lang) for text in texts], lang)


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


def _yes_or_no(query: Query, book: FactBook, lang: str) -> tuple[str, bool]:
    """Yes, no with the fact that says so, or the honest unknown."""
    fact = query.fact
    assert fact is not None
    if fact.denied:
        return _denied(query, book, lang)
    held = [f for f in book.of(fact.kind, *ALSO.get(fact.kind, ())) if _answers(f, fact)]
    if fact.kind == "have" and not held:  # "my dog is called Ted": there is a dog
        held = [
            f for f in book.of("attr") if f.key.endswith(" name") and _near(_key_words(f.key), _key_words(fact.value))
        ]
    if held:
        return _lower_first(wording.YES[lang], tell(held[-1:], lang)), True
    against = [f for f in book.of(*OPPOSITES.get(fact.kind, ())) if same(f, fact)] or [
        d for d in book.denials if d.kind == fact.kind and same(d, fact)
    ]
    if fact.kind in SINGLE:
        against = against or [f for f in book.of(fact.kind) if f.key == fact.key]
    if fact.kind in ("can", "like") and not against:
        against = [
            f
            for f in book.of("allergy", "avoid", "diet")
            if same(f, fact) or (f.kind == "diet" and MEAT.search(fact.value))
        ]
    if against:
        return _lower_first(wording.NO[lang], tell(against[-1:], lang)), True
    return wording.unknown(query.kind, lang, shown_key(query, lang)), False


ALSO = {"like": (), "dislike": ("avoid",), "avoid": ("allergy", "dislike"), "can": ("like",), "allergy": ()}
SINGLE = frozenset({"name", "lives", "from", "age", "birthday", "job", "attr", "work", "study"})
MEAT = re.compile(r"meat|beef|pork|chicken|fish|steak|肉|鱼|鸡|牛排|мяс|рыб|куриц|говядин|свинин", re.I)


def _lower_first(lead: str, text: str) -> str:
    return lead + (text if text.startswith("I ") else text[:1].lower() + text[1:])


def _answers(held: Fact, asked: Fact) -> bool:
    return same(held, asked) and (held.kind != "attr" or _near(_key_words(held.key), _key_words(asked.key)))


def _denied(query: Query, book: FactBook, lang: str) -> tuple[str, bool]:
    """ "Am I not called Bob?": tell what is known of that kind."""
    fact = query.fact
    assert fact is not None
    held = [f for f in book.of(fact.kind) if f.key == fact.key]
    return (tell(held[-1:], lang), True) if held else (wording.unknown(query.kind, lang), False)


QUOTE = {"zh": "你告诉过我：“{t}”。", "en": 'You told me: "{t}"', "ru": "Вы говорили: «{t}»."}


def quote(conversation: Conversation, query: Query | None = None) -> tuple[str, bool] | None:
    """A user's own sentence that holds every content word of the question, quoted; else None."""
    if query is not None and query.kind in NEVER_QUOTED:
        return None
    wanted = content_words(_question_only(conversation.question))
    notes = [fact.value for fact in conversation.facts.of("note") if wanted and wanted <= content_words(fact.value)]
    if notes:
        return QUOTE[conversation.lang].replace("{t}", notes[-1]), True
    if len(wanted) < (2 if query is None or query.kind != "attr" else 1):
        return None
    for line in reversed(conversation.everything):
        if line.speaker in ("user", "any") and line.text != conversation.question:
            for text in sentences(own_words(line.text)):
                if wanted <= content_words(text) and not RULES[conversation.lang].QUESTION.search(fold(text)):
                    return QUOTE[conversation.lang].replace("{t}", text.rstrip(".。!！ ")), True
    return None


NEVER_QUOTED = frozenset(
    {
        "name",
        "like",
        "dislike",
        "allergy",
        "avoid",
        "lives",
        "from",
        "age",
        "birthday",
        "everything",
        "pet",
        "job",
        "work",
    }
)


def _question_only(text: str) -> str:
    return (sentences(text) or [text[:200]])[-1]
