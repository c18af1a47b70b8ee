"""Vectors kept on disk: a text that was embedded once costs nothing the second time."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from memlab.checks import check_type
from memlab.errors import MemlabError
from memlab.stores.base import Embeds, Vector

_TABLE = """
    CREATE TABLE IF NOT EXISTS vectors (
        model TEXT, dimensions INTEGER, role TEXT, digest BLOB, vector BLOB,
        PRIMARY KEY (model, dimensions, role, digest)
    ) WITHOUT ROWID
"""
_PART = 500  # SQLite takes a limited number of parameters a statement
_Key = tuple[str, int, str]


class CachedEmbedder:
    """An embedder in front of another one, with a file of vectors by model, dimensions, role and text.

    Parameters
    ----------
    embedder : makes the vectors that the file lacks, in one call a batch.
    path : an SQLite file, made when it is not there. Several threads and processes may share it.

    The file holds a hash of each text, not the text. `hits` and `misses` count the different texts of each batch
    that were found and that were embedded. It pickles if the embedder behind it does, and opens its file again.

    >>> import tempfile
    >>> from memlab import connect
    >>> cached = CachedEmbedder(connect("offline").embedder, Path(tempfile.mkdtemp(), "vectors.sqlite"))
    >>> cached.embed(["one", "two", "one"]).shape, cached.embed(["two"]).shape, cached.misses, cached.hits
    ((3, 512), (1, 512), 2, 1)
    """

    def __init__(self, embedder: Embeds, path: str | Path) -> None:
        self.embedder = embedder
        self.path = Path(path).absolute()
        self.hits = 0
        self.misses = 0
        self._lock = threading.Lock()

    @property
    def model(self) -> str:
        """The name of the embedding model."""
        return self.embedder.model

    @property
    def requested_dimensions(self) -> int | None:
        """The length that was asked for; None for the model's own."""
        return getattr(self.embedder, "requested_dimensions", None)

    @property
    def dimensions(self) -> int:
        """The length d of every vector; the embedder is asked only when the file holds none of its vectors."""
        question = "SELECT length(vector) / 4 FROM vectors WHERE model = ? AND dimensions = ? LIMIT 1"
        with self._open() as connection:
            row = connection.execute(question, self._key("")[:2]).fetchone()
        return int(row[0]) if row else int(self.embedder.dimensions)  # type: ignore[attr-defined]

    def embed(self, texts: Sequence[str], role: str = "document") -> Vector:
        """The vectors of `texts`: float32 (n, d). Arguments and errors are those of the embedder.

        Raises MemlabError when the file is no cache, or its vectors and those of the embedder differ in length.
        """
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            check_type("texts", texts, what="a list of texts: embed([text]) for one")
        wanted = list(dict.fromkeys(texts))
        if not wanted:
            return self.embedder.embed([], role=role)
        with self._lock:  # so that two threads don't pay for one text
            known = self._known(wanted, role)
            fresh = [text for text in wanted if text not in known]
            if fresh:
                known |= self._made(fresh, role)
            self.hits += len(wanted) - len(fresh)
            self.misses += len(fresh)
        if len({vector.shape for vector in known.values()}) > 1:
            raise MemlabError(f"{self.path} holds vectors of another length than {self.model} makes; delete the file")
        return np.stack([known[text] for text in texts])

    def missing(self, texts: Sequence[str], role: str = "document") -> list[str]:
        """The different texts among these whose vectors the file lacks."""
        known = self._known(list(dict.fromkeys(texts)), role)
        return [text for text in dict.fromkeys(texts) if text not in known]

    def _known(self, texts: Sequence[str], role: str) -> dict[str, Vector]:
        digests = {_digest(text): text for text in texts}
        head = "SELECT digest, vector FROM vectors WHERE model = ? AND dimensions = ? AND role = ? AND digest IN"
        found: dict[str, Vector] = {}
        with self._open() as connection:
            for part in _parts(list(digests)):
                rows = connection.execute(f"{head} ({', '.join('?' * len(part))})", (*self._key(role), *part))
                found |= {digests[digest]: np.frombuffer(vector, dtype=np.float32) for digest, vector in rows}
        return found

    def _made(self, texts: list[str], role: str) -> dict[str, Vector]:
        made = dict(zip(texts, np.asarray(self.embedder.embed(texts, role=role), dtype=np.float32), strict=True))
        rows = [(*self._key(role), _digest(text), vector.tobytes()) for text, vector in made.items()]
        with self._open() as connection:
            connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?, ?)", rows)
        return made

    def _key(self, role: str) -> _Key:
        """Model, dimensions, role. The dimensions are those asked for, 0 for the model's own."""
        name = "requested_dimensions" if hasattr(self.embedder, "requested_dimensions") else "dimensions"
        return self.model, getattr(self.embedder, name, None) or 0, role

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection for one piece of work, which is kept whole or not at all."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=30)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                with connection:
                    connection.execute(_TABLE)
                    yield connection
            finally:
                connection.close()
        except (OSError, sqlite3.Error) as error:
            raise MemlabError(
                f"{self.path} can't be used as a cache of embeddings ({error}); name another file"
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _parts(items: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (items[start : start + _PART] for start in range(0, len(items), _PART))
