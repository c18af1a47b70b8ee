"""The embedder, through the official client: what goes over the wire, and what happens when it fails."""

import httpx2
import numpy as np
import openai
import pytest

from memlab import InvalidInputError, InvalidTypeError, MemlabError
from memlab.clients import embedder as module
from memlab.tokens import count_text
from tests.support import EmbeddingEndpoint, failure, word_vector


def test_vectors_stand_in_the_order_of_the_texts_though_the_endpoint_answers_in_another():
    endpoint = EmbeddingEndpoint()
    texts = ["one", "two", "三", "one"]
    vectors = endpoint.embedder().embed(texts)
    assert (vectors.dtype, vectors.shape) == (np.float32, (4, 8))
    np.testing.assert_allclose(vectors, [word_vector(text) for text in texts], atol=1e-6)
    (request,) = endpoint.requests
    assert request == {"model": "test-embedding", "input": texts, "encoding_format": "float"}


def test_dimensions_are_sent_only_when_set():
    endpoint = EmbeddingEndpoint()
    embedder = endpoint.embedder(dimensions=5)
    assert embedder.dimensions == embedder.embed(["x"]).shape[1] == 5
    assert endpoint.requests[0]["dimensions"] == 5


def test_an_endpoint_that_ignores_dimensions_is_an_error_with_both_numbers():
    endpoint = EmbeddingEndpoint()
    endpoint.change = lambda answer: answer | {"data": [row | {"embedding": [1.0] * 8} for row in answer["data"]]}
    with pytest.raises(MemlabError, match=r"8-d.*dimensions=5"):
        endpoint.embedder(dimensions=5).embed(["x"])


def test_an_unknown_model_is_asked_once_for_its_dimensions():
    endpoint = EmbeddingEndpoint()
    embedder = endpoint.embedder()
    assert [embedder.dimensions, embedder.dimensions] == [8, 8]
    assert len(endpoint.requests) == 1
    assert endpoint.embedder("text-embedding-3-small").dimensions == 1536
    assert len(endpoint.requests) == 1
    assert embedder.embed([]).shape == (0, 8)


def test_many_texts_go_in_batches_of_both_limits(monkeypatch):
    monkeypatch.setattr(module, "_BATCH_TEXTS", 3)
    monkeypatch.setattr(module, "_BATCH_TOKENS", 100)
    endpoint = EmbeddingEndpoint()
    texts = ["a", "b", "c", "d", "x" * 60, "y" * 60, "z" * 200, "e"]
    embedder = endpoint.embedder()
    vectors = embedder.embed(texts)
    assert [request["input"] for request in endpoint.requests] == [
        texts[:3],
        texts[3:5],
        texts[5:6],
        texts[6:7],
        texts[7:],
    ]
    np.testing.assert_allclose(vectors, [word_vector(text) for text in texts], atol=1e-6)
    assert (embedder.requests, embedder.tokens_used) == (5, 24)


def test_tokens_are_counted_here_when_no_usage_is_reported():
    embedder = EmbeddingEndpoint(usage=False).embedder("text-embedding-3-small")
    embedder.embed(["我叫张三", "hi"])
    assert embedder.tokens_used == count_text("我叫张三", "text-embedding-3-small") + 1


def test_blank_text_is_sent_as_a_space_and_a_lone_surrogate_repaired():
    endpoint = EmbeddingEndpoint()
    endpoint.embedder().embed(["", " \n", "hi \ud83d"])
    assert endpoint.requests[0]["input"] == [" ", " ", "hi \ufffd"]


@pytest.mark.parametrize(("tokens", "cut"), [(8191, 0), (8192, 1), (20_000, 1)])
def test_a_text_that_is_too_long_is_cut_and_counted(tokens, cut, caplog):
    endpoint = EmbeddingEndpoint()
    embedder = endpoint.embedder("text-embedding-3-small")
    text = " hello" * tokens
    endpoint.change = lambda answer: answer | {"data": [{"index": 0, "embedding": [1.0], "object": "embedding"}]}
    embedder.embed([text])
    (sent,) = endpoint.requests[0]["input"]
    assert count_text(sent, "text-embedding-3-small") == 8191
    assert text.startswith(sent)
    assert embedder.truncated == cut == len(caplog.records)
    assert "hello" not in caplog.text


@pytest.mark.parametrize("model", ["multilingual-e5-small", "intfloat/e5-base-v2", "E5"])
def test_a_role_aware_model_gets_its_prefixes(model):
    endpoint = EmbeddingEndpoint()
    embedder = endpoint.embedder(model)
    embedder.embed(["who?"], role="query")
    embedder.embed(["me", ""])
    assert [request["input"] for request in endpoint.requests] == [["query: who?"], ["passage: me", "passage:  "]]


@pytest.mark.parametrize("model", ["text-embedding-3-small", "use-multilingual", "model5", "re5t"])
def test_other_models_get_the_same_text_for_both_roles(model):
    endpoint = EmbeddingEndpoint()
    endpoint.embedder(model).embed(["who?"], role="query")
    assert endpoint.requests[0]["input"] == ["who?"]


# --- faults ---


def test_a_rate_limit_is_waited_out_as_long_as_the_service_says():
    limits = [failure(429, headers={"retry-after": text}) for text in ("7", "0.25", "900", "-3")]
    endpoint = EmbeddingEndpoint(*limits)
    assert endpoint.embedder().embed(["x"]).shape == (1, 8)
    assert endpoint.waits == [7.0, 0.25, 60.0, 0.0]
    assert len(endpoint.requests) == 5


def test_a_passing_fault_is_tried_again_with_longer_and_longer_waits():
    faults = [failure(500), failure(503), failure(429), failure(502, headers={"retry-after": "Wed, 21 Oct 2026"})]
    endpoint = EmbeddingEndpoint(*faults)
    endpoint.embedder().embed(["x"])
    assert endpoint.waits == [0.5, 1.0, 2.0, 4.0]


def test_a_lost_connection_is_tried_again():
    endpoint = EmbeddingEndpoint()
    handle, lost = endpoint.handle, [httpx2.ConnectError("lost")]

    def lose_once(request):
        if lost:
            raise lost.pop()
        return handle(request)

    endpoint.handle = lose_once
    endpoint.embedder().embed(["x"])
    assert endpoint.waits == [0.5]


def test_in_the_end_the_error_comes_out():
    endpoint = EmbeddingEndpoint(*[failure(429) for _ in range(9)])
    with pytest.raises(openai.RateLimitError):
        endpoint.embedder(max_retries=2).embed(["x"])
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (failure(429, "insufficient_quota"), openai.RateLimitError),
        (failure(401), openai.AuthenticationError),
        (failure(400), openai.BadRequestError),
    ],
)
def test_what_waiting_does_not_cure_is_not_tried_again(fault, error):
    endpoint = EmbeddingEndpoint(fault)
    with pytest.raises(error):
        endpoint.embedder().embed(["x"])
    assert (len(endpoint.requests), endpoint.waits) == (1, [])


@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_number_of_vectors_is_an_error(count):
    endpoint = EmbeddingEndpoint()
    endpoint.change = lambda answer: answer | {"data": answer["data"][:1] * count}
    with pytest.raises(MemlabError, match=f"{count} vectors for 2 texts"):
        endpoint.embedder().embed(["x", "y"])


def test_input_that_makes_no_sense_is_refused():
    embedder = EmbeddingEndpoint().embedder()
    with pytest.raises(InvalidTypeError, match=r"embed\(\[text\]\)"):
        embedder.embed("one text")
    with pytest.raises(InvalidTypeError, match="NoneType"):
        embedder.embed([None])
    with pytest.raises(InvalidInputError, match=r"'passage'.*'document' or 'query'"):
        embedder.embed(["x"], role="passage")
    with pytest.raises(InvalidInputError, match="dimensions is 0"):
        EmbeddingEndpoint().embedder(dimensions=0)
