"""A finding: what a check has looked at, how bad it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "error"]
Findings = Iterator["Finding"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `level` is "ok", "warn" or "error"."""

    level: Level
    what: str
    remedy: str = ""
