"""Pools: from how far each stream supports an answer to the probability that it is correct.

The log-odds pools are one formula with a weight w,

    logit p = w * sum_j logit q_j - (w n - 1) * logit(pi),

with the base rate pi: w = 1 takes streams as independent evidence, w = 1/n as the same evidence, and the shared
discount w = 1 / (1 + (n - 1) rho) as equally correlated, for which it is the weight of linear discriminant analysis. A
positive weight leaves the order of answers as it is (where n is the same for all).

Genest and Zidek (1986), Statistical Science 1 (pools); Ranjan and Gneiting (2010), JRSS B 72 (beta-transformed linear
pool); Chen et al. (2010), IEEE Trans. Signal Process. 58 (OAS shrinkage).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import betainc, expit, logit

from tracebridge.confidence.composition_streams import SUPPORT_CLIP
from tracebridge.confidence.logistic import logistic_fit
from tracebridge.errors import UsageError

Floats: TypeAlias = NDArray[np.float64]

#: ``sum``, ``mean``, ``discount``: the log-odds pools above; ``scale``: with the w of least log-loss; ``diagonal`` and
#: ``full``: linear discriminant analysis; ``beta``: a beta-transformed mean of supports; ``logistic``: a ridge
#: regression on the logits.
PoolName = Literal["sum", "mean", "discount", "scale", "diagonal", "full", "beta", "logistic"]

LOG_ODDS_POOLS = ("sum", "mean", "discount", "scale")

_RIDGE = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDependence:
    """How much streams share beyond the class of the answer.

    Attributes:
        rho: the mean off-diagonal correlation of the streams' logits within classes, clipped to [0, 1]; NaN without.
        n_fit: the answers it rests on: those that every stream supports somehow.
        status: ``ok``, or ``undefined`` for the ``reason``.
    """

    rho: float
    n_fit: int
    status: Literal["ok", "undefined"] = "ok"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """A fitted pool; called with supports, shape (..., n), NaN where a stream is absent, it gives probabilities, (...).

    The log-odds pools and the beta pool use the streams that are there; the others need all of them and give NaN
    otherwise. NaN too where no stream is there.

    Attributes:
        name: which.
        base_rate: pi, unless it is given with the supports.
        dependence: of the streams it was fitted to.
        parameters: scale: w; beta: a and b; the linear ones: the coefficients of the logits and the intercept.
        status: ``ok``, or ``replaced``: it could not be fitted for the ``reason``, and the log-odds mean stands in.
    """

    name: PoolName
    base_rate: float
    dependence: SharedDependence
    parameters: tuple[float, ...] = ()
    status: Literal["ok", "replaced"] = "ok"
    reason: str = ""

    def __call__(self, support: Floats, base_rate: Floats | None = None) -> Floats:
        """The probability that the answer is correct, shape (...).

        Args:
            base_rate: in place of the pool's own, of a shape that goes with (...); the log-odds pools alone have one.
        """
        q = np.asarray(support, dtype=np.float64)
        there = np.isfinite(q)
        n = there.sum(axis=-1)
        name = "mean" if self.status == "replaced" else self.name
        if name in LOG_ODDS_POOLS:
            w = self.weight(n)
            total = np.where(there, logit(np.where(there, q, 0.5)), 0.0).sum(axis=-1)
            pooled = expit(w * total - (w * n - 1) * logit(self.base_rate if base_rate is None else base_rate))
            return np.where(n > 0, pooled, np.nan)
        if name == "beta":
            mean = np.where(there, q, 0.0).sum(axis=-1) / np.maximum(n, 1)
            return np.where(n > 0, betainc(*self.parameters, mean), np.nan)
        return np.asarray(expit(logit(q) @ np.array(self.parameters[:-1]) + self.parameters[-1]))

    def weight(self, n: NDArray[np.int64]) -> Floats:
        """w of a log-odds pool for so many streams."""
        name = "mean" if self.status == "replaced" else self.name
        if name == "sum":
            return np.ones(np.shape(n))
        if name == "mean":
            return 1 / np.maximum(n, 1)
        if name == "discount":
            return 1 / (1 + np.maximum(n - 1, 0) * self.dependence.rho)
        return np.full(np.shape(n), self.parameters[0])

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "name": self.name,
            "status": self.status,
            "reason": self.reason,
            "base_rate": self.base_rate,
            "rho": None if math.isnan(self.dependence.rho) else self.dependence.rho,
            "n_fit": self.dependence.n_fit,
            "parameters": list(self.parameters),
        }


def shared_dependence(logits: Floats, correct: Floats) -> SharedDependence:
    """The dependence of streams from their logits on some answers.

    Class means are removed, the covariance pooled over both classes (divided by the answers less 2), and its
    correlations averaged over pairs of streams.

    Args:
        logits: shape (m, n); a row with a NaN is left out. correct: shape (m,), 1 or 0.
    """
    complete = np.isfinite(logits).all(axis=1)
    X, y = logits[complete], correct[complete] > 0
    m, n = X.shape
    if n == 1:
        return SharedDependence(rho=0.0, n_fit=m)
    if min(y.sum(), m - y.sum()) < 2:
        reason = f"of {m} answers {int(y.sum())} are correct; two of either kind are needed"
        return SharedDependence(rho=math.nan, n_fit=m, status="undefined", reason=reason)
    covariance = _within_class_covariance(X, y)
    spread = np.sqrt(np.diag(covariance))
    if (spread <= 1e-12 * np.abs(X).max(axis=0)).any():
        stream = int(np.argmin(spread))
        reason = f"the logits of stream {stream} do not vary within the classes"
        return SharedDependence(rho=math.nan, n_fit=m, status="undefined", reason=reason)
    correlation = covariance / np.outer(spread, spread)
    mean = float((correlation.sum() - n) / (n * (n - 1)))
    return SharedDependence(rho=min(max(mean, 0.0), 1.0), n_fit=m)


def fit_pool(name: PoolName, support: Floats, correct: Floats, *, base_rate: Floats | float | None = None) -> Pool:
    """A pool fitted to the supports of one answer for each of m questions.

    Args:
        support: shape (m, n), in (0, 1), NaN where a stream is absent. correct: shape (m,), 1 or 0.
        base_rate: pi of the log-odds pools; .5 drops its term; by default the share of correct answers, kept inside
            [.001, .999]. With one for each answer, shape (m,), it must be given to the pool with the supports too.

    Raises:
        UsageError: an unknown pool, shapes that differ, a support or base rate outside (0, 1).
    """
    q, y = np.asarray(support, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if name not in get_args(PoolName):
        raise UsageError(f"a pool is one of {', '.join(get_args(PoolName))}, not {name!r}")
    if q.ndim != 2 or y.shape != q.shape[:1]:
        raise UsageError(f"supports of shape {q.shape} and labels of shape {y.shape}")
    share = float(np.clip(y.mean(), SUPPORT_CLIP, 1 - SUPPORT_CLIP)) if len(y) else 0.5
    rates = np.broadcast_to(np.asarray(share if base_rate is None else base_rate, dtype=np.float64), y.shape)
    if ((q <= 0) | (q >= 1)).any() or not ((rates > 0) & (rates < 1)).all():
        raise UsageError("a support and a base rate lie between 0 and 1")
    dependence = shared_dependence(logit(q), y)
    own_rate = float(base_rate) if isinstance(base_rate, int | float) else share
    pool = Pool(name=name, base_rate=own_rate, dependence=dependence)
    if name in ("sum", "mean"):
        return pool
    complete = np.isfinite(q).all(axis=1)
    reason = dependence.reason
    if not reason and name != "discount" and min(y[complete].sum(), (1 - y[complete]).sum()) < 2:
        reason = "two correct and two wrong answers are needed"
    if reason:
        return replace(pool, status="replaced", reason=reason)
    if name == "discount":
        return pool
    return replace(pool, parameters=_parameters(name, q[complete], y[complete], logit(rates[complete])))


def _parameters(name: PoolName, q: Floats, y: Floats, base: Floats) -> tuple[float, ...]:
    logits = logit(q)
    n = q.shape[1]
    if name == "scale":
        evidence = logits.sum(axis=1) - n * base

        def loss(w: float) -> float:
            eta = w * evidence + base
            return float(np.mean(np.logaddexp(0, eta) - y * eta))

        return (float(minimize_scalar(loss, bounds=(0.0, 10.0), method="bounded", options={"xatol": 1e-10}).x),)
    if name == "beta":
        return _beta_pool(q.mean(axis=1), y)
    if name == "logistic":
        centre, spread = logits.mean(axis=0), np.maximum(logits.std(axis=0), 1e-12)
        X = np.column_stack([(logits - centre) / spread, np.ones(len(y))])
        beta, _ = logistic_fit(X, y, penalty=np.array([_RIDGE] * n + [0.0]))
        slopes = beta[:-1] / spread
        return (*slopes.tolist(), float(beta[-1] - slopes @ centre))
    covariance = _within_class_covariance(logits, y > 0)
    covariance = np.diag(np.diag(covariance)) if name == "diagonal" else _oas(covariance, len(y) - 2)
    high, low = logits[y > 0].mean(axis=0), logits[y == 0].mean(axis=0)
    slopes = np.linalg.solve(covariance, high - low)
    share = float(np.clip(y.mean(), SUPPORT_CLIP, 1 - SUPPORT_CLIP))
    return (*slopes.tolist(), float(logit(share) - slopes @ (high + low) / 2))


def _beta_pool(mean: Floats, y: Floats) -> tuple[float, ...]:
    def loss(log_parameters: Floats) -> float:
        p = np.clip(betainc(*np.exp(log_parameters), mean), 1e-12, 1 - 1e-12)
        return float(-np.mean(y * np.log(p) + (1 - y) * np.log1p(-p)))

    limit = math.log(100)
    fitted = minimize(loss, np.zeros(2), bounds=[(-limit, limit)] * 2, method="L-BFGS-B")
    return tuple(np.exp(fitted.x).tolist())


def _within_class_covariance(X: Floats, y: NDArray[np.bool_]) -> Floats:
    residual = X - np.where(y[:, None], X[y].mean(axis=0), X[~y].mean(axis=0))
    return np.asarray(residual.T @ residual / (len(X) - 2))


def _oas(covariance: Floats, m: int) -> Floats:
    """Shrunk towards a multiple of the identity by the oracle approximating shrinkage for m degrees of freedom."""
    n = len(covariance)
    trace, square = float(np.trace(covariance)), float((covariance**2).sum())
    top = (1 - 2 / n) * square + trace**2
    bottom = (m + 1 - 2 / n) * (square - trace**2 / n)
    shrinkage = 1.0 if bottom <= 0 else min(1.0, top / bottom)
    return np.asarray((1 - shrinkage) * covariance + shrinkage * trace / n * np.eye(n))
