"""Finished parts on disk, so that an interrupted experiment goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from memlab import __version__
from memlab.assets import data_path
from memlab.checks import check_type
from memlab.errors import InvalidInputError
from memlab.experiments.orders import strategies
from memlab.experiments.orders.parts import Part
from memlab.experiments.orders.results import write_whole
from memlab.settings import Lab

Rows = list[dict[str, Any]]


class PartFiles:
    """A file for each finished part, in one folder; without a folder nothing is kept.

    A part is known by all that its rows depend on: its settings, the endpoint and its models, the texts of the
    scenario, the strategies' definitions and the version of the kit. Parts of strategies of one's own are not kept,
    since these may change under their names, and neither are parts with a failure.
    """

    def __init__(self, folder: str | Path | None, lab: Lab) -> None:
        check_type("resume", folder, str, Path, None)
        self.folder, self.lab = None if folder is None else Path(folder), lab
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise InvalidInputError(f"{self.folder} is a file; name a folder for the finished parts")

    def path(self, part: Part) -> Path | None:
        """The file of a part; None where it is not kept."""
        if self.folder is None or not isinstance(part.strategy, str):
            return None
        settings = self.lab.settings
        endpoint = [settings.offline, settings.base_url, self.lab.model, self.lab.embedding_model, settings.dimensions]
        what = [*part.settings, endpoint, _definitions()]
        return self.folder / f"{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:24]}.json"

    def read(self, part: Part) -> Rows | None:
        """The rows of a part that was finished before; None if there are none, or if they are not whole."""
        path = self.path(part)
        try:
            rows = json.loads(path.read_text(encoding="utf-8")) if path else None
        except (OSError, ValueError):
            return None
        if not isinstance(rows, list) or not all(isinstance(row, dict) and "utility" in row for row in rows):
            return None
        return rows if [row.get("visit") for row in rows] == list(range(1, part.visits + 1)) else None

    def keep(self, part: Part, rows: Rows) -> Rows:
        """Write the rows of a finished part, and give them back."""
        path = self.path(part)
        if path is not None and not any(row.get("failed") for row in rows):
            write_whole(path, json.dumps(rows, ensure_ascii=False).encode("utf-8"))
        return rows

    def forget(self, parts: Iterable[Part]) -> None:
        """Remove the files of these parts, and the folder if nothing else is in it."""
        for path in filter(None, map(self.path, parts)):
            path.unlink(missing_ok=True)
        if self.folder is not None:
            with suppress(OSError):  # not empty, or gone
                self.folder.rmdir()


@cache
def _definitions() -> str:
    """A digest of the scenario's texts, the strategies, and the version."""
    texts = [data_path("scenarios", f"{name}.json").read_bytes() for name in ("takeout", "regulars", "chats")]
    code = Path(strategies.__file__).read_bytes()
    return hashlib.sha256(b"\0".join([*texts, code, __version__.encode()])).hexdigest()
