"""A dataset by name or path, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from memlab.errors import InvalidInputError
from memlab.experiments.datasets import (
    Dataset,
    load_locomo,
    load_longmemeval,
    load_madial,
    load_teaching_set,
    load_transcript,
)


def open_dataset(*paths: str, questions: str | None = None) -> Dataset:
    """The dataset that names and paths stand for.

    Parameters
    ----------
    paths : "teaching"; or a LoCoMo or LongMemEval file (.json, told apart by its keys); a transcript (.jsonl, .csv);
        a folder in the format of the teaching set; both files of MADial-Bench, in any order.
    questions : a file of questions on a transcript.

    Raises InvalidInputError for what is none of these, and for a dataset without questions.
    """
    if len(paths) > 2:
        raise InvalidInputError(f"{len(paths)} datasets are given; it takes one, or the two files of MADial-Bench")
    for path in [*paths, *([questions] if questions else [])]:
        if path != "teaching" and not Path(path).exists():
            raise InvalidInputError(f"there is no file {path}; the kit's own dataset is called 'teaching'")
    if questions and Path(paths[0]).suffix.lower() not in (".jsonl", ".csv"):
        raise InvalidInputError(f"--questions belongs to a transcript (.jsonl or .csv), not to {paths[0]}")
    dataset = _load(lambda: _read(paths, questions), ", ".join(Path(path).name for path in paths))
    if not any(talk.questions for talk in dataset.conversations):
        raise InvalidInputError(
            f"{dataset.name} has no questions to measure with; for a transcript name a file: --questions FILE"
        )
    return dataset


def _load(load: Callable[[], Dataset], what: str) -> Dataset:
    try:
        return load()
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise InvalidInputError(f"{what} is not in a known format: {type(error).__name__} at {error}") from error


def _read(paths: Sequence[str], questions: str | None) -> Dataset:
    path = Path(paths[0])
    loaded: Dataset
    if len(paths) == 2:
        dialogues, memories = sorted(paths, key=lambda each: '"dialogue"' not in _head(each))
        loaded = load_madial(dialogues, memories)
    elif paths[0] == "teaching":
        loaded = load_teaching_set()
    elif path.is_dir():
        loaded = load_teaching_set(path)
    elif path.suffix.lower() in (".jsonl", ".csv"):
        loaded = load_transcript(path, questions)
    else:
        loaded = _benchmark(path)
    return loaded


def _benchmark(path: Path) -> Dataset:
    """LoCoMo or LongMemEval, told apart by their keys."""
    head = _head(path)
    loaded: Dataset
    if '"haystack_' in head:
        loaded = load_longmemeval(path)
    elif '"qa"' in head or '"conversation"' in head:
        loaded = load_locomo(path)
    else:
        raise InvalidInputError(
            f"{path.name} is neither LoCoMo (keys qa, conversation) nor LongMemEval (haystack_sessions); "
            "a transcript of your own is a .jsonl or .csv file, and MADial-Bench takes both of its files"
        )
    return loaded


def _head(path: str | Path) -> str:
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return file.read(65536)
