"""The chat client: an agent's messages to the Chat Completions API and back, through the official client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memlab import tokens
from memlab.agent import Agent
from memlab.errors import MemlabError
from memlab.messages import Message, ToolCall, UsageDetails, to_wire
from memlab.response import ChatReply
from memlab.tools import FunctionTool

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from memlab.settings import Lab


class OpenAIChatCompletionClient:
    """Speaks Chat Completions with any compatible endpoint.

    Parameters
    ----------
    model : its name; by default the one of `memlab.connect()`.
    async_client : an `openai.AsyncOpenAI`; by default that of `memlab.connect()`, asked for at each call.
    api_key, base_url : make a client of its own from these instead.
    client_of : a function that gives the client for each call.

    >>> from memlab import Agent
    >>> agent = Agent(client=OpenAIChatCompletionClient(), instructions="Be brief.")
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        async_client: AsyncOpenAI | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        client_of: Callable[[], AsyncOpenAI] | None = None,
    ) -> None:
        if async_client is None and (api_key or base_url):
            from openai import AsyncOpenAI

            async_client = AsyncOpenAI(api_key=api_key, base_url=base_url)
        if async_client is not None:
            client_of = lambda: async_client  # noqa: E731
        self._model = model
        self._client_of = client_of

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self._model or _connected().model

    @property
    def client(self) -> AsyncOpenAI:
        """The official client that is used."""
        return self._client_of() if self._client_of else _connected().client

    def as_agent(self, *, instructions: str | None = None, **options: Any) -> Agent:
        """An `Agent` on this client; takes what `Agent` takes."""
        return Agent(self, instructions, **options)

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
        if not answer.choices:
            raise MemlabError(f"{model} answered without a choice; is the base URL that of a chat endpoint?")
        said = answer.choices[0].message
        calls = [ToolCall(c.id, c.function.name, c.function.arguments or "{}") for c in said.tool_calls or []]  # type: ignore[union-attr]
        return self._reply(body, said.content or "", calls, answer.usage, answer.choices[0].finish_reason, model)

    async def _stream(self, body: dict[str, Any]) -> AsyncIterator[str | ChatReply]:
        model, text, calls = self.model, "", dict[int, list[str]]()
        usage, finish_reason = None, None
        chunks = await self.client.chat.completions.create(
            model=model, messages=[], stream=True, stream_options={"include_usage": True}, extra_body=body
        )
        async with chunks:
            async for chunk in chunks:
                usage = chunk.usage or usage
                for choice in chunk.choices:
                    finish_reason = choice.finish_reason or finish_reason
                    _collect(choice.delta.tool_calls or [], calls)
                    if choice.delta.content:
                        text += choice.delta.content
                        yield choice.delta.content
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


def _connected() -> Lab:
    from memlab.settings import connect  # the one import that points up: a client without arguments follows it

    return connect()


def _collect(deltas: Sequence[Any], calls: dict[int, list[str]]) -> None:
    """A streamed tool call comes in pieces: id and name first, then its arguments bit by bit."""
    for delta in deltas:
        call = calls.setdefault(delta.index, ["", "", ""])
        call[0] = delta.id or call[0]
        call[1] += (delta.function and delta.function.name) or ""
        call[2] += (delta.function and delta.function.arguments) or ""


def _usage(body: Mapping[str, Any], message: Message, usage: Any, model: str) -> UsageDetails:
    if usage is not None:
        return UsageDetails.of(usage.prompt_tokens or 0, usage.completion_tokens or 0)
    prompt = tokens.count_chat(body["messages"], body.get("tools"), model)
    return UsageDetails.of(prompt, tokens.count_text(message.text, model), estimated=True)
