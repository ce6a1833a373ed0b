"""Repeated trials: pass@k and pass^k from a reliability, from a distribution of it, and from counts.

``pass^k`` (pass_hat_k) is the probability that all of k trials of a task succeed, ``pass@k`` that at least one does.
With independent trials of reliability R they are ``R^k`` and ``1 - (1 - R)^k`` (paper, Theorem 3); a benchmark with a
step budget d uses R(d). When trials share the difficulty of their task, both are wrong: ``pass^k`` is higher and
``pass@k`` lower (Theorem 4), and the mixture or the estimators from repeated trials are the right functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

import numpy as np
from numpy.typing import NDArray

from tracebridge.chain.absorbing import AbsorbingChain
from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.absorbing_system import Chain, Scalar
from tracebridge.closedform.firstpassage import Target, reliability_split
from tracebridge.errors import UsageError

_TOLERANCE = Fraction(1, 10**12)  # by which weights in doubles may miss a sum of one, as rows of a chain may

# ---------------------------------------------------------------- independent trials


def pass_at_k(
    source: Scalar | int | Chain, k: int, *, d: int | None = None, target: Target = "success", exact: bool = False
) -> Scalar:
    """``1 - (1 - R)^k``: at least one of k independent trials succeeds (paper, eq. 6).

    Args:
        source: the reliability R of one trial (a Fraction gives a Fraction), or a chain.
        k: the number of trials, one or more.
        d: for a chain, the step budget of each trial, so that R is R(d); None for no limit.
        target: for a chain, the label that means success. exact: for a chain, compute in Fractions.

    Raises:
        UsageError: for a k below one, an R outside [0, 1], or a budget without a chain.
    """
    success, failure = _trial(source, d, target, exact=exact)
    return _any_of(success, failure, _count(k))


def pass_hat_k(
    source: Scalar | int | Chain, k: int, *, d: int | None = None, target: Target = "success", exact: bool = False
) -> Scalar:
    """``R^k``: all of k independent trials succeed (paper, eq. 5); arguments as for `pass_at_k`."""
    success, failure = _trial(source, d, target, exact=exact)
    return _all_of(success, failure, _count(k))


# ---------------------------------------------------------------- trials that share a difficulty


def correlated_pass_at_k(reliabilities: Sequence[Scalar], weights: Sequence[Scalar], k: int) -> Scalar:
    """``E[1 - (1 - p)^k]`` over tasks of different reliability p; never above ``pass_at_k(E[p], k)`` (paper, eq. 9).

    Args:
        reliabilities: the values of p. weights: their probabilities, which sum to one.
        k: the number of trials, which are independent given the task.

    Raises:
        UsageError: for weights that are no distribution, a p outside [0, 1], or a k below one.
    """
    k = _count(k)
    return _mixed([_any_of(p, 1 - p, k) for p in _reliabilities(reliabilities)], weights)


def correlated_pass_hat_k(reliabilities: Sequence[Scalar], weights: Sequence[Scalar], k: int) -> Scalar:
    """``E[p^k]`` over tasks of different reliability p; never below ``pass_hat_k(E[p], k)`` (paper, eq. 8).

    Arguments as for `correlated_pass_at_k`. For k = 2 the difference is exactly the variance of p.
    """
    k = _count(k)
    return _mixed([_all_of(p, 1 - p, k) for p in _reliabilities(reliabilities)], weights)


# ---------------------------------------------------------------- estimates from repeated trials


def estimate_pass_at_k(successes: Sequence[int], trials: Sequence[int], k: int, *, exact: bool = False) -> Scalar:
    """The mean over tasks of ``1 - C(n - c, k) / C(n, k)``, which is unbiased (Chen et al. 2021, eq. 1).

    Args:
        successes: c, the successful trials of each task. trials: n, all trials of each task, k or more.
        k: the number of trials, one or more.
        exact: compute in Fractions.

    Raises:
        UsageError: for no task, counts that do not fit, or a task with fewer than k trials (no unbiased estimate then).
    """
    c, n, k = *_counts(successes, trials, k), _count(k)
    if exact:
        return 1 - _mean_of_ratios([m - x for x, m in zip(c.tolist(), n.tolist(), strict=True)], n.tolist(), k)
    misses = np.zeros(len(c))  # log of the probability that k trials drawn without replacement all fail
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(k):
            misses += np.where(n - i > c, np.log1p(-np.minimum(c / (n - i), 1.0)), -np.inf)
    return float(np.mean(-np.expm1(misses)))


def estimate_pass_hat_k(successes: Sequence[int], trials: Sequence[int], k: int, *, exact: bool = False) -> Scalar:
    """The mean over tasks of ``C(c, k) / C(n, k)``, which is unbiased; arguments as for `estimate_pass_at_k`."""
    c, n, k = *_counts(successes, trials, k), _count(k)
    if exact:
        return _mean_of_ratios(c.tolist(), n.tolist(), k)
    product = np.ones(len(c))
    for i in range(k):
        product *= np.maximum(c - i, 0) / (n - i)
    return float(np.mean(product))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialGap:
    """How far repeated trials of a task agree beyond independence.

    Attributes:
        mean: the estimate of E[p]. pass_hat_2: the estimate of E[p^2].
        gap: the unbiased estimate of ``E[p^2] - E[p]^2``, the variance of p over tasks; it may be negative.
        p_value: how often trials dealt out at random over the same tasks make these as different, or more.
        permutations: the number of random deals behind ``p_value``.
    """

    mean: float
    pass_hat_2: float
    gap: float
    p_value: float
    permutations: int


def trial_gap(successes: Sequence[int], trials: Sequence[int], *, permutations: int = 999, seed: int = 0) -> TrialGap:
    """The gap ``pass^2 - (pass^1)^2 = Var p``: do trials of one task share something, such as its difficulty?

    A positive gap by itself says nothing: without any sharing it is still positive in nearly half of all samples (the
    plug-in form in 45 %). Judge it by ``p_value``, the exact permutation test given the total of successes: under
    independence with one common p, all ways to deal the outcomes to the trials are equally likely. Tasks differ by
    ``sum of (c - n p)^2`` with the pooled p, the score statistic against a little variance of p (Tarone 1979,
    Biometrika 66, 585-590). Where all tasks have as many trials it orders deals as the gap does. The gap itself
    would see less elsewhere, as it counts a task of two trials like one of twenty: on 20 tasks of 2 to 20 trials with
    p as beta(4, 2) it had power .59 and this has .92 (500 and 300 corpora). k = 2 has more power than larger k.

    Args:
        successes, trials: counts of each task, as for `estimate_pass_hat_k`; two tasks and two trials of each at least.
        permutations: random deals for the p-value; its resolution is ``1 / (permutations + 1)``.
        seed: of the random deals.

    Raises:
        UsageError: for fewer than two tasks or two trials of a task, or counts that do not fit.
    """
    c, n = _counts(successes, trials, 2)
    if len(c) < 2:
        raise UsageError("the gap between trials needs two tasks or more")
    if permutations < 1:
        raise UsageError(f"at least one permutation is needed, not {permutations}")
    gap = float(_gaps(c[None, :], n)[0])
    deals = np.random.default_rng(seed).multivariate_hypergeometric(
        n, int(c.sum()), size=permutations, method="marginals"
    )
    as_large = int(np.sum(_differences(deals, n) >= _differences(c[None, :], n)))
    return TrialGap(
        mean=float(np.mean(c / n)),
        pass_hat_2=float(np.mean(c * (c - 1) / (n * (n - 1)))),
        gap=gap,
        p_value=(1 + as_large) / (1 + permutations),
        permutations=permutations,
    )


# ---------------------------------------------------------------- behind them


def _trial(source: Scalar | int | Chain, d: int | None, target: Target, *, exact: bool) -> tuple[Scalar, Scalar]:
    """The probabilities of success and failure of one trial, both accurate however small."""
    if isinstance(source, AbsorbingChain | MarkovChain):
        return reliability_split(source, d, target=target, exact=exact)
    if d is not None:
        raise UsageError("a step budget needs a chain: a reliability already has one")
    (p,) = _reliabilities([source])
    return p, 1 - p


def _all_of(success: Scalar, failure: Scalar, k: int) -> Scalar:
    if isinstance(success, Fraction) or success <= 0.5:
        return success**k
    return math.exp(k * math.log1p(-failure))


def _any_of(success: Scalar, failure: Scalar, k: int) -> Scalar:
    if isinstance(success, Fraction):
        return 1 - failure**k
    if failure == 0:
        return 1.0
    return -math.expm1(k * (math.log1p(-success) if success < 0.5 else math.log(failure)))


def _count(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise UsageError(f"a number of trials is an integer, one or more, not {k!r}")
    return int(k)


def _reliabilities(values: Sequence[Scalar | int]) -> list[Scalar]:
    checked: list[Scalar] = [Fraction(p) if isinstance(p, Rational) else float(p) for p in values]
    for p in checked:
        if not 0 <= p <= 1:
            raise UsageError(f"a reliability lies between 0 and 1, {p} does not")
    return checked


def _mixed(values: Sequence[Scalar], weights: Sequence[Scalar]) -> Scalar:
    if len(values) != len(weights):
        raise UsageError(f"{len(values)} reliabilities have {len(weights)} weights")
    checked: list[Scalar] = [Fraction(weight) if isinstance(weight, Rational) else float(weight) for weight in weights]
    if any(not 0 <= weight <= 1 for weight in checked):
        raise UsageError("weights lie between 0 and 1")
    exact = all(isinstance(number, Fraction) for number in [*checked, *values])
    total = sum((Fraction(weight) for weight in checked), Fraction(0))
    if abs(total - 1) > (Fraction(0) if exact else _TOLERANCE):
        raise UsageError(f"weights sum to one, not to {total if exact else float(total)}")
    products = [weight * value for weight, value in zip(checked, values, strict=True)]
    return sum((Fraction(product) for product in products), Fraction(0)) if exact else math.fsum(products)


def _counts(successes: Sequence[int], trials: Sequence[int], k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    c, n = np.asarray(successes), np.asarray(trials)
    if c.ndim != 1 or c.shape != n.shape or not len(c):
        raise UsageError(
            f"successes and trials are two lists of one count a task, not of shapes {c.shape} and {n.shape}"
        )
    if not (np.issubdtype(c.dtype, np.integer) and np.issubdtype(n.dtype, np.integer)):
        raise UsageError("successes and trials are integers")
    bad = np.flatnonzero((c < 0) | (c > n))
    if len(bad):
        raise UsageError(f"task {int(bad[0])} has {int(c[bad[0]])} successes in {int(n[bad[0]])} trials")
    short = np.flatnonzero(n < k)
    if len(short):
        raise UsageError(f"task {int(short[0])} has {int(n[short[0]])} trials, {k} are needed")
    return c.astype(np.int64), n.astype(np.int64)


def _mean_of_ratios(tops: list[int], bottoms: list[int], k: int) -> Fraction:
    ratios = [Fraction(math.comb(top, k), math.comb(bottom, k)) for top, bottom in zip(tops, bottoms, strict=True)]
    return sum(ratios, Fraction(0)) / len(ratios)


def _gaps(c: NDArray[np.int64], n: NDArray[np.int64]) -> NDArray[np.float64]:
    """For each row of counts (samples, tasks): mean of pass^2 minus the mean product of p over pairs of tasks."""
    tasks = len(n)
    p = c / n
    squared = np.mean(c * (c - 1) / (n * (n - 1)), axis=1)
    pairs = (p.sum(axis=1) ** 2 - (p**2).sum(axis=1)) / (tasks * (tasks - 1))
    return np.asarray(squared - pairs)


def _differences(c: NDArray[np.int64], n: NDArray[np.int64]) -> NDArray[np.float64]:
    """For each row of counts (samples, tasks) the sum of ``(c - n p)^2``, times trials, less what all rows share.

    A whole number, so that deals which differ by nothing are not told apart by rounding.
    """
    c = c.astype(np.float64)
    return np.asarray(n.sum() * (c**2).sum(axis=1) - 2 * c.sum(axis=1) * (c @ n))
