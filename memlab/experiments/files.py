"""Reading JSON, JSON Lines and CSV, with errors that say where the fault is."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memlab.errors import InvalidInputError


def read_rows(path: str | Path) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Each row of a CSV or JSON Lines file: where it is, for messages; its number, from 1; and its values."""
    rows = _csv(path) if Path(path).suffix.lower() == ".csv" else read_json_lines(path)
    for number, row in enumerate(rows, start=1):
        where = f"{Path(path).name}, row {number},"
        if not isinstance(row, Mapping):
            raise InvalidInputError(f"{where} is no object with named values: {row!r:.80}")
        yield where, number, row


def _csv(path: str | Path) -> list[Mapping[str, Any]]:
    return list(csv.DictReader(io.StringIO(_text(path), newline="")))


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{Path(path).name} can't be read as UTF-8 text: {error}") from error


def read_json(path: str | Path) -> Any:
    """The value of a JSON file. Raises InvalidInputError when it can't be read."""
    try:
        return json.loads(_text(path))
    except ValueError as error:
        raise InvalidInputError(f"{Path(path).name} can't be read as JSON: {error}") from error


def read_json_lines(path: str | Path) -> list[Any]:
    """The value of each line that is not blank. Raises InvalidInputError naming the line that can't be read."""
    values = []
    # Not splitlines(): JSON strings may hold U+2028 and its like as they are.
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except ValueError as error:
                raise InvalidInputError(f"{Path(path).name}, line {number}, can't be read as JSON: {error}") from error
    return values
