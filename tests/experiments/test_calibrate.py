"""Calibration: thresholds by hand, against scikit-learn, and for any scores."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import precision_score, recall_score, roc_auc_score

from memlab import InvalidInputError, MemlabError
from memlab.experiments.calibrate import calibrate, calibrate_all
from memlab.experiments.datasets import Conversation, Dataset, Question, Turn
from memlab.experiments.scoring import score
from tests.support_sweep import SeededEmbedder, made_dataset


class AngleEmbedder:
    """A text that is a number is a vector with that cosine to any question."""

    model, dimensions = "angles", 2

    def embed(self, texts, role="document"):
        cosines = np.array([1.0 if role == "query" else float(text) for text in texts])
        return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1).astype(np.float32)


def angles(evidence, others):
    turns = [Turn(f"e{i}", "user", str(value)) for i, value in enumerate(evidence)]
    turns += [Turn(f"o{i}", "user", str(value)) for i, value in enumerate(others)]
    question = Question("q", "?", tuple(turn.id for turn in turns[: len(evidence)]))
    return Dataset("angles", [Conversation("c", tuple(turns), (question,))])


FOUR = angles([0.9, 0.7, 0.5, 0.1], [0.8, 0.6, 0.4, 0.3, 0.2, 0.0])


@pytest.mark.parametrize(
    ("aim", "threshold", "recall", "precision"),
    [
        ({"recall": 0.25}, 0.9, 0.25, 1.0),
        ({"recall": 0.26}, 0.7, 0.5, 2 / 3),
        ({"recall": 0.75}, 0.5, 0.75, 3 / 5),
        ({"recall": 1}, 0.1, 1.0, 4 / 9),
        ({"precision": 1}, 0.9, 0.25, 1.0),
        ({"precision": 0.6}, 0.5, 0.75, 3 / 5),
        ({"precision": 0.01}, 0.1, 1.0, 4 / 9),
    ],
)
def test_thresholds_by_hand(aim, threshold, recall, precision):
    found = calibrate(FOUR, AngleEmbedder(), **aim)
    assert (found.threshold, found.recall, found.precision) == pytest.approx((threshold, recall, precision), abs=1e-6)
    assert (found.model, found.rank) == ("angles", "cosine")


def test_the_curve_by_hand():
    found = calibrate(FOUR, AngleEmbedder(), recall=1)
    assert list(found.curve.columns) == ["threshold", "recall", "fpr", "precision"]
    expected = [[0.9, 0.25, 0, 1], [0.7, 0.5, 1 / 6, 2 / 3], [0.5, 0.75, 2 / 6, 3 / 5], [0.1, 1, 5 / 6, 4 / 9]]
    np.testing.assert_allclose(found.curve.to_numpy(), expected, atol=1e-6)
    assert found.auc == pytest.approx((6 + 5 + 4 + 1) / 24), "the share of pairs of pairs in the right order"


@pytest.mark.parametrize("rank", ["cosine", "bm25"])
@pytest.mark.parametrize("aim", [{"recall": 0.6}, {"precision": 0.1}])
def test_it_keeps_what_it_says(rank, aim):
    """Against scikit-learn, over all pairs, those of questions without evidence included."""
    dataset, embedder = made_dataset(), SeededEmbedder()
    found = calibrate(dataset, embedder, rank=rank, **aim)
    parts = score(dataset, embedder, rank)
    gold = np.concatenate([part.gold().ravel() for part in parts])
    scores = np.concatenate([part.similarity.ravel() for part in parts])
    kept = scores >= found.threshold
    assert found.recall == pytest.approx(recall_score(gold, kept))
    assert found.precision == pytest.approx(precision_score(gold, kept))
    assert found.auc == pytest.approx(roc_auc_score(gold, scores))


numbers = st.lists(st.integers(-10, 10).map(lambda n: n / 10), min_size=1, max_size=8)


@given(numbers, numbers, st.floats(0.01, 1), st.booleans())
def test_no_stricter_threshold_has_the_recall_and_no_looser_one_the_precision(evidence, others, wanted, by_recall):
    dataset = angles(evidence, others)
    cells = []
    for threshold in {*evidence, *others}:
        kept = sum(value >= threshold for value in evidence)
        false = sum(value >= threshold for value in others)
        cells.append((threshold, kept / len(evidence), kept / (kept + false)))
    if by_recall:
        expected = max(cell for cell in cells if cell[1] >= wanted)
        found = calibrate(dataset, AngleEmbedder(), recall=wanted)
        assert found.threshold == pytest.approx(expected[0], abs=1e-6)
    else:
        reached = [cell for cell in cells if cell[2] >= wanted]
        assume(reached)
        found = calibrate(dataset, AngleEmbedder(), precision=wanted)
        assert found.recall == pytest.approx(max(cell[1] for cell in reached))
        assert found.precision >= wanted - 1e-12


def test_a_precision_out_of_reach_is_an_error_that_names_the_best():
    with pytest.raises(InvalidInputError, match=r"0\.9 with angles.*0\.500, at threshold 0\.700.*recall is 1\.000"):
        calibrate(angles([0.7], [0.9]), AngleEmbedder(), precision=0.9)


@pytest.mark.parametrize(
    ("aim", "named"),
    [
        ({}, "either recall or precision"),
        ({"recall": 0.5, "precision": 0.5}, "either recall or precision"),
        ({"recall": 0}, "recall is 0"),
        ({"precision": 1.5}, r"precision is 1\.5"),
        ({"recall": float("nan")}, "recall is nan"),
        ({"recall": 0.5, "rank": "magic"}, "magic"),
    ],
)
def test_aims_that_make_no_sense_are_refused(aim, named):
    with pytest.raises(InvalidInputError, match=named):
        calibrate(FOUR, AngleEmbedder(), **aim)


@pytest.mark.parametrize("dataset", [angles([0.5], []), angles([], [0.5]), Dataset("empty", [])])
def test_data_with_one_kind_of_pair_can_not_be_calibrated(dataset):
    with pytest.raises(MemlabError, match="pairs"):
        calibrate(dataset, AngleEmbedder(), recall=0.5)


def test_a_ranking_whose_threshold_is_a_cosine_has_that_of_cosine():
    embedder = SeededEmbedder()
    cosine = calibrate(made_dataset(), embedder, recall=0.5)
    for rank in ("hybrid", "recency", "mmr"):
        found = calibrate(made_dataset(), embedder, rank=rank, recall=0.5)
        assert (found.rank, found.threshold, found.recall) == (rank, cosine.threshold, cosine.recall)


def test_a_table_of_embedders_and_ranks():
    embedders = [SeededEmbedder("small", 4), SeededEmbedder("large", 32)]
    table = calibrate_all(made_dataset(), embedders, rank=["cosine", "bm25"], recall=0.5)
    assert table[["embedder", "rank"]].to_numpy().tolist() == [
        ["small", "cosine"], ["small", "bm25"], ["large", "cosine"], ["large", "bm25"]
    ]  # fmt: skip
    one = calibrate(made_dataset(), embedders[1], recall=0.5)
    assert table.iloc[2, 2:].to_list() == [one.threshold, one.recall, one.precision, one.auc]


def test_what_a_model_of_the_table_can_not_reach_is_not_a_number():
    table = calibrate_all(angles([0.7], [0.9]), [AngleEmbedder()], precision=0.9)
    assert table[["threshold", "recall", "precision"]].isna().all(axis=None)
    assert table["auc"].to_list() == [0.0]
