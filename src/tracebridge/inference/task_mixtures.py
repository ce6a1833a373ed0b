"""Reliabilities that differ over tasks: classes of tasks, and a beta distribution, fitted by maximum likelihood.

Fits of many samples run side by side, for the bootstrap: EM for classes, damped Newton steps for the beta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit, xlog1py, xlogy

from tracebridge.errors import UsageError
from tracebridge.inference.task_counts import TaskCounts, TaskTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_CLASSES = 6
_MOST_ROUNDS = 2_000
_REPLICATE_ROUNDS = 200
_BLOCK_NUMBERS = 2_000_000
_SETTLED = 1e-9  # gain of log-likelihood per task below which a fit has converged
_REPLICATE_SETTLED = 1e-6  # the same in a bootstrap, where sampling noise is far larger
_NEWTON_STEPS = 200
# Logits of the mean and of the correlation of two trials: from none at all to all but complete.
_LOWEST_LOGITS, _HIGHEST_LOGITS = np.array([-25.0, -25.0]), np.array([25.0, 12.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentClasses:
    """A mixture of binomials: each task belongs to a class, and all tasks of a class have one reliability.

    Attributes:
        weights: the share of tasks in each class. reliabilities: of a trial, ascending; both of shape (K,).
        log_likelihood: without the binomial coefficients, which no parameter changes.
        bic: ``-2 log_likelihood + (2 K - 1) log(tasks)``. bic_by_classes: of every K that was tried, from K = 1.
    """

    weights: tuple[float, ...]
    reliabilities: tuple[float, ...]
    log_likelihood: float
    bic: float
    bic_by_classes: tuple[float, ...]

    def pass_hat_k(self, k: int) -> float:
        """The probability that k trials of a task drawn at random all succeed."""
        return float(np.array(self.weights) @ np.array(self.reliabilities) ** k)


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaBinomial:
    """Reliabilities of tasks with a beta distribution.

    Attributes:
        mean: of p. correlation: of two trials of one task, ``1 / (a + b + 1)``; near 0 all tasks are alike.
        log_likelihood, bic: as for `LatentClasses`, with two parameters.
    """

    mean: float
    correlation: float
    log_likelihood: float
    bic: float

    def pass_hat_k(self, k: int) -> float:
        """The probability that k trials of a task drawn at random all succeed."""
        return float(beta_pass_hat_k(np.array([[self.mean, self.correlation]]), k)[0])


def latent_classes(counts: TaskCounts, *, max_classes: int | None = None) -> LatentClasses:
    """Fit classes of tasks by EM; their number minimises BIC.

    Args:
        max_classes: at most so many; by default 6. K classes can only be told apart with ``2 K - 1`` trials of a task
            (Teicher 1963), which limits K whatever is asked for.

    Raises:
        NothingToCheckError: for no task. UsageError: for a limit below one.
    """
    table = TaskTable.of(counts)
    fits = fit_mixtures(table, table.weights[None, :], class_limit(table, max_classes))
    bic = [float(fit.bic[0]) for fit in fits]
    best = fits[int(np.argmin(bic))]
    order = np.argsort(best.p[0], kind="stable")
    return LatentClasses(
        weights=tuple(best.w[0, order].tolist()),
        reliabilities=tuple(best.p[0, order].tolist()),
        log_likelihood=float(best.log_likelihood[0]),
        bic=min(bic),
        bic_by_classes=tuple(bic),
    )


def beta_binomial(counts: TaskCounts) -> BetaBinomial:
    """Fit a beta distribution of reliabilities by maximum likelihood. Raises NothingToCheckError for no task."""
    table = TaskTable.of(counts)
    fits, found = fit_betas(table, table.weights[None, :], [(0.5, 0.2), (0.5, 0.0025)])
    (mean, correlation), log_likelihood = fits[0].tolist(), float(found[0])
    bic = -2 * log_likelihood + 2 * np.log(len(counts.tasks))
    return BetaBinomial(mean=mean, correlation=correlation, log_likelihood=log_likelihood, bic=float(bic))


# ---------------------------------------------------------------- likelihoods


def class_limit(table: TaskTable, asked: int | None) -> int:
    """How many classes are tried: as asked, but no more than trials or different tasks can tell apart."""
    if asked is not None and asked < 1:
        raise UsageError(f"there is one class at least, not {asked}")
    limit = _MOST_CLASSES if asked is None else asked
    return max(1, min(limit, (int(table.n.max()) + 1) // 2, len(table.c)))


@dataclass(frozen=True, slots=True, eq=False)
class Mixtures:
    """A mixture for each of B samples: weights and reliabilities of shape (B, K), the rest of shape (B,)."""

    w: NDArray[np.float64]
    p: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    bic: NDArray[np.float64]


def fit_mixtures(table: TaskTable, samples: NDArray[np.float64], most: int, *, quick: bool = False) -> list[Mixtures]:
    """Mixtures of 1, ..., ``most`` classes; ``samples``, shape (B, G), says how many tasks have each pair."""
    return [_fit_mixture(table, samples, K, quick=quick) for K in range(1, most + 1)]


def _fit_mixture(table: TaskTable, samples: NDArray[np.float64], K: int, *, quick: bool) -> Mixtures:
    B = len(samples)
    w, p = np.empty((B, K)), np.empty((B, K))
    log_likelihood = np.full(B, -np.inf)
    together = max(1, _BLOCK_NUMBERS // (len(table.c) * K))
    for begin in range(0, B, together):
        part = slice(begin, begin + together)
        for start in _starts(table, samples[part], K)[: 1 if quick else 2]:
            found_w, found_p, found = _expectation_maximisation(table, samples[part], start, quick=quick)
            better = np.flatnonzero(found > log_likelihood[part])
            w[begin + better], p[begin + better] = found_w[better], found_p[better]
            log_likelihood[begin + better] = found[better]
    bic = -2 * log_likelihood + (2 * K - 1) * np.log(samples.sum(axis=1))
    return Mixtures(w, p, log_likelihood, bic)


def _starts(table: TaskTable, samples: NDArray[np.float64], K: int) -> list[NDArray[np.float64]]:
    """Reliabilities to start from, shape (B, K): quantiles of the tasks' rates, and an even spread over their range."""
    rates = (table.c + 0.5) / (table.n + 1)
    order = np.argsort(rates, kind="stable")
    cumulated = np.cumsum(samples[:, order], axis=1) / samples.sum(axis=1, keepdims=True)
    levels = (np.arange(K) + 0.5) / K
    place = (cumulated[:, :, None] < levels).sum(axis=1)
    quantiles = rates[order][np.minimum(place, len(rates) - 1)]
    seen = samples > 0
    low, high = (np.where(seen, rates, np.inf).min(axis=1), np.where(seen, rates, -np.inf).max(axis=1))
    even = low[:, None] + (high - low)[:, None] * levels
    # Equal starts would stay equal for ever.
    nudge = 1e-3 * (np.arange(K) - (K - 1) / 2)
    return [np.clip(start + nudge, 1e-6, 1 - 1e-6) for start in ([quantiles, even] if K > 1 else [quantiles])]


def _expectation_maximisation(
    table: TaskTable, samples: NDArray[np.float64], start: NDArray[np.float64], *, quick: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    p = start.copy()
    w = np.full_like(p, 1 / p.shape[1])
    log_likelihood = np.full(len(p), -np.inf)
    active = np.arange(len(p))
    settled_at = _REPLICATE_SETTLED if quick else _SETTLED
    for _ in range(_REPLICATE_ROUNDS if quick else _MOST_ROUNDS):
        joint = _log_joint(table, w[active], p[active])
        top = joint.max(axis=2, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        part = np.exp(joint - top)
        total = part.sum(axis=2, keepdims=True)
        with np.errstate(divide="ignore"):
            marginal = (top + np.log(total))[:, :, 0]
        counts = samples[active]
        found = np.where(counts > 0, counts * np.where(counts > 0, marginal, 0.0), 0.0).sum(axis=1)
        responsible = counts[:, :, None] * part / np.where(total > 0, total, 1.0)
        size = responsible.sum(axis=1)
        trials = np.einsum("bgk,g->bk", responsible, table.n.astype(np.float64))
        successes = np.einsum("bgk,g->bk", responsible, table.c.astype(np.float64))
        p[active] = np.clip(np.where(trials > 0, successes / np.where(trials > 0, trials, 1.0), p[active]), 0.0, 1.0)
        w[active] = size / size.sum(axis=1, keepdims=True)
        settled = found - log_likelihood[active] < settled_at * counts.sum(axis=1)
        log_likelihood[active] = found
        active = active[~settled]
        if not len(active):
            break
    return w, p, log_likelihood


def _log_joint(table: TaskTable, w: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """``log w + c log p + (n - c) log(1 - p)``, shape (B, G, K)."""
    with np.errstate(divide="ignore"):
        weights = np.log(w)
    c, misses = table.c[None, :, None], (table.n - table.c)[None, :, None]
    return np.asarray(weights[:, None, :] + xlogy(c, p[:, None, :]) + xlog1py(misses, -p[:, None, :]))


def fit_betas(
    table: TaskTable, samples: NDArray[np.float64], starts: Sequence[tuple[float, float]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and correlations, shape (B, 2), and log-likelihoods, shape (B,), by damped Newton steps in their logits.

    The best from all starts; a sample whose trials all ended alike has its supremum at the edge, where it is put.
    """
    pooled = samples @ table.c / (samples @ table.n)
    fits = np.column_stack([pooled, np.zeros(len(samples))])
    best = np.zeros(len(samples))
    mixed = np.flatnonzero((pooled > 0) & (pooled < 1))
    steps = np.arange(int(table.n.max()))
    tallies = [samples[mixed] @ (count[:, None] > steps) for count in (table.c, table.n - table.c, table.n)]
    best[mixed] = -np.inf
    for start in starts:
        x = np.clip(np.tile(logit(np.array(start)), (len(mixed), 1)), _LOWEST_LOGITS, _HIGHEST_LOGITS)
        x, found = _ascend(tallies, x)
        better = found > best[mixed]
        fits[mixed[better]], best[mixed[better]] = expit(x[better]), found[better]
    return fits, best


def _ascend(tallies: list[NDArray[np.float64]], x: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Maximise from x, shape (B, 2); every sample has a damping of its own."""
    value, gradient = _beta_likelihood(tallies, x)
    damping = np.full(len(x), 1e-3)
    for _ in range(_NEWTON_STEPS):
        curvature = np.empty((len(x), 2, 2))
        for j in range(2):
            moved = np.zeros(2)
            moved[j] = 1e-4
            ends = [_beta_likelihood(tallies, x + sign * moved)[1] for sign in (1, -1)]
            curvature[:, j] = (ends[1] - ends[0]) / 2e-4
        curvature = (curvature + curvature.transpose(0, 2, 1)) / 2
        lowest = np.linalg.eigvalsh(curvature)[:, 0]
        shift = np.maximum(0, 1e-9 - lowest) + damping * (1 + np.abs(lowest))
        step = np.linalg.solve(curvature + shift[:, None, None] * np.eye(2), gradient[:, :, None])[:, :, 0]
        tried = np.clip(x + np.clip(step, -2, 2), _LOWEST_LOGITS, _HIGHEST_LOGITS)
        new_value, new_gradient = _beta_likelihood(tallies, tried)
        better = new_value > value
        settled = ~better | (new_value - value <= 1e-12 * (1 + np.abs(value)))
        x, value = np.where(better[:, None], tried, x), np.where(better, new_value, value)
        gradient = np.where(better[:, None], new_gradient, gradient)
        damping = np.where(better, np.maximum(damping / 8, 1e-12), damping * 16)
        if np.all(settled & (better | (damping > 1e6))):
            break
    return x, value


def _beta_likelihood(tallies: list[NDArray[np.float64]], x: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Log-likelihoods, shape (B,), and their gradients in the logits of mean and correlation, shape (B, 2).

    In rising factorials, ``prod (m (1 - r) + i r)`` over i below the successes and so on, nothing cancels however
    small the correlation r is. ``tallies`` count the tasks with more than i successes, failures and trials.
    """
    i = np.arange(tallies[0].shape[1])
    m, r = expit(x[:, :1]), expit(x[:, 1:])
    rest = expit(-x[:, 1:])  # 1 - r
    bases = [m, expit(-x[:, :1]), np.ones_like(m)]
    signs, slopes = (1, 1, -1), (1, -1, 0)
    value = np.zeros(len(x))
    by_mean, by_correlation = np.zeros(len(x)), np.zeros(len(x))
    for tally, base, sign, slope in zip(tallies, bases, signs, slopes, strict=True):
        factor = base * rest + i * r
        value += sign * (tally * np.log(factor)).sum(axis=1)
        by_mean += sign * slope * (tally * rest / factor).sum(axis=1)
        by_correlation += sign * (tally * (i - base) / factor).sum(axis=1)
    scale = np.column_stack([(m * bases[1])[:, 0], (r * rest)[:, 0]])
    return value, scale * np.column_stack([by_mean, by_correlation])


def beta_pass_hat_k(fits: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """``prod (a + i) / (a + b + i)`` over i < k, in terms of mean m and correlation r; shape (B,)."""
    i = np.arange(k)
    m, r = fits[:, :1], fits[:, 1:]
    return np.asarray(np.prod((m * (1 - r) + i * r) / (1 - r + i * r), axis=1))
