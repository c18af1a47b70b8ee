"""Labelled conversations from files: the kit's own set, a learner's own transcript, and public benchmarks.

The kit's own set is in `data/teaching_set`; the rest is read from files given by path. What is wrong with the labels
of a benchmark is counted in `Dataset.faults`, never a reason to crash; in your own transcript it is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from memlab.assets import data_path
from memlab.errors import InvalidInputError
from memlab.experiments.benchmarks import load_locomo, load_longmemeval, load_madial
from memlab.experiments.conversations import Conversation, Dataset, Question, Turn, checked, read_time
from memlab.experiments.files import read_json, read_rows

__all__ = [
    "Conversation",
    "Dataset",
    "Question",
    "Turn",
    "load_locomo",
    "load_longmemeval",
    "load_madial",
    "load_teaching_set",
    "load_transcript",
]


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
        dataset.conversations.append(checked(dataset, data["id"], turns, questions, data["language"]))
    return dataset


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
    when = read_time(written)
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
