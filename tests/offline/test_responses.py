"""The Responses API through the official client, in process and over the port, and through other frameworks."""

import json
import threading
from collections.abc import Callable
from typing import Any

import openai
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

from memlab.offline.dispatch import dispatch
from memlab.offline.responses_items import read_items, to_messages
from memlab.offline.responses_store import STORE, ResponseStore, StoredResponse
from memlab.offline.server import Server
from memlab.tokens import count_chat, count_text

MODEL = "classroom-128k"
NAME, ASK = "我叫张三", "我叫什么名字？"
ORDER_QUESTION = "帮我点一份外卖，一荤一素，我不能吃辣"
MENU = {
    "type": "function",
    "name": "GetMenu",
    "description": "提取外卖菜单",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
ADD = {**MENU, "name": "PlaceOrder", "description": "外卖下单"}
NAMED = {"type": "function", "name": "GetMenu"}
ONLY_ORDER = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "PlaceOrder"}]}


def ask(client: openai.OpenAI, what: Any = NAME, **options: Any) -> Any:
    return client.responses.create(model=MODEL, input=what, **options)


def post(body: Any) -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = dispatch("POST", "/v1/responses", {}, raw)
    text = reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)
    return reply.status, json.loads(text) if isinstance(reply.body, bytes) else text


def request(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "input": list(items) or NAME, **fields}


# --- the answer ---


def test_memory_is_only_what_is_sent(client: openai.OpenAI) -> None:
    history = [
        {"role": "user", "content": NAME},
        {"role": "assistant", "content": [{"type": "output_text", "text": "你好，张三！", "annotations": []}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASK}]},
    ]
    assert "张三" in ask(client, history).output_text
    assert "张三" not in ask(client, ASK).output_text


def test_a_response_has_the_api_s_fields(client: openai.OpenAI) -> None:
    response = ask(client, metadata={"lesson": "5"}, instructions="Be kind.", temperature=0)
    assert response.id.startswith("resp_")
    assert (response.object, response.status, response.error, response.model) == ("response", "completed", None, MODEL)
    assert (response.metadata, response.instructions, response.temperature) == ({"lesson": "5"}, "Be kind.", 0)
    (message,) = response.output
    assert (message.type, message.role, message.status) == ("message", "assistant", "completed")
    assert message.id.startswith("msg_")


def test_usage_counts_true_tokens(client: openai.OpenAI) -> None:
    response = ask(client, instructions="Be kind.")
    sent = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": NAME}]
    assert response.usage.input_tokens == count_chat(sent)
    assert response.usage.output_tokens == count_text(response.output_text)
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert response.usage.input_tokens_details.cached_tokens == 0
    assert response.usage.output_tokens_details.reasoning_tokens == 0
    assert ask(client).usage.input_tokens == 11


def test_a_string_and_its_message_are_answered_alike(client: openai.OpenAI) -> None:
    parts = [{"role": "user", "content": [{"type": "input_text", "text": NAME}]}]
    one, other = ask(client), ask(client, parts)
    assert (one.output_text, one.usage) == (other.output_text, other.usage)


def test_ids_are_hashes_of_the_request(client: openai.OpenAI) -> None:
    first, again, other = ask(client), ask(client), ask(client, ASK)
    assert (first.id, first.output) == (again.id, again.output)
    assert len({first.id, other.id, ask(client, ASK, previous_response_id=first.id).id}) == 3


def test_fields_without_a_meaning_here_are_tolerated(client: openai.OpenAI) -> None:
    response = ask(
        client, include=["reasoning.encrypted_content"], reasoning={"effort": "low"}, truncation="auto", user="u",
        service_tier="auto", top_logprobs=2, parallel_tool_calls=True, background=False, tools=[], tool_choice="auto",
        extra_body={"brand_new_field": {"a": 1}, "seed": 3},
    )  # fmt: skip
    assert response.output_text


def test_a_token_limit_leaves_the_response_incomplete(client: openai.OpenAI) -> None:
    whole = ask(client).output_text
    response = ask(client, max_output_tokens=2)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert whole.startswith(response.output_text)
    assert response.usage.output_tokens == 2


# --- the stream ---


def test_the_events_of_a_text(client: openai.OpenAI) -> None:
    whole = ask(client)
    events = list(ask(client, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type.removeprefix("response.") for event in events]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert kinds[4:-4] == ["output_text.delta"] * len(deltas)
    assert kinds[-4:] == ["output_text.done", "content_part.done", "output_item.done", "completed"]
    assert len(deltas) > 1
    assert "".join(deltas) == events[-4].text == events[-1].response.output_text == whole.output_text
    assert (events[0].response.status, events[0].response.output, events[0].response.usage) == ("in_progress", [], None)
    assert events[-1].response.usage == whole.usage
    assert {event.item_id for event in events if hasattr(event, "item_id")} == {events[-1].response.output[0].id}


def test_the_events_of_calls(client: openai.OpenAI) -> None:
    events = list(ask(client, "2 + 3", stream=True, tools=[MENU], tool_choice=NAMED))
    kinds = [event.type.removeprefix("response.") for event in events]
    assert kinds[2] == "output_item.added"
    assert kinds[-3:] == ["function_call_arguments.done", "output_item.done", "completed"]
    assert (events[2].item.arguments, events[2].item.status) == ("", "in_progress")
    deltas = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    assert "".join(deltas) == events[-3].arguments == events[-1].response.output[0].arguments


def test_a_cut_off_stream_ends_as_incomplete(client: openai.OpenAI) -> None:
    events = list(ask(client, stream=True, max_output_tokens=2))
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.status == events[-2].item.status == "incomplete"


def test_the_client_s_own_stream_helper_follows(client: openai.OpenAI) -> None:
    with client.responses.stream(model=MODEL, input=NAME) as stream:
        assert any(event.type == "response.output_text.delta" for event in stream)
        assert stream.get_final_response().output_text == ask(client).output_text


def test_an_error_comes_before_the_stream(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError):
        ask(client, stream=True, previous_response_id="resp_unknown")


async def test_the_async_client(async_client: openai.AsyncOpenAI) -> None:
    first = await async_client.responses.create(model=MODEL, input=NAME)
    events = await async_client.responses.create(model=MODEL, input=ASK, previous_response_id=first.id, stream=True)
    text = "".join([event.delta async for event in events if event.type == "response.output_text.delta"])
    assert "张三" in text


# --- tools ---


def test_a_function_call_goes_there_and_back(client: openai.OpenAI) -> None:
    first = ask(client, ORDER_QUESTION, tools=[MENU, ADD])
    (call,) = first.output
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "GetMenu", {})
    assert call.id.startswith("fc_")
    assert call.call_id.startswith("call_")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "番茄炒蛋、清炒菜心"}
    resent = ask(client, [{"role": "user", "content": ORDER_QUESTION}, call.to_dict(), result], tools=[MENU, ADD])
    chained = ask(client, [result], tools=[MENU, ADD], previous_response_id=first.id)
    assert resent.output[0].name == chained.output[0].name == "PlaceOrder"
    assert resent.output[0].arguments == chained.output[0].arguments
    assert resent.usage == chained.usage


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        ("none", None),
        (NAMED, "GetMenu"),
        (ONLY_ORDER, "PlaceOrder"),
    ],
)
def test_tool_choice(client: openai.OpenAI, choice: Any, called: str | None) -> None:
    response = ask(client, ORDER_QUESTION, tools=[MENU, ADD], tool_choice=choice)
    assert [item.name for item in response.output if item.type == "function_call"] == ([called] if called else [])


def test_calls_at_once_and_in_a_row_become_the_messages_they_were() -> None:
    def call(i: int) -> dict[str, Any]:
        return {"type": "function_call", "call_id": f"c{i}", "name": "f", "arguments": "{}"}

    def output(i: int) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": f"c{i}", "output": str(i)}

    said = {"role": "assistant", "content": "I'll look."}
    items = [
        said,
        call(1),
        {"type": "reasoning", "id": "rs_1", "summary": []},
        call(2),
        output(2),
        output(1),
        call(3),
        output(3),
    ]
    messages = to_messages(read_items(items))
    assert [len(m.get("tool_calls", [])) for m in messages] == [2, 0, 0, 1, 0]
    assert [m["content"] for m in messages] == ["I'll look.", "1", "2", None, "3"]


# --- what the service keeps ---


def test_a_chain_recalls_and_counts_what_was_said(client: openai.OpenAI) -> None:
    first = ask(client)
    second = ask(client, "你好", previous_response_id=first.id)
    third = ask(client, ASK, previous_response_id=second.id)
    assert "张三" in third.output_text
    assert third.previous_response_id == second.id
    sent = [
        ("user", NAME),
        ("assistant", first.output_text),
        ("user", "你好"),
        ("assistant", second.output_text),
        ("user", ASK),
    ]
    assert third.usage.input_tokens == count_chat([{"role": r, "content": c} for r, c in sent])


def test_one_response_can_be_continued_twice(client: openai.OpenAI) -> None:
    first = ask(client, "我喜欢面条")
    ask(client, NAME, previous_response_id=first.id)
    assert "张三" not in ask(client, ASK, previous_response_id=first.id).output_text


def test_a_streamed_response_is_kept_once_it_ended(client: openai.OpenAI) -> None:
    *_, last = ask(client, stream=True, instructions="one")
    assert "张三" in ask(client, ASK, previous_response_id=last.response.id).output_text


def test_a_stream_left_half_way_is_not_kept() -> None:
    body = json.dumps(request(stream=True, instructions="left half way")).encode()
    events = dispatch("POST", "/v1/responses", {}, body).body
    assert not isinstance(events, bytes)
    response_id = json.loads(next(events).split(b"data: ")[1])["response"]["id"]
    events.close()  # type: ignore[attr-defined]
    assert STORE.get(response_id) is None


def test_instructions_are_not_carried_over(client: openai.OpenAI) -> None:
    first = ask(client, "hi", instructions=NAME)
    second = ask(client, "hello", previous_response_id=first.id)
    assert second.instructions is None
    sent = [("user", "hi"), ("assistant", first.output_text), ("user", "hello")]
    assert second.usage.input_tokens == count_chat([{"role": r, "content": c} for r, c in sent])


@pytest.mark.parametrize("gone", ["never there", "not stored", "deleted"])
def test_an_unknown_previous_response_is_an_error(client: openai.OpenAI, gone: str) -> None:
    response_id = "resp_unknown"
    if gone == "not stored":
        response_id = ask(client, "not stored", store=False).id
    elif gone == "deleted":
        response_id = ask(client, "deleted").id
        client.responses.delete(response_id)
    with pytest.raises(openai.BadRequestError, match="Previous response with id") as caught:
        ask(client, previous_response_id=response_id)
    assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")


def test_a_stored_response_can_be_fetched_and_deleted(client: openai.OpenAI) -> None:
    made = ask(client, "fetch me")
    assert client.responses.retrieve(made.id).to_dict() == made.to_dict()
    client.responses.delete(made.id)
    for act in (client.responses.retrieve, client.responses.delete):
        with pytest.raises(openai.NotFoundError, match="not found"):
            act(made.id)


def test_deleting_a_response_leaves_the_conversation_after_it(client: openai.OpenAI) -> None:
    first = ask(client, instructions="two")
    second = ask(client, "你好", previous_response_id=first.id)
    client.responses.delete(first.id)
    assert "张三" in ask(client, ASK, previous_response_id=second.id).output_text


def test_the_store_is_bounded_and_forgets_what_was_used_least_recently() -> None:
    store = ResponseStore(limit=2)
    for name in ("a", "b"):
        store.put(StoredResponse({"id": name}, ()))
    assert store.get("a")
    store.put(StoredResponse({"id": "c"}, ()))
    assert [name for name in "abc" if store.get(name)] == ["a", "c"]


def test_threads_at_once_keep_the_store_whole() -> None:
    store = ResponseStore(limit=50)

    def work(thread: int) -> None:
        for i in range(300):
            store.put(StoredResponse({"id": f"{thread}-{i}"}, ()))
            store.get(f"{thread}-{i // 2}")
            store.delete(f"{thread - 1}-{i}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([1 for t in range(8) for i in range(300) if store.get(f"{t}-{i}")]) <= 50


# --- structured output ---


class Preference(pydantic.BaseModel):
    """What a user likes."""

    name: str
    likes_spicy: bool


def test_structured_output_is_parsed(client: openai.OpenAI) -> None:
    response = client.responses.parse(model=MODEL, input="我叫张三，我不吃辣", text_format=Preference)
    assert isinstance(response.output_parsed, Preference)
    assert response.output_parsed.name == "张三"


def test_a_json_object_on_demand(client: openai.OpenAI) -> None:
    response = ask(client, f"{NAME} (json)", text={"format": {"type": "json_object"}})
    assert isinstance(json.loads(response.output_text), dict)


# --- errors ---

CALL = {"type": "function_call", "call_id": "call_1", "name": "GetMenu", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
USER = {"role": "user", "content": "hi"}


def says(role: str, *parts: Any) -> dict[str, Any]:
    return request({"role": role, "content": list(parts)})


def answers_in(**kind: Any) -> dict[str, Any]:
    return request(text={"format": kind})


@pytest.mark.parametrize(
    ("body", "message", "param"),
    [
        (b"{not json", "could not parse the JSON body", None),
        ({"model": MODEL}, "'input' or 'previous_response_id' must be provided", "input"),
        ({"input": "hi"}, "you must provide a model parameter", None),
        (request() | {"input": []}, "empty array", "input"),
        (request() | {"input": 5}, "one of a string or array of objects, but got an integer", "input"),
        (request("hi"), "expected an object, but got a string", "input[0]"),
        (request({"content": "hi"}), "Missing required parameter", "input[0].role"),
        (request({"role": "tool", "content": "hi"}), "Invalid value: 'tool'", "input[0].role"),
        (request({"role": "user"}), "Missing", "input[0].content"),
        (request({"role": "user", "content": 5}), "got an integer", "input[0].content"),
        (says("user", {"type": "text", "text": "x"}), "'input_text'", "input[0].content[0].type"),
        (says("assistant", {"type": "input_text"}), "'output_text'", "input[0].content[0].type"),
        (says("user", {"text": "x"}), "Missing", "input[0].content[0].type"),
        (says("user", {"type": "input_text"}), "Missing", "input[0].content[0].text"),
        (says("user", {"type": []}), "Supported values", "input[0].content[0].type"),
        (request({"type": "web_search_call"}), "'web_search_call'", "input[0].type"),
        (request({"type": {}}), "Supported values", "input[0].type"),
        (request({**CALL, "arguments": {}}), "expected a string", "input[0].arguments"),
        (request({**OUTPUT, "output": None}), "Missing", "input[0].output"),
        (request(USER, CALL), "No tool output found for function call call_1", "input"),
        (request(USER, OUTPUT), "No tool call found for function call output with call_id call_1", "input"),
        (request(CALL, OUTPUT, OUTPUT), "No tool call found", "input"),
        (request(conversation="conv_1"), "'conversation' is not supported", "conversation"),
        (request(prompt={"id": "p"}), "'prompt' is not supported", "prompt"),
        (request(store="yes"), "expected a boolean", "store"),
        (request(stream=1), "expected a boolean", "stream"),
        (request(parallel_tool_calls="no"), "expected a boolean", "parallel_tool_calls"),
        (request(instructions=["x"]), "expected a string", "instructions"),
        (request(previous_response_id=7), "expected a string", "previous_response_id"),
        (request(metadata=[]), "expected an object", "metadata"),
        (request(max_output_tokens=0), "Invalid 'max_output_tokens'", "max_output_tokens"),
        (request(temperature=3), "Expected a value <= 2", "temperature"),
        (request(text="x"), "expected an object", "text"),
        (request(text={"format": "x"}), "expected an object", "text.format"),
        (answers_in(type="poem"), "'poem'", "text.format.type"),
        (answers_in(type="json_schema"), "parameter: 'text.format.name'", "text.format.name"),
        (answers_in(type="json_schema", name="n"), "Missing", "text.format.schema"),
        (answers_in(type="json_object"), "'input' must contain the word 'json'", "input"),
        (request(tools={}), "expected an array of objects", "tools"),
        (request(tools=["x"]), "expected an object", "tools[0]"),
        (request(tools=[{"type": "function", "function": {"name": "f"}}]), "'tools[0].name'", "tools[0].name"),
        (request(tools=[{"type": "web_search"}]), "'web_search'", "tools[0].type"),
        (request(tools=[{**MENU, "parameters": {"type": "array"}}]), "must have type 'object'", "tools[0].parameters"),
        (request(tools=[MENU], tool_choice="maybe"), "Invalid value: 'maybe'", "tool_choice"),
        (request(tools=[MENU], tool_choice={"type": "file_search"}), "'file_search'", "tool_choice.type"),
        (request(tools=[MENU], tool_choice={"type": "function"}), "Missing", "tool_choice.name"),
        (request(tools=[MENU], tool_choice={**NAMED, "name": "Other"}), "no function named 'Other'", "tool_choice"),
        (request(tools=[MENU], tool_choice={"type": "allowed_tools"}), "an array of objects", "tool_choice.tools"),
        (request(tool_choice="required"), "only allowed when 'tools'", "tool_choice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_the_api_s_shape(body: Any, message: str, param: str | None) -> None:
    status, answer = post(body)
    assert status == 400
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert message in answer["error"]["message"]
    assert answer["error"]["param"] == param
    assert answer["error"]["type"] == "invalid_request_error"


def test_a_conversation_that_outgrows_the_window_is_an_error(client: openai.OpenAI) -> None:
    first = client.responses.create(model="classroom-8k", input="hello there " * 3000)
    with pytest.raises(openai.BadRequestError, match="exceeds the context window") as caught:
        client.responses.create(model="classroom-8k", input="and more " * 3000, previous_response_id=first.id)
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "input")
    assert "8192 tokens" in str(caught.value)


def test_other_methods_and_paths() -> None:
    assert dispatch("GET", "/v1/responses", {}, b"").status == 405
    assert dispatch("PUT", "/v1/responses/resp_1", {}, b"").status == 405
    assert dispatch("GET", "/v1/responses/resp_1", {}, b"").status == 404
    assert dispatch("POST", "/v1/responses/resp_1/cancel", {}, b"").status == 404
    assert dispatch("GET", "/v1/responses/resp_1", {}, b"", api_key="k").status == 401


VALID: dict[str, Any] = {
    "model": MODEL,
    "instructions": "Be kind.",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {
            "role": "user",
            "content": [{"type": "input_image", "image_url": "data:,"}, {"type": "input_file", "file_id": "f"}],
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "hm"}, {"type": "refusal", "refusal": "no"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        CALL,
        {**OUTPUT, "output": [{"type": "input_text", "text": "x"}]},
        {"role": "user", "content": "json"},
    ],
    "tools": [MENU, ADD],
    "tool_choice": ONLY_ORDER,
    "parallel_tool_calls": True,
    "text": {"format": {"type": "json_schema", "name": "n", "strict": True, "schema": MENU["parameters"]}},
    "max_output_tokens": 16,
    "store": False,
    "stream": True,
    "temperature": 1,
    "top_p": 1,
    "seed": 1,
    "user": "u",
    "metadata": {"a": "b"},
    "reasoning": {"effort": "low"},
    "include": [],
    "truncation": "auto",
    "background": False,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
ABSENT = object()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to each value within a JSON value, itself included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a JSON value with `new` at `path`, or nothing there."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    if copy[path[0]] is ABSENT:
        del copy[path[0]]
    return copy


@st.composite
def bodies(draw: st.DrawFn) -> Any:
    """A valid request with up to three values in it replaced or left out."""
    body: Any = {**VALID, "tool_choice": draw(st.sampled_from([ONLY_ORDER, NAMED, "auto", "required", "none"]))}
    for _ in range(draw(st.integers(0, 3))):
        body = changed(body, draw(st.sampled_from(places(body)[1:])), draw(st.just(ABSENT) | JSON))
    return body


QUIET = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))


def test_the_body_that_is_corrupted_is_valid() -> None:
    assert post(VALID)[0] == 200


@QUIET
@given(bodies())
def test_no_body_breaks_the_endpoint(body: Any) -> None:
    status, answer = post(body)
    assert status in (200, 400, 404)
    if status != 200:
        assert set(answer["error"]) == {"message", "type", "param", "code"}


@QUIET
@given(JSON)
def test_no_json_at_all_breaks_the_endpoint(body: Any) -> None:
    assert post(body)[0] in (400, 404)


# --- LangChain ---


@pytest.fixture(params=["whole history", "service-managed"])
def chat(request: pytest.FixtureRequest, server: Server) -> ChatOpenAI:
    return ChatOpenAI(
        model=MODEL, base_url=server.url, api_key="x", max_retries=0, use_responses_api=True,
        use_previous_response_id=request.param == "service-managed",
    )  # fmt: skip


def get_menu() -> str:
    """提取外卖菜单"""
    return "番茄炒蛋、清炒菜心"


def test_langchain_invokes_and_recalls(chat: ChatOpenAI) -> None:
    first = chat.invoke([HumanMessage(NAME)])
    reply = chat.invoke([HumanMessage(NAME), first, HumanMessage(ASK)])
    assert "张三" in reply.text
    sent = [("user", NAME), ("assistant", first.text), ("user", ASK)]
    assert reply.usage_metadata["input_tokens"] == count_chat([{"role": r, "content": c} for r, c in sent])
    assert reply.response_metadata["id"].startswith("resp_")


def test_langchain_streams(chat: ChatOpenAI) -> None:
    chunks = list(chat.stream(NAME))
    assert "".join(chunk.text for chunk in chunks) == chat.invoke(NAME).text
    assert len([chunk for chunk in chunks if chunk.text]) > 1
    assert sum(chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata) > 0


@pytest.mark.parametrize("stream", [False, True])
def test_langchain_calls_a_tool(chat: ChatOpenAI, stream: bool) -> None:
    bound = chat.bind_tools([get_menu], tool_choice="get_menu")
    if stream:
        first, *rest = bound.stream(ORDER_QUESTION)
        reply: Any = sum(rest, first)
    else:
        reply = bound.invoke(ORDER_QUESTION)
    assert [call["name"] for call in reply.tool_calls] == ["get_menu"]
    result = ToolMessage(get_menu(), tool_call_id=reply.tool_calls[0]["id"])
    assert chat.invoke([HumanMessage(ORDER_QUESTION), reply, result]).text


def test_langchain_gets_structured_output(chat: ChatOpenAI) -> None:
    answer = chat.with_structured_output(Preference).invoke("我叫张三，我不吃辣")
    assert isinstance(answer, Preference)


# --- Agent Framework ---


@pytest.fixture
def framework_agent(server: Server) -> Callable[..., Any]:
    agent_framework = pytest.importorskip("agent_framework", reason="needs the extra agent-framework")
    from agent_framework.openai import OpenAIChatClient

    def make(**options: Any) -> Any:
        client = OpenAIChatClient(model=MODEL, base_url=server.url, api_key="x")
        return agent_framework.Agent(client=client, instructions="You are a kind assistant.", **options)

    return make


@pytest.mark.parametrize("stream", [False, True])
async def test_agent_framework_lets_the_service_keep_the_history(framework_agent: Any, stream: bool) -> None:
    async def say(text: str, session: Any) -> Any:
        run = agent.run(text, session=session, stream=stream)
        return await run.get_final_response() if stream else await run

    agent = framework_agent()
    session = agent.create_session()
    await say(NAME, session)
    first_id = session.service_session_id
    assert first_id.startswith("resp_")
    assert "张三" in (await say(ASK, session)).text
    assert session.service_session_id != first_id
    assert "张三" in (await say(ASK, agent.get_session(service_session_id=first_id))).text
    assert "张三" not in (await say(ASK, agent.create_session())).text


async def test_agent_framework_keeps_the_history_itself(framework_agent: Any) -> None:
    from agent_framework import InMemoryHistoryProvider

    agent = framework_agent(context_providers=[InMemoryHistoryProvider("memory", load_messages=True)])
    session = agent.create_session()
    await agent.run(NAME, session=session, options={"store": False})
    assert "张三" in (await agent.run(ASK, session=session, options={"store": False})).text
    assert session.service_session_id is None


@pytest.mark.parametrize("stream", [False, True])
async def test_agent_framework_runs_a_tool_in_a_session(framework_agent: Any, stream: bool) -> None:
    calls = []

    def GetMenu() -> str:  # noqa: N802 - the name the menu tool has in the lessons
        """提取外卖菜单"""
        calls.append("GetMenu")
        return "番茄炒蛋、清炒菜心"

    agent = framework_agent(tools=[GetMenu])
    session = agent.create_session()
    options = {"tool_choice": {"mode": "required", "required_function_name": "GetMenu"}}
    run = agent.run(ORDER_QUESTION, stream=stream, options=options, session=session)
    reply = await run.get_final_response() if stream else await run
    assert calls == ["GetMenu"]
    assert reply.text
    assert (await agent.run("谢谢", session=session)).text  # the chain goes on after call and result
