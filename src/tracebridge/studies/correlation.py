"""Repeated trials that share a difficulty (paper, Theorem 4, Corollary 5 and Fig. 5 b, c)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform import (
    correlated_pass_at_k,
    correlated_pass_hat_k,
    pass_at_k,
    pass_hat_k,
    trial_gap,
)
from tracebridge.studies.result import Findings, Table
from tracebridge.studies.statement import equals, fixed, mean, rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.studies.replication import Replication

#: Fig. 5 names shares q of easy tasks only; these two reliabilities fit its axes.
EASY, HARD = 0.35, 0.06
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)

TASKS, TRIALS, DEALS = 50, 5, 199
#: Reliabilities of which each task has one, equally likely: without and with a shared difficulty.
ALIKE, DIFFERENT = (0.5,), (0.3, 0.7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One benchmark of 50 tasks with 5 trials each: the plug-in gap, and whether each k finds the sharing at 5 %."""

    plug_in: float
    by_two: bool
    by_five: bool


def diagnose(reliabilities: tuple[float, ...], rng: np.random.Generator) -> Diagnosis:
    """Draw a benchmark and test it by permutation at k = 2 and k = 5."""
    p = rng.choice(reliabilities, size=TASKS)
    successes, trials = rng.binomial(TRIALS, p), np.full(TASKS, TRIALS)
    at_two = trial_gap(successes.tolist(), trials.tolist(), permutations=DEALS, seed=int(rng.integers(2**63)))
    # Given the total of successes, the pooled pass^5 is the same in every deal: pass^5 alone orders them.
    deals = rng.multivariate_hypergeometric(trials, int(successes.sum()), size=DEALS, method="marginals")
    as_large = np.count_nonzero(_all_five(deals) >= _all_five(successes[None])[0])
    return Diagnosis(
        plug_in=at_two.pass_hat_2 - at_two.mean**2,
        by_two=at_two.p_value <= 0.05,
        by_five=bool((1 + as_large) / (1 + DEALS) <= 0.05),
    )


def _all_five(successes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Tasks whose five trials all succeeded: 50 times the unbiased pass^5 of five trials."""
    return np.asarray((successes == TRIALS).sum(axis=1))


def signs(_: None, rng: np.random.Generator) -> tuple[float, float]:
    """The smallest gap of pass^k and the largest of pass@k over 40 random mixtures; Theorem 4 gives their signs."""
    hat, at = [], []
    for _case in range(40):
        size, k = int(rng.integers(2, 6)), int(rng.integers(2, 12))
        p, w = rng.random(size).tolist(), rng.dirichlet(np.ones(size)).tolist()
        pooled = float(np.dot(p, w))
        hat.append(float(correlated_pass_hat_k(p, w, k)) - float(pass_hat_k(pooled, k)))
        at.append(float(correlated_pass_at_k(p, w, k)) - float(pass_at_k(pooled, k)))
    return min(hat), max(at)


def study(replication: Replication) -> Findings:
    """The gaps of mixtures, their signs, and what a gap of real counts says."""
    alike, different = replication.of_each(diagnose, [ALIKE, DIFFERENT])
    (extremes,) = replication.of_each(signs, [None])
    gaps = tuple(_gaps_of(q, k) for q in SHARES for k in (2, 5, 10))
    counts = {
        name: [sum(found) for found in zip(*((d.plug_in > 0, d.by_two, d.by_five) for d in group), strict=True)]
        for name, group in {"all alike, p = .5": alike, "p = .3 or .7": different}.items()
    }
    number = replication.number
    rows = tuple((name, number, *(count / number for count in found)) for name, found in counts.items())
    half = [0.5, 0.5]
    difference = [float(d.by_two) - float(d.by_five) for d in different]
    found_alike = counts["all alike, p = .5"]
    return Findings(
        tables=(
            Table(
                title=f"Gap of a mixture of tasks (p = {EASY} with share q, else {HARD}) to independent trials",
                columns=("q", "k", "pass^k", "independent", "gap", "pass@k", "independent", "gap"),
                rows=gaps,
            ),
            Table(
                title=f"What the gap of {TASKS} tasks with {TRIALS} trials each says",
                columns=("tasks", "benchmarks", "plug-in gap above 0", "found at k = 2", "found at k = 5"),
                rows=rows,
            ),
        ),
        statements=(
            equals("p = .9 or .1: gap of pass^2", _hat([0.9, 0.1], half, 2) - 0.25, 0.16, 1e-12),
            equals("p = .9 or .1: pass^5", _hat([0.9, 0.1], half, 5), 0.29525, 1e-12),
            equals("p = .9 or .1: pass@5", float(correlated_pass_at_k([0.9, 0.1], half, 5)), 0.70475, 1e-12),
            fixed("smallest gap of pass^k, random mixtures", min(low for low, _ in extremes), lower=-1e-14),
            fixed("largest gap of pass@k, random mixtures", max(high for _, high in extremes), upper=1e-14),
            rate("plug-in gap above 0, tasks alike", found_alike[0], number, "benchmarks", lower=0.35, upper=0.6),
            rate("size of the permutation test at k = 2", found_alike[1], number, "benchmarks", upper=0.07),
            mean("power at k = 2 minus power at k = 5", difference, "benchmarks", lower=0.0),
        ),
        not_reproduced=(
            (
                "the mixture behind Fig. 5 b and c is not given: its axes fit p = .34 to .36 for the easy tasks "
                "and .06 for the hard ones"
            ),
            (
                "Corollary 5 takes a positive gap as a sign of sharing: in nearly half of all benchmarks without "
                "any it is positive too. It needs its null, the permutation of outcomes over tasks, and k = 2, "
                "which sees most"
            ),
        ),
    )  # fmt: skip


def _hat(p: list[float], w: list[float], k: int) -> float:
    return float(correlated_pass_hat_k(p, w, k))


def _gaps_of(q: float, k: int) -> tuple[float | int, ...]:
    p, w = [EASY, HARD], [q, 1 - q]
    pooled = q * EASY + (1 - q) * HARD
    hat, at = _hat(p, w, k), float(correlated_pass_at_k(p, w, k))
    free_hat, free_at = float(pass_hat_k(pooled, k)), float(pass_at_k(pooled, k))
    return q, k, hat, free_hat, hat - free_hat, at, free_at, at - free_at
