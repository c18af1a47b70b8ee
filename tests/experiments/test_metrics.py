"""Counting over a grid: by hand, and against one `select_top_k` for each cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import select_top_k
from memlab.experiments.metrics import METRICS, best_first, count_grid, has_chain

NAN = float("nan")


def test_metrics_by_hand():
    """Four turns of 10, 20, 30, 40 tokens. Question 1 is answered by turns 0 and 2, question 2 by none."""
    similarity = np.array([[0.9, 0.8, 0.5, 0.1], [0.2, 0.1, 0.6, 0.3]])
    gold = np.array([[1, 0, 1, 0], [0, 0, 0, 0]], dtype=bool)
    lengths = np.array([10, 20, 30, 40])
    thresholds, top_ks = np.array([-np.inf, 0.55, 0.95]), np.array([1, 3])
    found = count_grid(best_first(similarity), similarity, gold, lengths, thresholds, top_ks).metrics()
    assert list(found) == list(METRICS)
    first = {name: values[0].tolist() for name, values in found.items()}
    assert first == {
        "recall": [[0.5, 1.0], [0.5, 0.5], [0.0, 0.0]],
        "precision": [[1.0, 2 / 3], [1.0, 0.5], [0.0, 0.0]],
        "f1": [[2 / 3, 0.8], [2 / 3, 0.5], [0.0, 0.0]],
        "hit_rate": [[1, 1], [1, 1], [0, 0]],
        "empty_rate": [[0, 0], [0, 0], [1, 1]],
        "abstention": pytest.approx(np.full((3, 2), NAN), nan_ok=True),
        "tokens": [[10, 60], [10, 30], [0, 0]],
    }
    assert found["abstention"][1].tolist() == [[0, 0], [0, 0], [1, 1]]
    assert found["tokens"][1].tolist() == [[30, 80], [30, 30], [0, 0]]
    for name in ("recall", "precision", "f1", "hit_rate", "empty_rate"):
        assert np.isnan(found[name][1]).all(), name


# Scores on a coarse grid, some nudged by less or more than a tie: copies and chains of near ties are the rule.
nudges = st.sampled_from([0.0, 2e-7, 4e-7, 8e-7, 1.2e-6, 1.6e-6, 4e-6])
near_ties = st.builds(lambda step, nudge: step / 4 + nudge, st.integers(-2, 3), nudges)
tables = st.integers(0, 14).flatmap(
    lambda n: st.lists(st.lists(near_ties, min_size=n, max_size=n), min_size=1, max_size=5)
)
cuts = st.lists(near_ties | st.just(-np.inf), min_size=1, max_size=6)


@given(tables, st.sampled_from([np.float32, np.float64]))
def test_best_first_is_select_top_k_of_all(rows, dtype):
    scores = np.array(rows, dtype=dtype).reshape(len(rows), -1)
    for row, order in zip(scores, best_first(scores), strict=True):
        assert order.tolist() == select_top_k(row, len(row)).tolist()


@given(
    tables,
    cuts,
    st.lists(st.integers(1, 16), min_size=1, max_size=4),
    st.sampled_from([np.float32, np.float64]),
    st.data(),
)
def test_every_cell_is_a_search_of_its_own(rows, thresholds, top_ks, dtype, data):
    scores = np.array(rows, dtype=dtype).reshape(len(rows), -1)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    gold, lengths = rng.random(scores.shape) < 0.3, rng.integers(1, 50, size=scores.shape[1])
    counts = count_grid(best_first(scores), scores, gold, lengths, np.array(thresholds), np.array(top_ks))
    for q, row in enumerate(scores):
        assert counts.gold[q] == gold[q].sum()
        for t, threshold in enumerate(thresholds):
            for k, top_k in enumerate(top_ks):
                found = select_top_k(row, top_k, threshold)
                cell = (counts.retrieved[q, t, k], counts.hits[q, t, k], counts.tokens[q, t, k])
                assert cell == (len(found), gold[q, found].sum(), lengths[found].sum())


@pytest.mark.parametrize(
    ("scores", "chained"),
    [
        ([0.5, 0.5, 0.5], False),
        ([0.5, 0.5 + 9e-7, 0.2], False),
        ([0.5, 0.5 + 7e-7, 0.5 + 14e-7], True),
        ([0.5, 0.5 + 7e-7, 0.5 + 7e-7, 0.5 + 14e-7], True),
        ([0.5], False),
        ([], False),
    ],
)
def test_a_chain_of_near_ties_is_seen(scores, chained):
    assert has_chain(np.array([scores])).tolist() == [chained]
