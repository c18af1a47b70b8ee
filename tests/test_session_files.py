"""Sessions that outlive their process, and stored ones that are damaged (SPEC 2, sessions)."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

import memlab
from memlab import (
    Agent,
    AgentSession,
    FileHistoryProvider,
    InMemoryHistoryProvider,
    InvalidInputError,
    Message,
    SqliteHistoryProvider,
    connect,
)
from tests.support import ScriptedEndpoint
from tests.support_memory import DatabaseHistoryProvider, lab, memory, open_database

PROVIDERS = {
    "in memory": lambda place: InMemoryHistoryProvider(),
    "file": lambda place: FileHistoryProvider(place / "history"),
    "sqlite": lambda place: SqliteHistoryProvider(place / "history.db"),
    "a learner's own": lambda place: DatabaseHistoryProvider(open_database(place / "own.db")),
}

RESUME = """
import asyncio, json, sys
from pathlib import Path
import memlab
from memlab import AgentSession
from tests.test_session_files import PROVIDERS

async def resume(place, provider):
    agent = memlab.connect("offline").chat.as_agent(context_providers=[provider])
    session = AgentSession.from_dict(json.loads((place / "session.json").read_text(encoding="utf-8")))
    response = await agent.run("What is my name?", session=session)
    return [response.text, session.session_id, session.state["user_id"], len(response.trace.sent)]

places = {kind: Path(sys.argv[1]) / kind for kind in PROVIDERS}
print(json.dumps({kind: asyncio.run(resume(place, PROVIDERS[kind](place))) for kind, place in places.items()}))
"""


def in_a_new_process(code, *arguments):
    """What a script prints as JSON."""
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=root, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    """One session with each history, saved to a file: the place, and what a new process got out of it."""
    root = tmp_path_factory.mktemp("sessions")

    async def save(place, provider):
        place.mkdir()
        session = AgentSession(session_id="s1")
        session.state["user_id"] = "alice"
        await lab().chat.as_agent(context_providers=[provider(place)]).run("My name is Alice.", session=session)
        text = json.dumps(session.to_dict(), ensure_ascii=False)
        (place / "session.json").write_text(text, encoding="utf-8")

    for kind, provider in PROVIDERS.items():
        asyncio.run(save(root / kind, provider))
    return root, in_a_new_process(RESUME, root)


@pytest.mark.parametrize("kind", PROVIDERS)
def test_2_a_session_saved_to_a_file_is_resumed_in_a_new_process(resumed, kind):
    root, answers = resumed
    saved = (root / kind / "session.json").read_text(encoding="utf-8")
    assert ("My name is Alice." in saved) == (kind == "in memory")
    text, session_id, user, sent = answers[kind]
    assert "Alice" in text
    assert (session_id, user, sent) == ("s1", "alice", 3)


async def test_snippet_d_a_database_history_and_a_session_on_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("memlab.settings._current", None)
    connect("offline")
    db_client = open_database("app.db")
    # --- the snippet
    agent = Agent(
        client=memlab.OpenAIChatClient(),
        name="DatabaseAgent",
        instructions="You are a helpful assistant.",
        context_providers=[DatabaseHistoryProvider(db_client)],
    )
    session = agent.create_session()
    await agent.run("My name is Alice.", session=session)
    serialized = session.to_dict()
    with open("session.json", "w", encoding="utf-8") as f:
        json.dump(serialized, f)
    # --- and in a new process
    resumed = """
import asyncio, json, sys, os
os.chdir(sys.argv[1])
import memlab
from memlab import Agent, AgentSession
from tests.support_memory import DatabaseHistoryProvider, open_database
memlab.connect("offline")
with open("session.json", encoding="utf-8") as f:
    session = AgentSession.from_dict(json.load(f))
agent = Agent(client=memlab.OpenAIChatClient(), context_providers=[DatabaseHistoryProvider(open_database("app.db"))])
print(json.dumps((asyncio.run(agent.run("What is my name?", session=session))).text))
"""
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    assert "Alice" in in_a_new_process(resumed, tmp_path)
    assert serialized["service_session_id"] is None  # the local provider kept it, so the service was not asked to


async def test_2_a_memory_and_a_summary_survive_the_way_through_json():
    agent = Agent(ScriptedEndpoint("noted").client, context_providers=[memory(), InMemoryHistoryProvider()])
    session = agent.create_session(session_id="s1")
    session.state["user_id"] = "alice"
    message = Message(
        "user", "I like soup. 张三 😀", author_name="Alice", message_id="m1", additional_properties={"n": 1}
    )
    await agent.run(message, session=session)
    twin = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    assert (twin.session_id, twin.service_session_id, twin.state) == ("s1", None, session.state)
    assert twin.state["in_memory"]["messages"][0].author_name == "Alice"


# --- stored sessions with missing, extra, null or wrongly typed fields ---

GOOD = {"type": "session", "session_id": "s1", "service_session_id": "resp_1", "state": {"user_id": "alice"}}
MISSING = object()


@pytest.mark.parametrize("field", ["type", "service_session_id", "state"])
def test_2_a_field_that_may_be_missing_is_empty(field):
    session = AgentSession.from_dict({k: v for k, v in GOOD.items() if k != field})
    assert session.session_id == "s1"
    assert session.service_session_id == (None if field == "service_session_id" else "resp_1")
    assert session.state == ({} if field == "state" else {"user_id": "alice"})


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        *[("session_id", value, "session_id") for value in (MISSING, None, "", "  ", 5, 0, True, ["s1"], {}, "\ud800")],
        *[("service_session_id", value, "service_session_id") for value in ("", "  ", 5, True, ["r"], {})],
        *[("state", value, "state is") for value in (None, 5, "text", [], True)],
        *[("type", value, "type is") for value in (None, "thread", 5, ["session"])],
        ("messages", [], "no field 'messages'"),
        ("user_id", "alice", "no field 'user_id'"),
    ],
    ids=lambda value: ascii(value)[:30] if value is not MISSING else "missing",
)
def test_2_a_damaged_session_names_what_is_wrong(field, value, named):
    stored = {k: v for k, v in {**GOOD, field: value}.items() if v is not MISSING}
    with pytest.raises(InvalidInputError, match=named):
        AgentSession.from_dict(stored)


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"in_memory": {"messages": [{"type": "message"}]}}, r"state\.in_memory\.messages\[0\].*message"),
        ({"in_memory": {"messages": [{"type": "message", "role": "boss"}]}}, r"messages\[0\].*boss"),
        ({"m": {"type": "message", "role": "user", "contents": [5]}}, r"state\.m can't be read as 'message'"),
        ({"m": {"type": "message", "role": "user", "author_name": 5}}, r"state\.m can't be read as 'message'"),
        ({"m": {"type": "message", "role": "user", "additional_properties": 5}}, r"state\.m "),
        ({"m": {"type": "message", "role": "user", "source": 5}}, r"state\.m "),
        ({"m": {"type": "message", "role": "user", "contents": [{"type": "text", "text": None}]}}, r"state\.m "),
    ],
    ids=str,
)
def test_2_a_damaged_state_is_named_by_its_path(state, path):
    with pytest.raises(InvalidInputError, match=path):
        AgentSession.from_dict({**GOOD, "state": state})


@pytest.mark.parametrize("state", [{"x": {"type": "dict", "items": 5}}, {"x": {"type": "unknown"}}, {"x": None}])
def test_2_what_only_looks_like_a_registered_type_stays_as_it_is(state):
    assert AgentSession.from_dict({**GOOD, "state": state}).state == state


@pytest.mark.parametrize("stored", [None, [], "session", 5, json.dumps(GOOD)])
def test_2_a_stored_session_is_a_dictionary(stored):
    with pytest.raises(InvalidInputError, match="a stored session is a dictionary"):
        AgentSession.from_dict(stored)


@pytest.mark.parametrize("kind", [k for k in PROVIDERS if k != "a learner's own"])
async def test_2_a_session_whose_part_of_the_state_is_damaged_is_an_error_of_the_run(tmp_path, kind):
    provider = PROVIDERS[kind](tmp_path)
    session = AgentSession.from_dict({**GOOD, "service_session_id": None, "state": {provider.source_id: None}})
    endpoint = ScriptedEndpoint()
    with pytest.raises(InvalidInputError, match=provider.source_id):
        await endpoint.agent(context_providers=[provider]).run("hi", session=session)
    assert endpoint.requests == []
