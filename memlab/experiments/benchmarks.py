"""Public benchmarks of conversational memory, read from their own files: LoCoMo, MADial-Bench and LongMemEval.

None comes with the kit; each file is given by path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memlab.experiments.conversations import Dataset, Question, Turn, checked, read_time
from memlab.experiments.files import read_json, read_json_lines


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
        dataset.conversations.append(checked(dataset, name, turns, questions, "en"))
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
    turns = [
        Turn(key, "memory", value["event"], created_at=read_time(value.get("time"))) for key, value in items.items()
    ]
    turns.sort(key=lambda turn: turn.created_at or datetime.min.replace(tzinfo=UTC))
    questions = [
        Question(f"q{number}", asked, tuple(map(str, item["relevant-id"])), "recall")
        for number, item in enumerate(read_json_lines(dialogues))
        if (asked := _last_said(item))
    ]
    dataset.conversations.append(checked(dataset, "all", turns, questions, language))
    return dataset


def _last_said(item: Mapping[str, Any]) -> str:
    before = [line.strip() for line in item["dialogue"][: item["test-turn"][0]]]
    by_user = [line for line in before if not line.startswith("<Assistant>")]
    said = [re.sub(r"^<[^>]*>:\s*", "", line).strip().strip('"') for line in by_user]
    return next((text for text in reversed(said) if text and not text.startswith("<")), "")


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
        dataset.conversations.append(checked(dataset, name, turns, [question], "en"))
    return dataset


def _slashed(text: str) -> datetime | None:
    found = re.match(r"(\d{4})/(\d{2})/(\d{2})[^\d]*(\d{2}):(\d{2})", text or "")
    if not found:
        return None
    year, month, day, hour, minute = map(int, found.groups())
    return datetime(year, month, day, hour, minute, tzinfo=UTC)
