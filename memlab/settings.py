"""Connecting: `connect()` gives a `Lab`, the clients of one endpoint, offline or live.

Which endpoint, and why, is read in `settings_sources`; offline is the default.
"""

from __future__ import annotations

import asyncio
import copy
import os
import weakref
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab import prices
from memlab.checks import check_type
from memlab.settings_sources import Settings, find_dotenv, load_dotenv, read_settings

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

    from memlab.clients.cache import CachedEmbedder
    from memlab.clients.chat_completions import OpenAIChatCompletionClient
    from memlab.clients.embedder import OpenAIEmbedder
    from memlab.clients.meter import Meter

__all__ = ["Lab", "Settings", "connect", "find_dotenv", "load_dotenv", "read_settings"]


class Lab:
    """A connection: the official clients, a chat client and an embedder, all to one endpoint.

    `model` and `embedding_model` name what is asked; `offline` tells the mode; `meter` counts the tokens.
    """

    def __init__(self, settings: Settings) -> None:
        from memlab.clients.meter import Meter

        self.settings = settings
        self.offline = settings.offline
        self.model = settings.model
        self.embedding_model = settings.embedding_model
        self.meter: Meter = Meter()
        self._clients: weakref.WeakKeyDictionary[Any, AsyncOpenAI] = weakref.WeakKeyDictionary()
        self._loopless: AsyncOpenAI | None = None

    @property
    def client(self) -> AsyncOpenAI:
        """The official asynchronous client: one for each event loop, since connections belong to a loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loopless = self._loopless or self._async_client()
            return self._loopless
        if loop not in self._clients:
            self._clients[loop] = self._async_client()
        return self._clients[loop]

    @cached_property
    def sync_client(self) -> OpenAI:
        """The official synchronous client."""
        import openai

        hooks = {"response": [self.meter.on_response]}
        http = openai.DefaultHttpxClient(event_hooks=hooks, **self._http())
        return openai.OpenAI(http_client=http, **self._endpoint())

    @cached_property
    def chat(self) -> OpenAIChatCompletionClient:
        """A chat client for `Agent`."""
        from memlab.clients.chat_completions import OpenAIChatCompletionClient

        return OpenAIChatCompletionClient(self.model, client_of=lambda: self.client)

    @cached_property
    def embedder(self) -> OpenAIEmbedder:
        """The embedder of this connection."""
        return self.embedder_for(self.embedding_model, self.settings.dimensions)

    def embedder_for(self, model: str, dimensions: int | None = None) -> OpenAIEmbedder:
        """An embedder for another model of the same endpoint."""
        from memlab.clients.embedder import OpenAIEmbedder

        check_type("model", model, str)
        return OpenAIEmbedder(self.sync_client, model, dimensions)

    def cached_embedder(self, embedder: OpenAIEmbedder | None = None, path: str | Path | None = None) -> CachedEmbedder:
        """An embedder that keeps its vectors on disk, so that nothing is paid for twice.

        `embedder` is this connection's by default, `path` the file `.memlab/embeddings.sqlite` in the working
        directory.
        """
        from memlab.clients.cache import CachedEmbedder

        return CachedEmbedder(embedder or self.embedder, path or Path(".memlab", "embeddings.sqlite"))

    def embedding_models(self) -> list[str]:
        """The embedding models to compare: those installed offline; live the one that was chosen."""
        if not self.offline:
            return [self.embedding_model]
        names = [model.id for model in self.sync_client.models.list()]
        return [name for name in names if not name.startswith("classroom-")]

    def with_model(self, model: str) -> Lab:
        """The same connection and meter with another chat model."""
        check_type("model", model, str)
        twin = copy.copy(self)
        twin.model = model
        twin.__dict__.pop("chat", None)
        return twin

    def describe(self) -> str:
        """The mode, its reason, the models and the cost so far, in a few lines. Shows no key and no host."""
        kind = "in-process classroom endpoint" if self.offline else "OpenAI-compatible endpoint"
        window = prices.context_window(self.model)
        return "\n".join(
            [
                f"mode:       {'offline' if self.offline else 'LIVE'} ({self.settings.why})",
                f"endpoint:   {kind}",
                f"chat model: {self.model}" + (f", window {window:,} tokens" if window else ""),
                f"embeddings: {self.embedding_model}",
                f"cost:       {self.cost_so_far()}",
            ]
        )

    def banner(self) -> str:
        """One line for the top and the end of a notebook: offline or live, and the cost so far."""
        mode = "offline: no key, no network, no cost" if self.offline else "LIVE: requests cost money"
        return f"memlab {mode} | {self.model} | {self.embedding_model} | {self.cost_so_far()}"

    def cost_so_far(self) -> str:
        """Requests, tokens and money so far, in words."""
        meter = self.meter
        total = sum(meter.input_tokens.values()) + sum(meter.output_tokens.values())
        cost = meter.cost_usd()
        money = "no price known" if cost is None else f"${cost:.4f}"
        unknown = f", {meter.unreported} without usage" if meter.unreported else ""
        return f"{sum(meter.requests.values())} requests{unknown}, {total:,} tokens, {money}"

    def check(self, holds: Any, claim: str) -> None:
        """Check a claim of a lesson. Offline a false one raises AssertionError; live it shows ✓ or ✗ and goes on."""
        if self.offline and not holds:
            raise AssertionError(f"this does not hold: {claim}")
        print(f"{'✓' if holds else '✗'} {claim}")

    def affordable(self, what: str, input_tokens: int, output_tokens: int = 0, limit_usd: float = 0.05) -> bool:
        """Whether a step may run: offline always; live only when its estimated price is known and within the limit.

        Prints why not, so that a skipped cell says so.
        """
        if self.offline:
            return True
        cost = prices.cost_usd(self.model, input_tokens, output_tokens)
        if cost is not None and cost <= limit_usd:
            return True
        price = "an unknown price" if cost is None else f"about ${cost:.2f}"
        print(f"skipped: {what} would cost {price} live, over the limit of ${limit_usd:.2f}")
        return False

    def _endpoint(self) -> dict[str, Any]:
        if self.offline:
            return {"api_key": "offline", "base_url": "http://offline.invalid/v1"}
        return {"api_key": self.settings.api_key, "base_url": self.settings.base_url}

    def _http(self) -> dict[str, Any]:
        options: dict[str, Any] = {"headers": {"Accept-Encoding": "identity"}}  # the meter reads bodies as they come
        if self.offline:
            from memlab.offline.transport import OfflineTransport

            options["transport"] = OfflineTransport()
        return options

    def _async_client(self) -> AsyncOpenAI:
        import openai

        hooks = {"response": [self.meter.on_async_response]}
        http = openai.DefaultAsyncHttpxClient(event_hooks=hooks, **self._http())
        return openai.AsyncOpenAI(http_client=http, **self._endpoint())

    def __repr__(self) -> str:
        return self.describe()


_current: Lab | None = None


def connect(
    mode: str | None = None,
    *,
    model: str | None = None,
    embedding_model: str | None = None,
    dimensions: int | None = None,
) -> Lab:
    """Connect to the endpoint: offline unless live was asked for.

    Without arguments, one `Lab` for the whole process, made at the first call. With arguments a new one, which
    clients made without arguments follow from then on.

    Parameters
    ----------
    mode : "offline" or "live"; by default what the environment and `.env` say.
    model, embedding_model, dimensions : instead of the mode's own, such as "classroom-8k".
    """
    global _current
    check_type("mode", mode, str, None, what="'offline', 'live' or None")
    check_type("model", model, str, None)
    check_type("embedding_model", embedding_model, str, None)
    check_type("dimensions", dimensions, int, None)
    given = {"model": model, "embedding_model": embedding_model, "dimensions": dimensions}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if _current is None or chosen or mode:
        settings = read_settings(os.environ, load_dotenv(), mode)
        _current = Lab(replace(settings, **chosen))
    return _current
