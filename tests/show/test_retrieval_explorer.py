"""The explorer counts what a sweep counts, asks for each vector once, and shows its static twin."""

import hashlib
import time

import numpy as np
import pytest

from memlab import show
from memlab.errors import InvalidInputError
from memlab.experiments.datasets import Conversation, Dataset, Question, Turn
from memlab.experiments.sweep import sweep
from memlab.ranking import RANKS
from memlab.show.retrieval_scores import RetrievalScores
from memlab.show.style import png
from memlab.vectors import select_top_k

WORDS = "tea rain boat cat sister garden exam train soup piano winter letter".split()  # noqa: SIM905


class Topics:
    """Vectors of words, summed: texts that share words are near. Counts the texts it is asked for."""

    model = "topics"

    def __init__(self) -> None:
        self.asked = 0

    def embed(self, texts, role="document"):
        self.asked += len(texts)
        return np.array([sum(map(self._word, text.split())) for text in texts], dtype=np.float32)

    @staticmethod
    def _word(word: str):
        return np.random.default_rng(list(hashlib.sha256(word.encode()).digest()[:4])).normal(size=24)


def dataset(talks: int = 3, turns: int = 40, questions: int = 9) -> Dataset:
    random = np.random.default_rng(5)
    made = []
    for number in range(talks):
        said = [Turn(f"t{i}", "user", f"{number} {' '.join(random.choice(WORDS, 4))}") for i in range(turns + number)]
        asked = []
        for i in range(questions):
            evidence = tuple(random.choice([turn.id for turn in said], i % 3, replace=False).tolist())
            asked.append(
                Question(f"q{i}", " ".join(random.choice(WORDS, 3)), evidence, "single" if evidence else "none")
            )
        made.append(Conversation(f"c{number}", tuple(said), tuple(asked)))
    return Dataset("toy", made)


@pytest.fixture(scope="module")
def toy() -> Dataset:
    return dataset()


def counted(scores: RetrievalScores, rank: str, top_k: int, threshold: float) -> dict[str, float]:
    ranking = scores.ranking(rank)
    least = ranking.least(threshold)
    tables = [table.count(top_k, least).metrics() for table in ranking.tables(least, top_k)]
    return {name: float(np.nanmean(np.concatenate([table[name] for table in tables]))) for name in tables[0]}


@pytest.mark.parametrize("rank", RANKS)
def test_every_setting_counts_as_a_sweep_does(toy: Dataset, rank: str) -> None:
    scores = RetrievalScores(toy, Topics())
    grid = {"top_k": [1, 3, 20], "threshold": [0.0, 0.2, 0.45, 0.9]}
    frame = sweep(toy, **grid, rank=rank, embedder=Topics(), progress=False, resamples=0)
    rows = frame[frame["group"] == "all"]
    assert len(rows) == 12
    for row in rows.itertuples():
        found = counted(scores, rank, row.top_k, row.threshold)
        for name, value in found.items():
            assert value == pytest.approx(getattr(row, name)), (name, row.top_k, row.threshold)


def test_what_is_kept_is_what_a_search_keeps(toy: Dataset) -> None:
    table = RetrievalScores(toy, Topics()).ranking("cosine").tables(0.3, 3)[0]
    kept = table.kept(3, 0.3)
    for row, order in enumerate(table.order):
        oldest_first = np.empty(len(order), dtype=np.float32)
        oldest_first[order] = table.similarity[row]
        assert order[kept[row]].tolist() == select_top_k(oldest_first, 3, 0.3).tolist()


def test_the_widget_shows_its_static_twin_and_asks_for_each_vector_once(toy: Dataset) -> None:
    embedder = Topics()
    widget = show.retrieval_explorer(toy, embedder, conversation=1)
    assert widget.picture.value == png(show.retrieval_figure(toy, Topics(), conversation=1))
    paid = embedder.asked
    assert paid == sum(len(talk.turns) + len(talk.questions) for talk in toy.conversations)
    widget.controls["question"].value = 4
    widget.controls["rank"].value = "hybrid"
    widget.controls["top_k"].value = 5
    widget.controls["threshold"].value = 0.1
    assert embedder.asked == paid
    twin = show.retrieval_figure(toy, Topics(), 1, question=4, rank="hybrid", top_k=5, threshold=0.1)
    assert widget.picture.value == png(twin)
    assert show.describe(twin) in widget.caption.value.replace("&#x27;", "'")


def test_the_caption_says_what_was_kept_where_the_evidence_is_and_both_metrics(toy: Dataset) -> None:
    text = show.describe(show.retrieval_figure(toy, Topics(), question=2, top_k=6, threshold=-1))
    frame = sweep(toy, rank="cosine", top_k=[6], embedder=Topics(), progress=False, resamples=0)
    everyone = frame[frame["group"] == "all"].iloc[0]
    assert "Rank cosine, top-k 6, threshold -1: kept 6 of 40 memories; evidence at place" in text
    assert f"All 27 questions: recall {everyone['recall']:.2f}, precision {everyone['precision']:.2f}" in text
    assert f"injected tokens {everyone['tokens']:.0f}" in text
    never = show.describe(show.retrieval_figure(toy, Topics(), question=0))
    assert "the answer was never said" in never
    assert "This question: unanswerable: kept nothing" in never


def test_evidence_is_drawn_however_far_down_and_so_is_what_was_kept(toy: Dataset) -> None:
    ax = show.retrieval_figure(toy, Topics(), question=2, rank="newest", top_k=2, threshold=0.3)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert sum(label.startswith("★") for label in labels) == 2
    words = [text.get_text() for text in ax.texts]
    assert sum(word.endswith("kept") for word in words) == 2
    assert len(labels) == 10


def test_a_setting_that_can_not_be_hides_the_picture_and_says_why(toy: Dataset) -> None:
    widget = show.retrieval_explorer(toy, Topics(), threshold=-0.5)
    widget.controls["rank"].value = "bm25"
    assert "for bm25 it is a quantile, from 0 to 1" in widget.caption.value
    assert widget.picture.value == b""
    widget.controls["threshold"].value = 0.5
    assert bytes(widget.picture.value).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"conversation": 3}, "from 0 to 2"),
        ({"question": 9}, "from 0 to 8"),
        ({"rank": "best"}, "rank is 'best'"),
        ({"top_k": 0}, "top_k is 0"),
    ],
)
def test_what_is_not_there_is_refused(toy: Dataset, values: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        show.retrieval_figure(toy, Topics(), **values)


def test_conversations_without_questions_are_refused_or_passed_over(toy: Dataset) -> None:
    silent = Conversation("silent", toy.conversations[0].turns, ())
    with pytest.raises(InvalidInputError, match="toy has no questions"):
        show.retrieval_explorer(Dataset("toy", [silent]), Topics())
    mixed = Dataset("toy", [silent, *toy.conversations])
    with pytest.raises(InvalidInputError, match=r"conversation 0 \(silent\) has no questions"):
        show.retrieval_figure(mixed, Topics(), 0)
    assert png(show.retrieval_figure(mixed, Topics(), 1)) == png(show.retrieval_figure(toy, Topics(), 0))


def test_a_new_setting_is_counted_within_a_frame() -> None:
    scores = RetrievalScores(dataset(talks=12, turns=150, questions=35), Topics())
    counted(scores, "hybrid", 3, 0.3)  # scored and sorted once
    times = []
    for step in range(10):
        start = time.perf_counter()
        counted(scores, "hybrid", 1 + step, step / 20)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.02, "12 conversations, 420 questions of about 155 turns"
