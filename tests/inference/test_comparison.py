"""Two agents against published intervals, enumeration, refitted chains and simulated runs."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.runs import as_traces, runs

from tracebridge.chain import fit_chain
from tracebridge.closedform import long_run_reliability, mean_time_to_absorption, reliability
from tracebridge.errors import FitError, NothingToCheckError, UsageError
from tracebridge.inference.comparison import compare_agents, compare_pass_rates, compare_tasks
from tracebridge.inference.run_table import RunTable
from tracebridge.inference.task_counts import TaskCounts
from tracebridge.traces import Outcome, Trace
from tracebridge.traces.model import Step


def counts_of(successes: dict[str, tuple[int, int]]) -> TaskCounts:
    tasks = tuple(sorted(successes))
    return TaskCounts(
        tasks=tasks,
        successes=tuple(successes[task][0] for task in tasks),
        trials=tuple(successes[task][1] for task in tasks),
    )


class TestPassRates:
    @pytest.mark.parametrize(
        ("first", "second", "lower", "upper"),
        [
            ((48, 80), (56, 70), 0.0524, 0.3339),
            ((3, 10), (9, 10), 0.1705, 0.8090),
            ((2, 7), (6, 7), 0.0582, 0.8062),
            ((0, 29), (5, 56), -0.0381, 0.1926),
        ],
    )
    def test_the_published_intervals(self, first, second, lower, upper):
        """Newcombe 1998, Table II, method 10."""
        found = compare_pass_rates(first, second)
        assert found.interval is not None
        assert (found.interval.lower, found.interval.upper) == pytest.approx((lower, upper), abs=5e-5)
        assert found.difference == pytest.approx(second[0] / second[1] - first[0] / first[1])
        mirrored = compare_pass_rates(second, first).interval
        assert mirrored is not None
        assert (mirrored.lower, mirrored.upper) == pytest.approx((-upper, -lower), abs=5e-5)

    @pytest.mark.parametrize(("p", "q"), [(0.3, 0.5), (0.9, 0.95), (0.5, 0.5)])
    def test_coverage_by_enumeration(self, p, q):
        """Exact coverage with 30 runs each, close to the nominal level."""
        n = 30
        chances = [[comb(n, c) * rate**c * (1 - rate) ** (n - c) for c in range(n + 1)] for rate in (p, q)]
        covered = 0.0
        for a, b in product(range(n + 1), repeat=2):
            interval = compare_pass_rates((a, n), (b, n)).interval
            assert interval is not None
            covered += chances[0][a] * chances[1][b] * (q - p in interval)
        assert 0.93 < covered < 0.985

    def test_counts_must_fit(self):
        with pytest.raises(UsageError, match="3 successes of 2 trials"):
            compare_pass_rates((3, 2), (1, 2))
        with pytest.raises(UsageError, match="level"):
            compare_pass_rates((1, 2), (1, 2), level=95)


class TestTasks:
    def test_one_trial_a_task_is_mcnemars_test(self):
        """6 tasks gained, 1 lost: 2 (C(7,0) + C(7,1)) / 2^7."""
        first = {f"t{i}": (int(i in {0, 8, 9}), 1) for i in range(10)}
        second = {f"t{i}": (int(i in {1, 2, 3, 4, 5, 6, 8, 9}), 1) for i in range(10)}
        found = compare_tasks(counts_of(first), counts_of(second), replicates=200)
        assert (found.n_better, found.n_worse, found.n_tasks) == (6, 1, 10)
        assert found.test == "McNemar, exact"
        assert found.p_value == pytest.approx(2 * (1 + 7) / 2**7)
        assert found.difference.difference == pytest.approx(0.5)

    def test_dealing_anew_is_the_exact_test(self):
        """Two tasks, two trials each: the law of the difference from all deals of 4 trials into 2 and 2."""
        first, second = {"a": (0, 2), "b": (1, 2)}, {"a": (2, 2), "b": (2, 2)}
        weights = {}
        for a, b in product(range(3), repeat=2):
            chance = comb(2, a) * comb(2, 2 - a) / comb(4, 2) * comb(3, b) * comb(1, 2 - b) / comb(4, 2)
            weights[(2 - 2 * a + 3 - 2 * b) / 4] = weights.get((2 - 2 * a + 3 - 2 * b) / 4, 0) + chance
        exact = sum(chance for value, chance in weights.items() if abs(value) >= 0.75)
        found = compare_tasks(counts_of(first), counts_of(second), replicates=10)
        assert found.difference.difference == pytest.approx(0.75)
        assert found.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 9999))

    def test_only_common_tasks_count(self):
        found = compare_tasks(
            counts_of({"a": (1, 2), "b": (2, 2)}), counts_of({"b": (1, 2), "c": (0, 1)}), replicates=9
        )
        assert (found.n_tasks, found.n_only_first, found.n_only_second) == (1, 1, 1)
        assert (found.difference.first, found.difference.second) == (1, 0.5)
        with pytest.raises(NothingToCheckError, match="no task"):
            compare_tasks(counts_of({"a": (1, 2)}), counts_of({"b": (1, 2)}))

    def test_size_and_coverage_where_tasks_differ_and_agents_do_not(self):
        """200 pairs, 40 tasks of difficulty beta(1, 1), 3 trials: size .05 with error .015, coverage .95 alike."""
        rng = np.random.default_rng(7)
        rejected = covered = 0
        for seed in range(200):
            p = rng.beta(1, 1, size=40)
            tables = [{f"t{i:02}": (int(c), 3) for i, c in enumerate(rng.binomial(3, p))} for _ in range(2)]
            found = compare_tasks(counts_of(tables[0]), counts_of(tables[1]), replicates=200, seed=seed)
            rejected += found.p_value <= 0.05
            assert found.difference.interval is not None
            covered += 0.0 in found.difference.interval
        assert rejected / 200 <= 0.05 + 3 * 0.0154
        assert covered / 200 >= 0.95 - 4 * 0.0154


def completed(chosen):
    return [(path, outcome) for path, outcome in chosen if outcome != 2]


class TestAgents:
    @given(runs(8).map(completed).filter(lambda chosen: any(path for path, _ in chosen)), st.integers(0, 6), st.data())
    def test_figures_are_those_of_a_chain_fitted_to_the_repeated_runs(self, chosen, d, data):
        """Integer weights: a run of weight w counts w times in a fit without prior."""
        traces = as_traces(chosen)
        fit = fit_chain(traces, prior="none", support="observed")
        weights = data.draw(st.lists(st.integers(0, 2), min_size=len(traces), max_size=len(traces)))
        repeated = [
            Trace(trace_id=f"{i}-{copy}", outcome=trace.outcome, steps=trace.steps)
            for i, (trace, weight) in enumerate(zip(traces, weights, strict=True))
            for copy in range(weight)
        ]
        found = RunTable.of(fit, traces).figures(np.array([weights], dtype=float), d)[0]
        if not repeated:
            assert np.isnan(found).any()
            return
        if not any(trace.steps for trace in repeated):
            share = np.mean([trace.outcome is Outcome.SUCCESS for trace in repeated])
            assert found == pytest.approx([share, share, 0])
            return
        chain = fit_chain(repeated, prior="none", support="observed").chain
        expected = [
            long_run_reliability(chain),
            reliability(chain, d),
            mean_time_to_absorption(chain).overall,
        ]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)

    def test_without_censoring_they_are_pass_rate_and_mean_length(self):
        first = as_traces([((0, 1), 0), ((0,), 1), ((0, 0, 1), 0)], task_id=["x", "y", "z"])
        second = as_traces([((0,), 0), ((1, 1), 1)], task_id=["x", "y"])
        found = compare_agents(fit_chain(first), first, fit_chain(second), second, d=2, replicates=50)
        assert (found.reliability.first, found.reliability.second) == pytest.approx((2 / 3, 1 / 2))
        assert (found.mean_time.first, found.mean_time.second) == pytest.approx((2, 1.5))
        assert (found.resampled, found.n_common) == ("tasks", 2)

    def test_pairing_makes_the_interval_shorter_where_tasks_decide(self):
        """Both agents succeed on the same tasks: paired, all that is left is Tango's z^2 / (n + z^2) = .161."""
        outcomes = [0, 1] * 10
        traces = as_traces([((0,), o) for o in outcomes], task_id=[f"t{i}" for i in range(20)])
        other = as_traces([((0,), o) for o in outcomes], task_id=[f"u{i}" for i in range(20)])
        fit = fit_chain(traces)
        paired = compare_agents(fit, traces, fit, traces, d=3, replicates=100).reliability.interval
        apart = compare_agents(fit, traces, fit, other, d=3, replicates=100).reliability.interval
        assert paired is not None
        assert apart is not None
        assert (paired.lower, paired.upper) == pytest.approx((-0.1611, 0.1611), abs=1e-4)
        assert apart.upper - apart.lower > 0.3

    def test_runs_without_tasks_are_resampled_themselves(self):
        traces = as_traces([((0,), i % 2) for i in range(10)])
        found = compare_agents(fit_chain(traces), traces, fit_chain(traces), traces, d=1, replicates=50)
        assert (found.resampled, found.n_common) == ("runs", 0)
        assert found.reliability.interval is not None
        assert found.reliability.interval.lower < 0 < found.reliability.interval.upper

    def test_where_no_end_was_seen_there_is_no_mean_time(self):
        traces = as_traces([((0, 1, 1), 2), ((0,), 0)])
        found = compare_agents(fit_chain(traces), traces, fit_chain(traces), traces, d=1, replicates=50)
        assert found.mean_time.first == np.inf
        assert found.mean_time.interval is None
        assert "no end" in str(found.mean_time.reason)

    def test_coverage_of_the_difference(self):
        """120 pairs of corpora of 60 runs with retries; nominal .95, error .02."""
        rng = np.random.default_rng(3)
        covered = {"reliability": 0, "within_budget": 0, "mean_time": 0}
        true_values = {"reliability": 0.75 - 0.5, "within_budget": 0.6 - 0.2 - 0.2 * 0.6 + 0.2 * 0.2, "mean_time": 0.0}
        # An attempt succeeds with s, fails with f and is repeated else; the mean number is 1 / (s + f).
        rates = ((0.3, 0.3), (0.45, 0.15))
        two = [s + (1 - s - f) * s for s, f in rates]
        true_values["within_budget"] = two[1] - two[0]

        def corpus(s, f):
            lengths = rng.geometric(s + f, size=60)
            succeeded = rng.random(60) < s / (s + f)
            step = Step(name="try")
            return [
                Trace(trace_id=str(i), outcome=Outcome.SUCCESS if ok else Outcome.FAILURE, steps=(step,) * int(n))
                for i, (n, ok) in enumerate(zip(lengths, succeeded, strict=True))
            ]

        for seed in range(120):
            first, second = (corpus(*rate) for rate in rates)
            found = compare_agents(fit_chain(first), first, fit_chain(second), second, d=2, replicates=150, seed=seed)
            for name, truth in true_values.items():
                interval = getattr(found, name).interval
                covered[name] += truth in interval
        assert all(count / 120 >= 0.95 - 4 * 0.02 for count in covered.values())

    def test_what_cannot_be_compared(self):
        traces = as_traces([((0,), 0)])
        fit = fit_chain(traces)
        with pytest.raises(UsageError, match="budget"):
            compare_agents(fit, traces, fit, traces, d=-1)
        with pytest.raises(FitError, match="not the runs of the fit"):
            compare_agents(fit, traces, fit, as_traces([((0,), 1)]), d=1)

    def test_runs_that_the_policy_drops_count_nowhere(self):
        traces = as_traces([((0,), 0), ((0, 1), 2), ((0,), 1)])
        fit = fit_chain(traces, policy="drop")
        found = compare_agents(fit, traces, fit, traces, d=1, replicates=20)
        assert found.reliability.first == pytest.approx(0.5)


def ends_of(prefix, n_success, n, length=1):
    steps = tuple(Step(name="x") for _ in range(length))
    ends = ["success"] * n_success + ["failure"] * (n - n_success)
    return [Trace(trace_id=f"{prefix}{i}", outcome=end, steps=steps) for i, end in enumerate(ends)]


def compared(first, second, **options):
    fits = [fit_chain(runs, prior="none") for runs in (first, second)]
    return compare_agents(fits[0], first, fits[1], second, d=1, replicates=100, **options)


class TestAnAgentThatNeverVaries:
    """Its resamples are all alike, so that the bootstrap gives it no uncertainty at all."""

    def test_two_of_them_have_newcombes_interval(self):
        """All of 8 against none of 20: MOVER of two score intervals is Newcombe's method."""
        first, second = ends_of("a", 8, 8), ends_of("b", 0, 20)
        expected = compare_pass_rates((8, 8), (0, 20)).interval
        for found in (compared(first, second).reliability, compared(first, second).within_budget):
            assert (found.interval.lower, found.interval.upper) == pytest.approx((expected.lower, expected.upper))
        tasks = [counts_of({f"t{i}": (success, 1) for i in range(8)}) for success in (1, 0)]
        paired = compare_tasks(*tasks, replicates=50).difference.interval
        expected = compare_pass_rates((8, 8), (0, 8)).interval
        assert (paired.lower, paired.upper) == pytest.approx((expected.lower, expected.upper))

    def test_the_end_of_its_side_is_that_of_its_score_interval(self):
        """Eight of eight could be 8 / (8 + z^2) = .676; the other side adds what its own interval has."""
        found = compared(ends_of("a", 8, 8), ends_of("b", 15, 20)).reliability
        other = compared(ends_of("b", 15, 20), ends_of("a", 8, 8)).reliability
        assert found.interval.upper >= found.difference + 1 - 8 / (8 + 1.96**2) - 1e-3
        assert other.interval.lower <= other.difference - (1 - 8 / (8 + 1.96**2)) + 1e-3
        assert "Wilson score of 8 runs (first) and percentile bootstrap of runs (second)" in found.interval.method

    def test_trials_of_one_task_count_once(self):
        trials = [
            Trace(trace_id=f"{i}", task_id=f"t{i % 4}", outcome="success", steps=(Step(name="x"),)) for i in range(16)
        ]
        found = compared(trials, [*trials, Trace(trace_id="z", task_id="u", outcome="failure", steps=())]).reliability
        assert "Wilson score of 4 tasks (first)" in found.interval.method

    @pytest.mark.parametrize(("p", "q", "n"), [(1.0, 0.8, 20), (0.97, 0.8, 20)])
    def test_coverage(self, p, q, n):
        """100 pairs, in most of which the first never fails; the standard error of .95 is .022."""
        rng = np.random.default_rng(3)
        covered = fixed = 0
        for seed in range(100):
            first, second = (ends_of(name, int(rng.binomial(n, rate)), n) for name, rate in (("a", p), ("b", q)))
            found = compared(first, second, seed=seed).reliability.interval
            covered += q - p in found
            fixed += "MOVER" in found.method
        assert fixed > 50
        assert covered / 100 >= 0.95 - 3 * 0.022

    def test_mean_steps_of_runs_of_one_length(self):
        """The posterior of that side: wide for few runs, and the true difference of 1 step is inside."""
        few, many = (compared(ends_of("a", n, n), ends_of("b", 30, 30, length=2)).mean_time for n in (3, 300))
        for found in (few, many):
            assert found.difference == pytest.approx(1.0)
            assert 1.0 in found.interval
            assert found.interval.width > 0
        assert few.interval.lower < many.interval.lower


class TestFewTasks:
    def test_one_difference_in_every_task_leaves_a_width(self):
        """Of three tasks 7, 6 and 5 of 7 against 4, 3 and 2: unseen ones may be up to z^2 / (3 + z^2) of all."""
        first, second = (
            counts_of({f"t{i}": (each, 7) for i, each in enumerate(counts)}) for counts in ((7, 6, 5), (4, 3, 2))
        )
        found = compare_tasks(first, second, replicates=50).difference
        unseen = 1.959964**2 / (3 + 1.959964**2)
        expected = (-3 / 7 * (1 - unseen) - unseen, -3 / 7 * (1 - unseen) + unseen)
        assert (found.interval.lower, found.interval.upper) == pytest.approx(expected, abs=1e-5)
        assert "none of 3 common tasks with another difference" in found.interval.method

    def test_the_method_says_that_they_are_too_few(self):
        first, second = (
            counts_of({f"t{i}": (each, 7) for i, each in enumerate(counts)}) for counts in ((7, 6, 5), (4, 2, 2))
        )
        interval = compare_tasks(first, second, replicates=200).difference.interval
        assert "widened 2.69 times (3 common tasks: too few for a sure interval)" in interval.method
        # the percentiles are the least and the largest gain
        assert interval.lower == pytest.approx(-10 / 21 - 2.6887 * (4 / 7 - 10 / 21), abs=1e-3)
        assert interval.upper == pytest.approx(-10 / 21 + 2.6887 * (10 / 21 - 3 / 7), abs=1e-3)
