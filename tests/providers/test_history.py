"""History providers: the flags that say what is loaded and what is stored. (What all share is in contracts.)"""

import json

import pytest

from memlab import (
    AgentSession,
    HistoryProvider,
    InMemoryHistoryProvider,
    InvalidInputError,
    InvalidTypeError,
    Message,
    MessageCountReducer,
)
from tests.providers.test_base import Reminder
from tests.support import ScriptedEndpoint


async def stored(provider, session):
    state = session.state.get(provider.source_id)
    return [m.text for m in await provider.get_messages(session.session_id, state=state)]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, ["hi", "answer"]),
        ({"store_inputs": False}, ["answer"]),
        ({"store_outputs": False}, ["hi"]),
        ({"store_context_messages": True}, ["A", "B", "hi", "answer"]),
        ({"store_context_messages": True, "store_context_from": {"b"}}, ["B", "hi", "answer"]),
        ({"store_context_from": {"b"}}, ["hi", "answer"]),
    ],
)
async def test_flags_say_what_is_stored(flags, expected):
    history = InMemoryHistoryProvider(**flags)
    providers = [history, Reminder("a", text="A"), Reminder("b", text="B")]
    agent = ScriptedEndpoint("answer").agent(context_providers=providers)
    session = agent.create_session()
    await agent.run("hi", session=session)
    assert await stored(history, session) == expected


async def test_history_is_never_stored_again_as_a_context_message():
    audit = InMemoryHistoryProvider("audit", load_messages=False, store_context_messages=True)
    agent = ScriptedEndpoint("one", "two").agent(context_providers=[InMemoryHistoryProvider(), audit])
    session = agent.create_session()
    await agent.run("a", session=session)
    await agent.run("b", session=session)
    assert await stored(audit, session) == ["a", "one", "b", "two"]


async def test_a_provider_that_does_not_load_still_stores():
    endpoint = ScriptedEndpoint("one", "two")
    audit = InMemoryHistoryProvider("audit", load_messages=False)
    agent = endpoint.agent(context_providers=[audit])
    session = agent.create_session()
    await agent.run("a", session=session)
    await agent.run("b", session=session)
    assert endpoint.sent() == [("user", "b")]
    assert await stored(audit, session) == ["a", "one", "b", "two"]


async def test_without_a_session_nothing_is_loaded_and_nothing_stored():
    class Forbidden(HistoryProvider):
        async def get_messages(self, session_id, *, state=None, **kwargs):
            raise AssertionError("loaded without a session")

        async def save_messages(self, session_id, messages, *, state=None, **kwargs):
            raise AssertionError("stored without a session")

    response = await ScriptedEndpoint().agent(context_providers=[Forbidden("forbidden")]).run("hi")
    assert response.trace.failures == []


@pytest.mark.parametrize("in_place", [False, True])
async def test_a_load_filter_chooses_what_is_sent_and_what_it_leaves_out_is_traced(in_place):
    def own_words(messages):
        kept = [m for m in messages if m.role == "user"]
        if in_place:
            messages[:] = kept
        return messages if in_place else kept

    history = InMemoryHistoryProvider(load_filter=own_words)
    endpoint = ScriptedEndpoint("one", "two")
    agent = endpoint.agent(context_providers=[history])
    session = agent.create_session()
    await agent.run("a", session=session)
    response = await agent.run("b", session=session)
    assert endpoint.sent() == [("user", "a"), ("user", "b")]
    assert [(d.why, [m.text for m in d.messages]) for d in response.trace.dropped] == [("load_filter", ["one"])]
    assert await stored(history, session) == ["a", "one", "b", "two"]


async def test_a_reducer_shortens_what_is_sent_not_what_is_stored():
    history = InMemoryHistoryProvider(reducer=MessageCountReducer(2))
    endpoint = ScriptedEndpoint("one", "two", "three")
    agent = endpoint.agent(context_providers=[history])
    session = agent.create_session()
    for text in "abc":
        await agent.run(text, session=session)
    assert endpoint.sent() == [("user", "b"), ("assistant", "two"), ("user", "c")]
    assert await stored(history, session) == ["a", "one", "b", "two", "c", "three"]


async def test_two_sessions_and_a_session_resumed_from_json():
    endpoint = ScriptedEndpoint("one", "two", "three")
    agent = endpoint.agent()
    alice, bob = agent.create_session(session_id="alice"), agent.create_session(session_id="bob")
    await agent.run("I am Alice", session=alice)
    await agent.run("I am Bob", session=bob)
    resumed = AgentSession.from_dict(json.loads(json.dumps(alice.to_dict())))
    await endpoint.agent().run("who am I?", session=resumed)
    assert endpoint.sent() == [("user", "I am Alice"), ("assistant", "one"), ("user", "who am I?")]


async def test_the_two_methods_are_to_be_overridden():
    with pytest.raises(NotImplementedError, match="get_messages"):
        await HistoryProvider("mine").get_messages("s")
    with pytest.raises(NotImplementedError, match="save_messages"):
        await HistoryProvider("mine").save_messages("s", [])


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("store_context_from", 5, "a set of source ids"),
        ("reducer", 20, r"MessageCountReducer\(20\)"),
        ("reducer", MessageCountReducer, r"MessageCountReducer\(20\)"),
        ("load_filter", "user", "a function or None"),
    ],
)
def test_an_option_of_another_type_is_refused_with_what_to_pass(option, value, said):
    with pytest.raises(InvalidTypeError, match=f"{option} is .*{said}"):
        InMemoryHistoryProvider(**{option: value})


async def test_bad_set_ups_are_refused():
    with pytest.raises(InvalidInputError, match="store_context_from"):
        InMemoryHistoryProvider(store_context_from="memory")
    with pytest.raises(InvalidInputError, match="state="):
        await InMemoryHistoryProvider().save_messages("s", [Message("user", "hi")])
