"""Histories in files and databases: torn and damaged storage, several processes (what all share is in contracts)."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import time

import pytest

from memlab import (
    AgentSession,
    FileHistoryProvider,
    InMemoryHistoryProvider,
    InvalidInputError,
    InvalidTypeError,
    MemlabError,
    Message,
    MessageCountReducer,
    SqliteHistoryProvider,
    ToolCall,
    ToolResult,
    tool,
)
from tests.support import ScriptedEndpoint, call, failure

MAKERS = {
    "in memory": lambda folder, **options: InMemoryHistoryProvider(**options),
    "file": lambda folder, **options: FileHistoryProvider(folder / "history", **options),
    "sqlite": lambda folder, **options: SqliteHistoryProvider(folder / "history.db", **options),
}


@pytest.fixture(params=MAKERS)
def make(request, tmp_path):
    """Makes the three providers of memlab."""
    return lambda **options: MAKERS[request.param](tmp_path, **options)


def said(*texts):
    return [Message("user", text) for text in texts]


async def stored(provider, session):
    """What a provider holds of a session."""
    state = session.state.get(provider.source_id, {})
    return [m.text for m in await provider.get_messages(session.session_id, state=state)]


# --- files ---


@pytest.fixture
def file(tmp_path):
    return FileHistoryProvider(tmp_path)


async def test_3_a_torn_line_was_never_acknowledged_and_is_dropped(file):
    await file.save_messages("s", said("one", "two"))
    path = file.path_of("s")
    whole = path.read_bytes()
    for cut in range(1, len(whole.splitlines()[1]) + 1):
        path.write_bytes(whole[:-cut])
        assert [m.text for m in await file.get_messages("s")] == ["one"]
    await file.save_messages("s", said("three"))
    assert [m.text for m in await file.get_messages("s")] == ["one", "three"]
    assert len([json.loads(line) for line in path.read_bytes().splitlines()]) == 2


@pytest.mark.parametrize("torn", [b"", b"{", b'{"role": "user", "contents": ["\xe5', b"\0" * 5000, b"x" * 9000])
async def test_3_a_file_with_a_torn_line_alone_is_empty(file, torn):
    file.path_of("s").write_bytes(torn)
    assert await file.get_messages("s") == []
    await file.save_messages("s", said("one"))
    assert [m.text for m in await file.get_messages("s")] == ["one"]


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[]",
        b"null",
        b"{}",
        b'{"role": "boss", "contents": []}',
        b'{"role": "user", "contents": [5]}',
        b'{"role": "user", "contents": [{"type": "text", "text": 5}]}',
        b'{"role": "user", "contents": [], "author_name": 5}',
        b'{"role": "user", "contents": [], "source": 5}',
        b'{"role": "user", "contents": [], "additional_properties": 5}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=lambda line: ascii(line[:60]),
)
async def test_3_a_corrupt_line_names_file_and_line_and_loses_nothing(file, line):
    await file.save_messages("s", said("one", "two"))
    path = file.path_of("s")
    first, second = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, line, second, b""]))
    before = path.read_bytes()
    for attempt in (file.get_messages("s"), file.save_messages("s", said("three"))):
        with pytest.raises(MemlabError, match=rf"{path.name}, line 2,"):
            await attempt
    assert path.read_bytes() == before
    path.write_bytes(b"\n".join([first, second, b""]))
    assert [m.text for m in await file.get_messages("s")] == ["one", "two"]


async def test_3_any_session_id_gives_a_safe_name_inside_the_directory(tmp_path):
    file = FileHistoryProvider(tmp_path / "history")
    for session_id in ("../../etc/passwd", "/abs", "C:\\x", "a\0b", "con", ".", "x" * 5000, "张三", "*?<>|"):
        path = file.path_of(session_id)
        assert path.parent == tmp_path / "history"
        assert path.name.isascii()
        assert len(path.name) < 100
        assert set(path.name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.")
    # On a file system that does not tell cases apart, "S" and "s" are still two files.
    assert file.path_of("S").name.lower() != file.path_of("s").name.lower()


async def test_3_a_message_that_json_can_not_keep_is_refused_and_writes_nothing(tmp_path):
    wrong = [Message("user", "hi"), Message("user", "secret", additional_properties={"when": {1, 2}})]
    for provider in (FileHistoryProvider(tmp_path / "f"), SqliteHistoryProvider(tmp_path / "h.db")):
        for bad in (wrong, [wrong[0], Message("user", "x", message_id="\ud800")]):
            with pytest.raises(InvalidInputError, match="additional_properties") as failed:
                await provider.save_messages("s", bad)
            assert "secret" not in str(failed.value)
            assert await provider.get_messages("s") == []


async def test_3_a_replaced_file_is_whole_at_every_moment(file, monkeypatch):
    import os

    await file.save_messages("s", said("one", "two"))
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError("killed")))
    with pytest.raises(MemlabError, match=r"killed.*permissions"):
        await file.replace_messages("s", said("three"))
    assert [m.text for m in await file.get_messages("s")] == ["one", "two"]


@pytest.mark.parametrize("directory", ["history", "history/of/lessons"])
def test_3_a_file_where_the_directory_should_be_is_refused_at_once(tmp_path, directory):
    (tmp_path / "history").touch()
    with pytest.raises(InvalidInputError, match=r"directory is .*history.* is a file.*move it away, or give another"):
        FileHistoryProvider(tmp_path / directory)


@pytest.mark.parametrize(
    ("options", "denied", "said"),
    [({}, "W_OK", "written"), ({"store_inputs": False, "store_outputs": False}, "R_OK", "read")],
)
def test_3_a_directory_without_permission_is_refused_at_once(tmp_path, monkeypatch, options, denied, said):
    import os

    monkeypatch.setattr(os, "access", lambda place, mode: not mode & getattr(os, denied))  # root may do everything
    with pytest.raises(InvalidInputError, match=rf"may not be {said} by this process; change its permissions"):
        FileHistoryProvider(tmp_path / "new", **options)


def test_3_a_directory_that_may_only_be_read_can_be_read(tmp_path, monkeypatch):
    import os

    monkeypatch.setattr(os, "access", lambda place, mode: not mode & os.W_OK)
    FileHistoryProvider(tmp_path, store_inputs=False, store_outputs=False)


@pytest.mark.parametrize("directory", [5, None, b"history"])
def test_3_a_directory_is_a_path(directory):
    with pytest.raises(InvalidTypeError, match=r"directory is .*pass the path of a directory"):
        FileHistoryProvider(directory)


async def test_3_a_directory_that_became_unusable_ends_a_run_before_the_model_is_asked(tmp_path):
    endpoint = ScriptedEndpoint()
    agent = endpoint.agent(context_providers=[FileHistoryProvider(tmp_path / "history")])
    (tmp_path / "history").touch()
    with pytest.raises(InvalidInputError, match="is a file"):
        await agent.run("hi", session=agent.create_session())
    assert endpoint.requests == []


async def test_3_a_write_that_fails_says_what_to_do(tmp_path, monkeypatch):
    import os

    history = FileHistoryProvider(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(MemlabError, match=r"s-\w+\.jsonl can't be written: No space.*room on the disk"):
        await history.save_messages("s", said("one"))


# --- the same id, another text ---


async def test_another_text_under_a_stored_id_is_told_without_the_text(make, caplog):
    endpoint = ScriptedEndpoint("one", "two", "three")
    agent = endpoint.agent(context_providers=[make()])
    session = agent.create_session()
    first, changed = (Message("user", text, message_id="m1") for text in ("I like soup", "I like cake"))
    assert (await agent.run(first, session=session)).trace.notes == []
    assert (await agent.run([first, "and rice"], session=session)).trace.notes == []
    assert caplog.records == []
    response = await agent.run(changed, session=session)
    (note,) = response.trace.notes
    assert "m1" in note
    assert "new message_id" in note
    (record,) = (record for record in caplog.records if record.name == "memlab.history")
    assert record.levelname == "WARNING"
    assert not [word for word in ("soup", "cake") if word in note + caplog.text]
    assert (await stored(agent.context_providers[0], session))[0] == "I like soup"


async def test_two_texts_of_one_id_in_one_write_are_told_too(make, caplog):
    provider = make()
    await provider.save_messages("s", [Message("user", text, message_id="m1") for text in "ab"], state={})
    assert "1 messages have the id of a stored one" in caplog.text


# --- SQLite ---


async def test_3_the_key_is_in_the_sessions_state_and_may_be_chosen(tmp_path):
    history = SqliteHistoryProvider(tmp_path / "h.db")
    agent = ScriptedEndpoint("one", "two").agent(context_providers=[history])
    session = agent.create_session(session_id="s1")
    await agent.run("good morning", session=session)
    assert session.state["sqlite_history"] == {"key": "s1"}
    assert "morning" not in json.dumps(session.to_dict())  # what a session carries is the key alone
    elsewhere = AgentSession(session_id="another")
    elsewhere.state["sqlite_history"] = {"key": "s1"}
    assert await stored(history, elsewhere) == ["good morning", "one"]


@pytest.mark.parametrize("key", [None, "", 5, ["s1"]])
async def test_3_a_key_of_the_wrong_type_is_named(tmp_path, key):
    history = SqliteHistoryProvider(tmp_path / "h.db")
    with pytest.raises(InvalidInputError, match=r"session\.state\['sqlite_history'\]\['key'\]"):
        await history.save_messages("s", said("one"), state={"key": key})
    with pytest.raises(InvalidInputError, match="key"):
        await history.get_messages("s", state={"key": key})


async def test_3_a_damaged_row_names_the_file(tmp_path):
    history = SqliteHistoryProvider(tmp_path / "h.db")
    await history.save_messages("s", said("one", "two"))
    with sqlite3.connect(history.path) as database:
        database.execute("UPDATE messages SET body = '{}' WHERE number = 2")
    with pytest.raises(MemlabError, match=r"h\.db, message 2"):
        await history.get_messages("s")


async def test_3_what_is_no_database_or_has_no_folder_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("I am no database, but a long text. " * 100, encoding="utf-8")
    with pytest.raises(MemlabError, match=r"notes\.txt"):
        await SqliteHistoryProvider(tmp_path / "notes.txt").get_messages("s")
    with pytest.raises(MemlabError, match="folder"):
        await SqliteHistoryProvider(tmp_path / "missing" / "h.db").get_messages("s")


# --- several processes ---

WRITER = """
import asyncio, sys, time
from memlab import FileHistoryProvider, Message, SqliteHistoryProvider
kind, place, name, start = sys.argv[1:]
provider = FileHistoryProvider(place) if kind == "file" else SqliteHistoryProvider(place)
async def write():
    time.sleep(max(0.0, float(start) - time.time()))
    for number in range(25):
        texts = [Message("user", f"{name} {number}"), Message("assistant", f"{name} {number}!")]
        await provider.save_messages("shared", texts)
        await provider.save_messages("one id", [Message("user", f"{number}", message_id=f"{number}")])
asyncio.run(write())
"""


@pytest.mark.parametrize("kind", ["file", "sqlite"])
async def test_3_processes_that_write_one_session_at_once_lose_nothing(tmp_path, kind):
    place, start = tmp_path / "shared", str(time.time() + 2.0)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, kind, place, name, start], stderr=subprocess.PIPE)
        for name in "abc"
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0, errors.decode()
    provider = FileHistoryProvider(place) if kind == "file" else SqliteHistoryProvider(place)
    texts = [m.text for m in await provider.get_messages("shared")]
    assert len(texts) == 3 * 25 * 2
    for name in "abc":  # each writer's messages are there, in its order, question and answer side by side
        mine = [text for text in texts if text.startswith(name)]
        assert mine == [f"{name} {number}{end}" for number in range(25) for end in ("", "!")]
    assert all(texts[i] + "!" == texts[i + 1] for i in range(0, len(texts), 2))
    once = [int(m.text) for m in await provider.get_messages("one id")]
    assert once == list(range(25))  # who came first stored it, and the others saw that


async def test_3_two_writers_of_one_file_take_turns(tmp_path, monkeypatch):
    from memlab.providers import file_history

    def slowly(stored, messages, look=file_history.unknown_messages):
        new = look(stored, messages)
        time.sleep(0.05)  # time for another writer to get in between reading and writing
        return new

    monkeypatch.setattr(file_history, "unknown_messages", slowly)
    message = Message("user", "one", message_id="m1")
    writers = [FileHistoryProvider(tmp_path) for _ in range(3)]
    await asyncio.gather(*(writer.save_messages("s", [message]) for writer in writers))
    assert await writers[0].get_messages("s") == [message]


KILLED = """
import asyncio, os, signal, sys
from memlab import FileHistoryProvider, Message, SqliteHistoryProvider
kind, place = sys.argv[1:]
provider = FileHistoryProvider(place) if kind == "file" else SqliteHistoryProvider(place)
async def write():
    for number in range(1000):
        await provider.save_messages("s", [Message("user", f"{number}")])
        print(number, flush=True)
asyncio.run(write())
"""


@pytest.mark.parametrize("kind", ["file", "sqlite"])
async def test_3_what_was_acknowledged_survives_a_killed_process(tmp_path, kind):
    place = tmp_path / "store"
    writer = subprocess.Popen([sys.executable, "-c", KILLED, kind, place], stdout=subprocess.PIPE)
    acknowledged = [int(writer.stdout.readline()) for _ in range(20)]
    writer.kill()
    acknowledged += [int(line) for line in writer.stdout.read().split()]
    writer.wait(timeout=30)
    provider = FileHistoryProvider(place) if kind == "file" else SqliteHistoryProvider(place)
    texts = [int(m.text) for m in await provider.get_messages("s")]
    assert texts[: len(acknowledged)] == acknowledged
    assert len(texts) <= len(acknowledged) + 1
    await provider.save_messages("s", said("after"))
    assert (await provider.get_messages("s"))[-1].text == "after"


# --- per-service-call persistence ---


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


ROUNDS = [call("add", "c1", a=1, b=2), call("add", "c2", a=3, b=4)]


async def test_2_per_service_call_persistence_saves_after_each_model_call(make):
    history, seen = make(), []

    async def look(body):
        seen.append(await stored(history, session))
        return "7"

    agent = ScriptedEndpoint(ROUNDS[0], ROUNDS[1], look).agent(
        tools=add, context_providers=[history], require_per_service_call_history_persistence=True
    )
    session = agent.create_session()
    await agent.run("add them", session=session)
    assert seen == [["add them", "", "", ""]]  # the input, a call, its result, and the second call
    messages = await history.get_messages(session.session_id, state=session.state[history.source_id])
    assert [m.role for m in messages] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert messages[-1].text == "7"


@pytest.mark.parametrize("each_call", [True, False])
async def test_2_a_run_that_fails_keeps_only_what_per_service_call_persistence_saved(make, each_call):
    history = make()
    endpoint = ScriptedEndpoint(ROUNDS[0], ROUNDS[1], failure(500), "welcome back")
    agent = endpoint.agent(
        tools=add, context_providers=[history], require_per_service_call_history_persistence=each_call
    )
    session = agent.create_session()
    with pytest.raises(MemlabError, match="add, add"):
        await agent.run("add them", session=session)
    messages = await history.get_messages(session.session_id, state=session.state[history.source_id])
    assert [m.role for m in messages] == (["user", "assistant", "tool", "assistant"] if each_call else [])
    response = await agent.run("go on", session=session)
    roles = [m.role for m in response.trace.sent]
    assert roles == (["user", "assistant", "tool", "user"] if each_call else ["user"])
    dropped = [m.tool_calls[0].call_id for d in response.trace.dropped for m in d.messages]
    assert dropped == (["c2"] if each_call else [])  # a call that nobody answered is left out, and it says so


async def test_2_per_service_call_persistence_stores_nothing_twice(make):
    history = make()
    agent = ScriptedEndpoint(ROUNDS[0], "3", "hello").agent(
        tools=add, context_providers=[history], require_per_service_call_history_persistence=True
    )
    session = agent.create_session()
    await agent.run("add them", session=session)
    await agent.run("hi", session=session)
    assert await stored(history, session) == ["add them", "", "", "3", "hi", "hello"]


async def test_2_a_save_that_failed_is_made_up_for_with_the_next_call():
    class Flaky(InMemoryHistoryProvider):
        failures = 1

        async def save_messages(self, session_id, messages, *, state=None, **kwargs):
            if self.failures:
                self.failures -= 1
                raise OSError("disk full")
            await super().save_messages(session_id, messages, state=state, **kwargs)

    history = Flaky()
    agent = ScriptedEndpoint(ROUNDS[0], "3").agent(
        tools=add, context_providers=[history], require_per_service_call_history_persistence=True
    )
    session = agent.create_session()
    response = await agent.run("add them", session=session)
    assert [(f.where, f.error) for f in response.trace.failures] == [("in_memory.after_call", "OSError")]
    assert await stored(history, session) == ["add them", "", "", "3"]


async def test_2_an_abandoned_stream_keeps_what_per_service_call_persistence_saved(make):
    history = make()
    agent = ScriptedEndpoint(ROUNDS[0], "one two three").agent(
        tools=add, context_providers=[history], require_per_service_call_history_persistence=True
    )
    session = agent.create_session()
    stream = agent.run("add them", session=session, stream=True)
    await anext(stream)
    await stream.aclose()
    assert await stored(history, session) == ["add them", ""]


# --- orphans ---

CALL, RESULT = Message("assistant", ToolCall("c1", "add"), message_id="1"), Message("tool", ToolResult("c1", "3"))


@pytest.mark.parametrize(
    ("messages", "sent", "dropped"),
    [
        ([Message("user", "a"), CALL], ["a"], 1),
        ([Message("user", "a"), RESULT], ["a"], 1),
        ([CALL, Message("user", "a"), RESULT], ["a"], 2),
        ([Message("user", "a"), CALL, RESULT], ["a", "", ""], 0),
        ([Message("assistant", ["I'll look.", ToolCall("c9", "add")])], ["I'll look."], 1),
        (
            [Message("assistant", [ToolCall("c1", "add"), ToolCall("c2", "add")]), RESULT],
            ["", ""],
            1,
        ),
        ([CALL, Message("tool", [ToolResult("c1", "3"), ToolResult("c9", "4")])], ["", ""], 1),
    ],
    ids=["call", "result", "apart", "whole", "call with text", "half answered", "one result too many"],
)
async def test_2_orphaned_calls_and_results_are_repaired_on_load_and_reported(make, messages, sent, dropped):
    history, endpoint = make(), ScriptedEndpoint("ok")
    agent = endpoint.agent(tools=add, context_providers=[history])
    session = agent.create_session()
    state = session.state.setdefault(history.source_id, {})
    await history.save_messages(session.session_id, messages, state=state)
    response = await agent.run("now", session=session)
    wire = endpoint.requests[0]["messages"]
    asked = [c["id"] for m in wire for c in m.get("tool_calls", [])]
    answered = [m["tool_call_id"] for m in wire if m["role"] == "tool"]
    assert asked == answered  # what the API insists on
    assert [m.text for m in response.trace.sent] == [*sent, "now"]
    reported = [d for d in response.trace.dropped if d.why == "orphaned tool call"]
    assert len(reported) == (1 if dropped else 0)
    assert sum(1 for d in reported for m in d.messages if m.tool_calls or m.tool_results) >= dropped
    kept = await history.get_messages(session.session_id, state=state)
    assert kept[: len(messages)] == messages  # what is stored stays as it is


# --- reducers: both triggers ---


async def test_3_before_retrieval_shortens_what_is_sent_and_keeps_what_is_stored(make):
    history = make(reducer=MessageCountReducer(2))
    endpoint = ScriptedEndpoint("one", "two", "three")
    agent = endpoint.agent(context_providers=[history])
    session = agent.create_session()
    for text in "abc":
        response = await agent.run(text, session=session)
    assert [text for _, text in endpoint.sent()] == ["b", "two", "c"]
    assert await stored(history, session) == ["a", "one", "b", "two", "c", "three"]
    assert [[m.text for m in d.messages] for d in response.trace.dropped] == [["a", "one"]]


async def test_3_after_adding_shortens_what_is_stored_and_says_what_is_gone(make):
    history = make(reducer=MessageCountReducer(2), reducer_trigger="after_adding")
    endpoint = ScriptedEndpoint("one", "two", "three")
    agent = endpoint.agent(context_providers=[history])
    session = agent.create_session()
    responses = [await agent.run(text, session=session) for text in "abc"]
    assert [text for _, text in endpoint.sent()] == ["b", "two", "c"]
    assert await stored(history, session) == ["c", "three"]
    dropped = [[(d.why, [m.text for m in d.messages]) for d in r.trace.dropped] for r in responses]
    assert dropped == [
        [],
        [("MessageCountReducer", ["a", "one"])],
        [("MessageCountReducer", ["b", "two"])],
    ]


async def test_3_after_adding_works_with_per_service_call_persistence(make):
    history = make(reducer=MessageCountReducer(3), reducer_trigger="after_adding")
    agent = ScriptedEndpoint(ROUNDS[0], "3", "hello").agent(
        tools=add, context_providers=[history], require_per_service_call_history_persistence=True
    )
    session = agent.create_session()
    await agent.run("add them", session=session)
    await agent.run("hi", session=session)
    assert await stored(history, session) == ["3", "hi", "hello"]


def test_3_a_trigger_is_one_of_two():
    with pytest.raises(InvalidInputError, match="after_adding"):
        InMemoryHistoryProvider(reducer=MessageCountReducer(2), reducer_trigger="sometimes")


async def test_3_after_adding_needs_replace_messages():
    from memlab import HistoryProvider

    with pytest.raises(NotImplementedError, match="replace_messages"):
        await HistoryProvider("mine").replace_messages("s", [])


# --- filters on what is loaded ---


async def test_3_a_load_filter_chooses_what_is_sent(make):
    history = make(load_filter=lambda messages: [m for m in messages if m.role == "user"])
    endpoint = ScriptedEndpoint("one", "two")
    agent = endpoint.agent(context_providers=[history])
    session = agent.create_session()
    await agent.run("a", session=session)
    response = await agent.run("b", session=session)
    assert [text for _, text in endpoint.sent()] == ["a", "b"]
    assert [[m.text for m in d.messages] for d in response.trace.dropped] == [["one"]]
    assert await stored(history, session) == ["a", "one", "b", "two"]


async def test_3_only_one_provider_may_load(make):
    with pytest.raises(InvalidInputError, match="all load history"):
        ScriptedEndpoint().agent(context_providers=[make(), InMemoryHistoryProvider("second")])
    ScriptedEndpoint().agent(context_providers=[make(), InMemoryHistoryProvider("second", load_messages=False)])


async def test_3_without_a_session_nothing_is_loaded_and_nothing_stored(make, tmp_path):
    history = make()
    endpoint = ScriptedEndpoint("one", "two")
    agent = endpoint.agent(context_providers=[history])
    await agent.run("a")
    await agent.run("b")
    assert endpoint.sent() == [("user", "b")]
    assert list(tmp_path.rglob("*")) == []
