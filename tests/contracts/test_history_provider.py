"""What every history provider does. One list of makers, one set of tests."""

from collections.abc import Callable
from functools import partial

import pytest

from memlab import (
    AgentSession,
    FileHistoryProvider,
    HistoryProvider,
    InMemoryHistoryProvider,
    InvalidInputError,
    InvalidTypeError,
    Message,
    SqliteHistoryProvider,
    ToolCall,
    ToolResult,
)
from tests.support_memory import DatabaseHistoryProvider, open_database

MAKERS: dict[str, Callable[..., HistoryProvider]] = {
    "in memory": lambda folder, source_id=None: InMemoryHistoryProvider(source_id),
    "file": lambda folder, source_id=None: FileHistoryProvider(folder / "history", source_id),
    "sqlite": lambda folder, source_id=None: SqliteHistoryProvider(folder / "history.db", source_id),
    "a learner's own": lambda folder, source_id=None: DatabaseHistoryProvider(
        open_database(folder / "own.db"), source_id or "database"
    ),
}


class Shelf:
    """A provider with the states of its sessions, called as an agent calls it."""

    def __init__(self, make: Callable[..., HistoryProvider], source_id: str | None = None) -> None:
        self.make = make
        self.provider = make(source_id=source_id)
        self.sessions: dict[str, AgentSession] = {}

    def _state(self, session_id):
        session = self.sessions.setdefault(session_id, AgentSession(session_id=session_id))
        return session.state.setdefault(self.provider.source_id, {})

    async def save(self, session_id, *messages):
        await self.provider.save_messages(session_id, messages, state=self._state(session_id))

    async def load(self, session_id, **options):
        return await self.provider.get_messages(session_id, state=self._state(session_id), **options)


@pytest.fixture(params=MAKERS)
def shelf(request, tmp_path):
    return Shelf(partial(MAKERS[request.param], tmp_path))


def said(*texts):
    return [Message("user", text) for text in texts]


async def test_messages_come_back_in_order_and_equal(shelf):
    messages = [
        Message("user", "我叫张三 😀", author_name="张三", message_id="1"),
        Message("assistant", ["Let me see.", ToolCall("c1", "GetMenu", '{"a": 1}')], message_id="2"),
        Message("tool", ToolResult("c1", "none", is_error=True), additional_properties={"n": [1, None]}),
        Message("user", "line\nbreak \u2028 and \\ \" '"),
    ]
    await shelf.save("s", *messages[:2])
    await shelf.save("s", *messages[2:])
    assert await shelf.load("s") == messages


async def test_a_new_session_is_empty(shelf):
    assert await shelf.load("never seen") == []


@pytest.mark.parametrize(
    "other",
    [
        *(
            "S",
            "s ",
            " s",
            "s\n",
            "s/../s",
            "../s",
            "/s",
            "C:\\s",
            "s.",
            ".",
            "..",
            "~",
            "con",
            "s\0",
            "s\0s",
            "s%",
            "s_",
            "s-",
        ),
        *("x" * 10_000, "x" * 300, "张三 😀", "ſ", "'; DROP TABLE messages; --", "s' OR '1'='1", "s*", "s?", "<s>|&"),
    ],
    ids=lambda value: ascii(value)[:20],
)
async def test_sessions_are_apart(shelf, other):
    await shelf.save("s", *said("mine"))
    await shelf.save(other, *said("theirs"))
    assert [m.text for m in await shelf.load("s")] == ["mine"]
    assert [m.text for m in await shelf.load(other)] == ["theirs"]


async def test_a_message_of_the_same_id_is_stored_once(shelf):
    message = Message("user", "hi", message_id="1")
    await shelf.save("s", message, message)
    await shelf.save("s", message, Message("user", "there", message_id="2"))
    assert [m.text for m in await shelf.load("s")] == ["hi", "there"]


async def test_another_text_under_a_stored_id_changes_nothing(shelf):
    await shelf.save("s", Message("user", "hi", message_id="1"))
    await shelf.save("s", Message("user", "there", message_id="2"), Message("user", "bye", message_id="1"))
    assert [m.text for m in await shelf.load("s")] == ["hi", "there"]


async def test_the_same_words_twice_are_two_messages(shelf):
    await shelf.save("s", *said("order a pizza", "order a pizza"))
    await shelf.save("s", Message("user", "order a pizza", message_id="3"))
    assert len(await shelf.load("s")) == 3


async def test_what_was_saved_does_not_change_with_the_callers_objects(shelf):
    message = Message("user", "hi")
    await shelf.save("s", message)
    message.contents.clear()
    (await shelf.load("s")).clear()
    assert [m.text for m in await shelf.load("s")] == ["hi"]


async def test_two_providers_of_one_session_are_apart(shelf):
    other = Shelf(shelf.make, "another")
    other.sessions = shelf.sessions
    await shelf.save("s", *said("one"))
    await other.save("s", *said("two"))
    assert [m.text for m in await shelf.load("s")] == ["one"]
    assert [m.text for m in await other.load("s")] == ["two"]


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 99, None])
async def test_a_limit_keeps_the_newest_so_many(shelf, limit):
    await shelf.save("s", *said("one", "two", "three"))
    expected = ["one", "two", "three"][-limit:] if limit else [] if limit == 0 else ["one", "two", "three"]
    assert [m.text for m in await shelf.load("s", limit=limit)] == expected
    assert await shelf.load("never seen", limit=limit) == []


@pytest.mark.parametrize("limit", [-1, -99])
async def test_a_negative_limit_is_an_error(shelf, limit):
    await shelf.save("s", *said("one"))
    with pytest.raises(InvalidInputError, match=f"limit is {limit}"):
        await shelf.load("s", limit=limit)


@pytest.mark.parametrize("limit", ["3", 2.5, True])
async def test_a_limit_is_a_whole_number(shelf, limit):
    with pytest.raises(InvalidTypeError, match=r"limit is .*a whole number or None"):
        await shelf.load("s", limit=limit)


async def test_nothing_saved_is_nothing_stored(shelf):
    await shelf.save("s")
    assert await shelf.load("s") == []


async def test_a_long_conversation_keeps_its_order(shelf):
    for number in range(30):
        await shelf.save("s", *said(f"{number}.0", f"{number}.1"))
    assert [m.text for m in await shelf.load("s")] == [f"{number}.{part}" for number in range(30) for part in (0, 1)]


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "\r\n", "\u2028\u2029\x85", "\ud83d", '{"role": 1}', "soup " * 30_000, "🏳️‍🌈 é e\u0301"]
)
async def test_any_text_comes_back_as_it_was(shelf, text):
    message = Message("user", text)
    await shelf.save("s", message, *said("after"))
    stored = await shelf.load("s")
    assert stored[0] == message
    assert stored[1].text == "after"


async def test_what_is_stored_can_be_replaced_as_a_whole(shelf):
    messages = [Message("user", text, message_id=text) for text in ("one", "two", "three")]
    await shelf.save("s", *messages)
    await shelf.save("other", *said("mine"))
    await shelf.provider.replace_messages("s", messages[1:], state=shelf._state("s"))
    await shelf.save("s", *messages, *said("four"))
    assert sorted(m.text for m in await shelf.load("s")) == ["four", "one", "three", "two"]
    assert [m.text for m in (await shelf.load("s"))[:2]] == ["two", "three"]
    assert [m.text for m in await shelf.load("other")] == ["mine"]


async def test_a_message_with_an_empty_id_has_none(shelf):
    await shelf.save("s", Message("user", "one", message_id=""), Message("user", "two", message_id=""))
    assert [m.text for m in await shelf.load("s")] == ["one", "two"]
