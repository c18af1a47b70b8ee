"""What comes back: a model's reply to one request, an agent's response to one run, and the stream of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from memlab.checks import check_type
from memlab.errors import MemlabError
from memlab.markup import response_html
from memlab.messages import Message, UsageDetails
from memlab.tools import FunctionTool
from memlab.trace import Trace, part_of


@dataclass
class ChatReply:
    """What a model answered to one request. `response_id` names it where the service keeps the history."""

    message: Message
    usage: UsageDetails
    finish_reason: str | None = None
    model: str = ""
    response_id: str | None = None


class ChatClient(Protocol):
    """What an agent needs of a client."""

    def complete(
        self, messages: Sequence[Message], tools: Sequence[FunctionTool], options: Mapping[str, Any], *, stream: bool
    ) -> AsyncIterator[str | ChatReply]:
        """Yield the pieces of the answer's text when streaming, and at last one `ChatReply`."""
        ...


def check_client(client: Any) -> None:
    """Refuse what is no `ChatClient`, now and not at the first request."""
    if isinstance(client, type) or not callable(getattr(client, "complete", None)):
        check_type("client", client, what="a chat client, such as OpenAIChatCompletionClient() or connect().chat")


@dataclass(repr=False)
class AgentResponse:
    """The answer to one run: its messages (tool calls and results included), its cost, and its trace."""

    messages: list[Message]
    usage_details: UsageDetails = field(default_factory=UsageDetails)
    trace: Trace = field(default_factory=Trace)
    finish_reason: str | None = None

    @property
    def text(self) -> str:
        """The text of all answers, tool results left out."""
        return "".join(message.text for message in self.messages if message.role == "assistant")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"AgentResponse(text={self.text!r}, usage_details={self.usage_details})"

    def _repr_html_(self) -> str:
        return response_html(self, part_of)


@dataclass
class AgentResponseUpdate:
    """One piece of a streamed answer."""

    text: str
    role: str = "assistant"

    def __str__(self) -> str:
        return self.text


class ResponseStream:
    """A streamed run: iterate over it for `AgentResponseUpdate`s, then ask for the whole response.

    A stream that is left half way counts as a failed run: nothing is stored.
    """

    def __init__(self, updates: AsyncIterator[AgentResponseUpdate | AgentResponse]) -> None:
        self._updates = updates
        self._final: AgentResponse | None = None
        self._given_up = False

    def __aiter__(self) -> ResponseStream:
        return self

    async def __anext__(self) -> AgentResponseUpdate:
        async for update in self._updates:
            if isinstance(update, AgentResponseUpdate):
                return update
            self._final = update
        if self._final is None and not self._given_up:
            raise MemlabError(
                "the stream was closed before its end, because another run on its session began; "
                "read one answer to its end, or give each run its own session"
            )
        raise StopAsyncIteration

    async def get_final_response(self) -> AgentResponse:
        """The response with usage and trace, after the rest of the stream has been read."""
        async for _ in self:
            pass
        if self._final is None:
            raise MemlabError("the stream ended without an answer: it failed or was closed before its end")
        return self._final

    async def aclose(self) -> None:
        """Give up the rest of the answer."""
        self._given_up = True
        await self._updates.aclose()  # type: ignore[attr-defined]
