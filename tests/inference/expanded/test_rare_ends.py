"""Intervals where an outcome was seen in few runs, or in none."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, binom, kstest
from tests.inference.expanded.test_resampling import corpus

from tracebridge.chain import TransitionCounts, fit_counts
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.inference.expanded.fitting import fit_model
from tracebridge.inference.expanded.posterior import ExpandedPosterior
from tracebridge.inference.expanded.rare_ends import RareEnds
from tracebridge.inference.second_opinion import second_opinions
from tracebridge.inference.uncertainty import property_uncertainty
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import FAILURE, SUCCESS

FAILS = 'P=? [ F "failure" ]'


def fitted(name: str, failures: int, *, n: int = 60, tasks: int | None = None, usual: int = SUCCESS) -> ExpandedFit:
    """Runs of which the first ones fail and the others succeed, or the other way round."""
    paths = corpus("order2", n=n, tasks=tasks)
    outcomes = np.full(n, usual, dtype=np.int8)
    outcomes[:failures] = SUCCESS + FAILURE - usual
    paths = replace(paths, outcomes=outcomes)
    names = paths.states
    runs = [
        (tuple(names[c] for c in paths.codes[a:b]), ("success", "failure")[outcome])
        for a, b, outcome in zip(paths.offsets, paths.offsets[1:], paths.outcomes, strict=False)
    ]
    return fit_model(fit_counts(TransitionCounts.from_paths(runs)), paths, parse_model(name), kappa=1.0)


@pytest.mark.parametrize(("name", "draws"), [("order2", 4_000), ("phases:2", 200)])
def test_an_outcome_that_no_run_had_is_bounded_by_the_number_of_runs(name, draws):
    (found,) = property_uncertainty(fitted(name, 0), FAILS, draws=draws, seed=3)
    assert found.interval.lower < 1e-8
    error = 3 * found.quantile_errors[1]
    assert found.interval.upper == pytest.approx(1 - 0.05 ** (1 / 60), abs=error)
    assert error < 0.05
    assert "mid-P: failure in none of 60 runs" in found.interval.method


def test_where_all_runs_fail_it_is_success_that_is_bounded():
    (found,) = property_uncertainty(fitted("order2", 0, usual=FAILURE), 'P=? [ F "success" ]', draws=4_000, seed=3)
    assert found.interval.lower < 1e-8
    assert found.interval.upper == pytest.approx(1 - 0.05 ** (1 / 60), abs=3 * found.quantile_errors[1])
    assert "success in none of 60 runs" in found.interval.method


def test_runs_of_a_task_count_once():
    (found,) = property_uncertainty(fitted("order2", 0, n=80, tasks=20), FAILS, draws=4_000, seed=3)
    assert found.interval.upper == pytest.approx(1 - 0.05 ** (1 / 20), abs=3 * found.quantile_errors[1])
    assert "none of 20 tasks" in found.interval.method


def test_one_half_of_the_draws_has_a_failure_more():
    fit = fitted("order2+clock:0,2", 0)
    source = ExpandedPosterior.of_fit(fit)
    stacks = list(source.draws(600, 5))
    failed = np.concatenate(
        [
            s.mean_at_start(s.solve(~s.chain.absorbing, np.asarray(s.chain.label("failure"), dtype=float)[:, None]))
            for s in stacks
        ]
    )
    assert (failed[1::2] < 1e-8).all()
    assert kstest(failed[::2], beta(1, 60).cdf).pvalue > 1e-3
    drawn = stacks[0].chain_at(0)  # its constructor refuses rows that are no distributions
    assert np.array_equal(drawn.transitions.indices, fit.chain.transitions.indices)


@pytest.mark.parametrize("failures", [1, 4])
def test_of_rare_failures_the_interval_is_the_mid_p_one(failures):
    n = 60
    (found,) = property_uncertainty(fitted("order2", failures, n=n), FAILS, draws=4_000, seed=3)

    def mid_p(rate, side):
        more = binom.sf(failures, n, rate) if side == "lower" else binom.cdf(failures - 1, n, rate)
        return more + binom.pmf(failures, n, rate) / 2 - 0.025

    upper = brentq(mid_p, 1e-6, 0.5, args=("upper",))
    lower = brentq(mid_p, 1e-6, 0.5, args=("lower",))
    # Rows are shrunk and weighted by visits, so that the draws follow the law of the binomial share but nearly.
    assert found.interval.upper == pytest.approx(upper, rel=0.12)
    assert found.interval.lower == pytest.approx(lower, rel=0.3, abs=1.5e-3)
    assert f"failure in {failures} of 60 runs" in found.interval.method


def test_common_outcomes_are_left_as_they_are():
    assert RareEnds.of_runs(fitted("order2", 20).paths) is None
    (found,) = property_uncertainty(fitted("order2", 20), FAILS, draws=20)
    assert "mid-P" not in found.interval.method


def test_the_rule_decides_by_the_number_of_runs():
    rule = '//@ credible 0.95\nP>=0.9 [ F "success" ]'
    sure, unsure = (property_uncertainty(fitted("order2", 0, n=n), rule, draws=2_000)[0] for n in (60, 15))
    # In half of the draws failures have the share Beta(1, n), in the other half none.
    for found, n in ((sure, 60), (unsure, 15)):
        assert found.satisfied == pytest.approx(1 - 0.5 * 0.9**n, abs=4 * max(found.share_error, 1e-3))
    assert (str(sure.verdict), str(unsure.verdict)) == ("satisfied", "undecided")


def test_no_run_tells_on_which_way_others_would_fail():
    fit = fitted("order2", 0)
    first = fit.model.states[0]
    asked = f'P=? [ !"{first}" U "failure" ]; P=? [ F "{first}" ]; P=? [ F<=3 "failure" ]'
    unknown, way, timed = property_uncertainty(fit, asked, draws=50)
    assert unknown.interval is None
    assert "no run failed, so that nothing tells on which ways" in unknown.reason
    assert way.interval is not None
    assert timed.interval is not None
    others = second_opinions(fit, asked, resamples=20)
    assert others[0].intervals == ()
    assert "no run failed" in others[0].notes[0]
    assert others[1].intervals
