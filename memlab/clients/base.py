"""What the chat clients share: whom they ask, and how they become an agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from memlab import tokens
from memlab.agent import Agent
from memlab.checks import check_type
from memlab.messages import Message, UsageDetails

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from memlab.settings import Lab


class OpenAIClientBase:
    """A model behind the official client.

    Parameters
    ----------
    model : its name; by default the one of `memlab.connect()`.
    async_client : an `openai.AsyncOpenAI`; by default that of `memlab.connect()`, asked for at each call.
    api_key, base_url : make a client of its own from these instead.
    client_of : a function that gives the client for each call.
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
        check_type("model", model, str, None)
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
        return Agent(self, instructions, **options)  # type: ignore[arg-type]  # `complete` is the subclass's part


def _connected() -> Lab:
    from memlab.settings import connect  # the one import that points up: a client without arguments follows it

    return connect()


def estimate_usage(
    wire: list[dict[str, Any]], tools: list[dict[str, Any]] | None, message: Message, model: str
) -> UsageDetails:
    """The usage of a call that the service did not report, counted from what was sent and answered.

    `wire` and `tools` are in the Chat Completions format.
    """
    said = [message.text, *(f"{call.name}{call.arguments}" for call in message.tool_calls)]
    answered = sum(tokens.count_text(text, model) for text in said)
    return UsageDetails.of(tokens.count_chat(wire, tools, model), answered, estimated=True)
