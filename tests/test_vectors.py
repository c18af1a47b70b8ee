"""Vector math against its definition, scikit-learn, and a simple oracle for top-k."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics.pairwise import cosine_similarity as sklearn_cosine

from memlab import InvalidInputError, cosine_matrix, cosine_similarity, normalize, select_top_k
from memlab.vectors import TIE, unit_vector
from tests import support  # noqa: F401 - sets the profile of hypothesis

floats = st.floats(-1e3, 1e3, allow_subnormal=False)


def vectors(rows, columns=None, dtype=np.float64):
    shape = st.tuples(rows, st.integers(1, 16) if columns is None else columns)
    width = 32 if dtype == np.float32 else 64
    numbers = st.floats(-1024, 1024, width=width, allow_subnormal=False)
    return shape.flatmap(lambda s: hnp.arrays(dtype, s, elements=numbers)).filter(
        lambda m: (np.abs(m).max(1) > 1e-3).all()
    )


# --- cosine ---


@given(vectors(st.just(2)))
def test_cosine_lies_between_minus_one_and_one_and_is_symmetric(pair):
    a, b = pair
    assert -1.0 <= cosine_similarity(a, b) <= 1.0
    assert cosine_similarity(a, b) == pytest.approx(cosine_similarity(b, a), abs=1e-12)
    assert cosine_similarity(a, a) == pytest.approx(1.0)
    assert cosine_similarity(a, -a) == pytest.approx(-1.0)


@given(vectors(st.just(2)), st.floats(1e-150, 1e150))
def test_cosine_ignores_length(pair, factor):
    a, b = pair
    assert cosine_similarity(a * factor, b) == pytest.approx(cosine_similarity(a, b), abs=1e-9)


@given(st.integers(1, 8).flatmap(lambda d: st.tuples(*[vectors(st.integers(1, 6), st.just(d))] * 2)))
def test_cosine_matrix_agrees_with_scikit_learn(pair):
    np.testing.assert_allclose(cosine_matrix(*pair), sklearn_cosine(*pair), atol=1e-9)


@given(vectors(st.integers(1, 6), st.just(5), np.float32))
def test_float32_stays_float32_and_the_input_stays_as_it_is(matrix):
    before = matrix.copy()
    assert cosine_matrix(matrix, matrix).dtype == normalize(matrix).dtype == np.float32
    np.testing.assert_array_equal(matrix, before)
    np.testing.assert_allclose(np.linalg.norm(normalize(matrix), axis=1), 1.0, atol=1e-5)


def test_integers_are_computed_as_floats():
    assert cosine_similarity([3, 4], [4, 3]) == pytest.approx(24 / 25)
    assert cosine_matrix([[1, 0]], [[1, 1]]).dtype == np.float64


@pytest.mark.parametrize(
    ("bad", "fault"),
    [([0, 0], "zero"), ([math.nan, 1], "NaN"), ([1, math.inf], "infinite"), ([-math.inf, 0], "infinite")],
)
def test_vectors_without_a_direction_are_refused_with_their_index(bad, fault):
    good = [[1.0, 0.0]]
    with pytest.raises(InvalidInputError, match=rf"b\[2\].*{fault}"):
        cosine_matrix(good, [*good, *good, bad])
    with pytest.raises(InvalidInputError, match=fault):
        cosine_similarity(bad, good[0])
    with pytest.raises(InvalidInputError, match=fault):
        unit_vector(np.array(bad, dtype=np.float32))


@pytest.mark.parametrize(
    ("a", "b", "named"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0, 3.0]], "a has 2 dimensions, b has 3"),
        ([[1.0], [1.0, 2.0]], [[1.0]], "different lengths"),
        ([1.0, 2.0], [[1.0, 2.0]], r"shape \(2,\)"),
        ([["x"]], [[1.0]], "numbers"),
    ],
)
def test_wrong_shapes_are_refused_with_what_was_given(a, b, named):
    with pytest.raises(InvalidInputError, match=named):
        cosine_matrix(a, b)


def test_no_rows_give_an_empty_matrix():
    assert cosine_matrix(np.empty((0, 3)), np.ones((2, 3))).shape == (0, 2)


@given(vectors(st.just(1), dtype=np.float32))
def test_unit_vector_agrees_with_normalize(matrix):
    np.testing.assert_allclose(unit_vector(matrix[0]), normalize(matrix)[0], atol=1e-6)


# --- top-k ---


def oracle(scores, top_k, threshold):
    """Sort by score; open a group of ties at the best score left; within a group the newest goes first."""
    left = [i for i in range(len(scores)) if threshold is None or scores[i] >= threshold]
    result = []
    while left:
        best = max(float(scores[i]) for i in left)
        group = [i for i in left if best - float(scores[i]) <= TIE]
        result += sorted(group, reverse=True)
        left = [i for i in left if i not in group]
    return result[:top_k]


# Scores on a grid, some nudged by less or more than a tie: duplicates and chains of near-ties are the rule.
nudges = st.sampled_from([0.0, 2e-7, 5e-7, 9e-7, 1.5e-6, 3e-6])
scores = st.lists(st.builds(lambda step, nudge: step / 8 + nudge, st.integers(-8, 8), nudges), max_size=40)


@given(
    scores,
    st.integers(0, 50),
    st.none() | st.integers(-8, 8).map(lambda step: step / 8),
    st.sampled_from([np.float32, np.float64]),
)
def test_top_k_agrees_with_the_oracle(values, top_k, threshold, dtype):
    array = np.array(values, dtype=dtype)
    assert select_top_k(array, top_k, threshold).tolist() == oracle(array, top_k, threshold)


@given(hnp.arrays(np.float64, st.integers(0, 60), elements=floats), st.integers(0, 70))
def test_top_k_of_any_scores_agrees_with_the_oracle(array, top_k):
    assert select_top_k(array, top_k).tolist() == oracle(array, top_k, None)


def test_ties_go_newest_first():
    assert select_top_k(np.array([0.5, 0.9, 0.9 + 5e-7, 0.9 - 4e-7, 0.2]), 2).tolist() == [3, 2]


def test_a_score_equal_to_the_threshold_passes():
    for dtype in (np.float32, np.float64):
        assert select_top_k(np.array([0.7, 0.3, 0.2], dtype=dtype), 9, 0.3).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("bad_scores", "top_k", "threshold", "named"),
    [
        ([0.5], -1, None, "top_k is -1"),
        ([0.5], 1.5, None, "top_k is 1.5"),
        ([0.5], 1, math.nan, "threshold"),
        ([0.5, math.nan], 1, None, "NaN"),
        ([math.nan, 0.5, 0.7], 9, 0.6, "NaN"),
        ([[0.5]], 1, None, r"shape|\(1, 1\)"),
    ],
)
def test_top_k_refuses_what_it_cannot_rank(bad_scores, top_k, threshold, named):
    with pytest.raises(InvalidInputError, match=named):
        select_top_k(np.array(bad_scores), top_k, threshold)


@given(vectors(st.just(1), st.just(4)))
def test_extreme_lengths_keep_their_direction(matrix):
    tiny, huge = matrix / np.abs(matrix).max() * 1e-300, matrix / np.abs(matrix).max() * 1e300
    assume(np.isfinite(tiny).all() and np.isfinite(huge).all())
    np.testing.assert_allclose(normalize(tiny), normalize(huge), atol=1e-6)
