"""Ranking: from candidates to scores. Each function says on which scale its scores lie."""

from __future__ import annotations

import numpy as np

from memlab.vectors import FloatArray


def newest_scores(count: int) -> FloatArray:
    """Scores of `count` candidates that stand oldest first: 1 for the newest, evenly down to 1/count.

    >>> newest_scores(4)
    array([0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return np.arange(1, count + 1, dtype=np.float32) / np.float32(max(count, 1))
