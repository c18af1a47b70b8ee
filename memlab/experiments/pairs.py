"""Scores of related and unrelated texts, for one embedding model: what lesson 3 draws."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from memlab.assets import data_path
from memlab.stores.base import Embeds
from memlab.vectors import FloatArray, cosine_matrix

if TYPE_CHECKING:
    import pandas as pd


def load_pairs() -> pd.DataFrame:
    """36 questions, each with the memory that answers it: columns lang, question, memory."""
    import pandas as pd

    return pd.DataFrame(json.loads(data_path("pairs.json").read_text(encoding="utf-8")))


def related_and_unrelated(embedder: Embeds, pairs: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    """Cosines of each question with its own memory (n,), and with every other memory of its language (m,)."""
    questions = embedder.embed(pairs["question"].tolist(), role="query")
    memories = embedder.embed(pairs["memory"].tolist(), role="document")
    scores = cosine_matrix(questions, memories)
    same_language = pairs["lang"].to_numpy()[:, None] == pairs["lang"].to_numpy()[None, :]
    own = np.eye(len(pairs), dtype=bool)
    return scores[own], scores[same_language & ~own]


def kept_by_threshold(related: FloatArray, unrelated: FloatArray, threshold: float) -> tuple[float, float]:
    """The share of related and of unrelated pairs with `score >= threshold`."""
    return float(np.mean(related >= threshold)), float(np.mean(unrelated >= threshold))


def best_threshold(related: FloatArray, unrelated: FloatArray) -> float:
    """The threshold that keeps the most related pairs and drops the most unrelated ones.

    It maximises (share of related kept) - (share of unrelated kept), Youden's index (Cancer 3, 1950).
    """
    candidates = np.unique(np.concatenate([related, unrelated]))
    gains = [np.subtract(*kept_by_threshold(related, unrelated, threshold)) for threshold in candidates]
    return float(candidates[int(np.argmax(gains))])
