"""What is stored: one record a message, stamped and timed, and the events of tools (SPEC 4, points 3 and 7)."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from memlab import (
    AgentRunError,
    Event,
    InMemoryVectorStore,
    MemoryScope,
    Message,
    MessageProvider,
    State,
    record_event,
    tool,
)
from tests.support import ScriptedEndpoint, call, failure
from tests.support_memory import (
    COLLECTION,
    BagEmbedder,
    FaultyStore,
    ask,
    lab,
    memory,
    records,
    remembered,
    remembering,
    texts,
)

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
ALICE, BOB = MemoryScope(user_id="alice"), MemoryScope(user_id="bob")


# --- 4.3: one record a message ---


async def test_4_3_one_record_per_message_with_all_its_fields():
    store = InMemoryVectorStore(lab().embedder)
    scope = MemoryScope("app", "cook", "s1", "alice")
    agent = remembering(memory(store, State(scope), clock=lambda: NOON), name="cook")
    response = await ask(agent, Message("user", "My name is Alice.", author_name="Alice"))
    mine, answer = records(store)
    assert (mine.text, mine.role, mine.author, mine.kind) == ("My name is Alice.", "user", "Alice", "message")
    assert (answer.text, answer.role, answer.author, answer.kind) == (response.text, "assistant", "cook", "message")
    for record in (mine, answer):
        assert record.scope == scope
        assert record.created_at == NOON
        assert record.created_at.utcoffset() == timedelta(0)
        assert record.embedding.shape == (lab().embedder.dimensions,)
        assert record.embedding.dtype == np.float32
    assert mine.id != answer.id
    assert mine.sequence < answer.sequence


async def test_4_3_times_are_aware_utc():
    store, zone = FaultyStore(), timezone(timedelta(hours=8))
    before = datetime.now(UTC)
    await ask(remembering(memory(store)), "now")
    assert before <= records(store)[0].created_at <= datetime.now(UTC)
    await ask(remembering(memory(store, clock=lambda: datetime(2025, 1, 1, 20, tzinfo=zone))), "noon in Beijing")
    assert [r.created_at for r in records(store) if r.text == "noon in Beijing"] == [NOON]


async def test_4_3_one_write_per_run():
    store = FaultyStore()
    await ask(remembering(memory(store)), ["one", "two", Message("user", "three")])
    assert [[r.text for r in write][:3] for write in store.writes] == [["one", "two", "three"]]
    assert len(store.writes[0]) == 4


async def test_4_3_a_turn_as_one_record():
    store = FaultyStore()
    agent = remembering(memory(store, store_turns_as_one=True), ScriptedEndpoint("noted", "well").client)
    await ask(agent, ["I like soup.", " ", "And tea."])
    await ask(agent, "I like bread.")
    assert texts(store) == ["I like soup.\nAnd tea.\nnoted", "I like bread.\nwell"]
    assert {(r.kind, r.scope) for r in records(store)} == {("message", ALICE)}


@pytest.mark.parametrize("as_one", [False, True])
async def test_4_3_blank_text_and_bare_tool_calls_are_skipped(as_one):
    asked = tool(name="look")(lambda: "nothing there")
    endpoint = ScriptedEndpoint(call("look"), "noted", "  ")
    store = FaultyStore()
    agent = remembering(memory(store, store_turns_as_one=as_one), endpoint.client, tools=asked)
    await ask(agent, ["", "look around", " \n\t"])
    stored = texts(store)
    assert stored == (["look around\nnoted"] if as_one else ["look around", "noted"])
    await ask(agent, "  ")  # blank question, blank answer: nothing to keep, and no write of nothing
    assert texts(store) == stored
    assert len(store.writes) == 1


async def test_4_3_a_call_that_comes_with_a_text_is_stored_with_its_text():
    look = tool(name="look")(lambda: "soup")

    class Talks(ScriptedEndpoint):
        def _whole(self, body, reply):
            answer = super()._whole(body, reply)
            if len(self.requests) == 1:
                answer["choices"][0]["message"]["content"] = "I'll look."
            return answer

    store = FaultyStore()
    await ask(remembering(memory(store), Talks(call("look"), "It is soup.").client, tools=look), "what is it?")
    assert texts(store) == ["what is it?", "I'll look.", "It is soup."]


async def test_4_3_identical_exchanges_are_separate_records():
    store = FaultyStore()
    agent = remembering(memory(store), ScriptedEndpoint(*["ordered"] * 3).client)
    session = agent.create_session()
    session.state["user_id"] = "alice"
    for _ in range(3):
        await agent.run("order a pizza", session=session)
    assert texts(store) == ["order a pizza", "ordered"] * 3


async def test_4_3_a_message_of_the_same_id_is_stored_once():
    store = FaultyStore()
    agent = remembering(memory(store), ScriptedEndpoint("one", "two").client)
    message = Message("user", "I like soup.", message_id="m1")
    await ask(agent, [message, message])
    await ask(agent, message)
    assert sorted(texts(store)) == ["I like soup.", "one", "two"]


async def test_4_3_the_same_id_of_two_users_does_not_collide():
    store = FaultyStore()
    agent = remembering(memory(store), ScriptedEndpoint("one", "two").client)
    await ask(agent, Message("user", "I like soup.", message_id="m1"), "alice")
    await ask(agent, Message("user", "I hate soup.", message_id="m1"), "bob")
    assert texts(store, ALICE) == ["I like soup.", "one"]
    assert texts(store, BOB) == ["I hate soup.", "two"]


async def test_4_3_huge_blank_and_broken_texts_are_stored_without_harm():
    store = InMemoryVectorStore(lab().embedder)
    huge = "soup " * 30_000
    response = await ask(remembering(memory(store)), [huge, "", "half \ud83d a face"])
    assert response.trace.failures == []
    mine = [record.text for record in records(store) if record.role == "user"]
    assert mine == [huge, "half \ufffd a face"]


# --- 4.3: events ---


@tool(name="PlaceOrder")
def place_order(dish: str) -> Event:
    """Place an order."""
    return Event("order", f"ordered: {dish}")


@tool(name="PlaceTwo")
def place_two() -> str:
    """Place two orders."""
    record_event("order", "ordered: soup")
    record_event("note", "hungry")
    record_event("note", "  ")
    return "done"


async def test_4_3_an_event_that_a_tool_returns_is_a_record_of_its_kind():
    store = FaultyStore()
    endpoint = ScriptedEndpoint(call("PlaceOrder", dish="soup"), "enjoy")
    response = await ask(remembering(memory(store), endpoint.client, tools=place_order), "soup please")
    (order,) = records(store, ALICE, kind="order")
    assert (order.text, order.role, order.author) == ("ordered: soup", "tool", "PlaceOrder")
    assert [r.text for r in records(store, ALICE, kind="message")] == ["soup please", "enjoy"]
    assert endpoint.sent()[-1] == ("tool", "ordered: soup")  # the model reads the event's text
    assert response.trace.tool_runs[0].events == (Event("order", "ordered: soup"),)


async def test_4_3_events_that_a_tool_registers_are_records_of_their_kinds():
    store = FaultyStore()
    agent = remembering(memory(store), ScriptedEndpoint(call("PlaceTwo"), "enjoy").client, tools=place_two)
    response = await ask(agent, "two please")
    assert [(r.kind, r.text) for r in records(store) if r.kind != "message"] == [
        ("order", "ordered: soup"),
        ("note", "hungry"),
    ]
    assert response.trace.failures == []


async def test_4_3_an_event_is_stored_at_once_even_if_the_run_fails_later():
    store = FaultyStore()
    agent = remembering(
        memory(store), ScriptedEndpoint(call("PlaceOrder", dish="soup"), failure(500)).client, tools=place_order
    )
    with pytest.raises(AgentRunError, match="PlaceOrder"):
        await ask(agent, "soup please")
    assert [(r.kind, r.text) for r in records(store, ALICE)] == [("order", "ordered: soup")]


async def test_4_3_an_event_is_there_for_the_next_model_call_of_the_same_run():
    store, seen = FaultyStore(), []
    endpoint = ScriptedEndpoint(call("PlaceOrder", dish="soup"), lambda body: seen.extend(texts(store)) or "enjoy")
    await ask(remembering(memory(store), endpoint.client, tools=place_order), "soup please")
    assert seen == ["ordered: soup"]


async def test_4_3_an_event_of_a_tool_that_fails_is_not_stored():
    def fail() -> str:
        record_event("order", "ordered: soup")
        raise RuntimeError("the kitchen is closed")

    store = FaultyStore()
    agent = remembering(memory(store), ScriptedEndpoint(call("fail"), "sorry").client, tools=fail)
    await ask(agent, "soup please")
    assert texts(store) == ["soup please", "sorry"]


async def test_4_3_two_equal_events_are_two_records():
    store = FaultyStore()
    asked = [call("PlaceOrder", "c1", dish="soup"), call("PlaceOrder", "c2", dish="soup")]
    await ask(remembering(memory(store), ScriptedEndpoint(asked, "enjoy").client, tools=place_order), "soup, twice")
    assert texts(store, ALICE, kind="order") == ["ordered: soup"] * 2


@pytest.mark.parametrize("wrong", [("order", 5), (5, "soup"), ("order", None), (" ", "soup")])
async def test_4_3_an_event_of_the_wrong_type_is_told_to_the_model_and_loses_no_answer(wrong):
    def place() -> Event:
        return Event(*wrong)

    store, endpoint = FaultyStore(), ScriptedEndpoint(call("place"), "sorry")
    response = await ask(remembering(memory(store), endpoint.client, tools=place), "soup please")
    assert response.text == "sorry"
    assert "Error" in endpoint.sent()[-1][1]
    assert texts(store) == ["soup please", "sorry"]


# --- 4.7: what is stored is what the filters choose ---


async def test_4_7_only_the_callers_requests_are_stored_by_default():
    store = FaultyStore()
    provider = memory(store)
    endpoint = ScriptedEndpoint("noted", "fine")
    agent = endpoint.agent(context_providers=[MessageProvider("a reminder"), provider])
    session = agent.create_session()
    session.state["user_id"] = "alice"
    await agent.run("one", session=session)
    await agent.run("two", session=session)  # history and memories go along, and are not stored again
    assert texts(store) == ["one", "noted", "two", "fine"]


async def test_4_7_each_storage_filter_replaces_its_default():
    store = FaultyStore()
    provider = memory(
        store,
        storage_input_request_message_filter=lambda messages: [m for m in messages if m.source.kind == "provider"],
        storage_input_response_message_filter=lambda messages: [],
    )
    agent = ScriptedEndpoint("noted").agent(context_providers=[MessageProvider("a reminder"), provider])
    await ask(agent, "one")
    assert texts(store) == ["a reminder"]


async def test_4_7_all_answers_are_stored_by_default_and_a_filter_may_choose():
    answers = [call("look"), "first", "second"]
    look = tool(name="look")(lambda: "soup")
    store = FaultyStore()
    await ask(remembering(memory(store), ScriptedEndpoint(*answers).client, tools=look), "what?")
    assert texts(store) == ["what?", "first"]
    chosen = memory(store, storage_input_response_message_filter=lambda messages: messages[:1])
    await ask(remembering(chosen, ScriptedEndpoint(*answers).client, tools=look), "again?")
    assert texts(store) == ["what?", "first", "again?"]  # the first message of the answer was a bare call


async def test_4_7_nothing_chosen_writes_nothing():
    store = FaultyStore()
    provider = memory(
        store,
        storage_input_request_message_filter=lambda messages: [],
        storage_input_response_message_filter=lambda messages: [],
    )
    await ask(remembering(provider), "one")
    assert store.writes == []


# --- what does not store ---


async def test_a_run_that_fails_and_an_abandoned_stream_store_nothing():
    store = FaultyStore()
    agent = remembering(memory(store), ScriptedEndpoint(failure(500), "one two three").client)
    with pytest.raises(Exception, match="no"):
        await ask(agent, "first")
    session = agent.create_session()
    session.state["user_id"] = "alice"
    stream = agent.run("second", session=session, stream=True)
    await anext(stream)
    await stream.aclose()
    assert texts(store) == []


async def test_a_streamed_run_searches_and_stores_like_a_plain_one():
    store = FaultyStore()
    agent = remembering(memory(store), ScriptedEndpoint("noted it", "soup it is").client)
    for text in ("I like soup.", "what about soup?"):
        session = agent.create_session()
        session.state["user_id"] = "alice"
        response = await agent.run(text, session=session, stream=True).get_final_response()
    assert "I like soup." in remembered(response)
    assert [text.strip() for text in texts(store)] == ["I like soup.", "noted it", "what about soup?", "soup it is"]


async def test_a_provider_is_shared_by_sessions_and_holds_nothing_of_them():
    import asyncio

    store, provider = FaultyStore(), None
    provider = memory(store)
    agent = remembering(provider)
    before = dict(vars(provider))
    await asyncio.gather(*(ask(agent, f"I am user {number}", f"user {number}") for number in range(8)))
    for number in range(8):
        assert texts(store, MemoryScope(user_id=f"user {number}"))[0] == f"I am user {number}"
        assert len(texts(store, MemoryScope(user_id=f"user {number}"))) == 2
    after = dict(vars(provider))
    assert {k: v for k, v in after.items() if k != "_dimensions_checked"} == {
        k: v for k, v in before.items() if k != "_dimensions_checked"
    }


def test_the_embedder_of_these_tests_knows_related_texts():
    vectors = BagEmbedder().embed(["I like soup.", "what about soup?", "trains are late"])
    near, far = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert near > far
    assert COLLECTION == "chat_history_memory"


# --- deduplicate ---


@pytest.mark.parametrize("as_one", [False, True])
async def test_deduplicate_stores_the_same_text_once_with_its_latest_time(as_one):
    store, times = FaultyStore(), iter(NOON + timedelta(days=day) for day in range(9))
    agent = remembering(
        memory(store, deduplicate=True, store_turns_as_one=as_one, clock=lambda: next(times)),
        ScriptedEndpoint(*["Noted."] * 3, "Sure.").client,
    )
    for text in ("order a pizza", "order a pizza", "hello", "order a pizza"):
        await ask(agent, text)
    turns = ["order a pizza\nNoted.", "hello\nNoted.", "order a pizza\nSure."]
    assert sorted(texts(store)) == sorted(turns if as_one else ["order a pizza", "Noted.", "hello", "Sure."])
    newest = next(record for record in records(store)[::-1] if record.text.startswith("order a pizza"))
    assert newest.created_at == NOON + timedelta(days=3)


async def test_deduplicate_keeps_users_and_roles_apart():
    store = FaultyStore()
    agent = remembering(memory(store, deduplicate=True), ScriptedEndpoint("hello", "hello").client)
    await ask(agent, "hello", "alice")
    await ask(agent, "hello", "bob")
    assert [(r.text, r.role) for r in records(store, ALICE)] == [("hello", "user"), ("hello", "assistant")]
    assert [(r.text, r.role) for r in records(store, BOB)] == [("hello", "user"), ("hello", "assistant")]


async def test_without_deduplicate_the_same_words_said_twice_are_two_records():
    store = FaultyStore()
    agent = remembering(memory(store), ScriptedEndpoint("ok", "ok").client)
    await ask(agent, "hello")
    await ask(agent, "hello")
    assert texts(store) == ["hello", "ok", "hello", "ok"]


async def test_deduplicate_keeps_each_event():
    @tool
    def order() -> Event:
        return Event("order", "soup")

    store, endpoint = FaultyStore(), ScriptedEndpoint(call("order"), "ok", call("order"), "ok")
    agent = remembering(memory(store, deduplicate=True), endpoint.client, tools=[order])
    await ask(agent, "order soup")
    await ask(agent, "order soup")
    assert texts(store, kind="order") == ["soup", "soup"]
    assert texts(store, kind="message") == ["order soup", "ok"]
