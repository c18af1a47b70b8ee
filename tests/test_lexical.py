"""The tokenizer in three languages, and BM25 against its formula."""

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.lexical import Bm25, _stem, tokenize
from tests.support_sweep import WORDS

texts = st.lists(st.lists(st.sampled_from([*WORDS, "the", "и", "的"]), max_size=8).map(" ".join), max_size=12)


def bm25_by_the_formula(documents, query, k1=1.5, b=0.75):
    corpus = [tokenize(document) for document in documents]
    average = sum(map(len, corpus)) / len(corpus)
    holding = Counter(token for tokens in corpus for token in set(tokens))
    scores = []
    for tokens in corpus:
        counts, score = Counter(tokens), 0.0
        for token in tokenize(query):
            tf, n = counts[token], holding[token]
            if n:
                idf = math.log(1 + (len(corpus) - n + 0.5) / (n + 0.5))
                score += idf * tf / (tf + k1 * (1 - b + b * len(tokens) / average))
        scores.append(score)
    return scores


@given(texts, st.lists(st.sampled_from([*WORDS, "unheard"]), max_size=5).map(" ".join))
def test_bm25_agrees_with_its_formula(documents, query):
    scores = Bm25(documents).scores(query)
    assert (scores.dtype, scores.shape) == (np.float32, (len(documents),))
    if documents and any(map(tokenize, documents)):
        np.testing.assert_allclose(scores, bm25_by_the_formula(documents, query), rtol=1e-4, atol=1e-6)
    else:
        assert not scores.any()


def test_statistics_come_from_the_candidates_alone():
    """A word that is rare among these texts weighs much, however common it is elsewhere."""
    mine, others = ["tram late", "tram early", "piano"], ["piano lesson"] * 50
    alone, together = Bm25(mine).scores("tram piano"), Bm25(mine + others).scores("tram piano")[:3]
    assert alone.argmax() == 2
    assert together.argmax() != 2


def test_a_word_twice_in_the_question_counts_twice():
    index = Bm25(["piano", "boat", "tea"])
    np.testing.assert_allclose(index.scores("piano piano"), 2 * index.scores("piano"), rtol=1e-6)


@pytest.mark.parametrize("query", ["", "  ", "the of and", "的了吗", "unheard", "?!"])
def test_a_question_without_any_word_of_the_texts_scores_zero(query):
    assert Bm25(["piano", "我对花生过敏"]).scores(query).tolist() == [0, 0]


def test_no_texts_and_texts_without_tokens():
    assert Bm25([]).scores("x").shape == (0,)
    assert Bm25(["", "the", "!"]).scores("the").tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Running, RUNS & ran!", ["run", "run", "ran"]),
        ("What is my cousin's name?", ["cousin", "name"]),
        ("I don't like it; you've said so", ["like", "said"]),
        ("room_12 costs 3.50", ["room", "12", "cost", "3", "50"]),
        ("Где моя ёлка?", ["елк"]),
        ("我对花生过敏", ["对", "花", "生", "过", "敏", "我对", "对花", "花生", "生过", "过敏"]),
        ("我的猫叫Pixel吗", ["猫", "叫", "我的", "的猫", "猫叫", "pixel"]),
        ("ｉＰｈｏｎｅ １５", ["iphon", "15"]),
        ("", []),
        ("…!?", []),
    ],
)
def test_tokens(text, tokens):
    assert list(tokenize(text)) == tokens


def test_forms_of_a_word_meet_in_english_and_russian():
    for forms in ("walk walks walking walked", "пианино", "книга книги книгу книгой", "ёлка елка ёлки"):
        assert len(set(tokenize(forms))) == 1, forms


@given(st.text(max_size=60))
def test_any_text_has_tokens_without_blanks(text):
    assert all(token and not any(map(str.isspace, token)) for token in tokenize(text))


def test_several_threads_stem_at_once():
    """A stemmer holds the word it works on, so two threads must not share one at the same moment."""
    words = [f"{word}ing{number}s" for number in range(300) for word in ("walk", "play")]
    words += [word + ending for word in ("собак", "книг", "машин") * 100 for ending in ("ами", "ах", "у", "ой")]
    expected = [tokenize(word) for word in words]
    tokenize.cache_clear()
    _stem.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert list(pool.map(tokenize, words)) == expected
            tokenize.cache_clear()
            _stem.cache_clear()
