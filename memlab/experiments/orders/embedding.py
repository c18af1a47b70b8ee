"""Vectors kept in this process: in an experiment the same few hundred texts come again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memlab.stores.base import Embeds, Vector


class RememberingEmbedder:
    """An embedder that embeds each text once. It takes the place of the one it is made from.

    A vector does not depend on which texts came before: what is new is embedded one by one, but for `prepare`.
    """

    def __init__(self, embedder: Embeds) -> None:
        self.embedder, self.model = embedder, embedder.model
        self._known: dict[tuple[str, str], Vector] = {}

    def embed(self, texts: Sequence[str], role: str = "document") -> Vector:
        """Vectors (n, d) of `texts`; parameters and errors are those of the embedder."""
        for text in texts:
            if (text, role) not in self._known:
                self._known[text, role] = self.embedder.embed([text], role=role)[0]
        return np.stack([self._known[text, role] for text in texts])

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed texts that will be stored, in batches."""
        new = [text for text in dict.fromkeys(texts) if (text, "document") not in self._known]
        if new:
            vectors = self.embedder.embed(new, role="document")
            self._known |= {(text, "document"): vector for text, vector in zip(new, vectors, strict=True)}
