"""Shared parts of the tests of experiments: made conversations, and an embedder with given vectors."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from memlab.experiments.datasets import Conversation, Dataset, Question, Turn

WORDS = [
    "tea",
    "boat",
    "Peter",
    "allergy",
    "tram",
    "piano",
    "cousin",
    "sauna",
    "violin",
    "花生",
    "过敏",
    "собака",
    "море",
]


class SeededEmbedder:
    """Vectors that depend on the text alone. Keeps the batches that it was asked for, and pickles."""

    def __init__(self, model: str = "seeded", dimensions: int = 16) -> None:
        self.model, self.dimensions = model, dimensions
        self.batches: list[tuple[str, list[str]]] = []

    def embed(self, texts: Sequence[str], role: str = "document") -> np.ndarray:
        self.batches.append((role, list(texts)))
        rows = [np.random.default_rng(zlib.crc32(t.encode())).normal(size=self.dimensions) for t in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dimensions)

    @property
    def embedded(self) -> list[tuple[str, str]]:
        """Role and text of all that was embedded."""
        return [(role, text) for role, texts in self.batches for text in texts]


def made_dataset(seed: int = 0, sizes: Sequence[int] = (14, 9, 23)) -> Dataset:
    """Conversations of `sizes` turns, some turns said twice, with questions in two categories and two languages."""
    rng = np.random.default_rng(seed)
    talks = []
    for number, size in enumerate(sizes):
        texts = [" ".join(rng.choice(WORDS, size=4)) for _ in range(size - 2)]
        texts += texts[:2]
        start = datetime(2026, 1, 1 + number, tzinfo=UTC)
        turns = [Turn(f"t{i}", "user", text, "s", start + timedelta(hours=i)) for i, text in enumerate(texts)]
        asked = []
        for i in range(7):
            evidence = () if i % 3 == 2 else tuple(f"t{j}" for j in rng.choice(size, size=1 + i % 2, replace=False))
            asked.append(Question(f"q{i}", f"{' '.join(rng.choice(WORDS, size=3))}?", evidence, "ab"[i % 2]))
        talks.append(Conversation(f"talk {number}", tuple(turns), tuple(asked), ("en", "zh")[number % 2]))
    return Dataset("made", talks)


def shared_file(*parts: str) -> Path:
    """A public benchmark file, from `MEMLAB_SHARED_DATA` or `shared/data` beside the repository; else a skip."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("MEMLAB_SHARED_DATA", beside), *parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(parts)} is not beside the repository; set MEMLAB_SHARED_DATA to its folder")
    return path
