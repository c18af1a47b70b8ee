"""What all stores ask of their arguments, so that each refuses the same with the same words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from memlab.checks import check_type
from memlab.errors import InvalidInputError
from memlab.messages import clean_text
from memlab.stores.base import Embeds, MemoryRecord, SearchScope, Vector, check_search_scope, storable_text
from memlab.vectors import normalize, unit_vector

_PART = 1024
_LONGEST_NAME = 200


def check_name(collection: str) -> str:
    """The collection's name. Raises InvalidInputError for one that some database could not keep."""
    if not isinstance(collection, str) or not collection.strip():
        raise InvalidInputError(f"the collection's name is {collection!r}; give it one")
    if len(collection) > _LONGEST_NAME or "\0" in collection or clean_text(collection) != collection:
        raise InvalidInputError(
            f"the collection's name is {collection!r:.80}; it must have at most {_LONGEST_NAME} characters, "
            "none of them NUL or a lone surrogate"
        )
    return collection


def other_scope(collection: str, record_id: str) -> InvalidInputError:
    """The error for an id that a record of another scope has."""
    return InvalidInputError(
        f"collection {collection!r} has a record {record_id!r:.80} of another scope, which this one would replace; "
        "choose another id, or delete that record in its own scope first"
    )


def check_ids(collection: str, records: Sequence[MemoryRecord]) -> None:
    """Refuse what is no list of records, and records of one id and two scopes in one write."""
    single = isinstance(records, str) or not isinstance(records, Sequence)
    if wrong := [records] if single else [each for each in records if not isinstance(each, MemoryRecord)]:
        check_type("records" if single else "a record", wrong[0], what="a list of MemoryRecords")
    scopes = {record.id: record.scope for record in records}
    if len(scopes) == len(records):
        return
    for record in records:
        if record.scope != scopes[record.id]:
            raise other_scope(collection, record.id)


def check_embedder(embedder: Any) -> None:
    """Refuse what can't embed, now and not at the first text."""
    if embedder is not None and (isinstance(embedder, type) or not callable(getattr(embedder, "embed", None))):
        check_type("embedder", embedder, what="an embedder, such as connect().embedder, or None")


def check_limit(limit: int | None) -> None:
    """Refuse a negative limit of a scan."""
    check_type("limit", limit, int, None)
    if limit is not None and limit < 0:
        raise InvalidInputError(f"limit is {limit}; it must be 0 or more, or None for all")


def check_space(
    collection: str, model: str | None, dimensions: int, other_model: str | None, other_dimensions: int
) -> None:
    """Refuse vectors of another model or dimension than those of `collection`."""
    if other_dimensions != dimensions or (other_model and model and other_model != model):
        raise InvalidInputError(
            f"collection {collection!r} holds {dimensions}-d vectors of {model or 'an unnamed model'}; "
            f"{other_dimensions}-d vectors of {other_model or 'an unnamed model'} do not compare with them. "
            "Use another collection, or embed this one again with memlab.stores.reembed"
        )


def filters(scope: SearchScope, kind: str | None = None, role: str | None = None) -> dict[str, str]:
    """The fields of a record that must be equal, and to what. Raises InvalidInputError for a scope without fields."""
    check_type("kind", kind, str, None)
    check_type("role", role, str, None)
    extra = {name: storable_text(value) for name, value in (("kind", kind), ("role", role)) if value is not None}
    return {**check_search_scope(scope), **extra}


def query_vector(query: str | Vector, embedder: Embeds | None) -> Vector:
    """The unit vector (d,) of a question that comes as text or as a vector."""
    vector = _embed_query(query, embedder) if isinstance(query, str) else query
    return unit_vector(vector).astype(np.float32, copy=False)


def _embed_query(query: str, embedder: Embeds | None) -> Vector:
    if embedder is None:
        raise InvalidInputError("the query is text and the store has no embedder; pass embedder= or a vector")
    if not query.strip():
        raise InvalidInputError("the query is blank; there is nothing to search for")
    return embedder.embed([query], role="query")[0]


def record_vectors(records: Sequence[MemoryRecord], embedder: Embeds | None) -> list[Vector]:
    """One vector (d,) a record: the given ones, and those of the rest from the embedder, in one batch."""
    missing = [i for i, record in enumerate(records) if record.embedding is None]
    if missing and embedder is None:
        raise InvalidInputError(
            f"record {records[missing[0]].id!r} has no embedding and the store no embedder; pass one of them"
        )
    vectors = [np.asarray(record.embedding) for record in records]
    if missing and embedder is not None:
        made = embedder.embed([records[i].text for i in missing], role="document")
        for i, vector in zip(missing, made, strict=True):
            vectors[i] = vector
    shape = vectors[0].shape
    for record, vector in zip(records, vectors, strict=True):
        if vector.ndim != 1 or vector.shape != shape:
            raise InvalidInputError(f"record {record.id!r} has a vector of shape {vector.shape}, not {shape}")
    return vectors


def unit_parts(records: Sequence[MemoryRecord], vectors: Sequence[Vector]) -> Iterator[Vector]:
    """The vectors at length 1, in parts (m, d) that fit a processor's cache: no second copy of all is ever held.

    Raises InvalidInputError naming the record whose vector is zero, NaN or infinite.
    """
    for start in range(0, len(vectors), _PART):
        part = vectors[start : start + _PART]
        matrix = np.concatenate(part).reshape(len(part), -1)
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.sqrt(np.vecdot(matrix, matrix)).tolist()
        if matrix.dtype == np.float32 and all(1e-15 < length < 1e15 for length in lengths):  # false for NaN, too
            # A length of almost 1 counts as 1, so that a vector that comes from a store returns bit by bit.
            scale = [1.0 if abs(length - 1.0) < 1e-6 else length for length in lengths]
            matrix /= np.array(scale, dtype=np.float32)[:, None]
            yield matrix
        else:
            yield _careful_unit(records[start : start + _PART], part)


def _careful_unit(records: Sequence[MemoryRecord], vectors: Sequence[Vector]) -> Vector:
    rows = [
        normalize(vector[None, :], f"the embedding of record {record.id!r}")
        for record, vector in zip(records, vectors, strict=True)
    ]
    return np.concatenate(rows).astype(np.float32)
