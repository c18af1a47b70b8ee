"""Labelled conversations: who said what when, and which turns answer which question.

The kit's own set is in `data/teaching_set`. Public benchmarks and a learner's own transcripts are read from
files given by path; what is wrong with their labels is counted in `Dataset.faults`, never a reason to crash.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memlab.assets import data_path
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
        when = self.created_at
        return template.format(
            text=self.text,
            speaker=self.speaker,
            date=f"{when:%Y-%m-%d}" if when else "",
            day=f"{when.day} {when:%B %Y}" if when else "",
        ).strip()


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
        data = _json(path)
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
    for sample in _json(path):
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
    items = {key: value for line in _json_lines(memories) for key, value in line.items()}
    turns = [Turn(key, "memory", value["event"], created_at=_day(value.get("time"))) for key, value in items.items()]
    turns.sort(key=lambda turn: turn.created_at or datetime.min.replace(tzinfo=UTC))
    questions = [
        Question(f"q{number}", asked, tuple(map(str, item["relevant-id"])), "recall")
        for number, item in enumerate(_json_lines(dialogues))
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
    try:
        return datetime.fromisoformat(text or "").replace(tzinfo=UTC)
    except ValueError:
        return None


def load_longmemeval(path: str | Path) -> Dataset:
    """LongMemEval (Wu et al. 2024): each question brings its own haystack of sessions.

    Evidence are the turns marked `has_answer`; questions whose id ends in `_abs` have none.
    """
    dataset = Dataset("LongMemEval", [])
    for item in _json(path):
        turns, evidence = [], []
        sessions = zip(item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=False)
        for session_id, date, session in sessions:
            for number, message in enumerate(session):
                turn = Turn(f"{session_id}:{number}", message["role"], message["content"], session_id, _slashed(date))
                turns.append(turn)
                evidence += [turn.id] if message.get("has_answer") else []
        name = item["question_id"]
        gold = () if name.endswith("_abs") else tuple(evidence)
        question = Question(name, item["question"], gold, item["question_type"], str(item.get("answer", "")))
        dataset.conversations.append(_checked(dataset, name, turns, [question], "en"))
    return dataset


def _slashed(text: str) -> datetime | None:
    found = re.match(r"(\d{4})/(\d{2})/(\d{2})[^\d]*(\d{2}):(\d{2})", text or "")
    return datetime(*map(int, found.groups()), tzinfo=UTC) if found else None  # type: ignore[arg-type]


def load_transcript(path: str | Path, questions: str | Path | None = None) -> Dataset:
    """Your own transcript: JSON Lines or CSV with the columns text, and optionally id, role, session, time.

    `questions` is a file of the same kind with the columns ask and evidence (turn ids, separated by spaces), and
    optionally id, category, answer. A turn without an id gets its number, counted from 1.
    Raises InvalidInputError naming the row that lacks a text, or evidence that names no turn.
    """
    turns = []
    for number, row in enumerate(_rows(path), start=1):
        if not str(row.get("text") or "").strip():
            raise InvalidInputError(f"{Path(path).name}, row {number} has no text; each row needs a column 'text'")
        when = _day(str(row.get("time") or ""))
        name = str(row.get("id") or number)
        turns.append(Turn(name, str(row.get("role") or "user"), str(row["text"]), str(row.get("session") or ""), when))
    asked = [
        Question(
            str(row.get("id") or number),
            str(row.get("ask") or ""),
            tuple(str(row.get("evidence") or "").replace(",", " ").split()),
            str(row.get("category") or ""),
            str(row.get("answer") or ""),
        )
        for number, row in enumerate(_rows(questions) if questions else (), start=1)
    ]
    dataset = Dataset(Path(path).stem, [])
    dataset.conversations.append(_checked(dataset, Path(path).stem, turns, asked, ""))
    if dataset.faults["evidence without a turn"]:
        raise InvalidInputError(f"evidence in {Path(str(questions)).name} names turns that {Path(path).name} lacks")
    return dataset


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


def _rows(path: str | Path) -> Iterator[Mapping[str, Any]]:
    if Path(path).suffix.lower() == ".csv":
        import csv

        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            yield from csv.DictReader(file)
    else:
        yield from _json_lines(path)


def _json(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{Path(path).name} can't be read as JSON: {error}") from error


def _json_lines(path: str | Path) -> list[Any]:
    try:
        return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{Path(path).name} can't be read as JSON Lines: {error}") from error
