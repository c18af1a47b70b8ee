"""Lexical ranking: words that two texts share. BM25, and the tokenizer under it for Chinese, English and Russian."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from memlab.vectors import FloatArray

_RUN = re.compile(r"[\u3400-\u9fff]+|[^\W_\u3400-\u9fff]+")

# Words that say nothing about a topic. Questions are full of them, which is what makes them harmful.
STOP_WORDS = frozenset(
    """
    a about again all also am an and any are as at be been before being but by can could did do does doing for from had
    has have having he her here hers him his how i if in into is it its just me more most my no nor not now of on once
    only or other our out over own s same she should so some such t than that the their them then there these they this
    those to too up very was we were what when where which while who whom why will with would you your
    ll re ve d m don didn doesn isn wasn
    и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по ее её мне было вот от меня еще ещё
    нет о из ему когда даже ну ли если уже или ни быть был него до вас нибудь вам ведь там потом себя ей они тут где
    есть для мы тебя их чем была сам чтоб без чего себе под будет кто этот того потому этого какой ним здесь этом
    мой моя моё мои тем чтобы нее была были куда зачем всех при об это эта эти
    """.split()  # noqa: SIM905
)
STOP_CHARACTERS = frozenset("的了是我你他她它们这那有在吗呢吧啊就也都和与不没什么么哪怎为")


@lru_cache(maxsize=4096)
def tokenize(text: str) -> tuple[str, ...]:
    """The tokens of a text, in their order.

    English and Russian words lose their endings, stop words are left out. Of a run of Chinese characters, each
    pair is a token, and each character that is no stop character.

    >>> tokenize("The cats were running")
    ('cat', 'run')
    >>> tokenize("我对花生过敏")
    ('对', '花', '生', '过', '敏', '我对', '对花', '花生', '生过', '过敏')
    """
    tokens: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).lower()):
        if "\u3400" <= run[0] <= "\u9fff":
            tokens += [character for character in run if character not in STOP_CHARACTERS]
            tokens += [run[i : i + 2] for i in range(len(run) - 1)]
        elif run not in STOP_WORDS:
            tokens.append(_stem(run))
    return tuple(tokens)


_STEMMING = threading.Lock()  # a stemmer works on a word that it holds; stores search from several threads


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    language = "russian" if "\u0400" <= word[0] <= "\u04ff" else "english"
    with _STEMMING:
        stemmed: str = _stemmer(language).stemWord(word)
    return stemmed


@lru_cache(maxsize=2)
def _stemmer(language: str) -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer(language)


class Bm25:
    """BM25 over a fixed set of texts, whose statistics come from these texts alone.

    score(q, d) = sum over the tokens t of q of  idf(t) * tf / (tf + k1 * (1 - b + b * |d| / avg|d|))

    Scale: 0 (no token in common) upwards without bound; it depends on the texts, so scores of different sets do
    not compare. Source: Robertson, Zaragoza, The Probabilistic Relevance Framework (2009); k1 = 1.5, b = 0.75.

    >>> Bm25(["I am allergic to peanuts", "the tram was late"]).scores("peanut allergy").argmax()
    np.int64(0)
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._count = len(texts)
        corpus = [list(tokenize(text)) for text in texts]
        self._index: Any = None
        if any(corpus):
            import bm25s

            self._index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
            self._index.index(corpus, show_progress=False)

    def scores(self, query: str) -> FloatArray:
        """The score of each text for `query`: float32 (n,)."""
        wanted = [token for token in tokenize(query) if self._index is not None and token in self._index.vocab_dict]
        if not wanted:
            return np.zeros(self._count, dtype=np.float32)
        return np.asarray(self._index.get_scores(wanted), dtype=np.float32)
