"""One turn of a conversation: what is sent, what is stored, and what happens when something fails."""

import asyncio
import copy
import gc
import json
import logging
import pickle

import pytest

from memlab import (
    Agent,
    AgentRunError,
    ContextProvider,
    InMemoryHistoryProvider,
    InvalidInputError,
    InvalidTypeError,
    MemlabError,
    Message,
    MessageSource,
    OpenAIChatCompletionClient,
    ToolCall,
    tool,
)
from memlab.settings import Lab, read_settings
from tests.providers.test_base import Reminder
from tests.support import ScriptedEndpoint, call, failure, stable_id


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def stored(session):
    """What the history of a session holds, as (role, text)."""
    return [(m.role, m.text) for m in session.state.get("in_memory", {}).get("messages", [])]


async def read(stream, pieces):
    """The first pieces of a stream."""
    return [str(await anext(stream)) for _ in range(pieces)]


@pytest.fixture(params=[False, True], ids=["plain", "streamed"])
def run(request):
    """Runs an agent, plain and streamed: one pipeline, so one set of tests."""

    async def run(agent, messages=None, **options):
        if not request.param:
            return await agent.run(messages, **options)
        return await agent.run(messages, stream=True, **options).get_final_response()

    return run


# --- the story, with the classroom model ---


@pytest.mark.parametrize(
    ("fact", "question", "name"),
    [
        ("我叫张三", "我叫什么名字？", "张三"),
        ("My name is Alice.", "What is my name?", "Alice"),
        ("Меня зовут Анна.", "Как меня зовут?", "Анна"),
    ],
)
async def test_a_name_is_known_with_a_session_and_unknown_without(run, fact, question, name):
    agent = Lab(read_settings({}, {})).chat.as_agent(instructions="Answer briefly.")
    session = agent.create_session()
    await run(agent, fact, session=session)
    assert name in (await run(agent, question, session=session)).text
    await run(agent, fact)
    assert name not in (await run(agent, question)).text


# --- what the model gets ---


async def test_without_a_session_every_request_stands_alone(run):
    endpoint = ScriptedEndpoint()
    agent = endpoint.agent()
    await run(agent, "我叫张三")
    await run(agent, "我叫什么名字")
    assert endpoint.sent(0) == [("user", "我叫张三")]
    assert endpoint.sent(1) == [("user", "我叫什么名字")]


async def test_with_a_session_the_whole_conversation_goes_along(run):
    endpoint = ScriptedEndpoint("你好", "张三")
    agent = endpoint.agent(context_providers=[Reminder()])  # a provider of memories does not suppress the history
    session = agent.create_session()
    await run(agent, "我叫张三", session=session)
    response = await run(agent, "我叫什么名字", session=session)
    assert response.text.strip() == "张三"
    assert [(role, text.strip()) for role, text in endpoint.sent()] == [
        ("user", "我叫张三"),
        ("assistant", "你好"),
        ("user", "我叫什么名字"),
        ("user", "remember"),
    ]


@pytest.mark.parametrize("memory_first", [True, False])
@pytest.mark.parametrize(
    ("placement", "end"), [("after_input", ["new", "remember"]), ("before_input", ["remember", "new"])]
)
async def test_the_order_of_a_request(run, memory_first, placement, end):
    endpoint = ScriptedEndpoint("answer")
    providers = [Reminder(), InMemoryHistoryProvider()]
    providers = providers if memory_first else providers[::-1]
    agent = endpoint.agent(instructions="Be brief.", context_providers=providers, placement=placement)
    session = agent.create_session()
    await run(agent, "old", session=session)
    await run(agent, "new", session=session)
    assert [text.strip() for _, text in endpoint.sent()] == ["Be brief.", "old", "answer", *end]
    assert endpoint.sent()[0][0] == "system"


async def test_options_and_tools_of_agent_and_run_are_joined(run):
    endpoint = ScriptedEndpoint()
    agent = endpoint.agent(tools=add, default_options={"temperature": 0, "seed": 1})
    await run(agent, "hi", tools=tool(name="now")(lambda: "noon"), options={"seed": 2})
    request = endpoint.requests[0]
    assert (request["temperature"], request["seed"]) == (0, 2)
    assert [t["function"]["name"] for t in request["tools"]] == ["add", "now"]


async def test_the_callers_messages_never_change(run):
    messages = [Message("user", "hi", additional_properties={"a": 1}), Message("user", "there", message_id="m2")]
    before = copy.deepcopy(messages)
    agent = ScriptedEndpoint().agent()
    session = agent.create_session()
    response = await run(agent, messages, session=session)
    response.trace.sent[0].contents.clear()
    assert messages == before


async def test_the_history_does_not_change_with_a_response():
    agent = ScriptedEndpoint("answer").agent()
    session = agent.create_session()
    response = await agent.run("hi", session=session)
    response.messages[0].contents.clear()
    assert stored(session) == [("user", "hi"), ("assistant", "answer")]


async def test_a_lone_surrogate_is_sent_as_the_replacement_character(run):
    endpoint = ScriptedEndpoint()
    response = await run(endpoint.agent(), "hi \ud83d")
    assert endpoint.sent() == [("user", "hi \ufffd")]
    assert response.trace.sent[0].repaired


# --- what is stored ---


async def test_identical_exchanges_are_kept(run):
    endpoint = ScriptedEndpoint(*["pizza!"] * 3)
    agent = endpoint.agent()
    session = agent.create_session()
    for _ in range(3):
        await run(agent, "order a pizza", session=session)
    assert len(stored(session)) == 6
    assert len(endpoint.requests[2]["messages"]) == 5


async def test_a_message_of_the_same_id_is_stored_once(run):
    agent = ScriptedEndpoint("one", "two").agent()
    session = agent.create_session()
    message = Message("user", "hi", message_id="m1")
    await run(agent, message, session=session)
    await run(agent, message, session=session)
    assert [text.strip() for _, text in stored(session)] == ["hi", "one", "two"]


async def test_stored_and_loaded_messages_say_where_they_come_from(run):
    agent = ScriptedEndpoint("one").agent(name="cook")
    session = agent.create_session()
    await run(agent, "hi", session=session)
    response = await run(agent, "again", session=session)
    assert [m.source for m in response.trace.sent] == [
        MessageSource("history", "in_memory"),
        MessageSource("history", "in_memory"),
        MessageSource("external"),
    ]
    assert response.messages[0].source == MessageSource("model", "cook")
    assert response.messages[0].author_name == "cook"


@pytest.mark.parametrize("failing", ["the model", "a before-hook"])
async def test_a_run_that_fails_stores_nothing_and_frees_the_session(run, failing):
    class Broken(ContextProvider):
        async def before_run(self, *, agent, session, context, state):
            if failing == "a before-hook" and context.input_messages[0].text == "fail":
                raise RuntimeError("broken")

    endpoint = ScriptedEndpoint(*[failure(500)] if failing == "the model" else [])
    agent = endpoint.agent(context_providers=[Broken("broken")])
    session = agent.create_session()
    with pytest.raises(Exception, match=r"broken|no"):
        await run(agent, "fail", session=session)
    assert stored(session) == []
    await run(agent, "hi", session=session)
    assert [text.strip() for _, text in stored(session)] == ["hi", "ok"]


async def test_a_failing_after_hook_keeps_the_answer_and_is_logged_without_its_text(run, caplog):
    class Broken(ContextProvider):
        async def after_run(self, *, agent, session, context, state):
            raise RuntimeError("alice cannot eat spicy food")

    events = []
    agent = ScriptedEndpoint("yes").agent(context_providers=[Reminder("other", events), Broken("broken")])
    session = agent.create_session()
    with caplog.at_level(logging.DEBUG, logger="memlab.agent"):
        response = await run(agent, "hi", session=session)
    assert response.text.strip() == "yes"
    assert [(f.where, f.error) for f in response.trace.failures] == [("broken.after_run", "RuntimeError")]
    assert events[-1].startswith("after other")  # the other hooks still run
    assert len(stored(session)) == 2
    assert len([record for record in caplog.records if "broken.after_run" in record.getMessage()]) == 1
    assert "spicy" not in caplog.text


# --- streams ---


async def test_a_stream_gives_the_pieces_and_then_the_whole():
    agent = ScriptedEndpoint("one two three").agent()
    session = agent.create_session()
    stream = agent.run("hi", stream=True, session=session)
    pieces = [update.text async for update in stream]
    response = await stream.get_final_response()
    assert pieces == ["one ", "two ", "three "]
    assert response.text == "one two three "
    assert response.usage_details["total_token_count"] == 12
    assert len(stored(session)) == 2


@pytest.mark.parametrize("ask", ["close", "forget"])
async def test_an_abandoned_stream_stores_nothing_and_closes_its_connection(ask):
    endpoint = ScriptedEndpoint("one two three")
    agent = endpoint.agent()
    session = agent.create_session()
    stream = agent.run("hi", stream=True, session=session)
    await read(stream, 1)
    assert endpoint.open_streams == 1
    if ask == "close":
        await stream.aclose()
        with pytest.raises(MemlabError, match="closed before its end"):
            await stream.get_final_response()
    del stream
    async with asyncio.timeout(5):
        while endpoint.open_streams:
            await asyncio.sleep(0)
    assert stored(session) == []
    assert session.holder is None


async def test_an_abandoned_stream_does_not_block_the_next_run_of_the_same_task(run):
    endpoint = ScriptedEndpoint("one two three", "next")
    agent = endpoint.agent()
    session = agent.create_session()
    abandoned = agent.run("first", stream=True, session=session)
    await read(abandoned, 2)
    async with asyncio.timeout(5):
        await run(agent, "second", session=session)
    assert [text.strip() for _, text in stored(session)] == ["second", "next"]
    with pytest.raises(MemlabError, match="closed before its end"):
        await abandoned.get_final_response()


async def test_a_stream_whose_reader_has_ended_does_not_block_the_next_run(run):
    agent = ScriptedEndpoint("one two three", "next").agent()
    session = agent.create_session()
    abandoned = agent.run("first", stream=True, session=session)
    await asyncio.create_task(read(abandoned, 1))
    async with asyncio.timeout(5):
        await asyncio.create_task(run(agent, "second", session=session))
    assert [text.strip() for _, text in stored(session)] == ["second", "next"]


async def test_a_stream_that_nobody_holds_any_more_does_not_block_a_waiting_run():
    agent = ScriptedEndpoint("one two three", "next").agent()
    session = agent.create_session()
    stream = agent.run("first", stream=True, session=session)
    await read(stream, 1)
    waiting = asyncio.create_task(agent.run("second", session=session))
    await asyncio.sleep(0)
    assert not waiting.done()
    del stream
    gc.collect()
    async with asyncio.timeout(5):
        await waiting
    assert [text for _, text in stored(session)] == ["second", "next"]


async def test_runs_that_come_after_an_abandoned_stream_keep_their_order():
    endpoint = ScriptedEndpoint("one two three")
    agent = endpoint.agent()
    session = agent.create_session()
    abandoned = agent.run("first", stream=True, session=session)
    await asyncio.create_task(read(abandoned, 1))
    async with asyncio.timeout(5):
        await asyncio.gather(*(agent.run(text, session=session) for text in "abc"))
    assert [text for role, text in stored(session) if role == "user"] == ["a", "b", "c"]


# --- several runs at once ---


async def test_two_runs_at_once_on_one_session_are_served_in_call_order(run):
    busy = []

    async def slow(body):
        busy.append("+")
        await asyncio.sleep(0.01)
        busy.append("-")
        return "answer"

    endpoint = ScriptedEndpoint(slow, slow, slow)
    agent = endpoint.agent()
    session = agent.create_session()
    await asyncio.gather(*(run(agent, text, session=session) for text in ("first", "second", "third")))
    assert busy == ["+", "-"] * 3
    assert [text for role, text in stored(session) if role == "user"] == ["first", "second", "third"]
    assert len(endpoint.requests[2]["messages"]) == 5


async def test_runs_on_two_sessions_do_not_wait_for_each_other():
    both = asyncio.Barrier(2)

    async def meet(body):
        await both.wait()
        return "met"

    agent = ScriptedEndpoint(meet, meet).agent()
    async with asyncio.timeout(5):
        await asyncio.gather(*(agent.run("hi", session=agent.create_session()) for _ in range(2)))


async def test_a_cancelled_run_stores_nothing_and_frees_the_session(run):
    async def never(body):
        await asyncio.sleep(60)

    agent = ScriptedEndpoint(never, "yes").agent()
    session = agent.create_session()
    task = asyncio.create_task(run(agent, "first", session=session))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await run(agent, "second", session=session)
    assert [text.strip() for _, text in stored(session)] == ["second", "yes"]


def test_one_session_may_be_used_in_one_event_loop_after_another():
    endpoint = ScriptedEndpoint("one two", "next")
    session = endpoint.agent().create_session()

    async def abandon():
        await read(endpoint.agent().run("first", stream=True, session=session), 1)

    asyncio.run(abandon())
    asyncio.run(endpoint.agent().run("second", session=session))
    assert stored(session) == [("user", "second"), ("assistant", "next")]


@pytest.mark.parametrize("in_a_task", [False, True], ids=["same task", "new task"])
@pytest.mark.parametrize("place", ["tool", "before-hook", "after-hook"])
async def test_a_run_inside_a_run_on_the_same_session_is_a_clear_error(run, place, in_a_task):
    heard = []

    async def nested():
        try:
            inner = agent.run("inner", session=session)
            await (asyncio.create_task(inner) if in_a_task else inner)
        except MemlabError as error:
            heard.append(str(error))
            raise

    class Nesting(ContextProvider):
        async def before_run(self, **_):
            await (nested() if place == "before-hook" else asyncio.sleep(0))

        async def after_run(self, **_):
            await (nested() if place == "after-hook" else asyncio.sleep(0))

    replies = [call("ask")] if place == "tool" else []
    agent = ScriptedEndpoint(*replies).agent(tools=tool(name="ask")(nested), context_providers=[Nesting("nesting")])
    session = agent.create_session()
    async with asyncio.timeout(5):
        try:
            await run(agent, "outer", session=session)
        except MemlabError:
            assert place == "before-hook"
    assert heard == ["a run on this session started another one inside itself; give it its own session"]


async def test_a_run_inside_a_run_may_use_its_own_session(run):
    async def ask():
        return (await agent.run("inner", session=agent.create_session())).text

    endpoint = ScriptedEndpoint(call("ask"), "inner answer", "outer answer")
    agent = endpoint.agent(tools=ask)
    assert (await run(agent, "outer", session=agent.create_session())).text.strip() == "outer answer"
    assert endpoint.sent()[-1] == ("tool", "inner answer")


# --- tools ---


async def test_the_tool_loop_runs_several_rounds_and_parallel_calls(run):
    rounds = [[call("add", "c1", a=1, b=2), call("add", "c2", a=3, b=4)], call("add", "c3", a=3, b=7), "10"]
    endpoint = ScriptedEndpoint(*rounds)
    agent = endpoint.agent(tools=add)
    session = agent.create_session()
    response = await run(agent, "add them", session=session)
    assert response.text.strip() == "10"
    assert [m.role for m in response.messages] == ["assistant", "tool", "assistant", "tool", "assistant"]
    assert [(r.name, r.result) for r in response.trace.tool_runs] == [("add", "3"), ("add", "7"), ("add", "10")]
    wire = endpoint.requests[-1]["messages"]
    assert [m.get("tool_call_id") for m in wire] == [None, None, "c1", "c2", None, "c3"]
    assert [c["id"] for c in wire[1]["tool_calls"]] == ["c1", "c2"]
    assert json.loads(wire[1]["tool_calls"][0]["function"]["arguments"]) == {"a": 1, "b": 2}
    await run(agent, "thanks", session=session)
    assert endpoint.requests[-1]["messages"][: len(wire)] == wire  # the history keeps calls and results together


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (call("fail"), "the kitchen is closed"),
        (call("add", a="many", b=1), "a: Input should be a valid integer"),
        (call("multiply"), "there is no tool 'multiply'"),
        (ToolCall("call_1", "add", "{broken"), "not JSON"),
    ],
)
async def test_what_goes_wrong_in_a_tool_is_told_to_the_model(run, asked, told):
    def fail():
        raise RuntimeError("the kitchen is closed")

    endpoint = ScriptedEndpoint(asked, "sorry")
    response = await run(endpoint.agent(tools=[add, fail]), "do it")
    assert response.text.strip() == "sorry"
    assert told in endpoint.sent()[-1][1]
    assert response.trace.tool_runs[0].is_error


async def test_the_number_of_tool_rounds_is_limited(run):
    times = []
    endpoint = ScriptedEndpoint(*[call("count")] * 9)
    agent = endpoint.agent(tools=tool(name="count")(lambda: times.append(1)), max_tool_rounds=2)
    session = agent.create_session()
    with pytest.raises(AgentRunError, match=r"2 rounds.*count, count") as failed:
        await run(agent, "go on", session=session)
    assert failed.value.tools_run == ["count", "count"]
    assert (len(times), len(endpoint.requests)) == (2, 3)
    assert stored(session) == []


async def test_an_error_of_a_later_model_call_names_the_tools_that_ran(run):
    agent = ScriptedEndpoint(call("add", a=1, b=2), failure(500)).agent(tools=add)
    session = agent.create_session()
    with pytest.raises(AgentRunError, match="InternalServerError; tools that already ran: add") as failed:
        await run(agent, "add them", session=session)
    assert failed.value.tools_run == ["add"]
    assert failed.value.__cause__ is not None
    assert stored(session) == []


# --- usage ---


async def test_usage_adds_up_over_the_calls_of_a_turn(run):
    response = await run(ScriptedEndpoint(call("add", a=1, b=2), "3").agent(tools=add), "add them")
    assert response.usage_details == {"input_token_count": 20, "output_token_count": 4, "total_token_count": 24}
    assert not response.usage_details.estimated
    assert [c.usage["input_token_count"] for c in response.trace.calls] == [10, 10]


async def test_usage_that_is_not_reported_is_estimated_and_says_so(run):
    response = await run(ScriptedEndpoint(call("add", a=1, b=2), "3", usage=False).agent(tools=add), "add them")
    assert response.usage_details.estimated
    assert response.usage_details["input_token_count"] > 20
    assert all(model_call.usage["output_token_count"] > 0 for model_call in response.trace.calls)


# --- bad input ---


@pytest.mark.parametrize(
    ("options", "named"), [({"placement": "on top"}, "'on top'"), ({"max_tool_rounds": 0}, "max_tool_rounds is 0")]
)
def test_an_agent_refuses_settings_that_make_no_sense(options, named):
    with pytest.raises(InvalidInputError, match=named):
        ScriptedEndpoint().agent(**options)


class Nameless(ContextProvider):
    def __init__(self):
        pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"client": None}, r"client is None.*OpenAIChatCompletionClient\(\) or connect\(\)\.chat"),
        ({"client": "gpt-4o-mini"}, r"client is 'gpt-4o-mini'.*connect\(\)\.chat"),
        ({"client": OpenAIChatCompletionClient}, r"client is <class.*OpenAIChatCompletionClient\(\)"),
        ({"instructions": 5}, "instructions is 5.*a string or None"),
        ({"name": 5}, "name is 5.*a string or None"),
        ({"description": ["a cook"]}, r"description is \['a cook'\].*a string or None"),
        ({"id": 5}, "id is 5.*a string or None"),
        ({"default_options": "seed"}, "default_options is 'seed'.*a dictionary or None"),
        ({"max_tool_rounds": "3"}, "max_tool_rounds is '3'.*a whole number"),
        ({"max_tool_rounds": True}, "max_tool_rounds is True.*a whole number"),
        ({"context_providers": Reminder()}, "context_providers is .*Reminder.*a list of providers"),
        ({"context_providers": [None]}, "context provider is None.*ContextProvider"),
        ({"context_providers": ["memory"]}, "context provider is 'memory'.*ContextProvider"),
        ({"context_providers": [Reminder]}, "context provider is <class.*an object"),
        ({"context_providers": [Nameless()]}, r"Nameless\.source_id is None.*super\(\)"),
    ],
    ids=stable_id,
)
def test_an_agent_refuses_arguments_of_another_type_and_says_what_to_pass(options, said):
    with pytest.raises(InvalidTypeError, match=said):
        Agent(**{"client": ScriptedEndpoint().client, **options})


async def test_a_run_refuses_input_that_makes_no_sense(run):
    agent = ScriptedEndpoint().agent(instructions="Be brief.", tools=add)
    with pytest.raises(InvalidInputError, match="nothing to send"):
        await run(agent)
    with pytest.raises(InvalidTypeError, match="int"):
        await run(agent, 5)
    with pytest.raises(InvalidTypeError, match=r'Message\("user", "…"\)'):
        await run(agent, {"role": "user", "content": "hi"})
    with pytest.raises(InvalidTypeError, match=r"options is 'seed'.*a dictionary"):
        await run(agent, "hi", options="seed")
    with pytest.raises(InvalidTypeError, match="create_session"):
        await run(agent, "hi", session="lesson")
    with pytest.raises(InvalidInputError, match="two tools are called add"):
        await run(agent, "hi", tools=[add])


async def test_a_client_that_ends_without_a_reply_is_named(run):
    class Silent:
        async def complete(self, messages, tools, options, *, stream):
            yield "half"

    with pytest.raises(MemlabError, match=r"Silent\.complete ended without a ChatReply"):
        await run(Agent(Silent()), "hi")


async def test_history_alone_may_be_sent_again(run):
    endpoint = ScriptedEndpoint("one", "two")
    agent = endpoint.agent()
    session = agent.create_session()
    await run(agent, "hi", session=session)
    await run(agent, session=session)
    assert [text.strip() for _, text in stored(session)] == ["hi", "one", "two"]


def test_the_error_of_a_run_comes_back_whole_from_another_process():
    error = pickle.loads(pickle.dumps(AgentRunError("no", ["order"])))
    assert (str(error), error.tools_run) == ("no; tools that already ran: order", ["order"])
