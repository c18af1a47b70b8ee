"""The SQL of `PostgresVectorStore`: functions on a connection, within the transaction of `Server.run`.

Names of tables and columns go in as `sql.Identifier`, values as parameters: no text of a user becomes SQL.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection as Ids
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import Any, NamedTuple

import numpy as np
from psycopg import Connection, sql

from memlab.messages import clean_text
from memlab.stores.base import SCOPE_FIELDS, MemoryRecord, MemoryScope, Vector
from memlab.stores.inputs import other_scope
from memlab.vectors import TIE

_COLUMNS = ("sequence", "id", "role", "author", *SCOPE_FIELDS, "kind", "text", "created_at", "embedding")
_TYPES = ("int8", *["text"] * (len(_COLUMNS) - 3), "timestamptz", "vector")
_PREFIX = sql.SQL("left({}, 64)")  # an entry of a B-tree has a limit, an id has none
_IN_A_PAGE = 1536
_MOST_INDEXED = 2000  # dimensions; pgvector's limit


class Table(NamedTuple):
    """The row of a collection in the table of collections."""

    name: str
    model: str | None
    dimensions: int
    sequence: int
    has_index: bool


class Where(NamedTuple):
    """A condition, and the values of its parameters."""

    condition: sql.Composable
    values: list[Any]


def where(wanted: Mapping[str, str], exclude_ids: Ids[str] = (), only_ids: Ids[str] | None = None) -> Where:
    """The condition for records whose fields are as `wanted`."""
    parts: list[sql.Composable] = [sql.SQL("true")]
    values: list[Any] = []
    for field, value in wanted.items():
        column = sql.Identifier(field)
        if field in SCOPE_FIELDS:
            parts.append(sql.SQL("{} = %s").format(_PREFIX.format(column)))
            values.append(value[:64])
        parts.append(sql.SQL("{} = %s").format(column))
        values.append(value)
    if exclude := _storable_ids(exclude_ids):
        parts.append(sql.SQL("id <> ALL(%s)"))
        values.append(exclude)
    if only_ids is not None:
        only = _storable_ids(only_ids)
        parts.append(sql.SQL("{} = ANY(%s) AND id = ANY(%s)").format(_PREFIX.format(sql.Identifier("id"))))
        values += [[record_id[:64] for record_id in only], only]
    return Where(sql.SQL(" AND ").join(parts), values)


def _storable_ids(ids: Ids[str]) -> list[str]:
    return [record_id for record_id in ids if "\0" not in record_id and clean_text(record_id) == record_id]


_ALL = sql.SQL("true")


def _query(
    text: str,
    table: Table,
    condition: sql.Composable = _ALL,
    columns: Sequence[str] = (),
) -> sql.Composed:
    wanted = sql.SQL(", ").join(map(sql.Identifier, columns or _COLUMNS))
    return sql.SQL(text).format(table=sql.Identifier(table.name), columns=wanted, where=condition)


# --- collections ---


def find(connection: Connection[Any], collection: str) -> Table | None:
    """The table of a collection, or None."""
    row = connection.execute(
        "SELECT table_name, model, dimensions, sequence, has_index FROM memlab_collections WHERE name = %s",
        (collection,),
    ).fetchone()
    return Table(*row) if row else None


def advance(connection: Connection[Any], collection: str, changes: int) -> Table | None:
    """Take the next numbers. This locks the collection: its writers go one after the other."""
    row = connection.execute(
        "UPDATE memlab_collections SET sequence = sequence + %s WHERE name = %s "
        "RETURNING table_name, model, dimensions, sequence, has_index",
        (changes, collection),
    ).fetchone()
    return Table(*row) if row else None


def make(connection: Connection[Any], collection: str, model: str | None, dimensions: int) -> None:
    """A new collection with its table, unless another process has just made it."""
    slug = re.sub(r"[^a-z0-9]+", "_", collection.lower())[:30]
    name = f"memlab_{slug}_{uuid.uuid4().hex[:12]}"
    made = connection.execute(
        "INSERT INTO memlab_collections (name, table_name, model, dimensions) VALUES (%s, %s, %s, %s) "
        "ON CONFLICT DO NOTHING",
        (collection, name, model, dimensions),
    )
    if made.rowcount:
        _make_table(connection, sql.Identifier(name), dimensions)


def _make_table(connection: Connection[Any], table: sql.Identifier, dimensions: int) -> None:
    # Up to some size a vector fits into its row's page, where it is read much faster than from a place of its own.
    storage = sql.SQL("PLAIN" if dimensions <= _IN_A_PAGE else "EXTERNAL")
    connection.execute(
        sql.SQL(
            "CREATE TABLE {} (sequence bigint PRIMARY KEY, id text NOT NULL, role text NOT NULL, author text, "
            "application_id text, agent_id text, session_id text, user_id text, kind text NOT NULL, "
            "text text NOT NULL, created_at timestamptz NOT NULL, embedding vector({}) STORAGE {} NOT NULL)"
        ).format(table, sql.Literal(dimensions), storage)
    )
    connection.execute(sql.SQL("CREATE INDEX ON {} (left(id, 64))").format(table))
    connection.execute(sql.SQL("CREATE INDEX ON {} (created_at, sequence)").format(table))
    for column in map(sql.Identifier, SCOPE_FIELDS):
        connection.execute(
            sql.SQL("CREATE INDEX ON {} ({}, created_at, sequence) WHERE {} IS NOT NULL").format(
                table, _PREFIX.format(column), column
            )
        )


def make_vector_index(connection: Connection[Any], collection: str, more_than: int) -> None:
    """An HNSW index, once the collection holds more records than that. It keeps writers waiting, not readers.

    All vectors have length 1, so the inner product ranks as the cosine does, and is cheaper.
    """
    table = advance(connection, collection, 0)
    if table is None or table.has_index or table.dimensions > _MOST_INDEXED:
        return
    if size(connection, table, where({}), more_than + 1) <= more_than:
        return
    connection.execute("SET LOCAL maintenance_work_mem = '256MB'")
    connection.execute(_query("CREATE INDEX ON {table} USING hnsw (embedding vector_ip_ops)", table))
    connection.execute("UPDATE memlab_collections SET has_index = true WHERE name = %s", (collection,))


def replace(connection: Connection[Any], collection: str, to: str, old: Table | None) -> None:
    """Rename a collection; the table `old` of the one that had the name is dropped."""
    if old is not None:
        connection.execute("DELETE FROM memlab_collections WHERE name = %s", (to,))
        connection.execute(_query("DROP TABLE {table}", old))
    connection.execute("UPDATE memlab_collections SET name = %s WHERE name = %s", (to, collection))


# --- records ---


def insert(connection: Connection[Any], table: Table, records: Sequence[MemoryRecord], vectors: Vector) -> None:
    """Store records of different ids, in place of those that have them, with the last numbers that were taken."""
    mine = where({}, only_ids=[record.id for record in records])
    scopes = {record.id: tuple(getattr(record.scope, name) for name in SCOPE_FIELDS) for record in records}
    query = _query("SELECT {columns} FROM {table} WHERE {where}", table, mine.condition, ("id", *SCOPE_FIELDS))
    for record_id, *scope in connection.execute(query, mine.values):
        if tuple(scope) != scopes[record_id]:
            raise other_scope(table.name, record_id)
    delete(connection, table, mine)
    with connection.cursor().copy(_query("COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)", table)) as copy:
        copy.set_types(_TYPES)
        for number, record, vector in zip(
            range(table.sequence - len(records), table.sequence), records, vectors, strict=True
        ):
            scope = (getattr(record.scope, name) for name in SCOPE_FIELDS)
            values = (record.id, record.role, record.author, *scope, record.kind, record.text, record.created_at)
            copy.write_row((number, *values, vector))


def delete(connection: Connection[Any], table: Table, which: Where) -> int:
    """Remove records; how many there were."""
    query = _query("DELETE FROM {table} WHERE {where}", table, which.condition)
    return connection.execute(query, which.values).rowcount


def size(connection: Connection[Any], table: Table, which: Where, at_most: int | None = None) -> int:
    """How many records there are; counting stops at `at_most`."""
    query = _query(
        "SELECT count(*) FROM (SELECT FROM {table} WHERE {where} LIMIT %s) AS counted", table, which.condition
    )
    row = connection.execute(query, [*which.values, at_most]).fetchone()
    return row[0] if row else 0


def newest(connection: Connection[Any], table: Table, which: Where, limit: int | None = None) -> list[MemoryRecord]:
    """Records, newest first."""
    query = "SELECT {columns} FROM {table} WHERE {where} ORDER BY created_at DESC, sequence DESC LIMIT %s"
    rows = connection.execute(_query(query, table, which.condition), [*which.values, limit], binary=True)
    return [_record(row) for row in rows]


def nearest_exact(
    connection: Connection[Any], table: Table, which: Where, vector: Vector, top_k: int
) -> list[tuple[MemoryRecord, float]]:
    """The `top_k` nearest records with their cosines, and all that tie with the last; oldest first."""
    query = _query(
        # Ordering by the negative of what the index orders by keeps the planner off the index.
        "SELECT {columns}, -(embedding <#> %s) AS score FROM {table} WHERE {where} ORDER BY score DESC LIMIT %s",
        table,
        which.condition,
    )
    limit = top_k + 8
    while True:
        rows = connection.execute(query, [vector, *which.values, limit], binary=True).fetchall()
        if len(rows) < limit or top_k == 0 or rows[top_k - 1][-1] - rows[-1][-1] > 2 * TIE:
            return _oldest_first(rows)
        limit *= 8  # so many tie that some may be missing


def nearest_by_index(
    connection: Connection[Any], table: Table, which: Where, vector: Vector, top_k: int
) -> list[tuple[MemoryRecord, float]]:
    """About the `top_k` nearest records with their cosines, oldest first; with a narrow filter maybe fewer."""
    breadth = min(1000, max(100, 2 * top_k))
    connection.execute("SET LOCAL hnsw.iterative_scan = strict_order")
    connection.execute(sql.SQL("SET LOCAL hnsw.ef_search = {}").format(sql.Literal(breadth)))
    query = _query(
        "SELECT {columns}, -(embedding <#> %s) FROM {table} WHERE {where} ORDER BY embedding <#> %s LIMIT %s",
        table,
        which.condition,
    )
    rows = connection.execute(query, [vector, *which.values, vector, top_k], binary=True)
    return _oldest_first(rows)


def _oldest_first(rows: Iterable[Sequence[Any]]) -> list[tuple[MemoryRecord, float]]:
    found = [(_record(row), row[-1]) for row in rows]
    return sorted(found, key=lambda pair: (pair[0].created_at, pair[0].sequence))


def _record(row: Sequence[Any]) -> MemoryRecord:
    sequence, record_id, role, author, application, agent, session, user, kind, text, time, embedding = row[:12]
    vector = embedding.to_numpy().astype(np.float32, copy=False)
    vector.flags.writeable = False
    return MemoryRecord(
        text,
        role,
        MemoryScope(application, agent, session, user),
        kind,
        time.astimezone(UTC),
        record_id,
        author,
        vector,
        sequence,
    )
