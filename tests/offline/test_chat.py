"""Chat completions through the official client, in process and over the port."""

import asyncio
import json
import subprocess
import sys
import time
from typing import Any

import openai
import pydantic
import pytest

from memlab.offline import clock
from memlab.offline.transport import OFFLINE_URL, async_http_client
from memlab.tokens import count_chat, count_text

MODEL = "classroom-128k"
HELLO = [{"role": "user", "content": "我叫张三"}]
WITH_HISTORY = [*HELLO, {"role": "assistant", "content": "你好，张三！"}, {"role": "user", "content": "我叫什么名字？"}]
MENU = {"type": "function", "function": {"name": "GetMenu", "description": "提取外卖菜单"}}
ORDER = {
    "type": "function",
    "function": {
        "name": "PlaceOrder",
        "description": "外卖下单",
        "parameters": {
            "type": "object",
            "properties": {"orderItems": {"type": "object", "additionalProperties": {"type": "integer"}}},
            "required": ["orderItems"],
        },
    },
}
NAMED = {"type": "function", "function": {"name": "GetMenu"}}


def ask(client: openai.OpenAI, messages: Any = HELLO, **options: Any) -> Any:
    return client.chat.completions.create(model=MODEL, messages=messages, **options)


def gather(stream: Any) -> tuple[str, list[Any]]:
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    return text, chunks


# --- the reply ---


def test_memory_is_only_what_is_sent(client: openai.OpenAI) -> None:
    assert "张三" in ask(client, WITH_HISTORY).choices[0].message.content
    assert "张三" not in ask(client, WITH_HISTORY[-1:]).choices[0].message.content


def test_a_reply_has_the_api_s_fields(client: openai.OpenAI) -> None:
    reply = ask(client)
    assert reply.object == "chat.completion"
    assert reply.id.startswith("chatcmpl-")
    assert reply.model == MODEL
    assert reply.choices[0].finish_reason == "stop"
    assert reply.choices[0].message.role == "assistant"
    assert reply.choices[0].logprobs is None
    assert abs(reply.created - time.time()) < 60


def test_usage_counts_true_tokens(client: openai.OpenAI) -> None:
    reply = ask(client, WITH_HISTORY, tools=[MENU])
    usage = reply.usage
    assert usage.prompt_tokens == count_chat(WITH_HISTORY, [MENU])
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    reply = ask(client)
    assert reply.usage.prompt_tokens == 11
    assert reply.usage.completion_tokens == count_text(reply.choices[0].message.content)


def test_the_same_request_gives_the_same_reply(client: openai.OpenAI) -> None:
    first, second, other = ask(client), ask(client), ask(client, WITH_HISTORY)
    assert (first.id, first.choices) == (second.id, second.choices)
    assert first.id != other.id


def test_the_clock_can_be_set(client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLAB_CLOCK", "1700000000")
    assert ask(client).created == 1700000000
    clock.set_clock(lambda: 1600000000.9)
    try:
        assert ask(client).created == 1600000000
    finally:
        clock.set_clock(None)


def test_content_parts_and_the_developer_role_are_read(client: openai.OpenAI) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    parts = [{"role": "developer", "content": "Be kind."}]
    parts += [{"role": "user", "content": [{"type": "text", "text": "我叫张三"}, image]}, *WITH_HISTORY[1:]]
    assert "张三" in ask(client, parts).choices[0].message.content


def test_fields_without_a_meaning_here_are_tolerated(client: openai.OpenAI) -> None:
    reply = ask(
        client, temperature=0.7, top_p=0.9, logprobs=True, top_logprobs=2, reasoning_effort="low", user="u",
        extra_body={"brand_new_field": {"a": 1}}, presence_penalty=1, logit_bias={"1": 2}, store=False,
    )  # fmt: skip
    assert reply.choices[0].message.content
    assert reply.choices[0].logprobs is None


# --- limits ---


@pytest.mark.parametrize("option", ["max_tokens", "max_completion_tokens"])
def test_a_token_limit_cuts_the_reply(client: openai.OpenAI, option: str) -> None:
    whole = ask(client).choices[0].message.content
    reply = ask(client, **{option: 2})
    assert reply.choices[0].finish_reason == "length"
    assert whole.startswith(reply.choices[0].message.content)
    assert reply.usage.completion_tokens == 2


def test_a_stop_sequence_ends_the_reply_before_it(client: openai.OpenAI) -> None:
    whole = ask(client).choices[0].message.content
    cut = ask(client, stop=[whole[2], "nowhere"]).choices[0]
    assert cut.message.content == whole[: whole.index(whole[2])]
    assert cut.finish_reason == "stop"


def test_several_choices_are_counted_together(client: openai.OpenAI) -> None:
    reply = ask(client, n=3, seed=7)
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    assert reply.usage.completion_tokens == sum(count_text(c.message.content) for c in reply.choices)
    assert reply.choices == ask(client, n=3, seed=7).choices


@pytest.mark.parametrize(("model", "window"), [("classroom-8k", 8192), ("classroom-32k", 32768)])
def test_an_overlong_request_gets_the_api_s_error(client: openai.OpenAI, model: str, window: int) -> None:
    long = [{"role": "user", "content": "word " * window}]
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=long)
    tokens = count_chat(long)
    assert caught.value.code == "context_length_exceeded"
    assert caught.value.param == "messages"
    assert caught.value.body["message"] == (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} "
        "tokens. Please reduce the length of the messages."
    )


def test_the_error_names_functions_and_completion(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match=r"in the functions, 8190 in the completion\)") as caught:
        client.chat.completions.create(model="classroom-8k", messages=HELLO, tools=[MENU], max_tokens=8190)
    assert "However, you requested" in caught.value.message


def test_a_request_that_just_fits_is_answered(client: openai.OpenAI) -> None:
    limit = 8192 - 11
    assert client.chat.completions.create(model="classroom-8k", messages=HELLO, max_tokens=limit).choices
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="classroom-8k", messages=HELLO, max_tokens=limit + 1)


# --- streams ---


def test_a_stream_says_the_same_in_small_pieces(client: openai.OpenAI) -> None:
    whole = ask(client).choices[0].message.content
    text, chunks = gather(ask(client, stream=True))
    assert text == whole
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert len(chunks) == count_text(whole) + 2
    assert all(chunk.usage is None for chunk in chunks)


def test_a_stream_with_usage_ends_with_it(client: openai.OpenAI) -> None:
    _, chunks = gather(ask(client, stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].choices == []
    assert chunks[-1].usage == ask(client).usage
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_a_stream_keeps_characters_whole(client: openai.OpenAI) -> None:
    odd = [{"role": "user", "content": "Повтори: 🍜🧑‍🍳 饕餮 𝔘𝔫𝔦 — é"}]
    text, _ = gather(ask(client, odd, stream=True))
    assert text == ask(client, odd).choices[0].message.content
    assert "\ufffd" not in text


def test_limits_and_choices_hold_in_a_stream(client: openai.OpenAI) -> None:
    chunks = list(ask(client, stream=True, n=2, max_tokens=2))
    ends = {c.choices[0].index: c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason}
    assert ends == {0: "length", 1: "length"}


def test_an_error_comes_before_a_stream(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError):
        ask(client, [{"role": "user", "content": "word " * 140_000}], stream=True)


async def test_other_tasks_run_between_the_events_of_a_stream() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async with openai.AsyncOpenAI(base_url=OFFLINE_URL, api_key="x", http_client=async_http_client()) as client:
        stream = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        ticking = asyncio.create_task(tick())
        seen = [ticks async for _ in stream]
        ticking.cancel()
    assert seen == sorted(set(seen))  # the other task ran between every two events


def test_a_stream_can_be_abandoned(client: openai.OpenAI) -> None:
    with ask(client, stream=True) as stream:
        next(iter(stream))
    assert ask(client).choices[0].finish_reason == "stop"


# --- tools ---


def test_a_tool_is_called_and_its_result_answered(client: openai.OpenAI) -> None:
    question = [{"role": "user", "content": "帮我点一份外卖"}]
    choice = ask(client, question, tools=[MENU, ORDER], tool_choice="required").choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    call = choice.message.tool_calls[0]
    assert call.id.startswith("call_")
    assert call.function.name in ("GetMenu", "PlaceOrder")
    assert isinstance(json.loads(call.function.arguments), dict)
    calls = [c.model_dump() for c in choice.message.tool_calls]
    results = [{"role": "tool", "tool_call_id": c["id"], "content": "番茄炒蛋、清炒菜心"} for c in calls]
    messages = [*question, {"role": "assistant", "content": None, "tool_calls": calls}, *results]
    assert ask(client, messages).choices[0].message.content


def test_a_named_tool_is_the_one_called(client: openai.OpenAI) -> None:
    reply = ask(client, tools=[ORDER, MENU], tool_choice=NAMED)
    assert [call.function.name for call in reply.choices[0].message.tool_calls] == ["GetMenu"]
    assert reply.usage.completion_tokens == count_text("GetMenu") + count_text("{}")


def test_no_tool_is_called_when_none_may_be(client: openai.OpenAI) -> None:
    message = ask(client, tools=[MENU], tool_choice="none").choices[0].message
    assert message.tool_calls is None
    assert message.content


def test_without_parallel_calls_there_is_one(client: openai.OpenAI) -> None:
    reply = ask(client, tools=[MENU, ORDER], tool_choice="required", parallel_tool_calls=False)
    assert len(reply.choices[0].message.tool_calls) == 1


def test_a_streamed_call_adds_up_to_the_whole_one(client: openai.OpenAI) -> None:
    options = {"tools": [ORDER], "tool_choice": {"type": "function", "function": {"name": "PlaceOrder"}}}
    whole = ask(client, **options).choices[0].message.tool_calls[0]
    chunks = list(ask(client, stream=True, **options))
    deltas = [d for c in chunks for d in c.choices[0].delta.tool_calls or []]
    assert deltas[0].id.startswith("call_")
    assert deltas[0].function.name == whole.function.name
    assert all(delta.id is None and delta.function.name is None for delta in deltas[1:])
    assert "".join(delta.function.arguments for delta in deltas) == whole.function.arguments
    assert chunks[-1].choices[0].finish_reason


def test_a_limit_inside_a_call_breaks_its_arguments(client: openai.OpenAI) -> None:
    named = {"type": "function", "function": {"name": "PlaceOrder"}}
    choice = ask(client, tools=[ORDER], tool_choice=named, max_tokens=3).choices[0]
    assert choice.finish_reason == "length"


# --- response_format ---


class Preference(pydantic.BaseModel):
    name: str
    likes_spicy: bool
    portions: int


def test_a_schema_is_filled(client: openai.OpenAI) -> None:
    reply = client.chat.completions.parse(model=MODEL, messages=HELLO, response_format=Preference)
    assert isinstance(reply.choices[0].message.parsed, Preference)


def test_a_schema_is_filled_in_a_stream(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model=MODEL, messages=HELLO, response_format=Preference) as stream:
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Preference)


def test_a_json_object_is_json(client: openai.OpenAI) -> None:
    messages = [{"role": "system", "content": "Answer in JSON."}, *HELLO]
    reply = ask(client, messages, response_format={"type": "json_object"})
    assert isinstance(json.loads(reply.choices[0].message.content), dict)
    with pytest.raises(openai.BadRequestError, match="must contain the word 'json'"):
        ask(client, HELLO, response_format={"type": "json_object"})


# --- async, and across processes ---


async def test_the_async_client_gets_the_same(async_client: openai.AsyncOpenAI) -> None:
    reply = await async_client.chat.completions.create(model=MODEL, messages=WITH_HISTORY)
    assert "张三" in reply.choices[0].message.content
    stream = await async_client.chat.completions.create(model=MODEL, messages=WITH_HISTORY, stream=True)
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert text == reply.choices[0].message.content


def test_another_process_answers_byte_for_byte_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from memlab.offline.dispatch import dispatch

    monkeypatch.setenv("MEMLAB_CLOCK", "1700000000")
    body = json.dumps({"model": MODEL, "messages": WITH_HISTORY}).encode()
    code = (
        "import sys; from memlab.offline.dispatch import dispatch\n"
        "body = sys.stdin.buffer.read()\n"
        "sys.stdout.buffer.write(dispatch('POST', '/v1/chat/completions', {}, body).body)"
    )
    other = subprocess.run([sys.executable, "-c", code], input=body, capture_output=True, check=True).stdout
    assert other == dispatch("POST", "/v1/chat/completions", {}, body).body
