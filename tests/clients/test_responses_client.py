"""What is special about the Responses client: items, instructions, and a history that the service keeps."""

import json
from typing import Any

import httpx2
import openai
import pytest

from memlab import Agent, ChatReply, InMemoryHistoryProvider, MemlabError, Message, ToolCall, ToolResult, connect, tool
from memlab.clients.chat_completions import OpenAIChatCompletionClient
from memlab.clients.responses import OpenAIChatClient
from memlab.offline.transport import OFFLINE_URL, OfflineTransport
from memlab.tokens import count_chat

NAME, ASK = "我叫张三", "我叫什么名字？"
ORDER_QUESTION = "帮我点一份外卖，一荤一素，我不能吃辣"


class Recorded(httpx2.AsyncBaseTransport):
    """The classroom endpoint, or one scripted answer, with the bodies of the requests."""

    def __init__(self, answer: httpx2.Response | None = None) -> None:
        self.answer, self.endpoint = answer, OfflineTransport()
        self.requests: list[dict[str, Any]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(await request.aread()))
        return self.answer or await self.endpoint.handle_async_request(request)

    @property
    def client(self) -> OpenAIChatClient:
        """The client under test."""
        http = httpx2.AsyncClient(transport=self, trust_env=False)
        official = openai.AsyncOpenAI(api_key="x", base_url=OFFLINE_URL, http_client=http, max_retries=0)
        return OpenAIChatClient("classroom-128k", async_client=official)


async def complete(
    client: OpenAIChatClient, *messages: Message, tools: Any = (), stream: bool = False, **options: Any
) -> tuple[list[str], ChatReply]:
    """The pieces of a streamed text, and the reply that comes last."""
    parts: list[Any] = [part async for part in client.complete(messages, tools, options, stream=stream)]
    *pieces, reply = parts
    assert isinstance(reply, ChatReply)
    assert all(isinstance(piece, str) for piece in pieces)
    return pieces, reply


def user(text: str) -> Message:
    return Message("user", text)


@tool(name="GetMenu", description="提取外卖菜单")
def get_menu() -> str:
    return "番茄炒蛋、清炒菜心"


@tool(name="PlaceOrder", description="外卖下单")
def place_order(orderItems: dict[str, int], note: str = "") -> str:  # noqa: N803 - the name of the lessons
    return json.dumps(orderItems, ensure_ascii=False)


# --- one request ---


@pytest.mark.parametrize("stream", [False, True])
async def test_a_text_comes_back_with_usage_reason_and_id(stream: bool) -> None:
    pieces, reply = await complete(Recorded().client, user(NAME), stream=stream)
    assert (reply.message.role, reply.finish_reason, reply.model) == ("assistant", "stop", "classroom-128k")
    assert reply.message.text
    assert "".join(pieces) == (reply.message.text if stream else "")
    assert len(pieces) > 1 or not stream
    assert (reply.usage["input_token_count"], reply.usage.estimated) == (11, False)
    assert reply.response_id is not None
    assert reply.response_id.startswith("resp_")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_limit_is_told_as_length(stream: bool) -> None:
    _, reply = await complete(Recorded().client, user(NAME), stream=stream, max_tokens=2)
    assert (reply.finish_reason, reply.usage["output_token_count"]) == ("length", 2)


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_come_back_whole(stream: bool) -> None:
    _, reply = await complete(Recorded().client, user(ORDER_QUESTION), tools=[get_menu, place_order], stream=stream)
    (call,) = reply.message.tool_calls
    assert (call.name, json.loads(call.arguments), reply.finish_reason) == ("GetMenu", {}, "tool_calls")
    assert reply.message.text == ""


async def test_what_is_sent() -> None:
    recorded = Recorded()
    messages = [
        Message("system", "Be brief."),
        Message("developer", "Be kind."),
        user("hi"),
        Message("assistant", ["I'll look.", ToolCall("c1", "GetMenu"), ToolCall("c2", "GetMenu")]),
        Message("tool", [ToolResult("c1", "one"), ToolResult("c2", "two")]),
        Message("system", "Memories follow."),
        user("and?"),
    ]
    await complete(recorded.client, *messages, tools=[place_order], temperature=0, store=False)
    (body,) = recorded.requests
    assert (body["model"], body["temperature"], body["store"]) == ("classroom-128k", 0, False)
    assert body["instructions"] == "Be brief.\n\nBe kind."
    assert body["input"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "I'll look."},
        {"type": "function_call", "call_id": "c1", "name": "GetMenu", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "GetMenu", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "function_call_output", "call_id": "c2", "output": "two"},
        {"role": "system", "content": "Memories follow."},
        {"role": "user", "content": "and?"},
    ]
    (sent,) = body["tools"]
    assert (sent["type"], sent["name"], sent["strict"]) == ("function", "PlaceOrder", False)
    assert sent["parameters"]["required"] == ["orderItems"]
    await complete(recorded.client, user("hi"))
    assert not {"tools", "instructions", "store", "previous_response_id"} & set(recorded.requests[-1])


async def test_options_may_have_the_form_of_chat_completions() -> None:
    recorded = Recorded()
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "user", "schema": schema}}
    _, reply = await complete(recorded.client, user(NAME), response_format=wanted, max_completion_tokens=50)
    assert json.loads(reply.message.text) == {"name": "张三"}
    assert recorded.requests[-1]["text"] == {"format": {"type": "json_schema", "name": "user", "schema": schema}}
    assert recorded.requests[-1]["max_output_tokens"] == 50
    choice = {"type": "function", "function": {"name": "GetMenu"}}
    _, reply = await complete(recorded.client, user("hi"), tools=[get_menu], tool_choice=choice)
    assert [call.name for call in reply.message.tool_calls] == ["GetMenu"]


# --- a history that the service keeps ---


@pytest.mark.parametrize("stream", [False, True])
async def test_the_service_goes_on_from_a_reply(stream: bool) -> None:
    recorded = Recorded()
    _, first = await complete(recorded.client, user(NAME), store=True, stream=stream)
    id_before = first.response_id
    _, second = await complete(recorded.client, user(ASK), previous_response_id=id_before, store=True, stream=stream)
    assert "张三" in second.message.text
    assert len(recorded.requests[-1]["input"]) == 1
    assert second.response_id != first.response_id
    sent = [("user", NAME), ("assistant", first.message.text), ("user", ASK)]
    assert second.usage["input_token_count"] == count_chat([{"role": r, "content": c} for r, c in sent])


async def test_a_tool_loop_sends_only_what_is_new() -> None:
    recorded, tools = Recorded(), [get_menu, place_order]
    system = Message("system", "你是外卖助手。")
    _, reply = await complete(recorded.client, system, user(ORDER_QUESTION), tools=tools, store=True)
    while calls := reply.message.tool_calls:
        results = Message("tool", [ToolResult(c.call_id, await _run(c)) for c in calls])
        options = {"store": True, "previous_response_id": reply.response_id}
        _, reply = await complete(recorded.client, system, results, tools=tools, **options)
    assert "番茄炒蛋" in reply.message.text
    assert [len(body["input"]) for body in recorded.requests] == [1, 1, 1]


async def _run(call: ToolCall) -> str:
    return await {"GetMenu": get_menu, "PlaceOrder": place_order}[call.name].invoke(call.arguments)


async def test_what_is_not_stored_can_not_be_continued() -> None:
    client = Recorded().client
    _, first = await complete(client, user("not kept by the service"), store=False)
    with pytest.raises(openai.BadRequestError, match="Previous response") as caught:
        await complete(client, user(ASK), previous_response_id=first.response_id)
    assert caught.value.code == "previous_response_not_found"


def test_only_this_client_says_that_the_service_can_keep_the_history() -> None:
    assert OpenAIChatClient.stores_history is True
    assert not getattr(OpenAIChatCompletionClient, "stores_history", False)


# --- answers that are none ---


def events(*lines: dict[str, Any]) -> httpx2.Response:
    text = "".join(f"event: {line['type']}\ndata: {json.dumps(line)}\n\n" for line in lines)
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=text.encode())


FAILED: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "output": [],
    "status": "failed",
    "error": {"code": "server_error", "message": "overloaded"},
}


@pytest.mark.parametrize(
    ("stream", "answer", "message"),
    [
        (False, httpx2.Response(200, text="<html>", headers={"content-type": "text/html"}), "/v1/responses"),
        (False, httpx2.Response(200, json={"id": "1", "choices": []}), "/v1/responses"),
        (True, events(), "/v1/responses"),
        (False, httpx2.Response(200, json=FAILED), "overloaded"),
        (True, events({"type": "response.failed", "response": FAILED, "sequence_number": 0}), "overloaded"),
        (True, events({"type": "error", "code": "server_error", "message": "overloaded", "param": None}), "overloaded"),
    ],
    ids=["a web page", "a completion", "an empty stream", "a failure", "a failure in a stream", "an error event"],
)
async def test_an_answer_that_failed_or_is_none_is_an_error(stream: bool, answer: Any, message: str) -> None:
    with pytest.raises(MemlabError, match=message):
        await complete(Recorded(answer).client, user("hi"), stream=stream)


@pytest.mark.parametrize("stream", [False, True])
async def test_usage_that_is_not_reported_is_estimated(stream: bool) -> None:
    part = {"type": "output_text", "text": "one two", "annotations": []}
    output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}]
    response = {**FAILED, "status": "completed", "error": None, "output": output}
    done = {"type": "response.completed", "response": response, "sequence_number": 0}
    answer = events(done) if stream else httpx2.Response(200, json=response)
    _, reply = await complete(Recorded(answer).client, user(NAME), stream=stream)
    assert reply.usage.estimated
    assert (reply.usage["input_token_count"], reply.usage["output_token_count"]) == (11, 2)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, openai.AuthenticationError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
async def test_errors_are_those_of_the_official_client(status: int, error: type[Exception]) -> None:
    answer = httpx2.Response(status, json={"error": {"message": "no", "type": "error", "param": None, "code": None}})
    with pytest.raises(error):
        await complete(Recorded(answer).client, user("hi"))


# --- an agent on it ---


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_with_a_history_of_its_own_remembers_and_uses_tools(stream: bool) -> None:
    agent = Recorded().client.as_agent(
        name="cook",
        instructions="Be kind.",
        context_providers=[InMemoryHistoryProvider("memory", load_messages=True)],
        tools=[get_menu, place_order],
    )
    session = agent.create_session()

    async def say(text: str) -> str:
        run: Any = agent.run(text, session=session, stream=stream)
        return (await run.get_final_response() if stream else await run).text

    await say(NAME)
    assert "番茄炒蛋" in await say(ORDER_QUESTION)
    assert "张三" in await say(ASK)


async def test_as_agent_and_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlab.settings._current", None)
    agent = OpenAIChatClient().as_agent(name="cook", instructions="Be brief.")
    assert isinstance(agent, Agent)
    assert (agent.name, agent.instructions) == ("cook", "Be brief.")
    connect("offline", model="classroom-8k")
    assert (await agent.run("hi")).trace.calls[0].model == "classroom-8k"


def test_a_key_and_a_url_make_a_client_of_its_own() -> None:
    client = OpenAIChatClient("m", api_key="k", base_url="http://localhost:1/v1")
    assert (client.model, str(client.client.base_url)) == ("m", "http://localhost:1/v1/")
