"""The book that facts are kept in: the latest wins, denials take away, corrections find the fact they mean."""

from __future__ import annotations

from collections.abc import Iterable

from memlab.offline.chat_model import corrections
from memlab.offline.chat_model.facts import RULES, Fact
from memlab.offline.chat_model.text import alike, fold

MANY = frozenset({"like", "dislike", "allergy", "avoid", "can", "pet", "have", "does", "note", "diet"})
OPPOSITES = {
    "like": ("dislike",), "dislike": ("like",), "avoid": ("can", "like"), "can": ("avoid", "allergy"), "allergy": ("can",),  # noqa: E501
}  # fmt: skip
_RECENT = 6  # facts of one message that a correction may mean


class FactBook:
    """Facts in the order they were told. For kinds with one value the latest wins."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self.facts: list[Fact] = []
        self.denials: list[Fact] = []
        self._turns: list[list[Fact]] = [[]]  # what the last few messages told, the latest last
        self._turned: Fact | None = None  # what "not X" has just taken away
        for fact in facts:
            self.add(fact)

    def add(self, fact: Fact) -> None:
        """Store one fact, or take one away when it is denied."""
        if fact.kind == "it":
            corrected = self._corrected(fact)
            if corrected is None:
                return
            fact = corrected
        if fact.denied:
            self._drop(fact)
            self.denials.append(fact)
        else:
            self._store(fact)
        self._turns[-1].append(fact)

    def next_turn(self) -> None:
        """The user speaks again: what was told three messages ago can no longer be corrected by a bare value."""
        self._turns = [*self._turns[-2:], []]

    @property
    def _recent(self) -> list[Fact]:
        """What a correction may mean, the latest last."""
        return [fact for turn in self._turns for fact in turn[-_RECENT:]]

    def _corrected(self, it: Fact) -> Fact | None:
        """A correction as the fact it means: one that its value resembles, else the last that it fits; or None."""
        rules = RULES[it.lang]
        if it.denied:
            self._turned = next((f for f in reversed(self._recent) if not f.denied and same(f, it)), None)
            return self._turned._replace(denied=True) if self._turned else None
        target, self._turned = self._turned, None
        if target is None and it.key != "contrast":
            fitting = [
                f for f in reversed(self._recent) if corrections.fits((f.kind, f.key, f.value), it.value, it.key, rules)
            ]
            last = fitting[0] if fitting else None
            target = next((f for f in fitting if corrections.resembles(f.value, it.value)), last)
        if target is None:
            return None
        if target.kind in MANY and not target.denied:
            self._drop(target)
        say = RULES[target.lang].SAY.get(target.kind, target.say) if target.denied else target.say
        return target._replace(value=rules.like_before(target.value, it.value), denied=False, say=say)

    def correct(self, fact: Fact) -> None:
        """Store a correction ("no, I like juice"): it replaces the fact of its kind told just before."""
        last = self._recent[-1] if self._recent else None
        if (
            last is not None
            and fact.kind in MANY
            and (last.kind, last.key, last.denied) == (fact.kind, fact.key, False)
        ):
            self._drop(last)
        self.add(fact)

    def _drop(self, fact: Fact) -> None:
        self.facts = [f for f in self.facts if not (f.kind == fact.kind and f.key == fact.key and same(f, fact))]

    def _store(self, fact: Fact) -> None:
        if fact.kind in MANY:
            clash = (fact.kind, *OPPOSITES.get(fact.kind, ()))
            self.facts = [f for f in self.facts if not (f.kind in clash and f.key == fact.key and same(f, fact))]
        else:
            self.facts = [f for f in self.facts if (f.kind, f.key) != (fact.kind, fact.key)]
        self.denials = [d for d in self.denials if not (d.kind == fact.kind and same(d, fact))]
        self.facts.append(fact)

    def of(self, *kinds: str) -> list[Fact]:
        """The facts of these kinds, oldest first."""
        return [fact for fact in self.facts if fact.kind in kinds]


def same(one: Fact, other: Fact) -> bool:
    """Whether two facts name the same thing, spelling aside ("in Paris" and "Paris")."""
    a, b = plain_value(one), plain_value(other)
    if a == b or (len(b) > 1 and b in a) or (len(a) > 1 and a in b):
        return True
    words, others = a.split(), b.split()
    return len(words) == len(others) and all(map(alike, words, others))


def plain_value(fact: Fact) -> str:
    """A value without the words that only lead in to it: "to eat apples" -> "apples"."""
    plain = fold(fact.value).lower()
    return RULES[fact.lang].LEAD_IN.sub("", plain).strip() or plain
