"""POST /v1/responses: the chat handler behind the API that can keep a conversation by itself.

A response that is stored keeps the items of its whole conversation. A request that names it as its
`previous_response_id` goes on from there: the items become messages again, and the classroom model, which
remembers nothing, reads them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from memlab.offline.api_errors import ApiError
from memlab.offline.chat import create_chat_completion
from memlab.offline.clock import now
from memlab.offline.responses_items import Item, read_items
from memlab.offline.responses_request import check_fields, in_words_of_responses, to_chat_body
from memlab.offline.responses_store import STORE, StoredResponse, previous_items
from memlab.offline.responses_stream import stream_events


def create_response(body: dict[str, Any], request_id: str) -> dict[str, Any] | Iterator[bytes]:
    """Answer a request; `request_id` is a hash of it, from which the ids of the answer are made.

    The id of the response it goes on from is a part of the request, so the id tells the whole conversation.
    """
    check_fields(body)
    previous = body.get("previous_response_id")
    earlier = previous_items(previous) if previous is not None else ()
    items = (*earlier, *read_items(body.get("input")))
    response = _to_response(body, _complete(body, items, request_id), request_id)

    def keep() -> None:
        if response["store"]:
            STORE.put(StoredResponse(response, (*items, *response["output"])))

    if body.get("stream"):
        return stream_events(response, keep)  # kept at its end: who leaves half way has no response
    keep()
    return response


def _complete(body: dict[str, Any], items: tuple[Item, ...], request_id: str) -> dict[str, Any]:
    chat_body = to_chat_body(body, items)
    try:
        completion = create_chat_completion(chat_body, request_id)
    except ApiError as error:
        raise in_words_of_responses(error) from error
    assert isinstance(completion, dict)  # not streamed
    return completion


def _to_response(body: dict[str, Any], completion: dict[str, Any], request_id: str) -> dict[str, Any]:
    choice = completion["choices"][0]
    cut_off = choice["finish_reason"] == "length"
    status = "incomplete" if cut_off else "completed"
    time = now()
    return {
        "id": f"resp_{request_id[:48]}",
        "object": "response",
        "created_at": time,
        "status": status,
        "completed_at": None if cut_off else time,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut_off else None,
        "model": completion["model"],
        "output": _output(choice["message"], status, request_id),
        **_echo(body),
        "usage": _usage(completion["usage"]),  # last, so that it is found at the end of a stream
    }


def _output(message: dict[str, Any], status: str, request_id: str) -> list[Item]:
    calls = message.get("tool_calls", [])
    if calls:
        return [_call_item(call, status, _item_id("fc", request_id, i)) for i, call in enumerate(calls)]
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": message["content"]}
    item_id = _item_id("msg", request_id, 0)
    return [{"id": item_id, "type": "message", "status": status, "role": "assistant", "content": [part]}]


def _call_item(call: dict[str, Any], status: str, item_id: str) -> Item:
    return {"id": item_id, "type": "function_call", "status": status, "call_id": call["id"], **call["function"]}


def _item_id(kind: str, request_id: str, index: int) -> str:
    return f"{kind}_{sha256(f'{request_id}:{index}'.encode()).hexdigest()[:48]}"


def _echo(body: dict[str, Any]) -> dict[str, Any]:
    """What the API repeats of a request, with its defaults."""
    defaults: dict[str, Any] = {
        "background": False,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "user": None,
    }
    return {name: default if body.get(name) is None else body[name] for name, default in defaults.items()}


def _usage(usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["total_tokens"],
    }
