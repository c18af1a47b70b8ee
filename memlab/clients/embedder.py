"""The embedder: text to vectors through the OpenAI API, in batches."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memlab import tokens
from memlab.checks import check_type
from memlab.errors import InvalidInputError, InvalidTypeError, MemlabError
from memlab.messages import clean_text
from memlab.stores.base import Vector

if TYPE_CHECKING:
    from openai import OpenAI

logger = logging.getLogger("memlab.embedder")

MAX_TOKENS = 8191  # of one text, and of text-embedding-3
_BATCH_TEXTS = 512
_BATCH_TOKENS = 200_000  # the API refuses more than 300,000 a request
_KNOWN_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_PREFIXES = {"query": "query: ", "document": "passage: "}


class OpenAIEmbedder:
    """Embeds texts with one model.

    Parameters
    ----------
    client : an `openai.OpenAI`.
    model : the embedding model's name.
    dimensions : only for models that can shorten their vectors; sent only when set.
    max_retries : how often a rate limit or a passing fault is tried again, waiting longer each time.
    sleep : waits; to be replaced in tests.

    `tokens_used`, `requests` and `truncated` count what was embedded so far.
    """

    def __init__(
        self,
        client: OpenAI,
        model: str,
        dimensions: int | None = None,
        *,
        max_retries: int = 5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if dimensions is not None and dimensions < 1:
            raise InvalidInputError(f"dimensions is {dimensions}; it must be at least 1, or None for the model's own")
        self.client = client.with_options(max_retries=0)
        self.model = model
        self.max_retries = max_retries
        self.tokens_used = 0
        self.requests = 0
        self.truncated = 0
        self._asked = dimensions
        self._dimensions = dimensions or _KNOWN_DIMENSIONS.get(model)
        self._sleep = sleep

    @property
    def requested_dimensions(self) -> int | None:
        """The length that was asked for; None for the model's own."""
        return self._asked

    @property
    def dimensions(self) -> int:
        """The length d of every vector; an unknown model is asked once."""
        if self._dimensions is None:
            self._dimensions = self.embed(["dimensions"]).shape[1]
        return self._dimensions

    @property
    def has_roles(self) -> bool:
        """Whether the model was trained to embed questions and documents differently (the e5 family)."""
        return re.search(r"(^|[-_/])e5([-_]|$)", self.model.lower()) is not None

    def embed(self, texts: Sequence[str], role: str = "document") -> Vector:
        """The vectors of `texts`: float32 (n, d).

        `role` is "document" for what is stored and "query" for what is asked. A blank text is embedded as a
        space, so that a batch never fails for it; a text over 8,191 tokens is cut there and counted.
        Raises InvalidTypeError for a single string, InvalidInputError for an unknown role.
        """
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            check_type("texts", texts, what="a list of texts: embed([text]) for one")
        if role not in _PREFIXES:
            raise InvalidInputError(f"role is {role!r}; it must be 'document' or 'query'")
        prepared = [self._prepare(text, role) for text in texts]
        if not prepared:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return np.concatenate([self._request(batch) for batch in _batches(prepared)])

    def _prepare(self, text: str, role: str) -> str:
        if not isinstance(text, str):
            raise InvalidTypeError(f"a text to embed is {type(text).__name__}: {text!r:.80}")
        text = clean_text(text) if text.strip() else " "
        prefix = _PREFIXES[role] if self.has_roles else ""
        if len(text.encode()) > MAX_TOKENS:  # a token is at least one byte, so a shorter text is short enough
            room = MAX_TOKENS - tokens.count_text(prefix, self.model)
            cut = tokens.truncate_text(text, room, self.model)
            if cut != text:
                self.truncated += 1
                logger.warning("a text of %d characters was cut to %d tokens", len(text), room)
                text = cut
        return prefix + text

    def _request(self, batch: list[str]) -> Vector:
        options: dict[str, Any] = {"dimensions": self._asked} if self._asked else {}
        # The raw answer, since the client builds every number of a parsed one by itself: four times slower.
        create = self.client.embeddings.with_raw_response.create
        raw = self._with_retries(lambda: create(model=self.model, input=batch, encoding_format="float", **options))
        answer = json.loads(raw.content)
        self.requests += 1
        self.tokens_used += (answer.get("usage") or {}).get("total_tokens") or self._estimate(batch)
        rows = sorted(answer.get("data") or [], key=lambda row: row.get("index", 0))
        if len(rows) != len(batch):
            raise MemlabError(f"{self.model} answered {len(rows)} vectors for {len(batch)} texts")
        vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        if self._asked and vectors.shape[1] != self._asked:
            raise MemlabError(f"{self.model} answered {vectors.shape[1]}-d vectors; dimensions={self._asked} was asked")
        self._dimensions = vectors.shape[1]
        return vectors

    def _estimate(self, batch: list[str]) -> int:
        return sum(tokens.count_text(text, self.model) for text in batch)

    def _with_retries(self, call: Callable[[], Any]) -> Any:
        import openai

        for attempt in range(self.max_retries + 1):
            try:
                return call()
            except (openai.RateLimitError, openai.InternalServerError, openai.APIConnectionError) as error:
                # An exhausted quota is no rate limit: waiting does not fill it.
                if attempt == self.max_retries or getattr(error, "code", None) == "insufficient_quota":
                    raise
                self._sleep(_wait(error, attempt))


def _wait(error: Exception, attempt: int) -> float:
    """Seconds to wait: what the service says, else 0.5, 1, 2, 4, ..."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    try:
        return min(60.0, max(0.0, float(headers.get("retry-after", ""))))
    except ValueError:
        return min(30.0, 0.5 * 2**attempt)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Batches within both limits. Bytes stand in for tokens: a token is at least one."""
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        if batch and (len(batch) == _BATCH_TEXTS or size + length > _BATCH_TOKENS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch
