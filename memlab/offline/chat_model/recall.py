"""The skill that answers questions about the user from the facts it can see, or says that it doesn't know.

An open question is looked up (`lookup`) and told (`telling`); yes or no is decided here; failing both, a sentence of
the user's own that holds the words of the question is quoted.
"""

from __future__ import annotations

import re

from memlab.offline.chat_model import wording
from memlab.offline.chat_model.book import OPPOSITES, FactBook, same
from memlab.offline.chat_model.conversation import Conversation, own_words
from memlab.offline.chat_model.facts import RULES, Fact
from memlab.offline.chat_model.lookup import agree, find, key_words
from memlab.offline.chat_model.questions import Query, asks_about_self, queries
from memlab.offline.chat_model.telling import glue, shown_key, tell
from memlab.offline.chat_model.text import content_words, fold, sentences
from memlab.offline.chat_model.turn import Turn


def answer(conversation: Conversation) -> Turn | None:
    """Answer the question about the user; None when there is no such question."""
    asked = queries(conversation.question, conversation.lang)
    if not asked:
        return None
    parts = [reply(query, conversation) for query in asked[:4]]
    known = [text for text, found in parts if found] + [text for text, found in parts if not found]
    return Turn(glue(list(dict.fromkeys(known)), conversation.lang), skill="recall")


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


def _yes_or_no(query: Query, book: FactBook, lang: str) -> tuple[str, bool]:
    """Yes, no with the fact that says so, or the honest unknown."""
    fact = query.fact
    assert fact is not None
    if fact.denied:
        return _denied(query, book, lang)
    held = [f for f in book.of(fact.kind, *ALSO.get(fact.kind, ())) if _answers(f, fact)]
    if fact.kind == "have" and not held:  # "my dog is called Ted": there is a dog
        held = [
            f for f in book.of("attr") if f.key.endswith(" name") and agree(key_words(f.key), key_words(fact.value))
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
    return same(held, asked) and (held.kind != "attr" or agree(key_words(held.key), key_words(asked.key)))


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
