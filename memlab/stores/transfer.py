"""Collections as text: one JSON object a line, which any store writes and reads, vectors included bit by bit."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from memlab.errors import InvalidInputError, MemlabError
from memlab.stores.base import EVERYONE, MemoryRecord, MemoryScope, SearchScope, Vector, VectorStore
from memlab.stores.inputs import check_space
from memlab.stores.reembed import with_embedder

_FORMAT = "memlab-collection-1"
_FLOAT = np.dtype("<f4")
_BATCH = 1000


def export_jsonl(store: VectorStore, collection: str, path: str | Path, *, scope: SearchScope = EVERYONE) -> int:
    """Write the records of `scope`, oldest first, to a file; how many there were.

    The first line names collection, model and dimension; each other is a record, its vector as base64 of
    little-endian float32. An older file of that name is replaced once the new one is complete.
    Raises InvalidInputError when there is no such collection.
    """
    info = store.info(collection)
    if info is None:
        raise InvalidInputError(f"there is no collection {collection!r} to export")
    records = store.scan(collection, scope=scope)[::-1]
    head = {"format": _FORMAT, "collection": collection, "model": info.model, "dimensions": info.dimensions}
    _write_lines(Path(path), (head, *map(_to_json, records)))
    return len(records)


def import_jsonl(store: VectorStore, path: str | Path, collection: str | None = None) -> int:
    """Store the records of a file that `export_jsonl` wrote; how many there were.

    They go into the collection that the file names, or into `collection`, and replace records of the same id, so
    an import that broke off may be repeated. Raises InvalidInputError for a file of another kind, a damaged line
    (naming it), or another model or dimension than those of the store or of the collection.
    """
    with Path(path).open(encoding="utf-8") as lines:
        head = _parse(lines.readline(), f"{Path(path).name}, line 1,")
        if head.get("format") != _FORMAT:
            raise InvalidInputError(f"{Path(path).name} is no export of a collection: its first line says no {_FORMAT}")
        name, model, dimensions = collection or head["collection"], head["model"], head["dimensions"]
        own = getattr(store, "embedder", None)
        if own is not None:
            check_space(name, own.model, dimensions, model, dimensions)
        named = with_embedder(store, _Named(model)) if model else store
        records = (_record(line, f"{Path(path).name}, line {number},") for number, line in enumerate(lines, 2))
        count = 0
        while batch := list(islice(records, _BATCH)):
            named.upsert(name, batch)
            count += len(batch)
    return count


class _Named:
    """Stands for a model whose vectors are all there."""

    def __init__(self, model: str) -> None:
        self.model = model

    def embed(self, texts: Sequence[str], role: str = "document") -> Vector:
        raise MemlabError("an import brings all its vectors")


def _to_json(record: MemoryRecord) -> dict[str, Any]:
    assert record.embedding is not None
    return {
        "id": record.id,
        "text": record.text,
        "role": record.role,
        "author": record.author,
        "scope": record.scope.set_fields(),
        "kind": record.kind,
        "created_at": record.created_at.isoformat(),
        "embedding": base64.b64encode(record.embedding.astype(_FLOAT).tobytes()).decode("ascii"),
    }


def _record(line: str, place: str) -> MemoryRecord:
    values = _parse(line, place)
    try:
        values["scope"] = MemoryScope(**values["scope"])
        values["created_at"] = datetime.fromisoformat(values["created_at"])
        values["embedding"] = np.frombuffer(base64.b64decode(values["embedding"], validate=True), dtype=_FLOAT)
        return MemoryRecord(**values)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{place} is no record: {error!r:.200}") from error


def _parse(line: str, place: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise InvalidInputError(f"{place} is no JSON object: {line!r:.60}; is the file complete?")
    return values


def _write_lines(path: Path, values: Iterable[dict[str, Any]]) -> None:
    def lines() -> Iterator[str]:
        for value in values:
            yield json.dumps(value, ensure_ascii=False) + "\n"

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.writelines(lines())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
