"""The chat client: an agent's messages to the Chat Completions API and back, through the official client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from memlab.clients.base import OpenAIClientBase, estimate_usage
from memlab.errors import MemlabError
from memlab.messages import Message, ToolCall, UsageDetails, to_wire
from memlab.response import ChatReply
from memlab.tools import FunctionTool


class OpenAIChatCompletionClient(OpenAIClientBase):
    """Speaks Chat Completions with any compatible endpoint. Its parameters are those of `OpenAIClientBase`.

    >>> from memlab import Agent
    >>> agent = Agent(client=OpenAIChatCompletionClient(), instructions="Be brief.")
    """

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[FunctionTool], options: Mapping[str, Any], *, stream: bool
    ) -> AsyncIterator[str | ChatReply]:
        """Ask the model: see `memlab.agent.ChatClient`. Raises what the official client raises."""
        wire = to_wire(messages)
        # The official client validates `messages=` item by item: 25 ms at 100 messages. extra_body goes as it is.
        body: dict[str, Any] = {"messages": wire, **options}
        if tools:
            body["tools"] = [tool.to_wire() for tool in tools]
        if stream:
            async for part in self._stream(body):
                yield part
        else:
            yield await self._whole(body)

    async def _whole(self, body: dict[str, Any]) -> ChatReply:
        model = self.model
        answer = await self.client.chat.completions.create(model=model, messages=[], extra_body=body)
        if not getattr(answer, "choices", None):  # a web page, say, comes back as a string
            raise _no_choice(model)
        said = answer.choices[0].message
        calls = [ToolCall(c.id, c.function.name, c.function.arguments or "{}") for c in said.tool_calls or []]  # type: ignore[union-attr]
        return self._reply(body, said.content or "", calls, answer.usage, answer.choices[0].finish_reason, model)

    async def _stream(self, body: dict[str, Any]) -> AsyncIterator[str | ChatReply]:
        model, text, calls = self.model, "", dict[int, list[str]]()
        usage, finish_reason, answered = None, None, False
        chunks = await self.client.chat.completions.create(
            model=model, messages=[], stream=True, stream_options={"include_usage": True}, extra_body=body
        )
        async with chunks:
            async for chunk in chunks:
                usage = chunk.usage or usage
                for choice in chunk.choices or []:
                    answered = True
                    finish_reason = choice.finish_reason or finish_reason
                    _collect(choice.delta.tool_calls or [], calls)
                    if choice.delta.content:
                        text += choice.delta.content
                        yield choice.delta.content
        if not answered:
            raise _no_choice(model)
        made = [ToolCall(call_id, name, arguments or "{}") for call_id, name, arguments in calls.values()]
        yield self._reply(body, text, made, usage, finish_reason, model)

    def _reply(
        self,
        body: Mapping[str, Any],
        text: str,
        calls: list[ToolCall],
        usage: Any,
        finish_reason: str | None,
        model: str,
    ) -> ChatReply:
        message = Message("assistant", [*([text] if text else []), *calls])
        return ChatReply(message, _usage(body, message, usage, model), finish_reason, model)


def _no_choice(model: str) -> MemlabError:
    return MemlabError(f"{model} answered without a choice; is the base URL that of a chat endpoint?")


def _collect(deltas: Sequence[Any], calls: dict[int, list[str]]) -> None:
    """A streamed tool call comes in pieces: id and name first, then its arguments bit by bit."""
    for delta in deltas:
        index = delta.index
        if delta.id and index in calls and delta.id != calls[index][0]:
            index = len(calls)  # some endpoints send each call whole, all under index 0
        call = calls.setdefault(index, ["", "", ""])
        call[0] = delta.id or call[0]
        call[1] += (delta.function and delta.function.name) or ""
        call[2] += (delta.function and delta.function.arguments) or ""


def _usage(body: Mapping[str, Any], message: Message, usage: Any, model: str) -> UsageDetails:
    if usage is not None:
        return UsageDetails.of(usage.prompt_tokens or 0, usage.completion_tokens or 0)
    return estimate_usage(body["messages"], body.get("tools"), message, model)
