"""What every store shares: scopes, records, hits, and the protocol."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.checks import check_type
from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.messages import clean_text
from memlab.trace import Trace

Vector = NDArray[np.float32]


def storable_text(text: str) -> str:
    """`text` with U+FFFD for each character that some database could not keep: NUL and lone surrogates."""
    return clean_text(text).replace("\0", "\ufffd")


@dataclass(frozen=True)
class MemoryScope:
    """Whose memories these are. Each field is optional; one that is set must be equal, letter for letter.

    On a record it is a stamp, in a search a filter. A blank value is an error, since it would mean "everyone".

    >>> MemoryScope(user_id="alice").set_fields()
    {'user_id': 'alice'}
    """

    application_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    user_id: str | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is None:
                continue
            if not isinstance(value, str):
                raise InvalidTypeError(f"{name} is {value!r}; it must be a string, or None for 'not set'")
            if not value.strip():
                raise InvalidInputError(f"{name} is blank; leave it out to mean 'not set'")
            if "\0" in value:
                raise InvalidInputError(f"{name} {value!r} holds a NUL character, which no database keeps")
            if clean_text(value) != value:
                raise InvalidInputError(f"{name} {value!r} holds a lone surrogate, which no database keeps")

    def set_fields(self) -> dict[str, str]:
        """The fields that are set."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def matches(self, record_scope: MemoryScope) -> bool:
        """Whether a record stamped with `record_scope` is found by a search in this scope."""
        return all(getattr(record_scope, name) == value for name, value in self.set_fields().items())


SCOPE_FIELDS = tuple(f.name for f in fields(MemoryScope))


class _Everyone:
    """The scope without any limit: the only way to search all records."""

    def __repr__(self) -> str:
        return "EVERYONE"

    def __reduce__(self) -> str:
        return "EVERYONE"  # a copy or a pickle of it is the same object, which `is` can tell


EVERYONE = _Everyone()
SearchScope = MemoryScope | _Everyone


def check_search_scope(scope: SearchScope) -> dict[str, str]:
    """The fields a search filters by. Raises InvalidInputError for a scope that sets none: say EVERYONE."""
    if scope is EVERYONE:
        return {}
    if not isinstance(scope, MemoryScope):
        raise InvalidTypeError(f"scope is {scope!r}; pass a MemoryScope, or EVERYONE to search all records")
    if not (wanted := scope.set_fields()):
        raise InvalidInputError("the scope sets no field, so it would match everyone; if you mean that, pass EVERYONE")
    return wanted


@dataclass(frozen=True)
class MemoryRecord:
    """One memory: a text, who said it, whose it is, when, and its vector. It never changes.

    Parameters
    ----------
    text : what is remembered; not blank. NUL and lone surrogates in it become U+FFFD.
    role, author : who said it.
    scope : its stamps.
    kind : "message", or what an event says.
    created_at : aware time, kept as UTC; by default now.
    id : records of one id replace each other.
    embedding : float vector (d,); stores with an embedder make it from the text.
    sequence : given by the store, growing with every new record.
    """

    text: str
    role: str = "user"
    scope: MemoryScope = field(default_factory=MemoryScope)
    kind: str = "message"
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    author: str | None = None
    embedding: Vector | None = field(default=None, repr=False, compare=False)
    sequence: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise InvalidInputError(f"text is {self.text!r}; a memory needs a text")
        if not isinstance(self.id, str) or not self.id.strip() or "\0" in self.id:
            raise InvalidInputError(f"id is {self.id!r:.80}; it must be a non-blank string without NUL")
        check_type("scope", self.scope, MemoryScope)
        check_type("created_at", self.created_at, datetime, what="a datetime, such as datetime.now(UTC)")
        for name in ("role", "kind"):
            check_type(name, getattr(self, name), str)
        check_type("author", self.author, str, None)
        if self.created_at.tzinfo is None:
            raise InvalidInputError(f"created_at is {self.created_at}, a time without a zone; use datetime.now(UTC)")
        object.__setattr__(self, "id", clean_text(self.id))
        for name in ("text", "role", "kind", "author"):
            if (value := getattr(self, name)) is not None and storable_text(value) != value:
                object.__setattr__(self, name, storable_text(value))
        object.__setattr__(self, "created_at", self.created_at.astimezone(UTC))

    def with_values(self, **values: Any) -> MemoryRecord:
        """A copy with other values, unchecked: for stores, which know what they put in."""
        twin = object.__new__(MemoryRecord)
        twin.__dict__.update(self.__dict__, **values)
        return twin


class Hit(NamedTuple):
    """A record that a search found, and its score."""

    record: MemoryRecord
    score: float


class CollectionInfo(NamedTuple):
    """What a collection is: the model (None: not named) and dimension of its vectors, and a number that every
    write to it changes."""

    name: str
    model: str | None
    dimensions: int
    sequence: int


class Embeds(Protocol):
    """What a store needs of an embedder."""

    @property
    def model(self) -> str:
        """The name of the embedding model."""
        ...

    def embed(self, texts: Sequence[str], role: str = "document") -> Vector:
        """Vectors (n, d) of `texts`."""
        ...


class VectorStore(Protocol):
    """What every store does. A collection is made by the first record that is put into it."""

    def upsert(self, collection: str, records: Sequence[MemoryRecord]) -> list[str]:
        """Store records, replacing those of the same id; the ids come back."""
        ...

    def search(
        self,
        collection: str,
        query: str | Vector,
        *,
        scope: SearchScope,
        top_k: int = 3,
        threshold: float | None = None,
        rank: str = "cosine",
        kind: str | None = None,
        role: str | None = None,
        exclude_ids: Collection[str] = (),
        trace: Trace | None = None,
    ) -> list[Hit]:
        """The best records of `scope` for `query`, best first, `score >= threshold`, without those excluded."""
        ...

    def scan(
        self,
        collection: str,
        *,
        scope: SearchScope,
        kind: str | None = None,
        role: str | None = None,
        limit: int | None = None,
    ) -> list[MemoryRecord]:
        """The records of `scope`, newest first."""
        ...

    def count(self, collection: str, *, scope: SearchScope) -> int:
        """How many records the scope holds."""
        ...

    def delete(self, collection: str, *, scope: SearchScope, ids: Collection[str] | None = None) -> int:
        """Remove the records of `scope`, or only those of `ids` among them; how many there were."""
        ...

    def info(self, collection: str) -> CollectionInfo | None:
        """Model, dimension and state of a collection, or None when there is none of that name."""
        ...

    def move(self, collection: str, to: str, expected: CollectionInfo | None) -> bool:
        """Give a collection the name `to`, in place of the one that has it; False if that is not as `expected`."""
        ...
