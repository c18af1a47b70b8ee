"""A missing fact is looked up once, and never in a loop."""

import json

import pytest

from memlab.offline.chat_model import respond


def tool(name, description="", parameter="userQuestion", required=True):
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string"}},
        "required": [parameter] if required else [],
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


SEARCH = tool("Search", "Allows searching for related previous chat history to help answer the user question.")
QUESTION = {"role": "user", "content": "我叫什么名字"}


def after(result):
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "Search", "arguments": json.dumps({"userQuestion": "我叫什么名字"})},
    }
    messages = [
        QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]
    return respond({"messages": messages, "tools": [SEARCH]})


def test_calls_the_tool_with_the_question():
    turn = respond({"messages": [QUESTION], "tools": [SEARCH]})
    assert turn.text is None
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [("Search", {"userQuestion": "我叫什么名字"})]


def test_uses_the_result_like_a_memory_block():
    assert after("## Memories\nConsider the following:\n我叫张三").text == "你叫张三。"


@pytest.mark.parametrize("result", ["", "## Memories\n今天天气好"])
def test_says_so_when_it_is_still_missing(result):
    turn = after(result)
    assert not turn.tool_calls
    assert "不知道" in turn.text


def test_no_call_when_the_fact_is_in_view_or_nothing_is_asked():
    known = [{"role": "user", "content": "我叫张三"}, QUESTION]
    assert not respond({"messages": known, "tools": [SEARCH]}).tool_calls
    assert not respond({"messages": [{"role": "user", "content": "我叫张三"}], "tools": [SEARCH]}).tool_calls
    assert not respond({"messages": [QUESTION], "tools": [SEARCH], "tool_choice": "none"}).tool_calls


@pytest.mark.parametrize(
    ("offered", "called"),
    [
        (tool("recall_memory"), True),
        (tool("搜索"), True),
        (tool("find", "Поиск по истории"), True),
        (tool("paint"), False),
        (tool("search", required=False), False),
    ],
)
def test_which_tools_look_like_a_search(offered, called):
    assert bool(respond({"messages": [QUESTION], "tools": [offered]}).tool_calls) is called


def test_a_question_no_table_knows_is_searched_too():
    turn = respond({"messages": [{"role": "user", "content": "When did I repaint my shed?"}], "tools": [SEARCH]})
    assert turn.tool_calls
