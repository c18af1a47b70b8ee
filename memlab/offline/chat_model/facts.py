"""Facts about the user, read from sentences by tables of patterns."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from memlab.offline.chat_model import corrections, rules_en, rules_ru, rules_zh
from memlab.offline.chat_model.text import fold, sentences, trim

RULES = {"zh": rules_zh, "en": rules_en, "ru": rules_ru}
NOTE = {"zh": "“{v}”", "en": "“{v}”", "ru": "«{v}»"}
LONGEST_VALUE = 100
LONGEST_CLAUSE = 200
MOST_SENTENCES = 2000  # of one message, from its beginning and from its end


class Fact(NamedTuple):
    """One fact: `kind` (name, like, ...), `value`, `key` (attributes only), `say` (how to say it back).

    `denied` facts take a value away: "I'm not called Bob". `kind` "it" is a correction that needs the
    fact before it to be understood ("no, it's Bob"); its `key` says how much it proves.
    """

    kind: str
    value: str
    key: str = ""
    say: str = "{v}"
    denied: bool = False
    lang: str = "en"


@lru_cache(maxsize=16384)
def extract(text: str, speaker: str = "user") -> tuple[Fact, ...]:
    """The facts about the user that `text` states.

    `speaker`: "user" (first person), "assistant" (second person: "you like tea"), "any" (a remembered line
    whose speaker is unknown: both), "system" (only listed facts: "- name: Anna", "The user's name is Anna").

    >>> [(fact.kind, fact.value) for fact in extract("I'm Anna and I live in Paris.")]
    [('name', 'Anna'), ('lives', 'in Paris')]
    """
    found: list[Fact] = []
    plain = fold(text)
    for lang, rules in RULES.items():
        if rules.PRECHECK.search(plain):
            found += _extract(text, speaker, lang)
    return tuple(dict.fromkeys(found))


def _extract(text: str, speaker: str, lang: str) -> list[Fact]:
    rules = RULES[lang]
    found: list[Fact] = []
    subject: str | None = None  # who a clause without a subject is about; carried from sentence to sentence
    for sentence in _both_ends(sentences(_without_quotations(text, rules))):
        found += _listed(sentence, lang)
        stated, after = clauses(sentence, lang, subject) if speaker in ("user", "any") else ([], "")
        facts = [fact for clause in stated for fact in read_clause(clause, lang)]
        if speaker in ("user", "any"):
            facts = facts or _correction(sentence, lang) or _note(sentence, stated, lang)
        if speaker != "user":
            facts += _second_person(sentence, speaker, lang)
        reported = rules.BLOCKED.search(fold(sentence)) if facts else None
        if reported:  # "my name is Beatrice, but everyone says Bea": what stands before "but" is the user's own
            head = sentence[: reported.start()]
            own = clauses(head, lang)[0] if rules.GOES_ON.search(fold(head)) and speaker in ("user", "any") else []
            facts = [fact for clause in own for fact in read_clause(clause, lang)]
        found += facts
        subject = "" if reported else after
    return found


def _correction(sentence: str, lang: str) -> list[Fact]:
    """ "Sorry, it's Rob, not Bob": values that only a fact told before makes sense of."""
    turned = corrections.read(sentence, lang)
    if turned is None:
        return []
    denied = [Fact("it", turned.rejected, turned.proof, denied=True, lang=lang)] if turned.rejected else []
    return [*denied, Fact("it", RULES[lang].clean("it", turned.value)[0], turned.proof, lang=lang)]


def _note(sentence: str, stated: list[str], lang: str) -> list[Fact]:
    """ "Remember that I parked on level 3": what no table knows is kept in the user's own words."""
    rules = RULES[lang]
    if not (stated and rules.REQUEST.match(fold(sentence)) and rules.FIRST_PERSON.search(fold(stated[0]))):
        return []
    value = trim(stated[0])
    return [Fact("note", value, say=NOTE[lang], lang=lang)] if 3 < len(value) <= LONGEST_VALUE else []


def _both_ends(parts: list[str]) -> list[str]:
    return parts if len(parts) <= 2 * MOST_SENTENCES else parts[:MOST_SENTENCES] + parts[-MOST_SENTENCES:]


_QUOTED = re.compile(r"“([^”]{0,200})”|\"([^\"\n]{0,200})\"|«([^»]{0,200})»|「([^」]{0,200})」|『([^』]{0,200})』"
                     r"|(?<!\w)['‘]([^'’\n]{0,200})['’](?!\w)")  # fmt: skip


def _without_quotations(text: str, rules: object) -> str:
    """Quoted speech in the first person is somebody else's; a quoted name or title stays."""
    if not any(mark in text for mark in "“\"«「『'‘"):
        return text
    speech: re.Pattern[str] = rules.FIRST_PERSON  # type: ignore[attr-defined]
    return _QUOTED.sub(lambda m: " … " if speech.search(fold(m.group())) else " " + m.group()[1:-1] + " ", text)


def _listed(sentence: str, lang: str) -> list[Fact]:
    """`- name: Anna`: a line of a summary or a profile."""
    match = RULES[lang].LISTED.match(fold(sentence))
    if not match:
        return []
    kind = RULES[lang].LABELS[match["label"].lower()]
    value = trim(sentence[match.start("v") :])
    return [Fact(kind, value, say=RULES[lang].SAY[kind], lang=lang)] if value else []


def _second_person(sentence: str, speaker: str, lang: str) -> list[Fact]:
    """The assistant's "You are called Anna" becomes "I am called Anna" and is read by the same rules."""
    rules = RULES[lang]
    if speaker == "system":
        swapped = rules.third_to_first(sentence)
    else:
        vocative = rules.VOCATIVE.search(fold(sentence))
        if vocative and rules.is_name(sentence[vocative.start("v") : vocative.end("v")], True):
            name = trim(sentence[vocative.start("v") : vocative.end("v")])
            return [Fact("name", name, say=rules.SAY["name"], lang=lang)]
        swapped = rules.second_to_first(sentence)
    return [fact for clause in clauses(swapped, lang, "")[0] for fact in read_clause(clause, lang)] if swapped else []


def clauses(sentence: str, lang: str, subject: str | None = None) -> tuple[list[str], str]:
    """(clauses that state something, the subject after them).

    Questions and things past are left out; a dropped subject is put back. `subject` None: nobody has been
    spoken of yet, and only a clause that plainly speaks of its writer ("love sushi") gets one.
    """
    rules = RULES[lang]
    sentence = sentence[corrections.begin(sentence, lang) :]
    parts = [piece for part in split(rules.SPLIT, rules.joined(sentence)) for piece in rules.split_more(part)]
    kept: list[str] = []
    for part, following in zip(parts, [*parts[1:], ""], strict=False):
        filler = rules.FILLER.match(fold(part))
        clause = part[filler.end() :] if filler else part
        dropped = rules.DROPPED_FIRST if subject is None else rules.DROPPED
        if subject != "" and dropped.match(fold(clause)):
            clause = rules.restore(rules.SUBJECT if subject is None else subject, clause)
        subject = rules.subject_of(fold(clause), subject)
        asked = rules.QUESTION.search(fold(part)) or rules.TAG.match(fold(following))
        if clause and not rules.PAST.match(fold(clause)) and (not asked or rules.REQUEST.match(fold(part))):
            kept.append(clause)
    return kept, subject or ""


def split(pattern: re.Pattern[str], text: str) -> list[str]:
    """Split where `pattern` matches the folded text; the parts keep their own spelling."""
    parts, start = [], 0
    for match in pattern.finditer(fold(text)):
        parts.append(text[start : match.start()])
        start = match.end()
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def read_clause(clause: str, lang: str) -> list[Fact]:
    """The facts that one clause states: one, or a denied one beside it ("coffee, not tea"), or none."""
    plain = fold(clause)
    if len(plain) > LONGEST_CLAUSE or not RULES[lang].LEAD.match(plain):
        return []
    for kind, pattern, say in RULES[lang].STATEMENTS:
        match = pattern.match(plain)
        facts = _facts_of_match(match, clause, kind, say, lang) if match else []
        if facts:
            return facts
    return []


def _facts_of_match(match: re.Match[str], clause: str, kind: str, say: str, lang: str) -> list[Fact]:
    """Kinds: "not X" denies, "X?" needs a value that looks the part ("X!" one that is well known), "X:key" names an attribute, "X&Y" has two values."""  # noqa: E501
    rules = RULES[lang]
    kind, _, second = kind.partition("&")
    kind, _, key = kind.partition(":")
    denied, strict = kind.startswith("not "), kind[-1] if kind[-1] in "?!" else ""
    kind = kind.removeprefix("not ").rstrip("?!")
    strict = "!" if strict and clause.isupper() else strict  # capitals prove nothing in a message of capitals
    raw = {name: clause[match.start(name) : match.end(name)] for name, found in match.groupdict().items() if found}
    value, rejected = rules.clean(kind, without_chatter(kind, raw.get("v", ""), rules))
    if not value or len(value) > LONGEST_VALUE or not rules.is_valid(kind, value, strict):
        return []
    owned = (key or raw.get("k", "")).strip()
    shown = say.replace("{k}", owned).replace("{p}", rules.POSSESSIVE.get(fold(raw.get("p", "")).lower(), ""))
    key = rules.key_of(kind, owned)
    facts = [Fact(rules.kind_of(kind, key), value, key, shown, denied, lang)]
    if rejected:
        facts.insert(0, facts[0]._replace(value=rejected, denied=True))
    if second:
        facts.append(Fact(second, rules.clean(second, raw["w"])[0], say=rules.SAY[second], lang=lang))
    return facts


_LISTS = frozenset({"like", "dislike", "allergy", "avoid", "can", "have", "attr", "does", "study", "it"})
_PLACES = frozenset({"lives", "from", "work"})


def without_chatter(kind: str, value: str, rules: Any) -> str:
    """A value up to the comma where talk goes on: "Paramore, saw them live" -> "Paramore".

    A list goes on ("tea, jazz and long walks") and so does a place ("Paris, France").
    """
    parts = re.split(r"(\s*[,;]\s*|\s+[-–—]+\s+|\s*[(])", value)
    kept = parts[0]
    for gap, part in zip(parts[1::2], parts[2::2], strict=True):
        plain = fold(part).strip()
        listed = kind in _LISTS and "," in gap and len(plain.split()) <= 4 and not rules.CHATTER.search(plain)
        named = kind in _PLACES and "," in gap and part[:1].isupper() and len(plain.split()) <= 3
        turned = rules.AGAINST.match(plain) and kind != "note"
        if not (listed or named or turned or kind in ("note", "birthday")):
            break
        kept += gap + part
    return kept
