"""Labelled conversations: who said what when, and which turns answer which question.

Read from files by `datasets`, searched and scored by `sweep`. What is wrong with labels is counted in
`Dataset.faults`, never a reason to crash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from memlab.errors import InvalidInputError


@dataclass(frozen=True)
class Turn:
    """One message of a conversation."""

    id: str
    speaker: str
    text: str
    session_id: str = ""
    created_at: datetime | None = None

    def written(self, template: str = "{text}") -> str:
        """The turn as a record's text: {text}, {speaker}, {date} (2023-05-08) and {day} (8 May 2023) may be used."""
        if template == "{text}":  # the usual case, and a busy one
            return self.text.strip()
        when = self.created_at
        values = {
            "text": self.text,
            "speaker": self.speaker,
            "date": f"{when:%Y-%m-%d}" if when else "",
            "day": f"{when.day} {when:%B %Y}" if when else "",
        }
        try:
            return template.format(**values).strip()
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            allowed = ", ".join(f"{{{name}}}" for name in values)
            raise InvalidInputError(
                f"template {template!r} can't be filled ({error!r}); it may use {allowed}"
            ) from None


@dataclass(frozen=True)
class Question:
    """A question and the ids of the turns that answer it; none when the answer was never said."""

    id: str
    ask: str
    evidence: tuple[str, ...]
    category: str = ""
    answer: str = ""

    @property
    def answerable(self) -> bool:
        """Whether any turn answers it."""
        return bool(self.evidence)


@dataclass(frozen=True)
class Conversation:
    """The turns of one memory, oldest first, and the questions about it."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    language: str = ""


@dataclass
class Dataset:
    """Conversations with labels. `faults` counts what was wrong with the labels, by kind."""

    name: str
    conversations: list[Conversation]
    faults: Counter[str] = field(default_factory=Counter)

    @property
    def questions(self) -> Iterator[tuple[Conversation, Question]]:
        """All questions with their conversations."""
        return ((talk, question) for talk in self.conversations for question in talk.questions)

    def __repr__(self) -> str:
        turns = sum(len(talk.turns) for talk in self.conversations)
        return (
            f"Dataset({self.name!r}: {len(self.conversations)} conversations, {turns} turns, "
            f"{sum(1 for _ in self.questions)} questions, faults {dict(self.faults)})"
        )


def checked(
    dataset: Dataset, name: str, turns: Iterable[Turn], questions: Iterable[Question], language: str
) -> Conversation:
    """A conversation whose evidence exists: ids that name no turn are left out and counted."""
    turns = tuple(turn for turn in turns if turn.text.strip())
    known, kept = {turn.id for turn in turns}, []
    for question in questions:
        there = tuple(item for item in question.evidence if item in known)
        dataset.faults["evidence without a turn"] += len(question.evidence) - len(there)
        kept.append(Question(question.id, question.ask, there, question.category, question.answer))
    return Conversation(name, turns, tuple(kept), language)


def read_time(text: str | None) -> datetime | None:
    """A date or time; without a zone it is UTC."""
    try:
        when = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
