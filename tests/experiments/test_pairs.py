"""Related and unrelated pairs: the data, and the thresholds that are read off it."""

import numpy as np
import pytest

import memlab
from memlab.experiments.pairs import best_threshold, kept_by_threshold, load_pairs, related_and_unrelated


def test_twelve_pairs_in_each_language():
    pairs = load_pairs()
    assert pairs.groupby("lang").size().to_dict() == {"en": 12, "ru": 12, "zh": 12}
    assert pairs["question"].is_unique
    assert pairs["memory"].is_unique


def test_unrelated_pairs_are_all_others_of_the_language():
    embedder = memlab.connect("offline").embedder
    related, unrelated = related_and_unrelated(embedder, load_pairs())
    assert related.shape == (36,)
    assert unrelated.shape == (3 * 12 * 11,)
    assert np.median(related) > np.median(unrelated)


def test_the_best_threshold_separates_what_can_be_separated():
    related, unrelated = np.array([0.8, 0.9]), np.array([0.1, 0.2])
    threshold = best_threshold(related, unrelated)
    assert 0.2 < threshold <= 0.8
    assert kept_by_threshold(related, unrelated, threshold) == (1.0, 0.0)
    assert kept_by_threshold(related, unrelated, 0.85) == (0.5, pytest.approx(0.0))
