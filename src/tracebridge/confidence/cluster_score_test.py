"""A test of each coefficient that stands few clusters: the signs of clusters' scores flipped at random.

Under beta_j = 0 the efficient scores of independent clusters have mean zero, and are exchanged with their negatives
without harm as far as they are symmetric (Kline and Santos 2012, the score bootstrap with Rademacher weights; Canay,
Romano and Shaikh 2017 for few clusters). Nothing is fitted again but once a coefficient, without its column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from tracebridge.confidence.cluster_logit_estimate import estimate_logit, sums_by_cluster

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.table import Codes

    Floats = NDArray[np.float64]

DEFAULT_FLIPS = 9_999

_ENUMERATED = 13  # with so many clusters, or fewer, all sign patterns are fewer than the flips by default


def score_test_p_values(X: Floats, y: Floats, cluster: Codes, *, flips: int = DEFAULT_FLIPS, seed: int = 0) -> Floats:
    """(k,) two-sided p-values of each coefficient; with few clusters exact, over all patterns of signs.

    Args:
        X: (n, k), full rank, the intercept first. y: (n,) 0 or 1, both. cluster: (n,).
        flips: random patterns where they are not all taken. seed: of these.
    """
    efficient = np.column_stack([_efficient_scores(X, y, cluster, j) for j in range(X.shape[1])])
    clusters = len(efficient)
    exact = clusters <= _ENUMERATED
    if exact:
        signs = 1.0 - 2.0 * ((np.arange(2**clusters)[:, None] >> np.arange(clusters)) & 1)
    else:
        signs = 1.0 - 2.0 * np.random.default_rng(seed).integers(0, 2, size=(flips, clusters))
    observed = np.abs(efficient.sum(axis=0))
    extreme = (np.abs(signs @ efficient) >= observed * (1 - 1e-12)).sum(axis=0)
    return np.asarray(extreme / len(signs) if exact else (1 + extreme) / (1 + len(signs)))


def _efficient_scores(X: Floats, y: Floats, cluster: Codes, j: int) -> Floats:
    """(G,) what each cluster adds to the score of beta_j, cleared of the other coefficients, at their estimates."""
    others = np.delete(X, j, axis=1)
    beta = estimate_logit(others, y, cluster).beta if others.shape[1] else np.zeros(0)
    p = expit(others @ beta)
    weight = p * (1 - p)
    information = X.T @ (weight[:, None] * X)
    direction = np.linalg.solve(information, np.eye(X.shape[1])[j])
    return sums_by_cluster(X * (y - p)[:, None], cluster) @ direction
