"""Sweeps: every number is that of a plain loop of searches; groups, intervals, resuming, prices, several processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import openai
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import InMemoryVectorStore, InvalidInputError, MemoryRecord, MemoryScope, OpenAIEmbedder, select_top_k
from memlab.clients.cache import CachedEmbedder
from memlab.experiments.datasets import Conversation, Dataset, Question, Turn, load_teaching_set
from memlab.experiments.scoring import Prepared, Scored
from memlab.experiments.summary import bootstrap_interval
from memlab.experiments.sweep import estimate_embedding_cost, evidence_ranks, score, sweep
from memlab.lexical import Bm25
from memlab.offline.server import Server
from memlab.ranking import RANKS
from memlab.tokens import count_text
from tests.experiments.test_metrics import cuts, near_ties
from tests.support_sweep import SeededEmbedder, made_dataset

NAN = float("nan")
QUIET = {"progress": False, "resamples": 0}


# --- the plain loop ---


def plain_loop(dataset, embedder, rank, threshold, top_k, template="{text}"):
    """Each question is one search in a store of its conversation; metrics are means over the questions."""
    measured = []
    for talk in dataset.conversations:
        store, scope = InMemoryVectorStore(embedder), MemoryScope(user_id=talk.id)
        store.upsert(
            "c",
            [
                MemoryRecord(turn.written(template), id=turn.id, created_at=turn.created_at, scope=scope)
                for turn in talk.turns
            ],
        )
        for question in talk.questions:
            hits = store.search("c", question.ask, scope=scope, top_k=top_k, threshold=threshold, rank=rank)
            measured.append(judge(question, [(hit.record.id, hit.record.text) for hit in hits]))
    return pd.DataFrame(measured).mean()


def plain_loop_of_quantiles(dataset, threshold, top_k):
    """BM25, whose thresholds are quantiles of all scores."""
    scored = []
    for talk in dataset.conversations:
        index = Bm25([turn.text for turn in talk.turns])
        scored += [(talk, question, index.scores(question.ask)) for question in talk.questions]
    least = np.quantile(np.concatenate([scores for _, _, scores in scored]), threshold)
    measured = []
    for talk, question, scores in scored:
        found = [talk.turns[i] for i in select_top_k(scores, top_k, least)]
        measured.append(judge(question, [(turn.id, turn.text) for turn in found]))
    return pd.DataFrame(measured).mean()


def judge(question, found):
    """The metrics of one search; NaN where one is not defined."""
    hits, gold = len({name for name, _ in found} & set(question.evidence)), len(question.evidence)
    known = {
        "recall": hits / gold if gold else NAN,
        "precision": hits / len(found) if found else 0.0,
        "f1": 2 * hits / (len(found) + gold) if gold else NAN,
        "hit_rate": float(hits > 0),
        "empty_rate": float(not found),
    }
    return {
        **{name: value if gold else NAN for name, value in known.items()},
        "abstention": NAN if gold else float(not found),
        "tokens": float(sum(count_text(text) for _, text in found)),
    }


@pytest.mark.parametrize("template", ["{text}", "{date} {speaker}: {text}"])
@pytest.mark.parametrize("rank", RANKS)
def test_a_sweep_is_a_plain_loop_of_searches(rank, template):
    dataset, embedder, thresholds = made_dataset(), SeededEmbedder(), [-0.2, 0.0, 0.1, 0.3, 0.6]
    if rank == "bm25":
        thresholds = None
    frame = sweep(
        dataset, top_k=[1, 2, 5, 40], threshold=thresholds, rank=rank, embedder=embedder, template=template, **QUIET
    )
    cells = frame[frame["group"] == "all"]
    assert len(cells) == 4 * len(thresholds or [0])
    for _, cell in cells.iterrows():
        threshold = None if thresholds is None else cell["threshold"]
        expected = plain_loop(dataset, embedder, rank, threshold, cell["top_k"], template)
        assert cell[expected.index].to_dict() == pytest.approx(expected.to_dict(), rel=1e-9), cell


def test_a_threshold_of_bm25_is_a_quantile_of_its_scores():
    dataset = made_dataset()
    frame = sweep(dataset, top_k=[1, 4], threshold=[0, 0.5, 0.9, 1], rank="bm25", embedder=SeededEmbedder(), **QUIET)
    for _, cell in frame[frame["group"] == "all"].iterrows():
        expected = plain_loop_of_quantiles(dataset, cell["threshold"], cell["top_k"])
        assert cell[expected.index].to_dict() == pytest.approx(expected.to_dict(), rel=1e-9)


rows = st.integers(1, 10).flatmap(lambda n: st.tuples(*[st.lists(near_ties, min_size=n, max_size=n)] * 2))


@given(rows, cuts, st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_where_similarity_filters_and_another_score_ranks_each_cell_is_a_search(pair, thresholds, top_ks):
    """As a store does it: first those that pass, then the best of them; near ties and chains of them included."""
    scores, similarity = (np.array([values], dtype=np.float32) for values in pair)
    count = scores.shape[1]
    turns = tuple(Turn(str(i), "user", "x") for i in range(count))
    talk = Conversation("c", turns, (Question("q", "?", ("0",)),))
    prepared = Prepared(talk, ("x",) * count, np.arange(1, count + 1), similarity[:0], similarity[:0])
    scored = Scored.of(prepared, "hybrid", scores, similarity)
    counts = scored.count(np.array(thresholds), np.array(top_ks))
    for t, threshold in enumerate(thresholds):
        passing = np.flatnonzero(similarity[0] >= threshold)
        for k, top_k in enumerate(top_ks):
            found = passing[select_top_k(scores[0, passing], top_k)]
            cell = (counts.retrieved[0, t, k], counts.hits[0, t, k], counts.tokens[0, t, k])
            assert cell == (len(found), 0 in found, (found + 1).sum())


# --- groups, columns, intervals ---


def test_a_row_for_each_group_threshold_and_top_k():
    frame = sweep(
        made_dataset(),
        top_k=[3, 1, 3],
        threshold=[0.2, 0.1],
        embedder=SeededEmbedder(),
        by=["category", "language"],
        **QUIET,
    )
    assert list(frame.columns[:8]) == ["dataset", "embedder", "rank", "template", "top_k", "threshold", "group", "n"]
    assert frame["group"].unique().tolist() == ["all", "a", "b", "en", "zh"]
    assert frame.loc[frame["group"] == "a", ["threshold", "top_k"]].to_numpy().tolist() == [
        [0.1, 1], [0.1, 3], [0.2, 1], [0.2, 3]
    ]  # fmt: skip
    n = frame.groupby("group")["n"].first()
    assert (n["all"], n["a"] + n["b"], n["en"] + n["zh"]) == (15, 15, 15)
    # 21 questions, 6 of them without evidence; the mean of all is that of its groups, weighted
    cell = frame[(frame["top_k"] == 3) & (frame["threshold"] == 0.1)].set_index("group")
    assert cell.loc["all", "recall"] == pytest.approx(np.average(cell.loc[["a", "b"], "recall"], weights=n[["a", "b"]]))


def test_groups_whose_names_meet_are_told_apart():
    turns, asked = (
        (Turn("1", "user", "tea"),),
        [Question(str(i), "tea?", ("1",), name) for i, name in enumerate(["all", "en"])],
    )
    dataset = Dataset("d", [Conversation("c", turns, tuple(asked), "en")])
    frame = sweep(dataset, top_k=[1], embedder=SeededEmbedder(), by=["category", "language"], **QUIET)
    assert dict(zip(frame["group"], frame["n"], strict=True)) == {
        "all": 2,
        "category all": 1,
        "en": 1,
        "language en": 2,
    }


def test_a_group_without_evidence_has_abstention_alone():
    dataset = Dataset("d", [Conversation("c", (Turn("1", "user", "tea"),), (Question("q", "boat?", ()),))])
    (row,) = sweep(dataset, top_k=[1], threshold=[1.1], embedder=SeededEmbedder(), progress=False).to_dict("records")
    assert (row["n"], row["abstention"], row["tokens"]) == (0, 1.0, 0.0)
    assert all(np.isnan(row[name]) for name in ("recall", "precision", "f1", "hit_rate", "recall_low", "recall_high"))


def test_the_interval_draws_whole_conversations():
    """Of two conversations with 3 and 1 questions, one is drawn twice, or both are drawn."""
    sums, sizes = np.array([3.0, 0.0]), np.array([3, 1])
    low, high = bootstrap_interval(sums, sizes, resamples=4000)
    assert (low, high) == (0.0, 1.0), "each has a chance of a quarter of being drawn twice"
    many = np.concatenate([np.full(200, 0.0), np.full(200, 2.0)])
    low, high = bootstrap_interval(many, np.full(400, 2), resamples=4000)
    assert (low, high) == pytest.approx((0.5 - 0.049, 0.5 + 0.049), abs=0.004), "1.96 * sqrt(0.25 / 400)"
    assert np.isnan(bootstrap_interval(np.zeros(2), np.zeros(2, dtype=int), 10)).all()
    assert np.isnan(bootstrap_interval(np.ones(2), np.array([5, 0]), 10)).all(), "one says nothing of others"


def test_a_conversation_without_questions_of_the_group_is_not_drawn():
    sums, sizes = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]]), np.array([2, 0, 2])
    low, high = bootstrap_interval(sums, sizes, resamples=100)
    assert low.tolist() == high.tolist() == [0.5, 1.0]


def test_the_interval_of_a_sweep_holds_its_mean_and_is_the_same_each_time():
    settings = {"top_k": [1, 5], "embedder": SeededEmbedder(), "progress": False}
    frame = sweep(made_dataset(), **settings)
    assert (frame["recall_low"] <= frame["recall"]).all()
    assert (frame["recall"] <= frame["recall_high"]).all()
    pd.testing.assert_frame_equal(frame, sweep(made_dataset(), **settings))


def test_evidence_ranks_count_from_one():
    ranks = evidence_ranks(score(made_dataset(), SeededEmbedder()))
    assert len(ranks) == sum(len(q.evidence) for _, q in made_dataset().questions)
    frame = sweep(made_dataset(), rank="cosine", top_k=[1, 5, 23], embedder=SeededEmbedder(), **QUIET)
    hits = frame[frame["group"] == "all"]["precision"].to_numpy()[:2] * 15 * np.array([1, 5])
    assert hits == pytest.approx([(ranks <= 1).sum(), (ranks <= 5).sum()])


# --- what is refused ---


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"rank": "magic"}, "magic.*cosine"),
        ({"top_k": [0, 1]}, r"\[0, 1\]"),
        ({"top_k": [1.5]}, "1.5"),
        ({"top_k": []}, "top_k"),
        ({"threshold": []}, "threshold"),
        ({"threshold": [NAN]}, "nan"),
        ({"threshold": [-0.5, 0.5], "rank": ["cosine", "bm25"]}, "quantile"),
        ({"by": ["speaker"]}, "speaker.*language"),
        ({"template": "{who}: {text}"}, "who.*speaker"),
        ({"rank": []}, "rank"),
        ({"resamples": -1}, "resamples"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_anything_is_embedded(settings, named):
    embedder = SeededEmbedder()
    with pytest.raises(InvalidInputError, match=named):
        sweep(made_dataset(), embedder=embedder, progress=False, **settings)
    assert embedder.batches == []


def test_a_dataset_without_questions_is_refused():
    with pytest.raises(InvalidInputError, match="no question"):
        sweep(Dataset("d", [Conversation("c", (Turn("1", "user", "tea"),), ())]), embedder=SeededEmbedder())


# --- paying once ---


def test_rankings_share_their_vectors_and_bm25_needs_none():
    embedder = SeededEmbedder()
    sweep(made_dataset(), top_k=[1], rank=["bm25", "cosine", "mmr", "hybrid"], embedder=embedder, **QUIET)
    assert len(embedder.batches) == 2 * 3, "turns and questions of three conversations"
    embedder = SeededEmbedder()
    sweep(made_dataset(), top_k=[1], rank="bm25", embedder=embedder, **QUIET)
    assert embedder.batches == []


def test_a_live_sweep_makes_each_embedding_request_once(tmp_path, capsys):
    dataset, settings = made_dataset(), {"top_k": [1, 3], "rank": list(RANKS), **QUIET}
    path = tmp_path / "vectors.sqlite"

    def run(server):
        client = openai.OpenAI(base_url=server.url, api_key="secret")
        return sweep(dataset, embedder=CachedEmbedder(OpenAIEmbedder(client, "use-multilingual"), path), **settings)

    with Server(port=0, api_key="secret") as server:
        first = run(server)
        assert server.counts["/v1/embeddings"] == 2 * len(dataset.conversations)
        second = run(server)
        assert server.counts["/v1/embeddings"] == 2 * len(dataset.conversations), "the second run costs nothing"
    pd.testing.assert_frame_equal(first, second)
    assert "embedding" not in capsys.readouterr().out, "this model is free"


class Paid(OpenAIEmbedder):
    """An embedder of a model with a price, which notes what was printed before it was called."""

    def __init__(self, capsys, model):
        super().__init__(openai.OpenAI(api_key="x", base_url="http://offline.invalid/v1"), model)
        self.capsys, self.printed, self.calls = capsys, "", 0

    def embed(self, texts, role="document"):
        self.printed += self.capsys.readouterr().out
        assert self.printed, "the price is shown before it is spent"
        self.calls += 1
        return SeededEmbedder().embed(texts, role)


@pytest.mark.parametrize(("model", "price"), [("text-embedding-3-small", "$0.0000"), ("dear-model", "unknown price")])
def test_the_price_is_shown_before_it_is_spent(model, price, tmp_path, capsys):
    dataset, paid = made_dataset(), Paid(capsys, model)
    embedder = CachedEmbedder(paid, tmp_path / "vectors.sqlite")
    tokens = estimate_embedding_cost(dataset, embedder).tokens
    sweep(dataset, top_k=[1], embedder=embedder, **QUIET)
    assert paid.calls == 6
    assert f"{tokens:,} tokens with {model}" in paid.printed
    assert price in paid.printed
    assert estimate_embedding_cost(dataset, embedder).tokens == 0, "what is cached costs nothing"


def test_the_estimate_counts_texts_as_they_are_written():
    dataset = made_dataset()
    texts = [turn.written("{date} {text}") for talk in dataset.conversations for turn in talk.turns]
    asked = [question.ask for _, question in dataset.questions]
    tokens, usd = estimate_embedding_cost(dataset, "text-embedding-3-small", "{date} {text}")
    assert tokens == sum(count_text(text, "text-embedding-3-small") for text in texts + asked)
    assert usd == pytest.approx(tokens * 0.02 / 1e6)
    assert estimate_embedding_cost(dataset, "dear-model").usd is None


# --- resuming ---


def test_finished_parts_are_read_and_not_measured_again(tmp_path):
    settings = {"top_k": [1, 3], "threshold": [0.1, 0.3], "resamples": 50, "progress": False, "resume": tmp_path}
    plain = sweep(made_dataset(), rank=["cosine", "hybrid"], embedder=SeededEmbedder(), **{**settings, "resume": None})
    first = sweep(made_dataset(), rank="cosine", embedder=SeededEmbedder(), **settings)
    (part,) = tmp_path.glob("*.json")
    stamp = part.stat().st_mtime_ns
    embedder = SeededEmbedder()
    both = sweep(made_dataset(), rank=["cosine", "hybrid"], embedder=embedder, **settings)
    assert part.stat().st_mtime_ns == stamp
    assert embedder.batches == [], "the folder keeps the vectors, too"
    pd.testing.assert_frame_equal(both, plain)
    pd.testing.assert_frame_equal(both[both["rank"] == "cosine"].reset_index(drop=True), first)


@pytest.mark.parametrize(
    "change",
    [
        {"top_k": [2]},
        {"threshold": [0.5]},
        {"resamples": 9},
        {"by": ["language"]},
        {"dataset": made_dataset(1)},
        {"embedder": SeededEmbedder("other")},
        {"template": "{date} {text}"},
    ],
)
def test_a_part_of_other_settings_is_another_part(change, tmp_path):
    settings = {
        "dataset": made_dataset(),
        "embedder": SeededEmbedder(),
        "top_k": [1],
        "resume": tmp_path,
        "progress": False,
    }
    sweep(**settings)
    sweep(**settings | change)
    assert len(list(tmp_path.glob("*.json"))) == 2


KILLED = """
import sys
from memlab.experiments.sweep import sweep
from tests.support_sweep import SeededEmbedder, made_dataset
templates = ["{text}"] + [f"{n} {{text}}" for n in range(200)]
sweep(made_dataset(sizes=[40] * 5), template=templates, rank="mmr", threshold=[0, 0.1, 0.2], embedder=SeededEmbedder(),
      resume=sys.argv[1], progress=False)
"""


def test_a_killed_sweep_goes_on_where_it_was(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], env=environment)
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("*.json"))) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    assert process.wait(20) != 0, "it was to be killed, not to finish"
    done = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    assert 3 <= len(done) < 201
    embedder, dataset = SeededEmbedder(), made_dataset(sizes=[40] * 5)
    settings = {"template": ["{text}", *(f"{n} {{text}}" for n in range(len(done)))], "rank": "mmr", "progress": False}
    grid = {"threshold": [0, 0.1, 0.2]}
    again = sweep(dataset, embedder=embedder, resume=tmp_path, **settings, **grid)
    assert {path: path.stat().st_mtime_ns for path in done} == done
    embedded = [text for role, text in embedder.embedded if role == "document"]
    finished = {f"{n} " for n in range(len(done) - 1)}
    assert not [text for text in embedded if not text[0].isdigit() or text[: text.index(" ") + 1] in finished]
    pd.testing.assert_frame_equal(again, sweep(dataset, embedder=SeededEmbedder(), **settings, **grid))


# --- the kit's own set ---


def test_the_teaching_set_is_hard_for_cosine_alone_and_for_bm25_alone():
    from memlab import connect

    frame = sweep(
        load_teaching_set(), top_k=[6], rank=["cosine", "bm25"], embedder=connect("offline").embedder, **QUIET
    )
    recall = frame[frame["group"] == "all"].set_index("rank")["recall"]
    assert (recall < 0.8).all()
