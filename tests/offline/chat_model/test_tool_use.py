"""tool_choice, other tools, and parallel_tool_calls."""

import json

import pytest

from memlab.offline.chat_model import respond


def function(name, description="", required=(), **properties):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


WEATHER = function("get_weather", "Get the weather", ["city"], city={"type": "string"})
TIME = function("get_time", "Current time", [])
ADD = function("add", "Add two numbers", ["a", "b"], a={"type": "integer"}, b={"type": "integer"})


def calls(text, *tools, **more):
    turn = respond({"messages": [{"role": "user", "content": text}], "tools": list(tools), **more})
    return [(call.name, call.arguments) for call in turn.tool_calls]


@pytest.mark.parametrize(
    ("text", "city"),
    [("What's the weather in Paris?", "Paris"), ("北京天气怎么样", "北京"), ("Какая погода в Москве?", "Москве")],
)
def test_arguments_are_read_off_the_question(text, city):
    assert calls(text, WEATHER) == [("get_weather", {"city": city})]


def test_numbers():
    assert calls("Please add 3 and 4", ADD) == [("add", {"a": 3, "b": 4})]


def test_no_call_without_reason():
    assert calls("My name is Anna", WEATHER) == []
    assert calls("What's the weather like?", WEATHER) == []
    assert calls("What's the weather in Paris?", WEATHER, tool_choice="none") == []


def test_forced_calls():
    assert [name for name, _ in calls("hi", WEATHER, TIME, tool_choice="required")] == ["get_weather"]
    named = {"type": "function", "function": {"name": "get_time"}}
    assert calls("hi", WEATHER, TIME, tool_choice=named) == [("get_time", {})]
    assert calls("hi", ADD, tool_choice="required") == [("add", {"a": 0, "b": 0})]


def test_one_call_at_most_when_not_parallel():
    text = "What's the weather and the time in Paris?"
    assert len(calls(text, WEATHER, TIME)) == 2
    assert len(calls(text, WEATHER, TIME, parallel_tool_calls=False)) == 1


def test_the_result_is_phrased_and_nothing_is_called_again():
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": json.dumps({"city": "Paris"})},
    }
    messages = [
        {"role": "user", "content": "What's the weather in Paris?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    good = respond(
        {"messages": [*messages, {"role": "tool", "tool_call_id": "1", "content": "sunny, 21"}], "tools": [WEATHER]}
    )
    assert not good.tool_calls
    assert "sunny, 21" in good.text
    bad = respond(
        {
            "messages": [*messages, {"role": "tool", "tool_call_id": "1", "content": "Error: no station"}],
            "tools": [WEATHER],
        }
    )
    assert "failed" in bad.text
    assert "no station" in bad.text
