"""Scopes and records: what they are, and what they refuse."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from memlab import (
    InMemoryVectorStore,
    InvalidInputError,
    InvalidTypeError,
    MemoryRecord,
    MemoryScope,
    SqliteHistoryProvider,
    SqliteVectorStore,
)
from memlab.stores.base import SCOPE_FIELDS
from tests.support import stable_id


@pytest.mark.parametrize("name", SCOPE_FIELDS)
@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("", InvalidInputError),
        (" \n", InvalidInputError),
        ("a\0b", InvalidInputError),
        ("a\ud800", InvalidInputError),
        (5, InvalidTypeError),
    ],
)
def test_a_bad_scope_value_is_refused_by_its_field(name, value, error):
    with pytest.raises(error, match=name):
        MemoryScope(**{name: value})


def test_a_scope_is_a_value():
    assert MemoryScope(user_id="alice") == MemoryScope(user_id="alice")
    assert len({MemoryScope(user_id="alice"), MemoryScope(user_id="alice"), MemoryScope()}) == 2


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"text": " "}, "text"),
        ({"text": None}, "text"),
        ({"text": "x", "id": ""}, "id"),
        ({"text": "x", "id": "a\0b"}, "id"),
        ({"text": "x", "created_at": datetime(2025, 1, 1)}, "without a zone"),
    ],
)
def test_a_bad_record_is_refused(fields, named):
    with pytest.raises(InvalidInputError, match=named):
        MemoryRecord(**fields)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("scope", "alice", "a MemoryScope"),
        ("scope", None, "a MemoryScope"),
        ("created_at", "2025-01-01", r"datetime\.now\(UTC\)"),
        ("role", 5, "a string"),
        ("kind", None, "a string"),
        ("author", 5, "a string or None"),
    ],
)
def test_a_field_of_another_type_is_refused_with_what_to_pass(field, value, said):
    with pytest.raises(InvalidTypeError, match=f"{field} is .*pass .*{said}"):
        MemoryRecord("x", **{field: value})


@pytest.mark.parametrize("embedder", ["use-multilingual", 5, object()], ids=stable_id)
@pytest.mark.parametrize("make", [InMemoryVectorStore, lambda embedder: SqliteVectorStore("unused.db", embedder)])
def test_what_is_no_embedder_is_refused_when_the_store_is_made(make, embedder):
    with pytest.raises(InvalidTypeError, match=r"embedder is .*connect\(\)\.embedder"):
        make(embedder)


@pytest.mark.parametrize("make", [SqliteVectorStore, SqliteHistoryProvider])
@pytest.mark.parametrize("path", [5, None, ["a"]])
def test_a_path_of_another_type_is_refused(make, path):
    with pytest.raises(InvalidTypeError, match=r"path is .*pass the path of a file"):
        make(path)


def test_a_record_keeps_utc_and_clean_text():
    shanghai = timezone(timedelta(hours=8))
    record = MemoryRecord("hi \ud800", created_at=datetime(2025, 1, 1, 8, tzinfo=shanghai))
    assert (record.text, record.created_at) == ("hi \ufffd", datetime(2025, 1, 1, tzinfo=UTC))
    assert record.created_at.tzinfo is UTC


def test_a_new_record_is_of_now_and_has_an_id_of_its_own():
    one, two = MemoryRecord("x"), MemoryRecord("x")
    assert one.id != two.id
    assert abs(datetime.now(UTC) - one.created_at) < timedelta(minutes=1)
