"""The trace: what was sent, by part, with tokens; what was searched and why it was kept or not."""

import numpy as np
import pytest

from memlab import InMemoryHistoryProvider, Message, MessageCountReducer, Trace, tool
from memlab.messages import to_wire
from memlab.tokens import count_chat
from memlab.trace import PARTS, Dropped, ModelCall, Search
from tests.providers.test_base import Reminder
from tests.support import ScriptedEndpoint, call

CANDIDATES = [Message("user", text) for text in ("a", "b", "c", "d")]


def search(**options):
    scores = np.array([0.1, 0.9, 0.5, 0.6], dtype=np.float32)
    return Search("memory", "q", CANDIDATES, scores, np.array([1, 3]), top_k=2, threshold=0.3, **options)


def test_a_search_says_why_each_candidate_was_kept_or_not():
    assert [search().why(i) for i in range(4)] == ["below the threshold 0.3", "kept", "beyond top 2", "kept"]


def test_a_search_as_a_table_is_best_first():
    frame = search().frame()
    assert frame["text"].tolist() == ["b", "d", "c", "a"]
    assert frame["kept"].tolist() == [True, True, False, False]
    assert frame["score"].tolist() == pytest.approx([0.9, 0.6, 0.5, 0.1])


async def test_every_part_of_a_request_has_its_source_and_its_tokens():
    endpoint = ScriptedEndpoint("hi", call("GetMenu"), "soup")
    agent = endpoint.agent(
        name="cook",
        instructions="Be brief.",
        tools=tool(name="GetMenu")(lambda: "soup"),
        context_providers=[Reminder()],
    )
    session = agent.create_session()
    await agent.run("hello", session=session)
    response = await agent.run("what is there?", session=session)
    trace = response.trace
    frame = trace.frame()
    assert frame["part"].tolist() == ["instructions", "history", "history", "input", "memories", "tools"]
    assert frame["source"].tolist() == ["external", "in_memory", "in_memory", "external", "reminder", "tools"]
    assert frame["text"].tolist()[-1] == "GetMenu"
    assert len(trace.calls) == 2
    for model_call in trace.calls:
        counted = count_chat(to_wire(model_call.messages), model_call.tools, model_call.model)
        assert sum(model_call.tokens_by_part().values()) + 3 == counted
    parts = trace.tokens_by_part()
    assert list(parts) == list(PARTS)
    assert all(parts.values())
    first = trace.calls[0].tokens_by_part()
    assert frame.groupby("part")["tokens"].sum().to_dict() == {part: count for part, count in first.items() if count}


@pytest.mark.parametrize("tools", [[], ["GetMenu"], ["GetMenu", "PlaceOrder"]], ids=str)
async def test_the_tokens_of_the_table_add_up_to_those_of_the_parts(tools):
    agent = ScriptedEndpoint("soup").agent(tools=[tool(name=name)(lambda: "soup") for name in tools])
    trace = (await agent.run("hello")).trace
    assert trace.frame()["tokens"].sum() == sum(trace.tokens_by_part().values())


async def test_what_a_reducer_dropped_stands_in_the_trace():
    endpoint = ScriptedEndpoint("one", "two", "three")
    history = InMemoryHistoryProvider(reducer=MessageCountReducer(2))
    agent = endpoint.agent(context_providers=[history])
    session = agent.create_session()
    for text in ("a", "b", "c"):
        response = await agent.run(text, session=session)
    (dropped,) = response.trace.dropped
    assert isinstance(dropped, Dropped)
    assert [message.text for message in dropped.messages] == ["a", "one"]
    assert (dropped.source_id, dropped.why) == ("in_memory", "MessageCountReducer")
    assert endpoint.sent() == [("user", "b"), ("assistant", "two"), ("user", "c")]


def test_an_empty_trace_has_empty_tables():
    assert len(Trace().frame()) == 0
    assert set(Trace().tokens_by_part().values()) == {0}
    assert ModelCall([]).tokens_by_part() == dict.fromkeys(PARTS, 0)
