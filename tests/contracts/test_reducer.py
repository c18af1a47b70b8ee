"""What every reducer keeps. One list of makers, one set of tests."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import InvalidInputError, Message, MessageCountReducer, TokenBudgetReducer, ToolCall, ToolResult
from memlab.messages import to_wire
from memlab.providers.reducers import group_messages
from memlab.tokens import count_message

MAKERS = {"message count": MessageCountReducer, "token budget": TokenBudgetReducer}


def size(reducer, messages):
    """How much of its limit the messages take."""
    if isinstance(reducer, MessageCountReducer):
        return len(messages)
    return sum(count_message(wire) for wire in to_wire(messages))


def limit(reducer):
    return getattr(reducer, "max_messages", None) or reducer.max_tokens


def reduce(reducer, messages):
    return asyncio.run(reducer.reduce(messages))


def tool_round(number, results):
    calls = [ToolCall(f"c{number}.{i}", "f") for i in range(results)]
    return [Message("assistant", calls), *(Message("tool", ToolResult(c.call_id, "ok")) for c in calls)]


words = st.sampled_from(["hi", "我叫张三", "a much longer message that takes more tokens than the others do"])
groups = st.one_of(
    st.builds(
        lambda role, text: [Message(role, text)], st.sampled_from(["user", "assistant", "system", "developer"]), words
    ),
    st.builds(tool_round, st.integers(0, 99), st.integers(1, 3)),
)
conversations = st.lists(groups, max_size=12).map(lambda parts: [message for part in parts for message in part])


@given(st.sampled_from(sorted(MAKERS)), st.integers(1, 80), conversations)
def test_the_invariants_of_a_reducer(name, maximum, messages):
    reducer = MAKERS[name](maximum)
    before = list(messages)
    kept = reduce(reducer, messages)
    assert messages == before

    # What is kept are the messages themselves, in their order; below the limit, all of them.
    positions = [next(i for i, m in enumerate(messages) if m is k) for k in kept]
    assert positions == sorted(set(positions))
    if size(reducer, messages) <= limit(reducer):
        assert kept == messages

    # A call and its results stay together or go together.
    for group in group_messages(messages):
        assert len({any(m is k for k in kept) for m in group}) == 1

    # System messages and the newest group are never dropped, and what is kept of the rest is the newest of it.
    system = [m for m in messages if m.role in ("system", "developer")]
    rest = [m for m in messages if m not in system]
    kept_rest = [k for k in kept if k.role not in ("system", "developer")]
    assert [k for k in kept if k.role in ("system", "developer")] == system
    assert kept_rest == rest[len(rest) - len(kept_rest) :]
    if rest:
        newest = group_messages(rest)[-1]
        assert kept[-len(newest) :] == newest or messages[-1].role in ("system", "developer")
        assert size(reducer, kept) <= limit(reducer) or kept_rest == newest


def test_an_older_message_is_never_kept_when_a_newer_one_is_dropped():
    messages = [Message("user", "hi"), *tool_round(1, 3), Message("user", "bye")]
    assert reduce(MessageCountReducer(4), messages) == messages[-1:]


def test_a_result_without_its_call_stands_alone():
    orphan = Message("tool", ToolResult("lost", "ok"))
    assert reduce(MessageCountReducer(1), [orphan, Message("user", "hi")]) == [Message("user", "hi")]


def test_the_budget_is_in_tokens_of_the_model():
    messages = [Message("user", "我叫张三"), Message("user", "我叫张三")]
    assert len(reduce(TokenBudgetReducer(16), messages)) == 2  # 8 tokens each
    assert len(reduce(TokenBudgetReducer(15), messages)) == 1
    assert len(reduce(TokenBudgetReducer(16, model="gpt-4"), messages)) == 1  # 9 tokens each


@pytest.mark.parametrize("make", MAKERS.values())
@pytest.mark.parametrize("bad", [0, -1, 1.5, "20", None])
def test_a_limit_is_a_positive_whole_number(make, bad):
    with pytest.raises(InvalidInputError, match="at least 1"):
        make(bad)


@pytest.mark.parametrize("make", MAKERS.values())
def test_nothing_stays_nothing(make):
    assert reduce(make(5), []) == []
