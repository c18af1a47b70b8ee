"""What is special about Chat Completions: what other endpoints send, and which client is used."""

import httpx2
import openai
import pytest

from memlab import Agent, MemlabError, OpenAIChatCompletionClient, connect
from tests.support import ScriptedEndpoint


def events(*lines):
    """A streamed answer as another endpoint would write it."""
    text = "".join(f"data: {line}\n\n" for line in lines)
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=text.encode())


def chunk(delta, finish_reason="null"):
    return (
        '{"id":"1","object":"chat.completion.chunk","created":1,"model":"m",'
        f'"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish_reason}}}]}}'
    )


async def test_whole_calls_that_all_stand_under_one_index_stay_apart():
    pieces = [
        '{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}',
        '{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}',
    ]
    endpoint = ScriptedEndpoint(events(*map(chunk, pieces), chunk("{}", '"tool_calls"')))
    parts = [part async for part in endpoint.client.complete([], [], {}, stream=True)]
    assert [(c.call_id, c.name) for c in parts[-1].message.tool_calls] == [("a", "f"), ("b", "g")]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, text="<html>Welcome</html>", headers={"content-type": "text/html"}),
        httpx2.Response(200, json={"id": "1", "choices": []}),
        events("[DONE]"),
    ],
    ids=["a web page", "no choices", "an empty stream"],
)
async def test_an_answer_without_a_choice_is_an_error_that_says_where_to_look(stream, answer):
    with pytest.raises(MemlabError, match="base URL"):
        async for _ in ScriptedEndpoint(answer).client.complete([], [], {}, stream=stream):
            pass


async def test_an_error_in_the_middle_of_a_stream_fails_the_run():
    endpoint = ScriptedEndpoint(events(chunk('{"content":"half"}'), '{"error":{"message":"overloaded","code":500}}'))
    agent = endpoint.agent()
    session = agent.create_session()
    with pytest.raises(openai.APIError, match="overloaded"):
        await agent.run("hi", stream=True, session=session).get_final_response()
    assert session.state.get("in_memory", {}).get("messages") is None


async def test_as_agent_makes_an_agent():
    agent = ScriptedEndpoint("yes").client.as_agent(name="cook", instructions="Be brief.", tools=[lambda: 1])
    assert isinstance(agent, Agent)
    assert (agent.name, agent.instructions, len(agent.tools)) == ("cook", "Be brief.", 1)
    assert (await agent.run("hi")).text == "yes"


def test_a_key_and_a_url_make_a_client_of_its_own():
    client = OpenAIChatCompletionClient("m", api_key="k", base_url="http://localhost:1/v1")
    assert (client.model, str(client.client.base_url)) == ("m", "http://localhost:1/v1/")


async def test_a_client_without_arguments_follows_connect(monkeypatch):
    monkeypatch.setattr("memlab.settings._current", None)
    client = OpenAIChatCompletionClient()
    lab = connect("offline", model="classroom-8k")
    assert (client.model, client.client) == ("classroom-8k", lab.client)
    connect("offline")
    assert client.model == "classroom-128k"
