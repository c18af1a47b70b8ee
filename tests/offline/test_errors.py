"""What the API refuses, the endpoint refuses: same status, same shape."""

import json
from typing import Any

import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab.offline.dispatch import dispatch

USER = {"role": "user", "content": "hi"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "GetMenu", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
MENU = {"type": "function", "function": {"name": "GetMenu"}}


def chat(body: Any) -> tuple[int, dict[str, Any]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = dispatch("POST", "/v1/chat/completions", {}, raw)
    return reply.status, json.loads(reply.body)


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "classroom-8k", "messages": list(messages) or [USER], **fields}


def tool_with(schema: Any) -> dict[str, Any]:
    return request(tools=[{"type": "function", "function": {"name": "GetMenu", "parameters": schema}}])


@pytest.mark.parametrize(
    ("body", "message", "param"),
    [
        (b"{not json", "could not parse the JSON body", None),
        (b'{"model": NaN}', "could not parse the JSON body", None),
        (b'{"model": 1e999}', "could not parse the JSON body", None),
        (b'"\xff"', "could not parse the JSON body", None),
        (b"", "could not parse the JSON body", None),
        ([1], "must be an object", None),
        (b"[" * 100_000, "nested too deeply", None),
        ({"messages": [USER]}, "you must provide a model parameter", None),
        ({"model": 7, "messages": [USER]}, "expected a string, but got an integer", "model"),
        ({"model": "classroom-8k"}, "Missing required parameter: 'messages'", "messages"),
        (request() | {"messages": "hi"}, "expected an array of objects, but got a string", "messages"),
        (request() | {"messages": []}, "empty array", "messages"),
        (request("hi"), "expected an object, but got a string", "messages[0]"),
        (request({"content": "hi"}), "Missing required parameter", "messages[0].role"),
        (request({"role": "wizard", "content": "hi"}), "Invalid value: 'wizard'", "messages[0].role"),
        (request({"role": "user"}), "expected a string, got null", "messages[0].content"),
        (request({"role": "user", "content": 5}), "but got an integer", "messages[0].content"),
        (request({"role": "user", "content": [{"type": "text"}]}), "Missing", "messages[0].content[0].text"),
        (request({"role": "user", "content": [{"type": "smell"}]}), "'smell'", "messages[0].content[0].type"),
        (request({**USER, "name": 3}), "expected a string", "messages[0].name"),
        (request({"role": "assistant"}), "got null", "messages[0].content"),
        (request({**CALLING, "tool_calls": []}), "empty array", "messages[0].tool_calls"),
        (request({**CALLING, "tool_calls": [{}]}), "Missing", "messages[0].tool_calls[0].function"),
        (request(USER, {"role": "tool", "content": "x"}), "Missing", "messages[1].tool_call_id"),
        (
            request(USER, {"role": "tool", "content": "x", "tool_call_id": "call_1"}),
            "must be a response to a preceeding message with 'tool_calls'",
            "messages.[1].role",
        ),
        (request(USER, CALLING), "did not have response messages: call_1", "messages.[2].role"),
        (request(USER, CALLING, USER), "did not have response messages: call_1", "messages.[2].role"),
        (request(n=0), "below minimum", "n"),
        (request(n=True), "expected an integer, but got a boolean", "n"),
        (request(n=1000), "above maximum", "n"),
        (request(max_tokens=0), "below minimum", "max_tokens"),
        (request(max_tokens="many"), "expected an integer", "max_tokens"),
        (request(max_tokens=1, max_completion_tokens=1), "at the same time", None),
        (request(temperature=3), "Expected a value <= 2", "temperature"),
        (request(temperature="hot"), "expected a decimal", "temperature"),
        (request(stop=list("abcde")), "maximum length 4", "stop"),
        (request(stop=[1]), "expected a string or an array of strings", "stop"),
        (request(stream="yes"), "expected a boolean", "stream"),
        (request(stream_options={"include_usage": True}), "only allowed when 'stream'", "stream_options"),
        (request(seed=1.5), "expected an integer", "seed"),
        (request(tools=[]), "empty array", "tools"),
        (request(tools=[{"type": "function"}]), "Missing", "tools[0].function"),
        (request(tools=[{"type": "web_search"}]), "'web_search'", "tools[0].type"),
        (request(tools=[{"type": "function", "function": {"name": "a b"}}]), "match", "tools[0].function.name"),
        (tool_with({"properties": []}), "'properties' can't be used", "tools[0].function.parameters"),
        (tool_with({"properties": {"a": 1}}), "(at /properties/a)", "tools[0].function.parameters"),
        (tool_with({"type": "text"}), "'type' can't be used", "tools[0].function.parameters"),
        (tool_with({"type": "array"}), "must have type 'object'", "tools[0].function.parameters"),
        (tool_with({"const": 1}), "must have type 'object'", "tools[0].function.parameters"),
        (tool_with({"minItems": 10**9}), "'minItems' can't be used", "tools[0].function.parameters"),
        (request(tools=[MENU], tool_choice="maybe"), "Invalid value: 'maybe'", "tool_choice"),
        (request(tool_choice="required"), "only allowed when 'tools'", "tool_choice"),
        (
            request(tools=[MENU], tool_choice={"type": "function", "function": {"name": "Other"}}),
            "no function named 'Other'",
            "tool_choice",
        ),
        (request(response_format={"type": "poem"}), "'poem'", "response_format.type"),
        (request(response_format={"type": "json_schema"}), "Missing", "response_format.json_schema"),
    ],
)
def test_a_malformed_request_is_a_400_that_names_the_field(body: Any, message: str, param: str | None) -> None:
    status, reply = chat(body)
    assert status == 400
    assert set(reply["error"]) == {"message", "type", "param", "code"}
    assert message in reply["error"]["message"]
    assert reply["error"]["param"] == param
    assert reply["error"]["type"] == "invalid_request_error"


def test_a_well_formed_tool_round_is_answered() -> None:
    result = {"role": "tool", "tool_call_id": "call_1", "content": "番茄炒蛋"}
    status, _ = chat(request(USER, CALLING, result, USER, tools=[MENU]))
    assert status == 200


@pytest.mark.parametrize("model", ["gpt-4o", "use-multilingual", "classroom-9k"])
def test_an_unknown_model_is_a_404(client: openai.OpenAI, model: str) -> None:
    with pytest.raises(openai.NotFoundError, match="classroom-8k") as caught:
        client.chat.completions.create(model=model, messages=[USER])
    assert caught.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/chat/completions", 405),
        ("DELETE", "/v1/models/classroom-8k", 405),
        ("POST", "/v1/models", 405),
        ("POST", "/v1/images/generations", 404),
        ("POST", "/chat/completions", 404),
        ("GET", "/", 404),
        ("GET", "/v1/models/nope", 404),
    ],
)
def test_other_paths_and_methods(method: str, path: str, status: int) -> None:
    reply = dispatch(method, path, {}, b"")
    assert reply.status == status
    assert json.loads(reply.body)["error"]["message"]
    assert (status == 405) == ("allow" in reply.headers)


def test_a_base_url_without_v1_is_explained() -> None:
    assert b"must end in /v1" in dispatch("POST", "/chat/completions", {}, b"{}").body  # type: ignore[operator]


def test_models_are_listed_and_found(client: openai.OpenAI) -> None:
    names = {model.id for model in client.models.list()}
    assert {"classroom-8k", "classroom-32k", "classroom-128k", "use-multilingual", "lexical-hashing"} <= names
    assert client.models.retrieve("classroom-8k").owned_by == "memlab"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4o")


def test_lone_surrogates_do_no_harm() -> None:
    body = b'{"model": "classroom-8k", "messages": [{"role": "user", "content": "a\\ud800b \\ud83c\\udf5c"}]}'
    status, reply = chat(body)
    assert status == 200
    assert "\ud800" not in json.dumps(reply, ensure_ascii=False)


def test_a_key_is_checked_when_there_is_one() -> None:
    def status(headers: dict[str, str]) -> int:
        return dispatch("GET", "/v1/models", headers, b"", api_key="sésame").status

    assert status({"Authorization": "Bearer sésame"}) == 200
    assert status({"authorization": "Bearer other"}) == 401
    assert status({}) == 401
    reply = dispatch("GET", "/v1/models", {"authorization": "Bearer other"}, b"", api_key="sésame")
    assert json.loads(reply.body)["error"]["code"] == "invalid_api_key"  # type: ignore[arg-type]
    assert b"other" not in reply.body  # type: ignore[operator]
    assert "sésame".encode() not in reply.body  # type: ignore[operator]


# --- whatever comes, never a 500 ---

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
ROLE = st.sampled_from(["user", "assistant", "system", "developer", "tool", "function", "wizard"])
PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image_url", "x"])}, optional={"text": JSON, "image_url": JSON}
)
FUNCTION = st.fixed_dictionaries(
    {"name": st.sampled_from(["GetMenu", "Search", "a b"]) | JSON},
    optional={"arguments": JSON, "description": JSON, "parameters": JSON},
)
TOOL_CALL = st.fixed_dictionaries(
    {"id": st.just("c1") | JSON, "type": st.just("function") | JSON, "function": FUNCTION | JSON}
)
MESSAGE = st.fixed_dictionaries(
    {"role": ROLE | JSON, "content": st.text(max_size=20) | st.lists(PART, max_size=3) | JSON},
    optional={
        "name": JSON,
        "tool_call_id": st.just("c1") | JSON,
        "tool_calls": st.lists(TOOL_CALL | JSON, max_size=2) | JSON,
    },
)
TYPE = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])
SCHEMA = st.recursive(
    st.fixed_dictionaries({}, optional={"type": TYPE | st.lists(TYPE, max_size=2) | JSON, "enum": JSON, "const": JSON}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": TYPE | JSON,
            "properties": st.dictionaries(st.text(max_size=5), inner, max_size=3) | JSON,
            "required": st.lists(st.text(max_size=3), max_size=2) | JSON,
            "items": inner | JSON,
            "anyOf": st.lists(inner, max_size=2) | JSON,
            "$defs": st.dictionaries(st.just("A"), inner) | JSON,
            "$ref": st.sampled_from(["#/$defs/A", "#", "#/nowhere", "http://x"]) | JSON,
            "minimum": st.integers() | st.floats(allow_nan=False, allow_infinity=False) | JSON,
            "minItems": st.integers(0, 5) | JSON,
            "maxLength": st.integers(0, 5) | JSON,
            "description": JSON,
        },
    ),
    max_leaves=5,
)
TOOL_FUNCTION = st.fixed_dictionaries(
    {"name": st.just("GetMenu")}, optional={"parameters": SCHEMA | JSON, "description": JSON}
)
TOOL = st.fixed_dictionaries({"type": st.just("function") | JSON, "function": TOOL_FUNCTION | JSON})
FORMAT = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "json_object", "json_schema"]) | JSON},
    optional={"json_schema": st.fixed_dictionaries({"name": st.just("n"), "schema": SCHEMA}) | JSON},
)
CHAT_BODY = st.fixed_dictionaries(
    {"model": st.just("classroom-8k"), "messages": st.lists(MESSAGE | JSON, max_size=4) | JSON},
    optional={
        "tools": st.lists(TOOL | JSON, max_size=2) | JSON,
        "tool_choice": st.sampled_from(["auto", "none", "required"]) | JSON,
        "parallel_tool_calls": JSON,
        "response_format": FORMAT | JSON,
        "stream": st.booleans() | JSON,
        "stream_options": JSON,
        "max_tokens": st.integers(-1, 9000) | JSON,
        "max_completion_tokens": JSON,
        "n": st.integers(0, 3) | JSON,
        "stop": st.text(max_size=2) | JSON,
        "seed": JSON,
        "temperature": JSON,
        "extra": JSON,
    },
)
EMBEDDING_BODY = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["lexical-hashing", "use-multilingual"]),
        "input": st.lists(st.integers(-5, 200_000), max_size=5) | st.lists(st.text(max_size=9), max_size=3) | JSON,
    },
    optional={
        "dimensions": st.integers(-1, 5000) | JSON,
        "encoding_format": st.sampled_from(["float", "base64"]) | JSON,
    },
)
QUIET = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def answer(path: str, body: Any) -> int:
    reply = dispatch("POST", path, {}, json.dumps(body).encode())
    content = reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)
    if reply.status != 200:
        assert set(json.loads(content)["error"]) == {"message", "type", "param", "code"}
    return reply.status


@QUIET
@given(CHAT_BODY)
def test_no_chat_body_breaks_the_endpoint(body: dict[str, Any]) -> None:
    assert answer("/v1/chat/completions", body) in (200, 400, 404)


@QUIET
@given(SCHEMA, st.booleans())
def test_no_schema_breaks_the_endpoint(schema: dict[str, Any], as_tool: bool) -> None:
    if as_tool:
        body = tool_with(schema) | {"tool_choice": "required"}
    else:
        named = {"name": "answer", "schema": schema}
        body = request(response_format={"type": "json_schema", "json_schema": named})
    assert answer("/v1/chat/completions", body) in (200, 400)


@QUIET
@given(EMBEDDING_BODY)
def test_no_embedding_body_breaks_the_endpoint(body: dict[str, Any]) -> None:
    assert answer("/v1/embeddings", body) in (200, 400)


@QUIET
@given(JSON)
def test_no_json_at_all_breaks_the_endpoint(body: Any) -> None:
    assert answer("/v1/chat/completions", body) in (400, 404)
    assert answer("/v1/embeddings", body) in (400, 404)
