"""The client of the Responses API, where the service can keep the history: messages to items and back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, ClassVar

from memlab.clients.base import OpenAIClientBase, estimate_usage
from memlab.errors import MemlabError
from memlab.messages import Message, ToolCall, UsageDetails, to_wire
from memlab.response import ChatReply
from memlab.tools import FunctionTool

_LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed")


class OpenAIChatClient(OpenAIClientBase):
    """Speaks the Responses API. Its parameters are those of `OpenAIClientBase`.

    With the option `store=True` the service keeps the conversation, and the `response_id` of a reply, given as
    the option `previous_response_id` of the next request, goes on from there with the new messages alone.

    >>> agent = OpenAIChatClient().as_agent(instructions="Be brief.")
    """

    stores_history: ClassVar[bool] = True

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[FunctionTool], options: Mapping[str, Any], *, stream: bool
    ) -> AsyncIterator[str | ChatReply]:
        """Ask the model: see `memlab.response.ChatClient`.

        `options` are those of the API; `max_tokens`, `response_format` and `tool_choice` may also have the form
        that Chat Completions gives them. Raises what the official client raises, and MemlabError for an answer
        that failed or is none.
        """
        body = to_body(messages, tools, options)
        model, final = self.model, None
        if stream:
            # As in the chat client, extra_body spares the official client's validation of every item.
            events = await self.client.responses.create(model=model, stream=True, extra_body=body)
            async with events:
                async for event in events:
                    if event.type == "response.output_text.delta":
                        yield event.delta
                    elif event.type == "error":
                        raise _failed(model, event)
                    elif event.type in _LAST_EVENTS:
                        final = event.response  # type: ignore[union-attr]
        else:
            final = await self.client.responses.create(model=model, extra_body=body)
        yield _reply(final, model, messages, tools)


# --- what is sent ---


def to_body(messages: Sequence[Message], tools: Sequence[FunctionTool], options: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request, its model aside.

    The system messages at its beginning become the `instructions`, which the service does not keep; all others
    become items.

    >>> to_body([Message("system", "Be brief."), Message("user", "Hi")], [], {"max_tokens": 20})
    {'max_output_tokens': 20, 'input': [{'role': 'user', 'content': 'Hi'}], 'instructions': 'Be brief.'}
    """
    first = list(takewhile(lambda message: message.role in ("system", "developer"), messages))
    body = {**_options(options), "input": [item for message in messages[len(first) :] for item in _items(message)]}
    if first:
        body["instructions"] = "\n\n".join(message.text for message in first)
    if tools:
        body["tools"] = [_flat(tool) for tool in tools]
    return body


def _items(message: Message) -> Iterator[dict[str, Any]]:
    """A message's items: its text, its calls, or its results."""
    for wire in to_wire([message]):
        if wire["role"] == "tool":
            yield {"type": "function_call_output", "call_id": wire["tool_call_id"], "output": wire["content"]}
            continue
        if wire["content"] is not None:
            yield {"role": wire["role"], "content": wire["content"]}
        for call in wire.get("tool_calls", []):
            yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def _flat(tool: FunctionTool) -> dict[str, Any]:
    # The API takes a schema as strict unless told otherwise, and refuses optional parameters then.
    return {"type": "function", **tool.to_wire()["function"], "strict": False}


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
    body = {renamed.get(name, name): value for name, value in options.items()}
    wanted = body.pop("response_format", None)
    if isinstance(wanted, Mapping):
        named = {**wanted, **wanted.get("json_schema", {})}
        named.pop("json_schema", None)
        body["text"] = {**body.get("text", {}), "format": named}
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping) and "function" in choice:
        body["tool_choice"] = {"type": "function", **choice["function"]}
    return body


# --- what comes back ---


def _reply(answer: Any, model: str, messages: Sequence[Message], tools: Sequence[FunctionTool]) -> ChatReply:
    if not hasattr(answer, "output") or answer.output is None:  # a web page, say, comes back as a string
        raise MemlabError(f"{model} answered without a response; is the base URL one that serves /v1/responses?")
    if answer.error is not None:
        raise _failed(model, answer.error)
    parts = [part for item in answer.output if item.type == "message" for part in item.content]
    text = "".join(part.text for part in parts if part.type == "output_text")
    calls = [
        ToolCall(item.call_id, item.name, item.arguments or "{}")
        for item in answer.output
        if item.type == "function_call"
    ]
    message = Message("assistant", [*([text] if text else []), *calls])
    return ChatReply(message, _usage(answer.usage, message, model, messages, tools), _reason(answer), model, answer.id)


def _failed(model: str, error: Any) -> MemlabError:
    return MemlabError(f"{model} failed: {error.message} ({error.code})")


def _reason(answer: Any) -> str:
    """Why the answer ended, under the names of Chat Completions."""
    if answer.incomplete_details is not None:
        reason = answer.incomplete_details.reason
        return "length" if reason == "max_output_tokens" else str(reason)
    return "tool_calls" if any(item.type == "function_call" for item in answer.output) else "stop"


def _usage(
    usage: Any, message: Message, model: str, messages: Sequence[Message], tools: Sequence[FunctionTool]
) -> UsageDetails:
    if usage is not None:
        return UsageDetails.of(usage.input_tokens or 0, usage.output_tokens or 0)
    return estimate_usage(to_wire(messages), [tool.to_wire() for tool in tools], message, model)
