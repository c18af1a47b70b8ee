"""The visits of an experiment as a file, and the ones that come with the kit."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from memlab.assets import data_path
from memlab.errors import InvalidInputError
from memlab.experiments.orders.reading import RecordType

if TYPE_CHECKING:
    import pandas as pd

FILE_NAME = "repeated_order.csv.gz"

_TRUTHS = (
    *("repeat", "repeat_in_window", "latest_visible", "free_choice", "constraint_visible"),
    *("violation", "over_limit"),
)
_NUMBERS = ("prompt_tokens", "memory_tokens", "model_calls", "needed_rank")
_FLOATS = ("diversity", "utility", "needed_score", "lowest_kept")
_TEXTS = ("order", "why", "failed")
_KEPT = tuple(f"kept_{kind.replace(' ', '_')}s" for kind in RecordType)
COLUMNS = (
    *("strategy", "language", "chat_turns", "seed", "user", "visit", "order", "repeat", "repeat_in_window"),
    *("violation", "portions", "over_limit", "diversity", "utility", "latest_visible", "free_choice"),
    *("constraint_visible", "prompt_tokens", "memory_tokens", "model_calls", "failed", "why"),
    *("needed_rank", "needed_score", "lowest_kept", *_KEPT),
)
"""The columns of a frame of visits."""


def with_types(frame: pd.DataFrame) -> pd.DataFrame:
    """All of `COLUMNS` as they are meant: truths and numbers may be missing, texts never are."""
    kinds = dict.fromkeys(_TRUTHS, "boolean") | dict.fromkeys((*_NUMBERS, *_KEPT), "Int64")
    typed = frame.reindex(columns=list(COLUMNS)).astype(kinds | dict.fromkeys(_FLOATS, "float64"))
    return typed.assign(**{name: typed[name].astype(object).fillna("").astype(str) for name in _TEXTS})


def write_visits(frame: pd.DataFrame, folder: str | Path) -> Path:
    """Write the visits into `folder`; the same visits make the same bytes."""
    text = frame.to_csv(index=False, float_format="%.4f", lineterminator="\n")
    return write_whole(Path(folder, FILE_NAME), gzip.compress(text.encode("utf-8"), mtime=0))


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file at once, whoever else writes it or removes its folder meanwhile."""
    for attempt in range(1, 11):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", suffix=".part", delete=False) as part:
                part.write(content)
            return Path(part.name).replace(path)
        except (FileNotFoundError, FileExistsError):  # the folder came or went in between
            if attempt == 10:
                raise
    raise AssertionError("unreachable")


def read_visits(path: str | Path | None = None) -> pd.DataFrame:
    """Visits as `repeated_order` gave them; None for the stored ones, made by `memlab orders --out data/results`."""
    import pandas as pd

    path = data_path("results", FILE_NAME) if path is None else Path(path)
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path.name} can't be read as a result of `memlab orders`: {error}") from error
    return with_types(pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""], low_memory=False))
