"""Scopes and records: what they are, and what they refuse."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from memlab import InvalidInputError, InvalidTypeError, MemoryRecord, MemoryScope
from memlab.stores.base import SCOPE_FIELDS


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


def test_a_record_keeps_utc_and_clean_text():
    shanghai = timezone(timedelta(hours=8))
    record = MemoryRecord("hi \ud800", created_at=datetime(2025, 1, 1, 8, tzinfo=shanghai))
    assert (record.text, record.created_at) == ("hi \ufffd", datetime(2025, 1, 1, tzinfo=UTC))
    assert record.created_at.tzinfo is UTC


def test_a_new_record_is_of_now_and_has_an_id_of_its_own():
    one, two = MemoryRecord("x"), MemoryRecord("x")
    assert one.id != two.id
    assert abs(datetime.now(UTC) - one.created_at) < timedelta(minutes=1)
