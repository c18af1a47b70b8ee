"""The summarising reducer (SPEC 3; the invariants of the others are in contracts)."""

import pytest

from memlab import (
    InMemoryHistoryProvider,
    InvalidInputError,
    InvalidTypeError,
    Message,
    MessageCountReducer,
    SummaryReducer,
    ToolCall,
    ToolResult,
)
from memlab.providers.reducers import group_messages
from tests.support import ScriptedEndpoint, failure
from tests.support_memory import lab


def talk(*texts):
    return [Message("assistant" if i % 2 else "user", text, message_id=text) for i, text in enumerate(texts)]


async def test_3_up_to_the_limit_nothing_changes_and_no_model_is_asked():
    endpoint, messages = ScriptedEndpoint(), talk(*"abcd")
    kept = await SummaryReducer(endpoint.client, max_messages=4, keep=2).reduce(messages)
    assert all(a is b for a, b in zip(kept, messages, strict=True))
    assert endpoint.requests == []


async def test_3_above_it_the_older_part_becomes_one_summary():
    endpoint, messages = ScriptedEndpoint("they spoke"), talk(*"abcde")
    summary, *kept = await SummaryReducer(endpoint.client, max_messages=4, keep=2).reduce(messages)
    assert (summary.role, summary.text) == ("assistant", "they spoke")
    assert summary.message_id
    assert summary.additional_properties["summary_of"] == ["a", "b", "c"]
    assert [m.text for m in kept] == ["d", "e"]
    (_, asked) = endpoint.sent()[0]
    assert asked.endswith("user: a\nassistant: b\nuser: c")


async def test_3_system_messages_and_the_newest_group_stay_and_calls_keep_their_results():
    system = Message("system", "Be brief.")
    call = Message("assistant", [ToolCall("c1", "f"), ToolCall("c2", "f")])
    group = [call, Message("tool", ToolResult("c1", "ok")), Message("tool", ToolResult("c2", "ok"))]
    messages = [system, *talk(*"abc"), *group]
    kept = await SummaryReducer(ScriptedEndpoint("short").client, max_messages=3, keep=1).reduce(messages)
    assert kept[0] is system
    assert kept[1].text == "short"
    assert all(a is b for a, b in zip(kept[2:], group, strict=True))
    kept = await SummaryReducer(ScriptedEndpoint("short").client, max_messages=6, keep=2).reduce(
        [*talk("a"), *group, *talk(*"bcd")]
    )
    assert [len(g) for g in group_messages(kept)] == [1, 1, 1]  # the call went with its results


async def test_3_the_classroom_model_keeps_the_facts():
    messages = talk("My name is Alice.", "Hello Alice!", "I cannot eat spicy food.", "Noted.", "hi", "hello")
    kept = await SummaryReducer(lab().chat, max_messages=4, keep=2).reduce(messages)
    assert "Alice" in kept[0].text
    assert "spicy" in kept[0].text


async def test_3_with_after_adding_the_summary_is_stored_and_asked_for_once():
    endpoint = ScriptedEndpoint("summary of old")
    history = InMemoryHistoryProvider(
        reducer=SummaryReducer(endpoint.client, max_messages=3, keep=2), reducer_trigger="after_adding"
    )
    agent = lab().chat.as_agent(context_providers=[history])
    session = agent.create_session()
    await agent.run("My name is Alice.", session=session)
    response = await agent.run("I like soup.", session=session)
    assert [m.text for m in session.state["in_memory"]["messages"]][:2] == ["summary of old", "I like soup."]
    assert [d.messages[0].text for d in response.trace.dropped] == ["My name is Alice."]
    response = await agent.run(session=session)
    assert len(endpoint.requests) <= 2
    assert response.trace.sent[0].text == "summary of old"


async def test_3_a_summary_of_one_message_is_stored_too():
    """As many messages as before, and yet others."""
    endpoint = ScriptedEndpoint("short", "short")
    history = InMemoryHistoryProvider(
        reducer=SummaryReducer(endpoint.client, max_messages=2, keep=1), reducer_trigger="after_adding"
    )
    agent = ScriptedEndpoint("yes").agent(context_providers=[history])
    session = agent.create_session()
    group = [
        Message("user", "a"),
        Message("assistant", ToolCall("c1", "f")),
        Message("tool", ToolResult("c1", "ok")),
    ]
    await agent.run(group, session=session)
    texts = [m.text for m in session.state["in_memory"]["messages"]]
    assert texts == ["short", "yes"]
    session.state["in_memory"]["messages"] = group[:1]
    history.store_outputs = False
    await agent.run(group[1:], session=session)
    assert [m.text for m in session.state["in_memory"]["messages"]] == ["short", "", ""]


@pytest.mark.parametrize("answer", ["", "  \n"])
async def test_3_an_empty_summary_never_replaces_the_conversation(answer):
    history = InMemoryHistoryProvider(
        reducer=SummaryReducer(ScriptedEndpoint(answer).client, max_messages=2, keep=1),
        reducer_trigger="after_adding",
    )
    agent = ScriptedEndpoint("one", "two").agent(context_providers=[history])
    session = agent.create_session()
    await agent.run("a", session=session)
    response = await agent.run("b", session=session)
    assert [m.text for m in session.state["in_memory"]["messages"]] == ["a", "one", "b", "two"]
    assert [f.error for f in response.trace.failures] == ["InvalidInputError"]


async def test_3_a_failing_summary_loses_neither_answer_nor_history():
    history = InMemoryHistoryProvider(
        reducer=SummaryReducer(ScriptedEndpoint(failure(500)).client, max_messages=1 + 1, keep=1),
        reducer_trigger="after_adding",
    )
    agent = ScriptedEndpoint("one", "two").agent(context_providers=[history])
    session = agent.create_session()
    await agent.run("a", session=session)
    response = await agent.run("b", session=session)
    assert response.text == "two"
    assert len(session.state["in_memory"]["messages"]) == 4


@pytest.mark.parametrize(("maximum", "keep"), [(0, 1), (5, 0), (5, 5), (5, 6), (-1, -2)])
def test_3_limits_make_sense(maximum, keep):
    with pytest.raises(InvalidInputError, match="keep < max_messages"):
        SummaryReducer(ScriptedEndpoint().client, max_messages=maximum, keep=keep)


@pytest.mark.parametrize(
    ("argument", "value", "said"),
    [
        ("client", "gpt-4o-mini", "a chat client"),
        ("max_messages", "20", "a whole number"),
        ("keep", True, "a whole number"),
        ("prompt", None, "a string"),
    ],
)
def test_3_an_argument_of_another_type_is_refused_with_what_to_pass(argument, value, said):
    with pytest.raises(InvalidTypeError, match=f"{argument} is .*pass {said}"):
        SummaryReducer(**{"client": ScriptedEndpoint().client, argument: value})


@pytest.mark.parametrize("reducer", [MessageCountReducer(1), SummaryReducer(ScriptedEndpoint("short").client, 2, 1)])
async def test_3_the_newest_message_is_never_dropped(reducer):
    messages = talk(*"abcdefg")
    assert (await reducer.reduce(messages))[-1] is messages[-1]
