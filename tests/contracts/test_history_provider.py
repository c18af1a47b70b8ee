"""What every history provider does. One list of makers, one set of tests."""

from collections.abc import Callable

import pytest

from memlab import AgentSession, HistoryProvider, InMemoryHistoryProvider, Message, ToolCall, ToolResult

MAKERS: dict[str, Callable[..., HistoryProvider]] = {"in memory": InMemoryHistoryProvider}


class Shelf:
    """A provider with the states of its sessions, called as an agent calls it."""

    def __init__(self, provider: HistoryProvider) -> None:
        self.provider = provider
        self.sessions: dict[str, AgentSession] = {}

    def _state(self, session_id):
        session = self.sessions.setdefault(session_id, AgentSession(session_id=session_id))
        return session.state.setdefault(self.provider.source_id, {})

    async def save(self, session_id, *messages):
        await self.provider.save_messages(session_id, messages, state=self._state(session_id))

    async def load(self, session_id):
        return await self.provider.get_messages(session_id, state=self._state(session_id))


@pytest.fixture(params=MAKERS)
def shelf(request):
    return Shelf(MAKERS[request.param]())


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
    "other", ["S", "s ", "s/../s", "s%", "s_", "x" * 10_000, "张三 😀", "'; DROP TABLE messages; --"]
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
    other = Shelf(type(shelf.provider)("another"))
    other.sessions = shelf.sessions
    await shelf.save("s", *said("one"))
    await other.save("s", *said("two"))
    assert [m.text for m in await shelf.load("s")] == ["one"]
