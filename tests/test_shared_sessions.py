"""Several runs on one session: what is served in turn, what is refused, and what a closed stream says."""

import asyncio
import pickle
import threading

import pytest

import memlab
from memlab import Agent, AgentSession, InvalidInputError, MemlabError, Message, UsageDetails
from memlab.response import ChatReply


@pytest.fixture
def agent():
    return Agent(memlab.connect("offline").chat)


async def test_two_runs_at_once_on_a_session_that_the_service_keeps_lose_nothing():
    lab = memlab.connect("offline")
    served = memlab.OpenAIChatClient(lab.model, client_of=lambda: lab.client).as_agent()
    session = served.create_session()
    await asyncio.gather(served.run("My name is Anna", session=session), served.run("Hello", session=session))
    assert "Anna" in (await served.run("What is my name?", session=session)).text


@pytest.mark.parametrize("nested", ["await", "gather", "task"])
async def test_a_run_within_the_reading_of_a_stream_closes_it_and_says_so(agent, nested):
    session = agent.create_session()
    start = {
        "await": lambda: agent.run("Hello", session=session),
        "gather": lambda: asyncio.gather(agent.run("Hello", session=session)),
        "task": lambda: asyncio.ensure_future(agent.run("Hello", session=session)),
    }[nested]

    async def read_and_start() -> None:
        async for _ in agent.run("My name is Anna", session=session, stream=True):
            await asyncio.wait_for(start(), timeout=20)

    with pytest.raises(MemlabError, match="closed before its end"):
        await read_and_start()
    stored = [message.text for message in session.state["in_memory"]["messages"]]
    assert stored[0] == "Hello"


async def test_a_stream_that_was_given_up_ends_quietly(agent):
    stream = agent.run("My name is Anna", session=agent.create_session(), stream=True)
    await anext(stream)
    await stream.aclose()
    assert [update async for update in stream] == []


class Slow:
    """A client that takes its time."""

    async def complete(self, messages, tools, options, *, stream):
        await asyncio.sleep(0.3)
        yield ChatReply(Message("assistant", "done"), UsageDetails.of(1, 1))


def test_two_event_loops_at_once_on_one_session_are_refused():
    agent, session, outcomes = Agent(Slow()), AgentSession(), []

    def work():
        try:
            outcomes.append(asyncio.run(agent.run("hi", session=session)).text)
        except MemlabError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcome[:7] for outcome in outcomes) == ["another", "done"]


async def test_a_session_can_be_pickled_after_a_run(agent):
    session = agent.create_session()
    await agent.run("My name is Anna", session=session)
    twin = pickle.loads(pickle.dumps(session))
    assert "Anna" in (await agent.run("What is my name?", session=twin)).text


@pytest.mark.parametrize("name", ["messages", "stream", "tools", "input"])
def test_options_that_the_agent_sends_itself_are_refused(agent, name):
    with pytest.raises(InvalidInputError, match=name):
        agent.run("hi", options={name: []})
