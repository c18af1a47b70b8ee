"""memlab's providers inside the real Agent Framework, over a port that answers like the real API."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

import memlab
from memlab import (
    EVERYONE,
    ChatHistoryMemoryProvider,
    ChatHistoryMemoryProviderOptions,
    InMemoryHistoryProvider,
    InMemoryVectorStore,
    MemoryScope,
    SearchTime,
    State,
)
from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.offline.server import Server
from memlab.providers.tracking import ContextTrackingProvider
from memlab.tools import record_event, tool
from memlab.trace import Event

af = pytest.importorskip("agent_framework", reason="needs the extra agent-framework")

from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient  # noqa: E402

from memlab.interop.agent_framework import adapt, adapt_tool, to_message, trace_of  # noqa: E402

FACT, QUESTION = "My favourite colour is green.", "What is my favourite colour?"
ON_DEMAND = {"search_time": SearchTime.ON_DEMAND_FUNCTION_CALLING}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(port=0) as running:
        yield running


class Wire:
    """An endpoint with a record of what was sent to it, and a store that is embedded by it."""

    def __init__(self, server: Server) -> None:
        self.requests: list[dict[str, Any]] = []
        http = httpx2.AsyncClient(event_hooks={"request": [self._keep]}, trust_env=False)
        self.official = openai.AsyncOpenAI(base_url=server.url, api_key="x", http_client=http, max_retries=0)
        embedding = openai.OpenAI(base_url=server.url, api_key="x", max_retries=0)
        self.store = InMemoryVectorStore(memlab.OpenAIEmbedder(embedding, "use-multilingual"))

    async def _keep(self, request: httpx2.Request) -> None:
        self.requests.append(json.loads(await request.aread()))

    def client(self, kind: type = OpenAIChatCompletionClient) -> Any:
        return kind(model="classroom-128k", async_client=self.official)

    def memory(self, store: Any = None, **options: Any) -> ChatHistoryMemoryProvider:
        return ChatHistoryMemoryProvider(
            store or self.store,
            "chat_history_memory",
            512,
            lambda session: State(MemoryScope(user_id=session.state["user_id"])),
            ChatHistoryMemoryProviderOptions(**options),
        )

    def agent(self, *providers: Any, **options: Any) -> Any:
        return af.Agent(client=self.client(), name="assistant", context_providers=list(providers), **options)

    def sent(self, request: int = -1) -> list[tuple[str, str]]:
        return [(m["role"], _text(m["content"])) for m in self.requests[request]["messages"]]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content or ())


@pytest.fixture
def wire(server: Server) -> Wire:
    return Wire(server)


def session_of(agent: Any, user_id: str) -> Any:
    session = agent.create_session()
    session.state["user_id"] = user_id
    return session


class BrokenStore(InMemoryVectorStore):
    """Fails as a database does that went away."""

    def search(self, *args: Any, **options: Any) -> Any:
        raise ConnectionError("alice likes green")

    upsert = search


# --- recall ---


@pytest.mark.parametrize("stream", [False, True])
async def test_one_user_is_remembered_across_sessions_and_another_is_not(wire: Wire, stream: bool) -> None:
    agent = wire.agent(adapt(wire.memory()))

    async def ask(text: str, user_id: str) -> Any:
        run = agent.run(text, session=session_of(agent, user_id), stream=stream)
        return await run.get_final_response() if stream else await run

    await ask(FACT, "alice")
    own, others = await ask(QUESTION, "alice"), await ask(QUESTION, "bob")
    assert "green" in own.text
    assert "green" not in others.text
    (search,) = trace_of(own).searches
    assert search.candidates[search.kept[0]].text == FACT
    assert not trace_of(others).searches[0].candidates
    stored = wire.store.scan("chat_history_memory", scope=MemoryScope(user_id="alice"))
    assert [(r.role, r.author) for r in stored] == [("assistant", "assistant"), ("user", None)] * 2


async def test_memories_stand_where_the_host_puts_them(wire: Wire) -> None:
    agent = wire.agent(adapt(wire.memory()))
    await agent.run(FACT, session=session_of(agent, "alice"))
    await agent.run(QUESTION, session=session_of(agent, "alice"))
    (memories, question) = wire.sent()
    assert memories[1].startswith("## Memories\nConsider the following memories when answering user questions:\n")
    assert memories[0] == "user"
    assert FACT in memories[1]
    assert question == ("user", QUESTION)


async def test_search_on_demand_reaches_the_wire_and_answers(wire: Wire) -> None:
    agent = wire.agent(adapt(wire.memory(**ON_DEMAND)))
    await agent.run(FACT, session=session_of(agent, "alice"))
    response = await agent.run(QUESTION, session=session_of(agent, "alice"))
    first, second = wire.requests[-2:]
    (offered,) = first["tools"]
    assert offered["function"] == {
        "name": "Search",
        "description": "Allows searching for related previous chat history to help answer the user question.",
        "parameters": {
            "type": "object",
            "properties": {"userQuestion": {"type": "string"}},
            "required": ["userQuestion"],
        },
    }
    assert [m["role"] for m in first["messages"]] == ["user"]
    assert second["messages"][-1]["role"] == "tool"
    assert FACT in _text(second["messages"][-1]["content"])
    assert "green" in response.text
    (run,) = trace_of(response).tool_runs
    assert (run.name, run.is_error) == ("Search", False)
    assert json.loads(run.arguments)["userQuestion"]
    assert FACT in run.result


async def test_search_on_demand_finds_nothing_of_another_user(wire: Wire) -> None:
    agent = wire.agent(adapt(wire.memory(**ON_DEMAND)))
    await agent.run(FACT, session=session_of(agent, "alice"))
    response = await agent.run(QUESTION, session=session_of(agent, "bob"))
    assert [run.result for run in trace_of(response).tool_runs] == [""]
    assert "green" not in response.text


async def test_the_responses_client_works_too(wire: Wire) -> None:
    agent = af.Agent(client=wire.client(OpenAIChatClient), context_providers=[adapt(wire.memory())])
    await agent.run(FACT, session=session_of(agent, "alice"))
    assert "green" in (await agent.run(QUESTION, session=session_of(agent, "alice"))).text


async def test_without_a_session_the_state_initializer_says_what_it_misses(wire: Wire) -> None:
    with pytest.raises(KeyError, match="user_id"):
        await wire.agent(adapt(wire.memory())).run(FACT)


# --- failures ---


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failing_store_does_not_lose_the_answer(
    wire: Wire, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    agent = wire.agent(adapt(wire.memory(BrokenStore(wire.store.embedder))))
    with caplog.at_level(logging.DEBUG, "memlab"):
        run = agent.run("我叫张三", session=session_of(agent, "alice"), stream=stream)
        response = await run.get_final_response() if stream else await run
    assert "张三" in response.text
    assert [(f.where, f.error) for f in trace_of(response).failures] == [
        ("ChatHistoryMemoryProvider.search", "ConnectionError"),
        ("ChatHistoryMemoryProvider.write", "ConnectionError"),
    ]
    logged = [r.getMessage() for r in caplog.records if r.name.startswith("memlab")]
    assert logged
    assert not any(word in line for line in logged for word in ("alice", "green", "张三"))


async def test_any_failing_after_hook_does_not_lose_the_answer(wire: Wire) -> None:
    class Broken(memlab.ContextProvider):
        async def after_run(self, **_: Any) -> None:
            raise OSError("disk full")

    response = await wire.agent(adapt(Broken("broken"))).run("我叫张三")
    assert "张三" in response.text
    assert [(f.where, f.error) for f in trace_of(response).failures] == [("broken.after_run", "OSError")]


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
async def test_blank_input_is_neither_searched_nor_stored(wire: Wire, text: str) -> None:
    agent = wire.agent(adapt(wire.memory()))
    await agent.run(FACT, session=session_of(agent, "alice"))
    response = await agent.run(text, session=session_of(agent, "alice"))
    assert not trace_of(response).searches
    stored = wire.store.scan("chat_history_memory", scope=EVERYONE)
    assert [record.text for record in stored if record.role == "user"] == [FACT]


async def test_an_image_beside_the_text_is_left_out_of_memory(wire: Wire) -> None:
    agent = wire.agent(adapt(wire.memory()))
    image = af.Content.from_uri("data:image/png;base64,AAAA", media_type="image/png")
    await agent.run(af.Message("user", [FACT, image]), session=session_of(agent, "alice"))
    assert FACT in [record.text for record in wire.store.scan("chat_history_memory", scope=EVERYONE)]


# --- sessions and history ---


async def test_the_scopes_survive_their_session(wire: Wire, tmp_path: Path) -> None:
    agent = wire.agent(adapt(wire.memory()))
    session = session_of(agent, "alice")
    await agent.run(FACT, session=session)
    (tmp_path / "session.json").write_text(json.dumps(session.to_dict()), encoding="utf-8")
    restored = af.AgentSession.from_dict(json.loads((tmp_path / "session.json").read_text(encoding="utf-8")))
    state = restored.state["ChatHistoryMemoryProvider"]["state"]
    assert state == State(MemoryScope(user_id="alice"))
    del restored.state["user_id"]  # the scopes are those that were kept, not made again
    assert "green" in (await agent.run(QUESTION, session=restored)).text


async def test_what_the_history_sends_is_left_out_of_the_memories(wire: Wire) -> None:
    agent = wire.agent(af.InMemoryHistoryProvider(), adapt(wire.memory(exclude_loaded=True, max_results=9)))
    session = session_of(agent, "alice")
    await agent.run(FACT, session=session)
    response = await agent.run(QUESTION, session=session)
    assert [text for _, text in wire.sent()].count(FACT) == 1
    assert not trace_of(response).searches[0].candidates
    elsewhere = await agent.run(QUESTION, session=session_of(agent, "alice"))
    assert len(trace_of(elsewhere).searches[0].kept) == 4


async def test_the_same_words_said_again_stay_in_the_history_of_the_host(wire: Wire) -> None:
    agent = wire.agent(af.InMemoryHistoryProvider(), adapt(ContextTrackingProvider(write=lambda line: None)))
    session = agent.create_session()
    mine = af.Message("user", ["I order the soup."])
    for _ in range(3):
        await agent.run(mine.text, session=session)
    assert len(session.state["in_memory"]["messages"]) == 6
    await agent.run(mine, session=session)
    assert mine.message_id is None  # the caller's object is as it was


async def test_the_tracking_provider_shows_their_messages_and_tools(wire: Wire) -> None:
    lines: list[str] = []
    agent = wire.agent(adapt(wire.memory(**ON_DEMAND)), adapt(ContextTrackingProvider(write=lines.append)))
    await agent.run(FACT, session=session_of(agent, "alice"))
    rule = "-" * 20
    assert lines[:3] == [f"{rule} Message 1 {rule}", "Role: user", f"Text: {FACT}"]
    assert lines[3] == f"{rule} Tool Search {rule}"
    assert '"userQuestion"' in lines[-1]


# --- tools and events ---


def place_order() -> str:
    """Place an order."""
    record_event("order", "ordered soup")
    return "done"


def fail_after_ordering() -> str:
    """Place an order, or not."""
    record_event("order", "ordered soup")
    raise RuntimeError("the kitchen is closed")


@tool(name="order_event", description="Place an order.")
async def order_event() -> Event:
    return Event("order", "ordered soup")


async def run_tool(wire: Wire, made: Any, *providers: Any, name: str) -> Any:
    agent = wire.agent(*(providers or (adapt(wire.memory()),)), tools=[made])
    options = {"tool_choice": {"mode": "required", "required_function_name": name}}
    return await agent.run("Please order for me.", session=session_of(agent, "alice"), options=options)


def orders(wire: Wire) -> list[tuple[str, str | None]]:
    return [(r.text, r.author) for r in wire.store.scan("chat_history_memory", scope=EVERYONE, kind="order")]


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (place_order, "place_order"),
        (adapt_tool(tool(place_order)), "place_order"),
        (adapt_tool(order_event), "order_event"),
    ],
)
async def test_events_of_a_tool_are_stored_in_the_scope_of_the_user(wire: Wire, made: Any, name: str) -> None:
    response = await run_tool(wire, made, name=name)
    assert orders(wire) == [("ordered soup", name)]
    assert wire.store.count("chat_history_memory", scope=MemoryScope(user_id="bob")) == 0
    assert trace_of(response).tool_runs[0].events == (Event("order", "ordered soup"),)


@pytest.mark.parametrize("made", [fail_after_ordering, adapt_tool(tool(fail_after_ordering))])
async def test_events_of_a_tool_that_failed_are_not_stored(wire: Wire, made: Any) -> None:
    response = await run_tool(wire, made, name="fail_after_ordering")
    assert orders(wire) == []
    (run,) = trace_of(response).tool_runs
    assert (run.is_error, run.events) == (True, ())
    assert response.text


async def test_two_memories_both_hear_of_an_event_and_a_tool_runs_once(wire: Wire) -> None:
    second = InMemoryVectorStore(wire.store.embedder)
    both = adapt(wire.memory()), adapt(wire.memory(second, state_key="second"))
    response = await run_tool(wire, place_order, *both, name="place_order")
    assert orders(wire) == [("ordered soup", "place_order")]
    assert [r.text for r in second.scan("chat_history_memory", scope=EVERYONE, kind="order")] == ["ordered soup"]
    assert len(trace_of(response).tool_runs) == 1


async def test_an_event_without_a_provider_fails_and_says_so_to_the_model(wire: Wire) -> None:
    made = adapt_tool(order_event)
    with pytest.raises(InvalidInputError, match="record_event works within a tool that an agent runs"):
        await made.invoke(arguments={})


async def test_an_adapted_tool_checks_its_arguments_as_it_does_in_memlab() -> None:
    @tool
    def double(number: int) -> int:
        return 2 * number

    made = adapt_tool(double)
    assert made.parameters() == double.parameters
    assert (await made.invoke(arguments={"number": 4}))[0].text == "8"
    with pytest.raises(InvalidInputError, match="bad arguments for double"):
        await made.invoke(arguments={"number": 4, "extra": 1})


# --- what is refused ---


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: adapt(InMemoryHistoryProvider()), InvalidInputError, "InMemoryHistoryProvider keeps history"),
        (lambda: adapt("memory"), InvalidTypeError, "provider is a str"),
        (lambda: adapt_tool(place_order), InvalidTypeError, "tool is a function"),
    ],
)
def test_what_cant_be_adapted_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_arguments_of_a_call_are_kept_however_they_come() -> None:
    for arguments in ('{"dish": "汤"}', {"dish": "汤"}):
        made = to_message(af.Message("assistant", [af.Content.from_function_call("1", "order", arguments=arguments)]))
        assert json.loads(made.tool_calls[0].arguments) == {"dish": "汤"}


# --- one provider, two frameworks ---


def make_counting_provider(framework: Any) -> Any:
    """The class as a learner writes it; only the import of its base class differs."""
    ContextProvider, Message = framework.ContextProvider, framework.Message  # noqa: N806

    class LastAnswer(ContextProvider):
        """Counts the turns and reminds the model of what it said last."""

        async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
            state["turns"] = state.get("turns", 0) + 1
            if "last" in state:
                context.extend_messages(self, [Message("user", [f"You said: {state['last']}"])])

        async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
            state["asked"] = [message.text for message in context.input_messages]
            state["last"] = context.response.text

    return LastAnswer("last_answer")


@pytest.mark.parametrize("framework", [memlab, af])
async def test_a_learners_provider_runs_under_both_frameworks(wire: Wire, framework: Any) -> None:
    kinds = {memlab: memlab.OpenAIChatCompletionClient, af: OpenAIChatCompletionClient}
    client = kinds[framework](model="classroom-128k", async_client=wire.official)
    agent = framework.Agent(client=client, name="a", context_providers=[make_counting_provider(framework)])
    session = agent.create_session()
    first = await agent.run("我叫张三", session=session)
    await agent.run("我叫什么名字", session=session)
    assert "张三" in first.text
    assert ("user", f"You said: {first.text}") in wire.sent()
    saved = framework.AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    assert saved.state["last_answer"]["turns"] == 2
    assert saved.state["last_answer"]["asked"] == ["我叫什么名字"]


def make_database_history(framework: Any, database: dict[str, list[Any]]) -> Any:
    """The class as a learner writes it; only the import of its base class differs."""
    HistoryProvider, Message = framework.HistoryProvider, framework.Message  # noqa: N806

    class DatabaseHistoryProvider(HistoryProvider):
        """Keeps the messages of a session as rows of JSON."""

        async def get_messages(self, session_id: str, *, state: Any = None, **kwargs: Any) -> list[Any]:
            return [Message.from_dict(json.loads(row)) for row in database.get(session_id, [])]

        async def save_messages(self, session_id: str, messages: Any, *, state: Any = None, **kwargs: Any) -> None:
            database.setdefault(session_id, []).extend(json.dumps(message.to_dict()) for message in messages)

    return DatabaseHistoryProvider("database")


@pytest.mark.parametrize("framework", [memlab, af])
async def test_a_learners_history_provider_runs_under_both_frameworks(wire: Wire, framework: Any) -> None:
    kinds = {memlab: memlab.OpenAIChatCompletionClient, af: OpenAIChatCompletionClient}
    client, database = kinds[framework](model="classroom-128k", async_client=wire.official), {}
    for text in ("我叫张三", "我叫什么名字"):  # a new agent each time, as in a new process
        agent = framework.Agent(client=client, context_providers=[make_database_history(framework, database)])
        response = await agent.run(text, session=agent.create_session(session_id="kept"))
    assert "张三" in response.text
    assert len(database["kept"]) == 4


async def test_a_learners_memlab_provider_runs_adapted(wire: Wire) -> None:
    agent = wire.agent(adapt(make_counting_provider(memlab)))
    session = agent.create_session()
    first = await agent.run("我叫张三", session=session)
    await agent.run("我叫什么名字", session=session)
    assert ("user", f"You said: {first.text}") in wire.sent()
    assert session.state["last_answer"]["turns"] == 2


# --- the page in the README ---

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PAGE = README.partition("## Take it to production")[2].partition("\n## ")[0]


def test_the_snippet_of_the_readme_runs(server: Server, tmp_path: Path) -> None:
    snippet = PAGE.partition("```python\n")[2].partition("```")[0]
    offline = {"gpt-4o-mini": "classroom-128k", "text-embedding-3-small": "use-multilingual"}
    for name, replacement in offline.items():
        assert name in snippet
        snippet = snippet.replace(name, replacement)
    environment = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "x"}
    command = [sys.executable, "-c", snippet]
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    answer, searches = ran.stdout.strip().splitlines()
    assert "green" in answer
    assert "kept 2 of 2" in searches


def test_the_names_of_the_readme_are_those_of_both() -> None:
    rows = [line.split("|")[1:3] for line in PAGE.splitlines() if "the same names" in line]
    assert len(rows) == 4
    for ours, theirs in rows:
        home = af.openai if "agent_framework.openai" in theirs else af
        for name in re.findall(r"`(\w+)`", ours):
            assert hasattr(memlab, name)
            assert hasattr(home, name), name
