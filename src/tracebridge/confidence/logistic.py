"""Logistic regression on few columns with soft targets, by Newton's method with step halving."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats: TypeAlias = NDArray[np.float64]

_STEPS = 100
_GRADIENT = 1e-9


def logistic_fit(X: Floats, targets: Floats, *, penalty: float | Floats = 0.0) -> tuple[Floats, bool]:
    """The coefficients that minimise the mean negative log-likelihood plus ``sum(penalty * beta**2) / 2``.

    The loss is convex, and with soft targets inside (0, 1) or a penalty it has a minimum; on separable hard labels
    without a penalty it has none.

    Args:
        X: shape (n, k), with a column of ones where there is an intercept. targets: shape (n,), in [0, 1].
        penalty: of each coefficient, or of all.

    Returns:
        The coefficients, shape (k,), and whether the largest entry of the gradient fell below 1e-9.
    """
    n, k = X.shape
    weights = np.broadcast_to(np.asarray(penalty, dtype=np.float64), (k,))
    beta = np.zeros(k)

    def loss(at: Floats) -> float:
        eta = X @ at
        return float(np.mean(np.logaddexp(0, eta) - targets * eta) + (weights * at**2).sum() / 2)

    current = loss(beta)
    for _ in range(_STEPS):
        mean = expit(X @ beta)
        gradient = X.T @ (mean - targets) / n + weights * beta
        if np.abs(gradient).max() < _GRADIENT:
            return beta, True
        hessian = (X.T * (mean * (1 - mean))) @ X / n + np.diag(weights)
        # a column that is constant zero, or two that are equal, leave directions in which nothing is to be gained
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        scale = 1.0
        while (lower := loss(beta - scale * step)) > current and scale > 1e-10:
            scale /= 2
        if scale <= 1e-10:
            break
        beta, current = beta - scale * step, lower
    gradient = X.T @ (expit(X @ beta) - targets) / n + weights * beta
    return beta, bool(np.abs(gradient).max() < 1e-6)
