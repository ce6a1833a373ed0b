import math

import numpy as np
import pytest
from scipy.stats import norm
from tests.inference.draws_of_chains import PATHS

from tracebridge.chain import TransitionCounts, fit_counts
from tracebridge.inference import SCENARIOS
from tracebridge.inference.resampling_units import ResamplingUnits
from tracebridge.inference.run_counts import RunCounts
from tracebridge.inference.second_opinion import second_opinions
from tracebridge.states.features import OUTCOMES


def coin(successes: int, failures: int):
    paths = [(("a",), "success")] * successes + [(("a",), "failure")] * failures
    fit = fit_counts(TransitionCounts.from_paths(paths))
    outcomes = np.array([0] * successes + [1] * failures)
    counted = ResamplingUnits.of(
        [RunCounts.of_paths(("a",), np.zeros(len(paths), dtype=int), np.arange(len(paths) + 1), outcomes)]
    )
    return fit, counted


def by_method(opinion):
    return {each.method: (each.lower, each.upper) for each in opinion.intervals}


def test_the_delta_method_of_a_proportion_is_walds():
    fit, counted = coin(30, 20)
    (opinion,) = second_opinions(fit, 'P=? [ F "success" ]', runs=counted, resamples=1_000)
    found = by_method(opinion)
    half = norm.ppf(0.975) * math.sqrt(0.6 * 0.4 / 50)
    assert found["delta method"] == pytest.approx((0.6 - half, 0.6 + half))
    assert set(found) == {"trace bootstrap, percentile", "delta method", "Wilson score"}
    # the bootstrap is Binomial(50, 0.6) / 50: its quantiles are 23/50 and 37/50, or next to them
    assert found["trace bootstrap, percentile"] == pytest.approx((0.46, 0.74), abs=0.021)


def test_without_a_failure_only_wilson_has_a_width():
    fit, counted = coin(40, 0)
    found = by_method(second_opinions(fit, 'P=? [ F "success" ]', runs=counted, resamples=200)[0])
    assert found["delta method"] == found["trace bootstrap, percentile"] == (1.0, 1.0)
    assert found["Wilson score"][0] == pytest.approx(40 / (40 + norm.ppf(0.975) ** 2))


def test_the_delta_method_agrees_with_the_bootstrap_on_every_figure():
    scenario = SCENARIOS["N1"]
    fit, _ = scenario.fitted(400, seed=2)
    counted = ResamplingUnits.of([RunCounts.of_paths(scenario.states, *scenario.draw(400, np.random.default_rng(2)))])
    text = 'P=? [ F "success" ]; P=? [ F<=5 "success" ]; R{"steps"}=? [ F "absorbed" ]'
    for opinion in second_opinions(fit, text, runs=counted, resamples=2_000):
        found = by_method(opinion)
        (lower, upper), (low, high) = found["delta method"], found["trace bootstrap, percentile"]
        # the chain is well specified, so both estimate one spread; a quantile of 2000 draws is off by some 4 % of it
        assert (upper - lower) == pytest.approx(high - low, rel=0.12)
        assert (lower + upper) / 2 == pytest.approx((low + high) / 2, abs=0.1 * (high - low))


def test_runs_from_several_starts_add_their_spread():
    # two states that decide alone: all spread comes from the start
    paths = [(("a",), "success")] * 30 + [(("b",), "failure")] * 20
    fit = fit_counts(TransitionCounts.from_paths(paths))
    found = by_method(second_opinions(fit, 'P=? [ F "success" ]')[0])
    half = norm.ppf(0.975) * math.sqrt(0.6 * 0.4 / 50)
    assert found["delta method"] == pytest.approx((0.6 - half, 0.6 + half))


def test_thresholds_have_the_share_of_resamples():
    names = sorted({name for path, _ in PATHS for name in path})
    codes = np.array([names.index(name) for path, _ in PATHS for name in path])
    offsets = np.cumsum([0, *(len(path) for path, _ in PATHS)])
    outcomes = np.array([OUTCOMES.index(outcome) for _, outcome in PATHS])
    fit = fit_counts(TransitionCounts.from_paths(PATHS))
    counted = ResamplingUnits.of(
        [RunCounts.of_paths(names, codes, offsets, outcomes, task_ids=["t", "t", "u", "v", "w", "w"])]
    )
    (opinion,) = second_opinions(fit, 'P>=0.5 [ F "success" & true ]', runs=counted, resamples=500)
    of_runs, of_tasks = opinion.satisfied
    assert of_runs.startswith("trace bootstrap, percentile, widened 1.44 times (6 runs: too few")
    assert of_tasks.startswith("task bootstrap, percentile, widened 1.87 times (4 tasks: too few")
    # four of the six runs succeed: P(Binomial(6, 2/3) >= 3) = 0.9
    assert opinion.satisfied[of_runs] == pytest.approx(0.9, abs=4.5 * math.sqrt(0.09 / 500))
    assert [each["method"] for each in opinion.to_dict()["intervals"]] == [of_runs, of_tasks]


def test_few_tasks_widen_the_interval_about_the_estimate_within_the_range():
    """Three tasks of seven runs: 4, 5 and 6 succeed. Student's t with 2 degrees of freedom is 4.303."""
    successes = {"t": 4, "u": 5, "v": 6}
    paths, tasks = [], []
    for task, count in successes.items():
        paths += [(("a",), "success")] * count + [(("a",), "failure")] * (7 - count)
        tasks += [task] * 7
    fit = fit_counts(TransitionCounts.from_paths(paths))
    outcomes = np.array([OUTCOMES.index(outcome) for _, outcome in paths])
    counted = ResamplingUnits.of(
        [RunCounts.of_paths(["a"], np.zeros(21, dtype=int), np.arange(22), outcomes, task_ids=tasks)]
    )
    (opinion,) = second_opinions(fit, 'P=? [ F "success" ]', runs=counted, resamples=2_000)
    found = next(each for each in opinion.intervals if each.method.startswith("task"))
    # the same task three times has probability 1 / 27: the percentiles are 4 / 7 and 6 / 7, the estimate 5 / 7
    half = 4.302653 / norm.ppf(0.975) * math.sqrt(3 / 2) / 7
    assert (found.lower, found.upper) == (pytest.approx(5 / 7 - half, rel=1e-4), 1.0)


def test_a_given_start_has_no_interval_of_the_observed_pass_rate():
    paths = [(("a",), "success")] * 30 + [(("b",), "failure")] * 20
    fit = fit_counts(TransitionCounts.from_paths(paths), start={"b": 1})
    (opinion,) = second_opinions(fit, 'P=? [ F "success" ]')
    assert [each.method for each in opinion.intervals] == ["delta method"]


def test_states_that_only_the_prior_knows_have_no_second_opinion():
    from tracebridge.chain import DeclaredSupport

    graph = DeclaredSupport(successors={"a": ["a", "b"], "b": []})
    fit = fit_counts(TransitionCounts.from_paths([(("a",), "success")]), support=graph)
    (opinion,) = second_opinions(fit, 'P=? [ F "b" ]')
    assert opinion.intervals == ()
    assert '"b"' in opinion.notes[0]
