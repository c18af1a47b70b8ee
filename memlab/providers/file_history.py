"""A history in files: JSON Lines, one file for each session."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memlab.checks import check_type
from memlab.errors import InvalidInputError, MemlabError
from memlab.messages import Message
from memlab.providers.history import HistoryProvider
from memlab.providers.stored_messages import newest, read_message, tell_changes, unknown_messages, write_message


class FileHistoryProvider(HistoryProvider):
    """Keeps each session's messages in a file of its own, one JSON object a line.

    Parameters
    ----------
    directory : where the files are; made when it is missing.
    source_id : the provider's name; two providers in one directory keep apart by it.
    options : those of `HistoryProvider`.

    A write is appended under a lock and flushed to the disk before it counts. If the process dies within a write,
    the torn line is dropped at the next one: it was never acknowledged.
    Raises InvalidInputError for a directory that can't be one or may not be used, when the provider is made and
    before a run; MemlabError for a file that can't be written, and naming file and line when a whole line can't be
    read.
    """

    DEFAULT_SOURCE_ID = "file_history"

    def __init__(self, directory: str | Path, source_id: str | None = None, **options: Any) -> None:
        super().__init__(source_id or self.DEFAULT_SOURCE_ID, **options)
        check_type("directory", directory, str, Path, what="the path of a directory")
        self.directory = Path(directory)
        self._check_directory()

    def path_of(self, session_id: str) -> Path:
        """The file of a session. Any id gives a safe name, and no two ids the same, whatever the file system."""
        digest = hashlib.sha256(json.dumps([self.source_id, session_id]).encode()).hexdigest()
        readable = re.sub(r"[^A-Za-z0-9]+", "-", session_id)[:32].strip("-")
        return self.directory / f"{readable or 'session'}-{digest[:32]}.jsonl"

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: dict[str, Any] | None = None,
        limit: int | None = None,
        **kwargs: Any,
    ) -> list[Message]:
        """The stored messages, oldest first; with `limit` the newest so many."""
        messages = await asyncio.to_thread(self._read, self.path_of(session_id)) if session_id else []
        return newest(messages, limit)

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append the messages that are new."""
        if session_id and messages:
            await asyncio.to_thread(self._append, self.path_of(session_id), list(messages))

    async def replace_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None
    ) -> None:
        """Keep only these messages: the file is written anew and put in the place of the old one."""
        if session_id:
            await asyncio.to_thread(self._rewrite, self.path_of(session_id), list(messages))

    def _check_directory(self) -> None:
        """Refuse a directory that can't be made or used; better now than after the answer."""
        place = next(p for p in (self.directory, *self.directory.parents) if os.path.exists(p))
        stores = self.store_inputs or self.store_outputs or self.store_context_messages
        flaw = ""
        if not place.is_dir():
            flaw = "is a file, not a directory; move it away"
        elif not os.access(place, os.X_OK | (os.W_OK if stores else os.R_OK)):
            flaw = f"may not be {'written' if stores else 'read'} by this process; change its permissions"
        if flaw:
            raise InvalidInputError(f"directory is {str(self.directory)!r}, but {place} {flaw}, or give another path")

    def _read(self, path: Path) -> list[Message]:
        if not os.path.exists(path):
            self._check_directory()
            return []
        whole, _, _ = path.read_bytes().rpartition(b"\n")  # what follows the last newline was never acknowledged
        lines = enumerate(whole.split(b"\n"), 1)
        return [read_message(line, f"{path.name}, line {number},") for number, line in lines if line.strip()]

    def _append(self, path: Path, messages: list[Message]) -> None:
        with self._locked(path):
            stored = self._read(path)
            new = unknown_messages(stored, messages)
            tell_changes(self.source_id, stored, messages, new)
            with path.open("ab+") as file:
                _cut_torn_tail(file)
                file.write(b"".join(map(_line, new)))
                file.flush()
                os.fsync(file.fileno())

    def _rewrite(self, path: Path, messages: list[Message]) -> None:
        with self._locked(path):
            part = path.with_suffix(".part")
            with part.open("wb") as file:
                file.write(b"".join(map(_line, messages)))
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        from filelock import FileLock

        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with FileLock(path.with_suffix(".lock"), timeout=30):
                yield
        except OSError as error:
            raise MemlabError(
                f"{path.name} can't be written: {error.strerror or error}; see to the permissions of its directory, "
                "and to room on the disk, and store the messages again"
            ) from error


def _line(message: Message) -> bytes:
    return write_message(message).encode() + b"\n"


def _cut_torn_tail(file: Any) -> None:
    size = file.seek(0, os.SEEK_END)
    end = size
    while end and _byte_before(file, end) != b"\n":
        end -= 1
    if end != size:
        file.truncate(end)
    file.seek(0, os.SEEK_END)


def _byte_before(file: Any, end: int) -> bytes:
    file.seek(end - 1)
    return bytes(file.read(1))
