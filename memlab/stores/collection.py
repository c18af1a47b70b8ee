"""The records of one collection, with their vectors in blocks that never move.

Adding costs the same at any size. For each value of a scope field the collection keeps the rows that carry it,
so a search in one scope looks at that scope alone. A row that was deleted or replaced is dead until the
collection is compacted.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection as Ids
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.stores.base import SCOPE_FIELDS, MemoryRecord, Vector
from memlab.stores.inputs import other_scope

Rows = NDArray[np.int64]
_FILTERS = (*SCOPE_FIELDS, "kind", "role")
_values = attrgetter(*(f"scope.{name}" for name in SCOPE_FIELDS), "kind", "role")
_BLOCK = 16_384
_AT_ONCE = 1024  # records, small enough to stay in a processor's cache


class Collection:
    """Records and vectors of one model and dimension, oldest row first. Not safe for several threads by itself."""

    def __init__(self, name: str, model: str | None, dimensions: int, sequence: int = 0) -> None:
        self.name, self.model, self.dimensions, self.sequence = name, model, dimensions, sequence
        self.records: list[MemoryRecord] = []
        self.row_of: dict[str, int] = {}
        self._alive = bytearray()
        self._rows_with: dict[str, dict[str, array[int]]] = {name: defaultdict(lambda: array("q")) for name in _FILTERS}
        self._lists_of: dict[tuple[str | None, ...], list[array[int]]] = {}  # those of one combination of values
        self._blocks: list[Vector] = []
        self._times = array("d")
        self._in_time_order = True

    def refuse_other_scope(self, records: Sequence[MemoryRecord]) -> None:
        """A record is replaced within its own scope only, so that nobody can overwrite another's memory."""
        for record in records:
            row = self.row_of.get(record.id)
            if row is not None and self.records[row].scope != record.scope:
                raise other_scope(self.name, record.id)

    def add(
        self, records: Sequence[MemoryRecord], parts: Iterable[Vector], sequences: Sequence[int] | None = None
    ) -> None:
        """Append rows; an id that is there already moves to its new row.

        `parts` gives the unit vectors, some (m, d) at a time; if it raises, nothing was added. Without `sequences`
        the records get the next numbers.
        """
        numbers = sequences or range(self.sequence, self.sequence + len(records))
        slots = list(self._fill(len(self.records), parts))
        for start in range(0, len(records), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            self._append(
                [
                    record.with_values(embedding=slot, sequence=number)
                    for record, slot, number in zip(records[some], slots[some], numbers[some], strict=True)
                ]
            )
        self.sequence = max(self.sequence, numbers[-1] + 1)

    def _append(self, added: Sequence[MemoryRecord]) -> None:
        first = len(self.records)
        self._in_time_order = self._in_time_order and _in_time_order([*self.records[-1:], *added])
        self.records += added
        self._alive += b"\1" * len(added)
        self._note_ids(added, first)
        self._note_values(added, first)

    def _fill(self, row: int, parts: Iterable[Vector]) -> Iterator[Vector]:
        """Write the vectors into the blocks from `row` on; one read-only view (d,) for each."""
        for part in parts:
            done = 0
            while done < len(part):
                block, place = divmod(row + done, _BLOCK)
                if block == len(self._blocks):
                    self._blocks.append(np.empty((_BLOCK, self.dimensions), dtype=np.float32))
                room = self._blocks[block][place : place + len(part) - done]
                room[:] = part[done : done + len(room)]
                room.flags.writeable = False
                yield from room
                done += len(room)
            row += done

    def _note_ids(self, added: Sequence[MemoryRecord], first: int) -> None:
        for row, record in enumerate(added, first):
            old = self.row_of.get(record.id)
            if old is not None:
                self._alive[old] = 0
            self.row_of[record.id] = row

    def _note_values(self, added: Sequence[MemoryRecord], first: int) -> None:
        for row, values in enumerate(map(_values, added), first):
            lists = self._lists_of.get(values)
            if lists is None:
                pairs = zip(_FILTERS, values, strict=True)
                lists = [self._rows_with[name][value] for name, value in pairs if value is not None]
                self._lists_of[values] = lists
            for rows in lists:
                rows.append(row)

    def discard(self, ids: Iterable[str], sequence: int) -> None:
        """Forget the records of these ids; the next change gets the number `sequence`."""
        for record_id in ids:
            if (row := self.row_of.pop(record_id, None)) is not None:
                self._alive[row] = 0
        self.sequence = sequence

    def compacted(self) -> Collection:
        """This collection, or one without dead rows if they have become more than the living."""
        if len(self.records) <= 2 * len(self.row_of):
            return self
        fresh = Collection(self.name, self.model, self.dimensions, self.sequence)
        stay = [record for record, alive in zip(self.records, self._alive, strict=True) if alive]
        if stay:
            vectors = (record.embedding[None, :] for record in stay if record.embedding is not None)
            fresh.add(stay, vectors, [record.sequence or 0 for record in stay])
        return fresh

    def rows(self, wanted: dict[str, str], exclude_ids: Ids[str] = ()) -> Rows | None:
        """The rows that match, oldest first; None for all rows as they stand."""
        gone = [self.row_of[record_id] for record_id in exclude_ids if record_id in self.row_of]
        all_alive = len(self.row_of) == len(self.records)
        if not wanted and not gone and all_alive and self._in_time_order:
            return None
        found = self._matching(wanted) if wanted else np.arange(len(self.records))
        if not all_alive:
            found = found[np.frombuffer(self._alive, dtype=bool)[found]]
        if gone:
            found = found[~np.isin(found, gone)]
        return found if self._in_time_order else found[np.argsort(self._times_of(found), kind="stable")]

    def _matching(self, wanted: dict[str, str]) -> Rows:
        lists = sorted((self._rows_with[name].get(value, array("q")) for name, value in wanted.items()), key=len)
        found = np.array(lists[0], dtype=np.int64)
        for other in lists[1:]:
            found = np.intersect1d(found, np.array(other, dtype=np.int64), assume_unique=True)
        return found

    def _times_of(self, rows: Rows) -> NDArray[np.float64]:
        self._times.extend(record.created_at.timestamp() for record in self.records[len(self._times) :])
        return np.array(self._times)[rows]

    def scores(self, vector: Vector, rows: Rows | None) -> Vector:
        """The cosine of `vector` (d,) with each of `rows` (n,)."""
        if rows is not None and len(rows) * 4 < len(self.records):  # few rows: gather them
            scores = np.empty(len(rows), dtype=np.float32)
            for places, vectors in self._gathered(rows):
                scores[places] = vectors.dot(vector)
            return scores
        count = len(self.records)
        parts = [block[: count - i * _BLOCK] @ vector for i, block in enumerate(self._blocks)]
        scores = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype=np.float32), *parts])
        return scores if rows is None else scores[rows]

    def vectors_of(self, rows: Rows | None) -> Vector:
        """The vectors (n, d) of `rows`, in their order."""
        rows = np.arange(len(self.records)) if rows is None else rows
        gathered = np.empty((len(rows), self.dimensions), dtype=np.float32)
        for places, vectors in self._gathered(rows):
            gathered[places] = vectors
        return gathered

    def _gathered(self, rows: Rows) -> Iterator[tuple[Any, Vector]]:
        """The vectors of `rows`, block by block, each time with the places in `rows` that they belong to."""
        order = None if self._in_time_order else np.argsort(rows)
        blocks, slots = np.divmod(rows if order is None else rows[order], _BLOCK)
        start = 0
        for end in [*(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(rows)]:
            places = slice(start, end) if order is None else order[start:end]
            if end > start:
                yield places, self._blocks[blocks[start]].take(slots[start:end], axis=0)
            start = end

    def records_of(self, rows: Rows | None) -> list[MemoryRecord]:
        """The records of `rows`, in their order."""
        return list(self.records) if rows is None else [self.records[row] for row in rows.tolist()]


def _in_time_order(records: Iterable[MemoryRecord]) -> bool:
    return all(before.created_at <= after.created_at for before, after in pairwise(records))
