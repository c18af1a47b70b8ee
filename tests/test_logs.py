"""Logs show no user id, no query and no text, at any level, unless somebody opts in (SPEC 4, point 9)."""

import hashlib
import logging
from contextlib import nullcontext, suppress

import openai
import pytest

from memlab import (
    Agent,
    Event,
    FileHistoryProvider,
    InMemoryHistoryProvider,
    InMemoryVectorStore,
    MemlabError,
    MemoryScope,
    Message,
    MessageCountReducer,
    SearchTime,
    SqliteHistoryProvider,
    State,
    SummaryReducer,
    tool,
)
from tests.providers.test_base import Reminder
from tests.support import ScriptedEndpoint, call, failure
from tests.support_logs import Capture, watching
from tests.support_memory import FaultyStore, lab, memory

USER, SESSION, APP = "user-4711-alice", "session-0815", "app-of-alice"
QUESTION = "what about spicy food?"
SECRETS = (USER, SESSION, APP, QUESTION, "spicy", "noodles", "peanuts", "alice")


@tool(name="PlaceOrder")
def place_order(dish: str) -> Event:
    """Place an order."""
    return Event("order", f"ordered {dish} for alice")


@tool(name="Closed")
def closed(dish: str) -> str:
    """Fail."""
    raise RuntimeError(f"no {dish} for alice")


class Broken(Reminder):
    """Both hooks of it say too much when they fail."""

    def __init__(self, hook):
        super().__init__("broken", text="alice likes peanuts")
        self.hook = hook

    async def before_run(self, **arguments):
        await super().before_run(**arguments)
        if self.hook == "before":
            raise RuntimeError("alice likes peanuts")

    async def after_run(self, **arguments):
        raise RuntimeError("alice likes peanuts")


def scope_state(session):
    return State(
        MemoryScope(application_id=APP, session_id=SESSION, user_id=session.state["user_id"]),
        MemoryScope(application_id=APP, user_id=session.state["user_id"]),
    )


RUNS = ["plain", "streamed", "abandoned", "failing model", "failing tool", "failing search", "failing write",
        "failing hook", "failing before-hook", "slow store", "on demand", "events", "real embedder",
        "huge text"]  # fmt: skip


async def run(kind, tmp_path, **options):
    """One conversation of a kind, in which everything is said that no log may show."""
    store = InMemoryVectorStore(lab().embedder) if kind in ("real embedder", "huge text") else FaultyStore()
    fault = RuntimeError(f"{USER} asked {QUESTION} and likes peanuts")
    if kind == "failing search":
        store.fail_search = fault
    if kind == "failing write":
        store.fail_write = fault
    if kind == "slow store":
        store.slow_search, options["timeout"] = 0.05, 0.01
    if kind == "on demand":
        options["search_time"] = SearchTime.ON_DEMAND_FUNCTION_CALLING
    provider = memory(store, scope_state, **options)
    replies = {
        "failing model": [failure(500)] * 2,
        "failing tool": [call("Closed", dish="noodles"), "no noodles", call("Nowhere"), "no peanuts"],
        "on demand": [call("Search", userQuestion=QUESTION), "no noodles"] * 2,
        "events": [call("PlaceOrder", dish="noodles"), "enjoy the noodles"] * 2,
    }.get(kind, ["you cannot eat peanuts", "no noodles then"])
    hooks = {"failing hook": [Broken("after")], "failing before-hook": [Broken("before")]}.get(kind, [])
    agent = ScriptedEndpoint(*replies).agent(
        name="cook", instructions="Be kind to alice.", tools=[place_order, closed], context_providers=[provider, *hooks]
    )
    session = agent.create_session(session_id=SESSION)
    session.state["user_id"] = USER
    text = "I cannot eat spicy food. " * (9000 if kind == "huge text" else 1)
    for said in (text, Message("user", QUESTION, author_name="alice")):
        with suppress(RuntimeError, openai.APIError) if kind.startswith("failing") else nullcontext():
            if kind in ("streamed", "abandoned"):
                stream = agent.run(said, session=session, stream=True)
                await (anext(stream) if kind == "abandoned" else stream.get_final_response())
                await stream.aclose()
            else:
                await agent.run(said, session=session)


@pytest.mark.parametrize("kind", RUNS)
async def test_4_9_no_log_record_shows_an_id_a_query_or_a_text(tmp_path, kind):
    with Capture() as capture:
        await run(kind, tmp_path)
    assert not [secret for secret in SECRETS if secret in capture.text]
    quiet = ("abandoned", "failing model", "failing before-hook")
    assert capture.records or kind in quiet  # there was something to look at
    assert all(record.exc_info is None for record in capture.records)  # exceptions go without their text


@pytest.mark.parametrize("kind", ["file", "sqlite", "summary"])
async def test_4_9_histories_log_no_text_either(tmp_path, kind):
    history = {
        "file": lambda: FileHistoryProvider(tmp_path / "missing" / "history"),
        "sqlite": lambda: SqliteHistoryProvider(tmp_path / "missing" / "h.db"),
        "summary": lambda: InMemoryHistoryProvider(
            reducer=SummaryReducer(ScriptedEndpoint(failure(500)).client, 2, 1), reducer_trigger="after_adding"
        ),
    }[kind]()
    if kind == "file":
        (tmp_path / "missing").write_text("in the way of alice", encoding="utf-8")
    audit = InMemoryHistoryProvider("audit", load_messages=False, reducer=MessageCountReducer(1))
    agent = ScriptedEndpoint("no peanuts", "no noodles").agent(context_providers=[history, audit])
    session = agent.create_session(session_id=SESSION)
    with Capture() as capture:
        for text in ("I cannot eat spicy food.", QUESTION):
            with suppress(MemlabError, OSError) if kind != "summary" else nullcontext():
                await agent.run(text, session=session)
    assert not [secret for secret in SECRETS if secret in capture.text]


async def test_4_9_what_stands_in_its_place_is_redacted_by_default(tmp_path):
    with Capture() as capture:
        await run("plain", tmp_path)
    assert [record.getMessage() for record in capture.records] == [
        "found 0 memories for <redacted> in <redacted>",
        "stored 2 records in <redacted>",
        "found 2 memories for <redacted> in <redacted>",
        "stored 2 records in <redacted>",
    ]


async def test_4_9_the_opt_in_shows_queries_and_ids(tmp_path):
    with Capture() as capture:
        await run("plain", tmp_path, enable_sensitive_telemetry_data=True)
    assert QUESTION in capture.text
    assert USER in capture.text
    assert SESSION in capture.text


async def test_4_9_the_opt_in_does_not_show_the_text_of_exceptions(tmp_path):
    with Capture() as capture:
        await run("failing search", tmp_path, enable_sensitive_telemetry_data=True)
    errors = [record for record in capture.records if record.levelno >= logging.ERROR]
    assert len(errors) == 2
    assert all("peanuts" not in record.getMessage() and record.exc_info is None for record in errors)


def shortened(text):
    return "#" + hashlib.sha256(text.encode()).hexdigest()[:8]


async def test_4_9_a_custom_redactor_is_used(tmp_path):
    with Capture() as capture:
        await run("plain", tmp_path, redactor=shortened)
    assert shortened(QUESTION) in capture.text
    assert "<redacted>" not in capture.text
    assert not [secret for secret in SECRETS if secret in capture.text]


async def test_4_9_the_opt_in_goes_before_the_redactor(tmp_path):
    with Capture() as capture:
        await run("plain", tmp_path, redactor=shortened, enable_sensitive_telemetry_data=True)
    assert QUESTION in capture.text
    assert shortened(QUESTION) not in capture.text


async def test_4_9_the_trace_shows_what_the_log_hides(tmp_path):
    agent = Agent(ScriptedEndpoint("no").client, context_providers=[memory(FaultyStore())])
    session = agent.create_session()
    session.state["user_id"] = USER
    response = await agent.run(QUESTION, session=session)
    assert response.trace.searches[0].query == QUESTION


# --- the watcher itself ---


async def test_the_watcher_knows_what_was_said(monkeypatch, tmp_path):
    with watching(monkeypatch) as secrets:
        await run("plain", tmp_path)
        assert {USER, SESSION, APP, QUESTION} <= secrets


def test_the_watcher_sees_a_leak(monkeypatch):
    def leak():
        with watching(monkeypatch, "leaking"):
            MemoryScope(user_id=USER)
            logging.getLogger("leaking.memory").info("stored for %s", USER)

    with pytest.raises(AssertionError, match="logged 'user-4711-alice'"):
        leak()
