"""A history that the service keeps: who keeps it when, and that the trace says so (SPEC 2, clients)."""

import json

import httpx2
import openai
import pytest

from memlab import (
    Agent,
    AgentSession,
    ChatReply,
    FileHistoryProvider,
    InMemoryHistoryProvider,
    InvalidInputError,
    Message,
    OpenAIChatClient,
    OpenAIChatCompletionClient,
    ToolCall,
    UsageDetails,
    connect,
    tool,
)
from memlab.offline.transport import OFFLINE_URL, OfflineTransport
from tests.providers.test_base import Reminder
from tests.support import ScriptedEndpoint


class Service:
    """A chat client whose service keeps the history; keeps what it was asked, and answers from a script."""

    stores_history = True

    def __init__(self, *replies):
        self.replies = list(replies)
        self.requests = []  # (texts of the messages, options)

    async def complete(self, messages, tools, options, *, stream):
        self.requests.append(([m.text for m in messages], dict(options)))
        reply = self.replies.pop(0) if self.replies else "ok"
        if isinstance(reply, Exception):
            raise reply
        if stream and isinstance(reply, str):
            yield reply
        number = len(self.requests)
        yield ChatReply(Message("assistant", reply), UsageDetails(), "stop", "service", f"resp_{number}")

    def options(self, request=-1):
        return self.requests[request][1]


class Recorded(httpx2.AsyncBaseTransport):
    """The classroom endpoint, with the bodies of the requests."""

    def __init__(self):
        self.endpoint, self.requests = OfflineTransport(), []

    async def handle_async_request(self, request):
        self.requests.append(json.loads(await request.aread()))
        return await self.endpoint.handle_async_request(request)

    @property
    def client(self):
        http = httpx2.AsyncClient(transport=self, trust_env=False)
        official = openai.AsyncOpenAI(api_key="x", base_url=OFFLINE_URL, http_client=http, max_retries=0)
        return OpenAIChatClient("classroom-128k", async_client=official)


@pytest.fixture(params=[False, True], ids=["plain", "streamed"])
def run(request):
    """Runs an agent, plain and streamed."""

    async def run(agent, text, session=None, **options):
        if not request.param:
            return await agent.run(text, session=session, **options)
        return await agent.run(text, session=session, stream=True, **options).get_final_response()

    return run


def local(session, source_id="in_memory"):
    """What a local history holds of a session."""
    return [m.text for m in session.state.get(source_id, {}).get("messages", [])]


# --- who keeps the history ---


async def test_2_without_a_history_provider_the_service_keeps_the_history(run):
    service = Service("one", "two")
    agent = Agent(service, "Be brief.")
    session = agent.create_session()
    await run(agent, "first", session)
    assert session.service_session_id == "resp_1"
    await run(agent, "second", session)
    assert session.service_session_id == "resp_2"
    assert service.requests == [
        (["Be brief.", "first"], {"store": True}),
        (["Be brief.", "second"], {"store": True, "previous_response_id": "resp_1"}),
    ]
    assert local(session) == []


async def test_2_a_loading_provider_of_ones_own_asks_the_service_not_to_store(run):
    service = Service("one", "two")
    agent = Agent(service, context_providers=[InMemoryHistoryProvider()])
    session = agent.create_session()
    await run(agent, "first", session)
    response = await run(agent, "second", session)
    assert service.requests == [(["first"], {"store": False}), (["first", "one", "second"], {"store": False})]
    assert (session.service_session_id, response.trace.notes) == (None, [])
    assert local(session) == ["first", "one", "second", "two"]


async def test_2_store_true_lets_the_local_provider_stand_aside_from_the_first_turn(run):
    service = Service("one", "two")
    agent = Agent(service, context_providers=[InMemoryHistoryProvider("mine"), Reminder()])
    session = agent.create_session()
    first = await run(agent, "first", session, options={"store": True})
    second = await run(agent, "second", session)
    assert [texts for texts, _ in service.requests] == [["first", "remember"], ["second", "remember"]]
    assert service.options() == {"store": True, "previous_response_id": "resp_1"}
    assert local(session, "mine") == []
    for response in (first, second):
        assert response.trace.notes == ["the service keeps the history; mine stands aside"]


async def test_2_an_agent_may_say_store_true_for_all_its_runs(run):
    service = Service()
    agent = Agent(service, context_providers=[InMemoryHistoryProvider()], default_options={"store": True})
    session = agent.create_session()
    response = await run(agent, "first", session)
    assert (service.options(), local(session)) == ({"store": True}, [])
    assert len(response.trace.notes) == 1


async def test_2_a_service_id_lets_the_local_provider_stand_aside_from_the_first_turn(run, tmp_path):
    service = Service()
    history = FileHistoryProvider(tmp_path)
    agent = Agent(service, context_providers=[history])
    session = agent.get_session(service_session_id="resp_from_before")
    response = await run(agent, "go on", session)
    assert service.requests == [(["go on"], {"store": True, "previous_response_id": "resp_from_before"})]
    assert await history.get_messages(session.session_id) == []
    assert response.trace.notes == ["the service keeps the history; file_history stands aside"]


async def test_2_a_provider_that_only_stores_never_stands_aside(run):
    audit = InMemoryHistoryProvider("audit", load_messages=False)
    service = Service("one", "two")
    agent = Agent(service, context_providers=[audit])
    session = agent.create_session()
    await run(agent, "first", session)
    await run(agent, "second", session)
    assert session.service_session_id == "resp_2"
    assert local(session, "audit") == ["first", "one", "second", "two"]


async def test_2_without_a_session_nothing_is_kept_by_anyone(run):
    service = Service()
    agent = Agent(service)
    await run(agent, "first")
    await run(agent, "second")
    assert service.requests == [(["first"], {"store": False}), (["second"], {"store": False})]


async def test_2_store_false_keeps_the_history_here(run):
    service = Service("one")
    agent = Agent(service)
    session = agent.create_session()
    await run(agent, "first", session, options={"store": False})
    await run(agent, "second", session, options={"store": False})
    assert service.requests[1] == (["first", "one", "second"], {"store": False})
    assert session.service_session_id is None


async def test_2_a_run_that_fails_leaves_the_conversation_where_it_was(run):
    service = Service("one", RuntimeError("down"), "three")
    agent = Agent(service)
    session = agent.create_session()
    await run(agent, "first", session)
    with pytest.raises(RuntimeError, match="down"):
        await run(agent, "second", session)
    assert session.service_session_id == "resp_1"
    await run(agent, "third", session)
    assert service.options() == {"store": True, "previous_response_id": "resp_1"}


async def test_2_a_tool_loop_sends_the_service_only_what_is_new(run):
    add = tool(name="add")(lambda: "3")
    service = Service(ToolCall("c1", "add"), ToolCall("c2", "add"), "3")
    agent = Agent(service, "Be brief.", tools=add)
    session = agent.create_session()
    await run(agent, "add them", session)
    assert [texts for texts, _ in service.requests] == [["Be brief.", "add them"], ["Be brief.", ""], ["Be brief.", ""]]
    ids = [options.get("previous_response_id") for _, options in service.requests]
    assert ids == [None, "resp_1", "resp_2"]
    assert session.service_session_id == "resp_3"


async def test_2_store_false_is_refused_where_the_service_has_the_history_already(run):
    service = Service()
    agent = Agent(service)
    session = agent.get_session(service_session_id="resp_1")
    with pytest.raises(InvalidInputError, match="store=False"):
        await run(agent, "off the record", session, options={"store": False})
    assert service.requests == []


# --- a client that can't serve the id ---


async def test_2_a_service_id_on_a_client_that_cannot_serve_it_names_the_one_that_can(run):
    endpoint = ScriptedEndpoint()
    agent = endpoint.agent()
    session = agent.get_session(service_session_id="resp_1")
    with pytest.raises(InvalidInputError, match=r"'resp_1'.*OpenAIChatCompletionClient.*use OpenAIChatClient"):
        await run(agent, "hi", session)
    assert (endpoint.requests, session.service_session_id) == ([], "resp_1")


@pytest.mark.parametrize("service_session_id", ["", "  ", 5])
def test_2_a_service_id_is_a_name(service_session_id):
    with pytest.raises(InvalidInputError, match="service_session_id"):
        AgentSession(service_session_id=service_session_id)


# --- the same with the real client and the classroom endpoint ---


async def test_2_the_service_remembers_for_a_session_that_another_process_resumed(run):
    recorded = Recorded()
    agent = recorded.client.as_agent(instructions="Be brief.")
    session = agent.create_session()
    await run(agent, "My name is Alice.", session)
    stored = json.loads(json.dumps(session.to_dict()))
    assert "Alice" not in json.dumps(stored)  # what it said is with the service
    resumed = AgentSession.from_dict(stored)
    assert "Alice" in (await run(recorded.client.as_agent(), "What is my name?", resumed)).text
    assert len(recorded.requests[-1]["input"]) == 1
    assert recorded.requests[-1]["previous_response_id"] == session.service_session_id


async def test_2_a_local_history_and_the_service_give_the_same_answers(run):
    recorded, answers = Recorded(), []
    for providers in ([], [InMemoryHistoryProvider()]):
        agent = recorded.client.as_agent(context_providers=providers)
        session = agent.create_session()
        await run(agent, "My name is Alice.", session)
        answers.append((await run(agent, "What is my name?", session)).text)
    assert answers[0] == answers[1]
    assert [request["store"] for request in recorded.requests] == [True, True, False, False]


# --- the four snippets, unchanged but for the import ---


@pytest.fixture
def offline(monkeypatch):
    """What a client without arguments follows."""
    monkeypatch.setattr("memlab.settings._current", None)
    connect("offline")


@pytest.mark.usefixtures("offline")
async def test_snippet_a_a_history_provider_of_ones_own():
    agent = OpenAIChatClient().as_agent(
        name="ConversationAgent",
        instructions="You are a friendly assistant.",
        context_providers=[InMemoryHistoryProvider("memory", load_messages=True)],
    )
    session = agent.create_session()
    await agent.run("Remember that I like Italian food.", session=session)
    response = await agent.run("What food do I like?", session=session)
    assert "Italian" in response.text
    assert "Italian" not in (await agent.run("What food do I like?", session=agent.create_session())).text


@pytest.mark.usefixtures("offline")
async def test_snippet_b_a_history_that_the_service_keeps(capsys):
    agent = OpenAIChatClient().as_agent(
        name="ConversationAgent",
        instructions="You are a friendly assistant.",
    )
    session = agent.create_session()
    await agent.run("Remember that I like Italian food.", session=session)
    print(session.service_session_id)
    session = agent.get_session(service_session_id=session.service_session_id)
    response = await agent.run("Continue this conversation.", session=session)
    assert capsys.readouterr().out.startswith("resp_")
    assert response.text
    assert "Italian" in (await agent.run("What food do I like?", session=session)).text


@pytest.mark.usefixtures("offline")
async def test_snippet_c_per_service_call_persistence():
    agent = Agent(
        client=OpenAIChatCompletionClient(),
        context_providers=[InMemoryHistoryProvider("memory", load_messages=True)],
        require_per_service_call_history_persistence=True,
    )
    session = agent.create_session()
    await agent.run("Remember that I like Italian food.", session=session)
    assert "Italian" in (await agent.run("What food do I like?", session=session)).text
    assert len(session.state["memory"]["messages"]) == 4
