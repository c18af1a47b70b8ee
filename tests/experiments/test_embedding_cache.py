"""The cache of embeddings: nothing is paid for twice, whoever asks, and the vectors are those of the embedder."""

import pickle
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab import EVERYONE, InMemoryVectorStore, InvalidTypeError, MemlabError, MemoryRecord, connect
from memlab.clients.cache import CachedEmbedder
from tests.support import EmbeddingEndpoint, word_vector
from tests.support_sweep import SeededEmbedder

TEXTS = ["one", "two", "one", "三", "", "\ud83d lone", "nul \0", "two"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "vectors.sqlite"


def test_vectors_stand_in_the_order_of_the_texts_and_a_text_is_embedded_once(path):
    endpoint = EmbeddingEndpoint()
    cached = CachedEmbedder(endpoint.embedder(), path)
    first, again = cached.embed(["one", "two", "one"]), cached.embed(["three", "one", "two"])
    np.testing.assert_allclose(first, [word_vector(text) for text in ("one", "two", "one")], atol=1e-6)
    np.testing.assert_array_equal(again[1:], first[:2])
    assert [request["input"] for request in endpoint.requests] == [["one", "two"], ["three"]]
    assert (first.dtype, cached.misses, cached.hits) == (np.float32, 3, 2)


def test_every_kind_of_text_comes_back_as_it_was(path):
    first = CachedEmbedder(SeededEmbedderOfAnything(), path).embed(TEXTS)
    silent = SeededEmbedderOfAnything()
    np.testing.assert_array_equal(CachedEmbedder(silent, path).embed(TEXTS), first)
    assert silent.batches == []


class SeededEmbedderOfAnything(SeededEmbedder):
    """Lone surrogates included."""

    def embed(self, texts, role="document"):
        return super().embed([text.encode("utf-8", "surrogatepass").hex() for text in texts], role)


def test_role_model_and_dimensions_keep_vectors_apart(path):
    kinds = [(model, size, role) for model in ("m", "n") for size in (4, 5) for role in ("document", "query")]
    for model, size, role in kinds:
        embedder = SeededEmbedder(model, size)
        assert CachedEmbedder(embedder, path).embed(["one"], role=role).shape == (1, size)
        assert embedder.batches == [(role, ["one"])]


def test_dimensions_are_asked_once_for_all_processes(path):
    endpoint = EmbeddingEndpoint()
    assert CachedEmbedder(endpoint.embedder(), path).dimensions == 8
    CachedEmbedder(endpoint.embedder(), path).embed(["one"])
    count = len(endpoint.requests)
    assert CachedEmbedder(endpoint.embedder(), path).dimensions == 8
    assert len(endpoint.requests) == count
    assert CachedEmbedder(endpoint.embedder(dimensions=5), path).dimensions == 5


def test_the_file_holds_no_text(path):
    CachedEmbedder(SeededEmbedder(), path).embed(["a very private remark"])
    assert all(b"private" not in file.read_bytes() for file in path.parent.iterdir())


def test_missing_names_each_text_once(path):
    cached = CachedEmbedder(SeededEmbedder(), path)
    cached.embed(["one"])
    assert cached.missing(["two", "one", "two"]) == ["two"]
    assert cached.missing(["one"], role="query") == ["one"]


def test_no_texts_and_a_single_text(path):
    cached = CachedEmbedder(SeededEmbedder(), path)
    assert cached.embed([]).shape == (0, 16)
    with pytest.raises(InvalidTypeError, match=r"embed\(\[text\]\)"):
        cached.embed("one")


def test_more_texts_than_a_statement_takes(path):
    texts = [f"text {number}" for number in range(1203)]
    cached = CachedEmbedder(SeededEmbedder(), path)
    first = cached.embed(texts)
    np.testing.assert_array_equal(cached.embed(texts), first)
    assert len(cached.embedder.batches) == 1


@settings(max_examples=25)
@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=5))
def test_any_batches_give_the_vectors_of_the_embedder(batches):
    with tempfile.TemporaryDirectory() as folder:
        cached = CachedEmbedder(SeededEmbedder(), Path(folder, "v.sqlite"))
        for batch in batches:
            np.testing.assert_array_equal(cached.embed(batch), SeededEmbedder().embed(batch))
        assert cached.misses == len({text for batch in batches for text in batch})


def test_a_failure_stores_nothing(path):
    cached = CachedEmbedder(SeededEmbedder(), path)
    cached.embedder.embed = lambda texts, role: np.zeros((1, 16))  # too few vectors
    with pytest.raises(ValueError, match="zip"):
        cached.embed(["one", "two"])
    assert cached.missing(["one", "two"]) == ["one", "two"]


def test_another_length_than_the_file_has_is_an_error_that_names_the_file(path):
    CachedEmbedder(EmbeddingEndpoint().embedder(), path).embed(["one"])
    endpoint = EmbeddingEndpoint()
    endpoint.change = lambda answer: answer | {"data": [row | {"embedding": [1.0] * 3} for row in answer["data"]]}
    with pytest.raises(MemlabError, match=r"vectors\.sqlite.*another length"):
        CachedEmbedder(endpoint.embedder(), path).embed(["one", "two"])


@pytest.mark.parametrize("content", [b"no database at all " * 100, None])
def test_a_file_that_is_no_cache_is_an_error_that_names_it(tmp_path, content):
    path = tmp_path / "notes.sqlite"
    path.write_bytes(content) if content else path.mkdir()
    with pytest.raises(MemlabError, match=r"notes\.sqlite.*cache"):
        CachedEmbedder(SeededEmbedder(), path).embed(["one"])


def test_it_pickles_and_opens_its_file_again(path):
    cached = CachedEmbedder(SeededEmbedder(), path)
    first = cached.embed(["one"])
    copy = pickle.loads(pickle.dumps(cached))
    np.testing.assert_array_equal(copy.embed(["one"]), first)
    assert (copy.hits, copy.embedder.batches) == (1, cached.embedder.batches)


def test_threads_pay_once(path):
    cached = CachedEmbedder(SeededEmbedder(), path)
    texts = [f"text {number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: cached.embed(texts), range(24)))
    assert len(cached.embedder.embedded) == 40
    assert all((result == results[0]).all() for result in results)


WRITER = """
import sys
from memlab.clients.cache import CachedEmbedder
from tests.support_sweep import SeededEmbedder
cached = CachedEmbedder(SeededEmbedder(), sys.argv[1])
for number in range(60):
    cached.embed([f"{sys.argv[2]} {number}", f"shared {number}"])
"""


def test_several_processes_share_one_file(path):
    root = Path(__file__).parents[2]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], cwd=root, stderr=subprocess.PIPE, text=True)
        for name in "abcd"
    ]
    assert [(w.communicate(timeout=120)[1], w.returncode) for w in writers] == [("", 0)] * 4
    silent = SeededEmbedder()
    texts = [f"{name} {number}" for name in ("a", "b", "c", "d", "shared") for number in range(60)]
    np.testing.assert_array_equal(CachedEmbedder(silent, path).embed(texts), SeededEmbedder().embed(texts))
    assert silent.batches == []
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (300,)
    connection.close()


def test_a_store_takes_it_as_its_embedder(path):
    store = InMemoryVectorStore(CachedEmbedder(SeededEmbedder(), path))
    store.upsert("c", [MemoryRecord("one"), MemoryRecord("two")])
    assert store.search("c", "two", scope=EVERYONE)[0].record.text == "two"


def test_the_lab_keeps_it_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lab = connect("offline")
    cached = lab.cached_embedder()
    monkeypatch.chdir("/")  # the file stays where it was
    np.testing.assert_allclose(cached.embed(["我叫张三"]), lab.embedder.embed(["我叫张三"]), atol=1e-6)
    assert (tmp_path / ".memlab" / "embeddings.sqlite").exists()
    other = lab.cached_embedder(lab.embedder_for("lexical-hashing", 64), tmp_path / "x.sqlite")
    assert (other.model, other.embed(["x"]).shape) == ("lexical-hashing", (1, 64))
