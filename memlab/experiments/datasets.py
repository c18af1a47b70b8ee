"""Labelled conversations: who said what when, and which turns answer which question.

The kit's own set is in `data/teaching_set`. Public benchmarks and a learner's own transcripts are read from
files given by path; what is wrong with their labels is counted in `Dataset.faults`, never a reason to crash.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memlab.assets import data_path
from memlab.errors import InvalidInputError
from memlab.experiments.files import read_json, read_json_lines, read_rows


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


def load_teaching_set(folder: str | Path | None = None) -> Dataset:
    """The kit's own conversations, in Chinese, English and Russian, written for it."""
    paths = sorted(Path(folder or data_path("teaching_set")).glob("*.json"))
    if not paths:
        raise InvalidInputError(f"there is no conversation (*.json) in {folder or 'data/teaching_set'}")
    dataset = Dataset("teaching set", [])
    for path in paths:
        data = read_json(path)
        turns = [
            Turn(turn["id"], turn["role"], turn["text"], session["id"], datetime.fromisoformat(session["date"]))
            for session in data["sessions"]
            for turn in session["turns"]
        ]
        questions = [
            Question(q["id"], q["ask"], tuple(q["evidence"]), q["category"], q.get("answer", ""))
            for q in data["questions"]
        ]
        dataset.conversations.append(_checked(dataset, data["id"], turns, questions, data["language"]))
    return dataset


def load_locomo(path: str | Path) -> Dataset:
    """LoCoMo (Maharana et al. 2024): very long chats of two speakers. Categories 1 to 5 get their names.

    A picture counts as its caption. Evidence ids are read with `D:?(\\d+):(\\d+)`; what is left over is counted.
    """
    dataset = Dataset("LoCoMo", [])
    for sample in read_json(path):
        talk = sample["conversation"]
        turns = [turn for number in _session_numbers(talk) for turn in _locomo_session(talk, number)]
        questions = [_locomo_question(dataset, number, item) for number, item in enumerate(sample["qa"])]
        name = str(sample.get("sample_id", len(dataset.conversations)))
        dataset.conversations.append(_checked(dataset, name, turns, questions, "en"))
    return dataset


_LOCOMO = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


def _session_numbers(talk: Mapping[str, Any]) -> list[int]:
    return sorted(int(m[1]) for key in talk if (m := re.fullmatch(r"session_(\d+)", key)))


def _locomo_session(talk: Mapping[str, Any], number: int) -> Iterator[Turn]:
    written = talk.get(f"session_{number}_date_time", "")
    try:
        when = datetime.strptime(written, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError:
        when = None
    for item in talk[f"session_{number}"]:
        caption = f" [picture: {item['blip_caption']}]" if item.get("blip_caption") else ""
        yield Turn(item["dia_id"], item["speaker"], item["text"] + caption, str(number), when)


def _locomo_question(dataset: Dataset, number: int, item: Mapping[str, Any]) -> Question:
    text = " ".join(map(str, item.get("evidence") or []))
    ids = tuple(dict.fromkeys(f"D{int(a)}:{int(b)}" for a, b in re.findall(r"D:?(\d+):(\d+)", text)))
    rest = re.sub(r"D:?\d+:\d+|[\s;,]", "", text)
    dataset.faults["unreadable evidence"] += bool(rest)
    category = _LOCOMO.get(item.get("category", 0), "other")
    # In the adversarial category the evidence is that of a question about the other speaker: nothing answers it.
    evidence = () if category == "adversarial" else ids
    dataset.faults["no evidence"] += not ids
    return Question(f"q{number}", item["question"], evidence, category, str(item.get("answer", "")))


def load_madial(dialogues: str | Path, memories: str | Path, language: str = "") -> Dataset:
    """MADial-Bench (He et al. 2025): what the user said before a turn, and the memories to recall there.

    All memories are one conversation, ordered by time; a question is the last thing the user said before the
    first test turn of a dialogue.
    """
    dataset = Dataset(f"MADial-Bench {language}".strip(), [])
    items = {key: value for line in read_json_lines(memories) for key, value in line.items()}
    turns = [Turn(key, "memory", value["event"], created_at=_day(value.get("time"))) for key, value in items.items()]
    turns.sort(key=lambda turn: turn.created_at or datetime.min.replace(tzinfo=UTC))
    questions = [
        Question(f"q{number}", asked, tuple(map(str, item["relevant-id"])), "recall")
        for number, item in enumerate(read_json_lines(dialogues))
        if (asked := _last_said(item))
    ]
    dataset.conversations.append(_checked(dataset, "all", turns, questions, language))
    return dataset


def _last_said(item: Mapping[str, Any]) -> str:
    before = [line.strip() for line in item["dialogue"][: item["test-turn"][0]]]
    by_user = [line for line in before if not line.startswith("<Assistant>")]
    said = [re.sub(r"^<[^>]*>:\s*", "", line).strip().strip('"') for line in by_user]
    return next((text for text in reversed(said) if text and not text.startswith("<")), "")


def _day(text: str | None) -> datetime | None:
    """A date or time; without a zone it is UTC."""
    try:
        when = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def load_longmemeval(path: str | Path) -> Dataset:
    """LongMemEval (Wu et al. 2024): each question brings its own haystack of sessions.

    Evidence are the turns marked `has_answer`; questions whose id ends in `_abs` have none.
    """
    dataset = Dataset("LongMemEval", [])
    for item in read_json(path):
        turns, evidence = [], []
        sessions = zip(item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=False)
        for session_id, date, session in sessions:
            for number, message in enumerate(session):
                turn = Turn(f"{session_id}:{number}", message["role"], message["content"], session_id, _slashed(date))
                turns.append(turn)
                evidence += [turn.id] if message.get("has_answer") else []
        turns.sort(key=lambda turn: turn.created_at or datetime.min.replace(tzinfo=UTC))  # oldest first, as everywhere
        name = item["question_id"]
        gold = () if name.endswith("_abs") else tuple(evidence)
        question = Question(name, item["question"], gold, item["question_type"], str(item.get("answer", "")))
        dataset.conversations.append(_checked(dataset, name, turns, [question], "en"))
    return dataset


def _slashed(text: str) -> datetime | None:
    found = re.match(r"(\d{4})/(\d{2})/(\d{2})[^\d]*(\d{2}):(\d{2})", text or "")
    if not found:
        return None
    year, month, day, hour, minute = map(int, found.groups())
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def load_transcript(path: str | Path, questions: str | Path | None = None) -> Dataset:
    """Your own transcript, oldest turn first: JSON Lines or CSV with a column text, and optionally id, role,
    session, time (like 2026-03-02 or 2026-03-02T18:30:00+08:00; without a zone it is UTC).

    `questions` is a file of the same kind with the columns ask and evidence (turn ids, separated by spaces; in JSON
    a list will do), and optionally id, category, answer. A turn without an id gets its number, counted from 1.
    Raises InvalidInputError naming the row that lacks a text or a question, has an id twice, a time that can't be
    read, or evidence that names no turn.
    """
    turns = [_own_turn(where, number, row) for where, number, row in read_rows(path)]
    if doubled := [name for name, times in Counter(turn.id for turn in turns).items() if times > 1]:
        raise InvalidInputError(f"{Path(path).name} has the id {doubled[0]!r} twice; each turn needs one of its own")
    known = {turn.id for turn in turns}
    rows = read_rows(questions) if questions else ()
    asked = [_own_question(where, number, row, known) for where, number, row in rows]
    return Dataset(Path(path).stem, [Conversation(Path(path).stem, tuple(turns), tuple(asked))])


def _own_turn(where: str, number: int, row: Mapping[str, Any]) -> Turn:
    text, written = _cell(row, "text"), _cell(row, "time")
    if not text.strip():
        raise InvalidInputError(f"{where} has no text; each row needs a column 'text'")
    when = _day(written)
    if written and when is None:
        raise InvalidInputError(f"{where} has the time {written!r}; write it like 2026-03-02T18:30:00")
    return Turn(_cell(row, "id") or str(number), _cell(row, "role") or "user", text, _cell(row, "session"), when)


def _own_question(where: str, number: int, row: Mapping[str, Any], known: set[str]) -> Question:
    ask, evidence = _cell(row, "ask"), row.get("evidence")
    if not ask.strip():
        raise InvalidInputError(f"{where} has no question; each row needs a column 'ask'")
    listed = evidence if isinstance(evidence, list) else _cell(row, "evidence").replace(",", " ").split()
    names = tuple(dict.fromkeys(map(str, listed)))
    if unknown := [name for name in names if name not in known]:
        raise InvalidInputError(f"{where} names the turn {unknown[0]!r} as evidence, which the transcript lacks")
    return Question(_cell(row, "id") or str(number), ask, names, _cell(row, "category"), _cell(row, "answer"))


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value)


def _checked(
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
