"""The visits of an experiment as a file, and the ones that come with the kit."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.assets import data_path
from memlab.errors import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

FILE_NAME = "repeated_order.csv.gz"

_TRUTHS = ("repeat", "repeat_in_window", "latest_visible", "free_choice", "constraint_visible")
_NUMBERS = ("prompt_tokens", "memory_tokens", "model_calls", "needed_rank")
_TEXTS = ("order", "why", "failed")


def with_types(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns as they are meant: truths and whole numbers that may be missing, texts that are never missing."""
    kinds = dict.fromkeys(_TRUTHS, "boolean") | dict.fromkeys(_NUMBERS, "Int64")
    kinds |= {name: "Int64" for name in map(str, frame) if name.startswith("kept_")}
    typed = frame.astype({name: kind for name, kind in kinds.items() if name in frame})
    return typed.assign(**{name: typed[name].astype(object).fillna("").astype(str) for name in _TEXTS if name in typed})


def write_visits(frame: pd.DataFrame, folder: str | Path) -> Path:
    """Write the visits into `folder`; the same visits make the same bytes."""
    path = Path(folder, FILE_NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = frame.to_csv(index=False, float_format="%.4f", lineterminator="\n")
    part = path.with_suffix(".part")
    part.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
    part.replace(path)
    return path


def read_visits(path: str | Path | None = None) -> pd.DataFrame:
    """Visits as `repeated_order` gave them; None for the stored ones, made by `memlab orders --out data/results`."""
    import pandas as pd

    path = data_path("results", FILE_NAME) if path is None else Path(path)
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path.name} can't be read as a result of `memlab orders`: {error}") from error
    return with_types(pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""], low_memory=False))


def keep_rows(rows: list[dict[str, Any]], path: Path | None) -> list[dict[str, Any]]:
    """Write the rows of a finished part, if there is a file for them, and give them back."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
        part.replace(path)
    return rows


def read_rows(path: Path | None) -> list[dict[str, Any]]:
    """The rows of a part that was finished before."""
    assert path is not None
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows
