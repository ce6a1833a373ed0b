"""Repeated trials of tasks: do trials of one task share its difficulty, and what is pass^k if they do?

``pass^k`` with independent trials of one reliability p is ``p^k``. When tasks differ in difficulty it is the mean of
``p^k`` over tasks, which is larger. Three estimates of it stand side by side: the unbiased ``C(c, k) / C(n, k)``, which
needs k trials of a task; a mixture of classes of tasks, and a beta distribution of p, which both reach beyond the
trials there are, and so rest on their form there. Intervals resample whole tasks, and are widened where these are few.
Where all trials ended alike, or all tasks have the same rate, so do all resamples; then they follow from Wilson's score
interval of the mean reliability, each task counting once, for the mean of ``p^k`` over tasks lies between the k-th
power of the mean of p and that mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.repeated import TrialGap, estimate_pass_hat_k, trial_gap
from tracebridge.errors import UsageError
from tracebridge.inference.few_units import resampled_interval
from tracebridge.inference.intervals import Interval, wilson
from tracebridge.inference.task_counts import TaskCounts, TaskTable
from tracebridge.inference.task_mixtures import (
    BetaBinomial,
    LatentClasses,
    beta_binomial,
    beta_pass_hat_k,
    class_limit,
    fit_betas,
    fit_mixtures,
    latent_classes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT_REPLICATES = 400

_METHOD = "percentile bootstrap of tasks"
_ALIKE = 1e-12  # resamples that differ by no more differ by rounding


# ---------------------------------------------------------------- do trials share a difficulty?


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDifficulty:
    """Whether trials of one task agree beyond chance.

    Attributes:
        gap: the variance of p over tasks, with its permutation test; see `trial_gap`.
        interval: for that variance, by resampling tasks; None where all resamples are alike, as those of equal rates.
        correlation: the correlation of two trials of a task, ``gap / (p (1 - p))``; None if all trials ended alike.
        n_tasks: tasks with two trials or more. n_left_out: tasks with a single one.
    """

    gap: TrialGap
    interval: Interval | None
    correlation: float | None
    n_tasks: int
    n_left_out: int


def shared_difficulty(
    counts: TaskCounts, *, level: float = 0.95, replicates: int = DEFAULT_REPLICATES, seed: int = 0
) -> SharedDifficulty:
    """The diagnostic at k = 2, where the gap is the variance of p over tasks and the test has most power.

    Raises:
        UsageError: for fewer than two tasks with two trials.
    """
    used = counts.with_trials(2)
    if len(used.tasks) < 2:
        raise UsageError("to tell whether trials share a difficulty takes two tasks with two trials each, or more")
    gap = trial_gap(used.successes, used.trials, seed=seed)
    table = TaskTable.of(used)
    p, both = table.c / table.n, table.c * (table.c - 1) / (table.n * (table.n - 1))
    tasks = len(used.tasks)
    drawn = np.random.default_rng(seed).multinomial(tasks, table.weights / tasks, size=replicates)
    pairs = ((drawn @ p) ** 2 - drawn @ p**2) / (tasks * (tasks - 1))
    draws = drawn @ both / tasks - pairs
    # Two draws may be of the same task, whose product is not that of independent tasks: known on average, taken out.
    draws += gap.gap - (table.weights @ both / tasks - (table.weights @ p / tasks) ** 2)
    spread = gap.mean * (1 - gap.mean)
    varies = float(np.ptp(draws)) > _ALIKE
    return SharedDifficulty(
        gap=gap,
        interval=resampled_interval(draws, gap.gap, tasks, level, _METHOD, least=-0.25, most=0.25) if varies else None,
        correlation=gap.gap / spread if spread else None,
        n_tasks=tasks,
        n_left_out=len(counts.tasks) - tasks,
    )


# ---------------------------------------------------------------- pass^k by every method


@dataclass(frozen=True, slots=True, kw_only=True)
class PassHatK:
    """Estimates of pass^k.

    Attributes:
        k: the number of trials.
        independent: ``p^k`` with the pooled p: what holds if tasks do not differ.
        unbiased: the mean of ``C(c, k) / C(n, k)`` over the tasks with k trials or more; None where there is none.
        n_tasks: how many these are.
        classes, beta: by `LatentClasses` and `BetaBinomial`, each with the interval of resampled tasks.
        beyond: whether k exceeds the trials of every task, so that both rest on their form alone.
    """

    k: int
    independent: float
    unbiased: float | None
    unbiased_interval: Interval | None
    n_tasks: int
    classes: float
    classes_interval: Interval
    beta: float
    beta_interval: Interval
    beyond: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedTrials:
    """pass^k by every method, and the two models behind it; the one with the smaller BIC fits better.

    Attributes:
        rows: one for each k. classes, beta: the fits. preferred: ``classes`` or ``beta``, by BIC.
    """

    rows: tuple[PassHatK, ...]
    classes: LatentClasses
    beta: BetaBinomial
    preferred: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "preferred", "classes" if self.classes.bic <= self.beta.bic else "beta")


def repeated_trials(
    counts: TaskCounts,
    ks: Sequence[int] = (1, 2, 4, 8),
    *,
    max_classes: int | None = None,
    level: float = 0.95,
    replicates: int = DEFAULT_REPLICATES,
    seed: int = 0,
) -> RepeatedTrials:
    """Estimate pass^k for every k in ``ks``; the number of classes is chosen anew in every bootstrap replicate.

    Raises:
        NothingToCheckError: for no task. UsageError: for a k below one, or options out of range.
    """
    if any(isinstance(k, bool) or k < 1 for k in ks):
        raise UsageError(f"a number of trials is one or more, not {min(ks)}")
    if replicates < 1:
        raise UsageError(f"a bootstrap needs a replicate, not {replicates}")
    table = TaskTable.of(counts)
    classes, beta = latent_classes(counts, max_classes=max_classes), beta_binomial(counts)
    tasks = len(counts.tasks)
    drawn = np.random.default_rng(seed).multinomial(tasks, table.weights / tasks, size=replicates).astype(np.float64)
    fits = fit_mixtures(table, drawn, class_limit(table, max_classes), quick=True)
    best = np.argmin([fit.bic for fit in fits], axis=0)
    betas, _ = fit_betas(table, drawn, [(beta.mean, beta.correlation)])
    pooled = sum(counts.successes) / sum(counts.trials)
    rows = []
    for k in ks:
        by_classes = np.stack([(fit.w * fit.p**k).sum(axis=1) for fit in fits])[best, np.arange(replicates)]
        used = counts.with_trials(k)
        unbiased, unbiased_interval = None, None
        if used.tasks:
            unbiased = float(estimate_pass_hat_k(used.successes, used.trials, k))
            long = table.n >= k
            share = np.ones(int(long.sum()))
            for i in range(k):
                share *= np.maximum(table.c[long] - i, 0) / (table.n[long] - i)
            weights = drawn[:, long]
            present = weights.sum(axis=1) > 0
            draws = weights[present] @ share / weights[present].sum(axis=1)
            unbiased_interval = _interval(draws, unbiased, pooled, k, len(used.tasks), level)
        by_beta = beta_pass_hat_k(betas, k)
        mixed = [
            _interval(by_classes, classes.pass_hat_k(k), pooled, k, tasks, level),
            _interval(by_beta, beta.pass_hat_k(k), pooled, k, tasks, level),
        ]
        rows.append(
            PassHatK(
                k=k,
                independent=pooled**k,
                unbiased=unbiased,
                unbiased_interval=unbiased_interval,
                n_tasks=len(used.tasks),
                classes=classes.pass_hat_k(k),
                classes_interval=mixed[0],
                beta=beta.pass_hat_k(k),
                beta_interval=mixed[1],
                beyond=k > max(counts.trials),
            )
        )
    return RepeatedTrials(rows=tuple(rows), classes=classes, beta=beta)


def _interval(draws: NDArray[np.float64], estimate: float, pooled: float, k: int, tasks: int, level: float) -> Interval:
    """For pass^k from resamples of so many tasks; from Wilson's interval where these are all alike.

    They are where all trials ended alike, and where there is one task, or all have the same rate.
    """
    if pooled in (0, 1) or float(np.ptp(draws)) <= _ALIKE:
        score = wilson(pooled * tasks, tasks, level)
        method = "Wilson score of the mean reliability, each task counting once, for resampled tasks are all alike"
        return replace(score, lower=min(score.lower**k, estimate), upper=max(score.upper, estimate), method=method)
    return resampled_interval(draws, estimate, tasks, level, _METHOD, least=0.0, most=1.0)
