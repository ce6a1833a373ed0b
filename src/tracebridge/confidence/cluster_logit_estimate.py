"""Estimates of a logistic regression and their cluster sandwich: maximum likelihood, or Firth's where it has none."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.table import Codes

    Floats = NDArray[np.float64]

LARGEST_COEFFICIENT = 30.0
"""Per standard deviation of its column: a larger one is taken for separation."""

_ITERATIONS = 200
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogitEstimate:
    """Estimates of k coefficients.

    Attributes:
        beta: (k,). covariance: (k, k), cluster-robust.
        separated: maximum likelihood has no finite answer, and this is Firth's.
    """

    beta: Floats
    covariance: Floats
    separated: bool


def estimate_logit(X: Floats, y: Floats, cluster: Codes) -> LogitEstimate:
    """The estimates for columns X (n, k) of full rank, an intercept among them, and a response (n,) of both classes."""
    found = _maximum_likelihood(X, y, cluster)
    beta, covariance = found if found is not None else _firth(X, y, cluster)
    return LogitEstimate(beta=beta, covariance=covariance, separated=found is None)


def log_likelihood(eta: Floats, y: Floats) -> float:
    """Of a 0/1 response (n,) under log odds (n,)."""
    return float(-np.logaddexp(0, np.where(y == 1, -eta, eta)).sum())


def _maximum_likelihood(X: Floats, y: Floats, cluster: Codes) -> tuple[Floats, Floats] | None:
    """Estimates and their covariance; None where the likelihood has no maximum within reach."""
    from statsmodels.discrete.discrete_model import Logit

    spread = X.std(axis=0)

    def is_within_reach(beta: Floats) -> bool:
        return float(np.abs(beta * spread).max()) < LARGEST_COEFFICIENT

    def stop_beyond(beta: Floats) -> None:
        """Newton's steps grow a separated coefficient by about one each; there is nothing behind the largest."""
        if not is_within_reach(beta):
            raise _SeparatedError

    with warnings.catch_warnings():
        # Whether it converged is read from the result; statsmodels says it in warnings too, several to a fit.
        warnings.simplefilter("ignore")
        try:
            result = Logit(y, X).fit(
                disp=0,
                maxiter=_ITERATIONS,
                cov_type="cluster",
                cov_kwds={"groups": cluster},
                warn_convergence=False,
                callback=stop_beyond,
            )
        except (np.linalg.LinAlgError, _SeparatedError):  # all fitted probabilities are 0 or 1, or some are
            return None
        beta, covariance = np.asarray(result.params), np.asarray(result.cov_params())
    sound = result.mle_retvals["converged"] and bool(np.isfinite(covariance).all()) and is_within_reach(beta)
    return (beta, covariance) if sound else None


class _SeparatedError(Exception):
    """The likelihood has no maximum within reach."""


def _firth(X: Floats, y: Floats, cluster: Codes) -> tuple[Floats, Floats]:
    """Estimates that maximise log L + log |information| / 2, and their cluster sandwich.

    Newton's method with the information in place of the Hessian; a step that does not improve is halved (Heinze and
    Schemper 2002). The columns are scaled for it.
    """
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    Z = X / scale
    beta = np.zeros(X.shape[1])
    value = _penalised(Z, y, beta)
    for _ in range(_ITERATIONS):
        score, information = _modified_score(Z, y, beta)
        step = np.linalg.solve(information, score.sum(axis=0))
        step *= min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300))
        for _ in range(30):
            tried = _penalised(Z, y, beta + step)
            if tried >= value:
                break
            step = step / 2
        beta, value = beta + step, max(tried, value)
        if np.abs(step).max() < _TOLERANCE:
            break
    score, information = _modified_score(Z, y, beta)
    covariance = _sandwich(score, information, cluster)
    return beta / scale, covariance / np.outer(scale, scale)


def _modified_score(X: Floats, y: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """What each row adds to the penalised score, shape (n, k), and the information."""
    p = expit(X @ beta)
    weight = p * (1 - p)
    information = X.T @ (weight[:, None] * X)
    leverage = weight * np.einsum("ij,ij->i", X, np.linalg.solve(information, X.T).T)
    return X * (y - p + leverage * (0.5 - p))[:, None], information


def _penalised(X: Floats, y: Floats, beta: Floats) -> float:
    eta = X @ beta
    p = expit(eta)
    sign, logdet = np.linalg.slogdet(X.T @ ((p * (1 - p))[:, None] * X))
    return log_likelihood(eta, y) + float(logdet) / 2 if sign > 0 else -math.inf


def _sandwich(score: Floats, information: Floats, cluster: Codes) -> Floats:
    n, k = score.shape
    sums = sums_by_cluster(score, cluster)
    groups = len(sums)
    bread = np.linalg.inv(information)
    correction = groups / (groups - 1) * (n - 1) / (n - k)
    return np.asarray(correction * bread @ (sums.T @ sums) @ bread)


def sums_by_cluster(rows: Floats, cluster: Codes) -> Floats:
    """Sums of rows (n, k) over the clusters that occur (G), shape (G, k)."""
    present, group = np.unique(cluster, return_inverse=True)
    sums = np.zeros((len(present), rows.shape[1]))
    np.add.at(sums, group, rows)
    return sums
