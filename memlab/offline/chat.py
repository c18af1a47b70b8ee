"""POST /v1/chat/completions: the classroom model's turn as a completion, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from memlab.offline import chat_model
from memlab.offline.api_errors import ApiError
from memlab.offline.chat_model.turn import Call
from memlab.offline.chat_request import ChatRequest, read_chat_request
from memlab.offline.chat_stream import stream_chunks
from memlab.offline.clock import now
from memlab.offline.models import CHAT_WINDOWS
from memlab.tokens import count_chat, count_text, count_tools, truncate_text


@dataclass(frozen=True)
class Choice:
    """One answer: text or tool calls in the wire format, why it ended, and its tokens."""

    text: str | None
    tool_calls: tuple[dict[str, Any], ...]
    finish_reason: str
    tokens: int


def create_chat_completion(body: dict[str, Any], request_id: str) -> dict[str, Any] | Iterator[bytes]:
    """Answer a request; `request_id` is a hash of it, from which the ids of the answer are made."""
    request = read_chat_request(body)
    prompt_tokens = count_chat(request.body["messages"], request.body.get("tools"), request.model)
    room = _room_for_reply(request, prompt_tokens)
    choices = [_choose(request, i, room, request_id) for i in range(request.n)]
    head = {
        "id": f"chatcmpl-{request_id[:29]}",
        "object": "chat.completion",
        "created": now(),
        "model": request.model,
        "service_tier": "default",
        "system_fingerprint": "fp_classroom",
    }
    usage = _usage(prompt_tokens, sum(choice.tokens for choice in choices))
    if request.stream:
        return stream_chunks(head, choices, usage if request.include_usage else None)
    return {**head, "choices": [_whole(i, choice) for i, choice in enumerate(choices)], "usage": usage}


def _whole(index: int, choice: Choice) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": choice.text,
        "refusal": None,
        "annotations": [],
    }
    if choice.tool_calls:
        message["tool_calls"] = list(choice.tool_calls)
    return {"index": index, "message": message, "logprobs": None, "finish_reason": choice.finish_reason}


def _usage(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


# --- the window ---


def _room_for_reply(request: ChatRequest, prompt_tokens: int) -> int:
    """The tokens that a reply may have; raises the API's error when the request does not fit the window."""
    window = CHAT_WINDOWS[request.model]
    wanted = request.max_tokens or 0
    if prompt_tokens + wanted > window:
        raise _too_long(request, prompt_tokens, window)
    return request.max_tokens or window - prompt_tokens


def _too_long(request: ChatRequest, prompt_tokens: int, window: int) -> ApiError:
    functions = count_tools(request.body.get("tools"), request.model)
    parts = [f"{prompt_tokens - functions} in the messages"]
    parts += [f"{functions} in the functions"] if functions else []
    things = ["messages"] + (["functions"] if functions else [])
    if request.max_tokens is None:
        problem = f"your messages resulted in {prompt_tokens} tokens"
        detail = f" ({', '.join(parts)})" if functions else ""
    else:
        problem = f"you requested {prompt_tokens + request.max_tokens} tokens"
        detail = f" ({', '.join([*parts, f'{request.max_tokens} in the completion'])})"
        things.append("completion")
    return ApiError(
        f"This model's maximum context length is {window} tokens. However, {problem}{detail}. "
        f"Please reduce the length of the {' or '.join(things)}.",
        param="messages",
        code="context_length_exceeded",
    )


# --- one choice ---


def _choose(request: ChatRequest, index: int, room: int, request_id: str) -> Choice:
    body = request.body if index == 0 else {**request.body, "seed": (request.body.get("seed") or 0) + index}
    turn = chat_model.respond(body)
    if turn.tool_calls:
        calls = turn.tool_calls[:1] if body.get("parallel_tool_calls") is False else turn.tool_calls
        return _call_tools(calls, request, room, f"{request_id}{index}")
    text = turn.text or ""
    if request.json_schema is not None:
        text = json.dumps(chat_model.fill_schema(request.json_schema["schema"], body, text), ensure_ascii=False)
    elif request.json_object:
        text = json.dumps({"answer": text}, ensure_ascii=False)
    return _shorten(_stop_at(text, request.stop), request.model, room)


def _stop_at(text: str, stops: tuple[str, ...]) -> str:
    """The text before the first stop sequence in it."""
    return text[: min([text.find(stop) for stop in stops if stop in text], default=len(text))]


def _shorten(text: str, model: str, room: int) -> Choice:
    tokens = count_text(text, model)
    if tokens <= room:
        return Choice(text, (), "stop", tokens)
    return Choice(truncate_text(text, room, model), (), "length", room)


def _call_tools(calls: tuple[Call, ...], request: ChatRequest, room: int, seed: str) -> Choice:
    wire = tuple(_wire_call(call, f"{seed}{i}") for i, call in enumerate(calls))
    tokens = sum(_call_tokens(call, request.model) for call in wire)
    # The API reports "stop" when the caller named the function, "tool_calls" when the model chose.
    reason = "stop" if isinstance(request.body.get("tool_choice"), dict) else "tool_calls"
    choice = Choice(None, wire, reason, tokens)
    return choice if tokens <= room else _cut_off_calls(choice, request.model, room)


def _wire_call(call: Call, seed: str) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    call_id = f"call_{sha256(seed.encode()).hexdigest()[:24]}"
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _call_tokens(call: dict[str, Any], model: str) -> int:
    return count_text(call["function"]["name"], model) + count_text(call["function"]["arguments"], model)


def _cut_off_calls(choice: Choice, model: str, room: int) -> Choice:
    """What the API does when the limit falls within a call: its arguments end there, as broken JSON."""
    kept, left = [], room
    for call in choice.tool_calls:
        left -= count_text(call["function"]["name"], model)
        if left < 0:
            break
        arguments = truncate_text(call["function"]["arguments"], left, model)
        left -= count_text(arguments, model)
        kept.append({**call, "function": {**call["function"], "arguments": arguments}})
    return replace(choice, text=None if kept else "", tool_calls=tuple(kept), finish_reason="length", tokens=room)
