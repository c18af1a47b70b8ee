"""LangChain and Agent Framework talk to the port as they would to the real API."""

import numpy as np
import pydantic
import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from memlab.offline.server import Server
from memlab.tokens import count_chat

QUESTION = "帮我点一份外卖，一荤一素，我不能吃辣"


class Preference(pydantic.BaseModel):
    """What a user likes."""

    name: str
    likes_spicy: bool


def get_menu() -> str:
    """提取外卖菜单"""
    return "番茄炒蛋、清炒菜心"


# --- LangChain ---


@pytest.fixture
def chat(server: Server) -> ChatOpenAI:
    return ChatOpenAI(model="classroom-128k", base_url=server.url, api_key="x", max_retries=0)


def test_langchain_invokes_and_counts(chat: ChatOpenAI) -> None:
    reply = chat.invoke([("human", "我叫张三"), ("ai", "你好，张三！"), ("human", "我叫什么名字？")])
    assert "张三" in reply.text
    sent = [("user", "我叫张三"), ("assistant", "你好，张三！"), ("user", "我叫什么名字？")]
    assert reply.usage_metadata["input_tokens"] == count_chat([{"role": r, "content": c} for r, c in sent])


def test_langchain_streams(chat: ChatOpenAI) -> None:
    whole = chat.invoke("我叫张三").text
    chunks = list(chat.stream("我叫张三", stream_usage=True))
    assert "".join(chunk.text for chunk in chunks) == whole
    assert sum(chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata) > 0


def test_langchain_calls_a_tool(chat: ChatOpenAI) -> None:
    bound = chat.bind_tools([get_menu], tool_choice="get_menu")
    reply = bound.invoke(QUESTION)
    assert [call["name"] for call in reply.tool_calls] == ["get_menu"]
    result = ToolMessage(get_menu(), tool_call_id=reply.tool_calls[0]["id"])
    assert chat.invoke([HumanMessage(QUESTION), reply, result]).text


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_langchain_gets_structured_output(chat: ChatOpenAI, method: str) -> None:
    structured = chat.with_structured_output(Preference, method=method)
    assert isinstance(structured.invoke("我叫张三，我不吃辣"), Preference)


def test_langchain_embeds_as_text_and_as_tokens(server: Server) -> None:
    texts = ["我不能吃辣", "I like noodles"]
    options = {"model": "use-multilingual", "base_url": server.url, "api_key": "x", "max_retries": 0}
    as_tokens = OpenAIEmbeddings(**options).embed_documents(texts)
    as_texts = OpenAIEmbeddings(**options, check_embedding_ctx_length=False).embed_documents(texts)
    assert np.shape(as_tokens) == (2, 512)
    np.testing.assert_allclose(as_tokens, as_texts, atol=1e-6)


# --- Agent Framework ---


def agent(server: Server, **options: object) -> object:
    agent_framework = pytest.importorskip("agent_framework", reason="needs the extra agent-framework")
    from agent_framework.openai import OpenAIChatCompletionClient

    client = OpenAIChatCompletionClient(model="classroom-128k", base_url=server.url, api_key="x")
    return agent_framework.Agent(client=client, instructions="You are a kind assistant.", **options)


async def test_agent_framework_remembers_within_a_session(server: Server) -> None:
    assistant = agent(server)
    session = assistant.create_session()
    await assistant.run("我叫张三", session=session)
    reply = await assistant.run("我叫什么名字？", session=session)
    assert "张三" in reply.text
    assert "张三" not in (await assistant.run("我叫什么名字？")).text
    assert reply.usage_details["input_token_count"] > 0


async def test_agent_framework_streams(server: Server) -> None:
    assistant = agent(server)
    whole = (await assistant.run("我叫张三")).text
    parts = [update.text async for update in assistant.run("我叫张三", stream=True)]
    assert "".join(parts) == whole
    assert len([part for part in parts if part]) > 1


@pytest.mark.parametrize("stream", [False, True])
async def test_agent_framework_runs_a_tool(server: Server, stream: bool) -> None:
    calls = []

    def GetMenu() -> str:  # noqa: N802 - the name the menu tool has in the lessons
        """提取外卖菜单"""
        calls.append("GetMenu")
        return "番茄炒蛋、清炒菜心"

    assistant = agent(server, tools=[GetMenu])
    options = {"tool_choice": {"mode": "required", "required_function_name": "GetMenu"}}
    run = assistant.run(QUESTION, stream=stream, options=options)
    reply = await run.get_final_response() if stream else await run
    assert calls
    assert reply.text
