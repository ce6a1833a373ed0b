"""Intervals of step counts against the step count of every draw by itself, which has no bisection."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tracebridge.chain import ChainFit, TransitionCounts, fit_counts
from tracebridge.closedform import first_passage_quantile, horizon
from tracebridge.errors import UsageError
from tracebridge.inference.posterior import ChainPosterior
from tracebridge.inference.step_count_intervals import budget_interval, horizon_interval

DRAWS = 200


@pytest.fixture(scope="module")
def fit() -> ChainFit:
    paths = [(["plan", "search", "answer"], "success")] * 9 + [(["plan", "search", "search", "plan"], "failure")] * 5
    paths += [(["search"] * n, "success") for n in (1, 2, 7)]
    return fit_counts(TransitionCounts.from_paths(paths))


def order_statistics(values: list[float], level: float) -> tuple[float, float]:
    """By their definition: the smallest value that a share of (1 - level)/2, or 1 - (1 - level)/2, is not above."""
    tail = (1 - Fraction(str(level))) / 2
    return tuple(sorted(values)[math.ceil(q * len(values)) - 1] for q in (tail, 1 - tail))  # type: ignore[return-value]


def counts_of_draws(fit: ChainFit, of: object) -> list[float]:
    stacks = ChainPosterior.of_fit(fit).draws(DRAWS, 3)
    return [of(stack.chain_at(i)) for stack in stacks for i in range(stack.draws)]  # type: ignore[operator]


@pytest.mark.parametrize(("gap", "level"), [(0.01, 0.95), (0.2, 0.8), (1e-6, 0.5)])
def test_a_horizon_is_that_of_the_draws(fit, gap, level):
    found = horizon_interval(fit, gap, draws=DRAWS, seed=3, level=level)
    assert (found.lower, found.upper) == order_statistics(counts_of_draws(fit, lambda c: horizon(c, gap)), level)
    assert found.level == level


@pytest.mark.parametrize("reliability", [0.05, 0.5, 0.65, 0.97])
def test_a_budget_is_that_of_the_draws(fit, reliability):
    """Some draws never reach .65, and most never reach .97."""
    found = budget_interval(fit, reliability, draws=DRAWS, seed=3)
    each = counts_of_draws(fit, lambda c: first_passage_quantile(c, reliability))
    assert (found.lower, found.upper) == order_statistics(each, 0.95)


def test_some_budgets_are_infinite(fit):
    assert budget_interval(fit, 0.97, draws=DRAWS).upper == math.inf
    assert budget_interval(fit, 1, draws=DRAWS).lower == math.inf
    assert math.isfinite(budget_interval(fit, 0.05, draws=DRAWS).upper)


def test_without_a_step_the_horizon_is_zero():
    fit = fit_counts(TransitionCounts.from_paths([([], "success")] * 3 + [([], "failure")]))
    found = horizon_interval(fit, 0.01, draws=50)
    assert (found.lower, found.upper) == (0, 0)


def test_states_that_no_run_was_seen_to_leave_take_no_time():
    """Without a prior: a third of the runs stay in two states for ever, so that only the others reach the horizon."""
    paths = [(["s", "t"], "success"), (["s", "s"], "failure"), (["s", "u", "v", "u"], "censored")] * 5
    fit = fit_counts(TransitionCounts.from_paths(paths), prior="none")
    found = horizon_interval(fit, 0.01, draws=60, seed=1)
    each = []
    for stack in ChainPosterior.of_fit(fit).draws(60, 1):
        for i in range(stack.draws):
            P = stack.chain_at(i).transitions.toarray()
            row = dict(zip(fit.chain.states, P[fit.chain.states.index("s")], strict=True))
            gaps = (row["t"] / (1 - row["s"]) * row["s"] ** max(d - 1, 0) for d in range(1000))
            each.append(next(d for d, gap in enumerate(gaps) if gap <= 0.01))
    assert (found.lower, found.upper) == order_statistics(each, 0.95)


def test_very_long_runs_are_bisected():
    """One state with a tiny exit: H = ceil(log gap / log(1 - exit)), by hand for each draw."""
    fit = fit_counts(TransitionCounts.from_paths([(["s"] * 100_000, "success")] * 3))
    found = horizon_interval(fit, 0.01, draws=40, seed=1)
    each = []
    for stack in ChainPosterior.of_fit(fit).draws(40, 1):
        stay = stack.chain.transitions.toarray()
        assert stay[0, 0] > 0
        for i in range(stack.draws):
            P = stack.chain_at(i).transitions.toarray()
            leave, win = P[0, 1] + P[0, 2], P[0, 1]
            R_inf = win / leave
            each.append(max(0, math.ceil(math.log(0.01 / R_inf) / math.log1p(-leave))))
    expected = order_statistics(each, 0.95)
    np.testing.assert_allclose((found.lower, found.upper), expected, rtol=1e-9)


@pytest.mark.parametrize("call", [lambda f: horizon_interval(f, 0), lambda f: budget_interval(f, 1.2)])
def test_what_has_no_answer_is_refused(fit, call):
    with pytest.raises(UsageError):
        call(fit)
