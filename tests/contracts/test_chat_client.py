"""What every chat client does for an agent. One list of makers, one set of tests."""

import asyncio
from collections.abc import Callable

import openai
import pytest

from memlab import ChatReply, Message, ToolCall, ToolResult, tool
from memlab.response import ChatClient
from tests.support import ScriptedEndpoint, call, failure

MAKERS: dict[str, Callable[[ScriptedEndpoint], ChatClient]] = {"chat completions": lambda endpoint: endpoint.client}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


async def complete(client, *messages, tools=(), stream=False, **options):
    """The pieces of a streamed text, and the reply that comes last."""
    parts = [part async for part in client.complete(messages, tools, options, stream=stream)]
    assert [type(part) for part in parts] == [str] * (len(parts) - 1) + [ChatReply]
    return parts[:-1], parts[-1]


HI = Message("user", "hi")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_text_comes_back_with_usage_and_reason(make, stream):
    pieces, reply = await complete(make(ScriptedEndpoint("one two")), HI, stream=stream)
    assert pieces == (["one ", "two "] if stream else [])
    assert (reply.message.role, reply.message.text.strip()) == ("assistant", "one two")
    assert (reply.usage, reply.usage.estimated) == (
        {"input_token_count": 10, "output_token_count": 2, "total_token_count": 12},
        False,
    )
    assert reply.finish_reason == "stop"
    assert reply.model == "classroom-128k"


@pytest.mark.parametrize("stream", [False, True])
async def test_tool_calls_come_back_whole(make, stream):
    asked = [call("add", "c1", a=1, b=2), call("GetMenu", "c2", 菜="素")]
    _, reply = await complete(make(ScriptedEndpoint(asked)), HI, stream=stream)
    assert reply.message.tool_calls == asked
    assert (reply.message.text, reply.finish_reason) == ("", "tool_calls")


@pytest.mark.parametrize("stream", [False, True])
async def test_usage_that_is_not_reported_is_estimated(make, stream):
    _, reply = await complete(
        make(ScriptedEndpoint("one two", usage=False)), Message("user", "我叫张三"), stream=stream
    )
    assert reply.usage.estimated
    assert reply.usage["input_token_count"] == 11
    assert reply.usage["output_token_count"] in (2, 3)


async def test_what_is_sent(make):
    endpoint = ScriptedEndpoint()
    add = tool(name="add", description="Add.")(lambda a, b: a + b)
    messages = [
        Message("system", "Be brief."),
        HI,
        Message("assistant", ToolCall("c", "add")),
        Message("tool", ToolResult("c", "3")),
    ]
    await complete(make(endpoint), *messages, tools=[add], temperature=0)
    (request,) = endpoint.requests
    assert (request["model"], request["temperature"]) == ("classroom-128k", 0)
    assert [m["role"] for m in request["messages"]] == ["system", "user", "assistant", "tool"]
    assert [t["function"]["name"] for t in request["tools"]] == ["add"]
    await complete(make(endpoint), HI)
    assert "tools" not in endpoint.requests[-1]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
async def test_errors_are_those_of_the_official_client(make, stream, status, error):
    with pytest.raises(error):
        await complete(make(ScriptedEndpoint(failure(status))), HI, stream=stream)


async def test_a_stream_that_is_left_is_closed(make):
    endpoint = ScriptedEndpoint("one two three")
    parts = make(endpoint).complete([HI], [], {}, stream=True)
    assert await anext(parts) == "one "
    await parts.aclose()
    async with asyncio.timeout(5):
        while endpoint.open_streams:
            await asyncio.sleep(0)


async def test_requests_at_once_do_not_mix(make):
    async def echo(body):
        await asyncio.sleep(0.001 * (10 - int(body["messages"][0]["content"])))
        return body["messages"][0]["content"]

    client = make(ScriptedEndpoint(*[echo] * 10))
    replies = await asyncio.gather(*(complete(client, Message("user", str(i))) for i in range(10)))
    assert [reply.message.text for _, reply in replies] == [str(i) for i in range(10)]
