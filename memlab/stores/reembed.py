"""Embed a collection again with another model, while the old vectors stay in use until the last one is there."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TypeVar

from memlab.errors import InvalidInputError
from memlab.stores.base import EVERYONE, Embeds, MemoryRecord, VectorStore

Store = TypeVar("Store", bound=VectorStore)


def with_embedder(store: Store, embedder: Embeds | None) -> Store:
    """A store over the same records, with another embedder."""
    twin = copy.copy(store)  # shares all but the embedder
    twin.embedder = embedder  # type: ignore[attr-defined]
    return twin


def reembed(store: Store, collection: str, embedder: Embeds, *, batch_size: int = 64, progress: bool = True) -> Store:
    """Embed all records of a collection with `embedder`; the store that uses it from now on comes back.

    The new vectors are gathered in a second collection. `store` answers from the old ones until, at the end, the new
    collection takes over the name; from then on it refuses this collection, naming both models. What is written
    meanwhile is embedded, too. If the work is interrupted, the same call goes on where it stopped (in a store that
    outlives the process). Only one call for a collection should run at a time.

    Parameters
    ----------
    store : the store with the old embedder.
    embedder : makes the new vectors; its model is the collection's from then on.
    batch_size : how many records are embedded and stored at once.
    progress : show a progress bar.

        new = reembed(store, "facts", embedder)
        new.search("facts", "who likes soup?", scope=EVERYONE)
    """
    if batch_size < 1:
        raise InvalidInputError(f"batch_size is {batch_size}; it must be 1 or more")
    if store.info(collection) is None:
        raise InvalidInputError(f"there is no collection {collection!r} to embed again")
    new, growing = with_embedder(store, embedder), f"{collection[:100]} > {embedder.model[:90]}"
    while True:
        before = store.info(collection)
        if before is not None and before.model == embedder.model:
            return new  # nothing to do
        todo, gone = _differences(store.scan(collection, scope=EVERYONE), new.scan(growing, scope=EVERYONE))
        if gone:
            new.delete(growing, scope=EVERYONE, ids=gone)
        for batch in _batches(todo, batch_size, collection, progress):
            new.upsert(growing, [record.with_values(embedding=None) for record in batch])
        if not todo and not gone:
            if new.info(growing) is None:
                raise InvalidInputError(f"collection {collection!r} is empty; there is nothing to embed again")
            if new.move(growing, collection, before):
                return new


def _differences(old: Sequence[MemoryRecord], new: Sequence[MemoryRecord]) -> tuple[list[MemoryRecord], list[str]]:
    """The records, oldest first, that are not in `new` as they are in `old`; and the ids that are only in `new`."""
    have = {record.id: record.with_values(sequence=None) for record in new}
    todo = [record for record in reversed(old) if have.get(record.id) != record.with_values(sequence=None)]
    return todo, list(have.keys() - {record.id for record in old})


def _batches(
    records: Sequence[MemoryRecord], size: int, collection: str, progress: bool
) -> Iterator[Sequence[MemoryRecord]]:
    from tqdm.auto import tqdm

    with tqdm(total=len(records), desc=f"embedding {collection}", disable=not progress or not records) as bar:
        for start in range(0, len(records), size):
            batch = records[start : start + size]
            yield batch
            bar.update(len(batch))
