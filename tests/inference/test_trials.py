"""Task counts, the shared difficulty of trials, and mixtures: against other formulas and simulated tasks."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.stats import betabinom, binom

from tracebridge.errors import NothingToCheckError, UsageError
from tracebridge.inference.task_counts import TaskCounts
from tracebridge.inference.task_mixtures import beta_binomial, latent_classes
from tracebridge.inference.trials import repeated_trials, shared_difficulty
from tracebridge.traces import Outcome, Trace


def counts_of(successes, trials) -> TaskCounts:
    names = tuple(f"t{i:06}" for i in range(len(successes)))
    return TaskCounts(tasks=names, successes=tuple(map(int, successes)), trials=tuple(map(int, trials)))


def drawn(rng: np.random.Generator, p, n: int) -> TaskCounts:
    return counts_of(rng.binomial(n, p), np.full(len(p), n))


def expected_table(reliabilities, weights, n: int, tasks: int) -> TaskCounts:
    """Tasks in the proportions that a mixture expects, up to rounding."""
    shares = sum(w * binom.pmf(np.arange(n + 1), n, p) for p, w in zip(reliabilities, weights, strict=True))
    successes = np.repeat(np.arange(n + 1), np.round(tasks * shares).astype(int))
    return counts_of(successes, np.full(len(successes), n))


class TestTaskCounts:
    def test_runs_are_counted_by_task(self):
        runs = [
            ("b", "success"),
            ("a", "failure"),
            ("b", "failure"),
            ("b", "success"),
            ("a", "censored"),
            (None, "success"),
        ]
        counts = TaskCounts.from_traces(
            Trace(trace_id=str(i), task_id=task, outcome=Outcome(outcome)) for i, (task, outcome) in enumerate(runs)
        )
        assert (counts.tasks, counts.successes, counts.trials) == (("a", "b"), (0, 2), (1, 3))
        assert (counts.n_censored, counts.n_without_task) == (1, 1)
        assert counts.with_trials(2).tasks == ("b",)

    @pytest.mark.parametrize(("successes", "trials"), [([3], [2]), ([-1], [2]), ([0], [0])])
    def test_counts_must_fit(self, successes, trials):
        with pytest.raises(UsageError, match="successes in"):
            counts_of(successes, trials)


class TestSharedDifficulty:
    def test_two_kinds_of_tasks(self):
        """p = .9 or .1: the variance of p, and so the gap at k = 2, is .16; the correlation .16 / .25."""
        found = shared_difficulty(expected_table([0.9, 0.1], [0.5, 0.5], 8, 10_000))
        assert found.gap.gap == pytest.approx(0.16, abs=1e-3)
        assert found.correlation == pytest.approx(0.64, abs=1e-3)
        assert found.gap.p_value == 1 / 1000
        assert 0.16 in found.interval

    def test_tasks_with_one_trial_say_nothing_and_are_counted(self):
        found = shared_difficulty(counts_of([1, 0, 2, 0, 1], [1, 1, 2, 2, 2]))
        assert (found.n_tasks, found.n_left_out) == (3, 2)
        with pytest.raises(UsageError, match="two tasks"):
            shared_difficulty(counts_of([1, 0, 2], [1, 1, 2]))

    def test_trials_that_all_end_alike_have_no_correlation(self):
        found = shared_difficulty(counts_of([2, 2, 2], [2, 2, 2]))
        assert found.correlation is None
        assert found.gap.p_value == 1

    def test_its_interval_covers(self):
        """150 corpora of 80 tasks: nominal .95; a true .93 stays above .87 with probability .997."""
        rng = np.random.default_rng(5)
        covered = 0
        for seed in range(150):
            p = rng.beta(2, 2, size=80)  # variance 1 / 20
            covered += 0.05 in shared_difficulty(drawn(rng, p, 4), replicates=200, seed=seed).interval
        assert covered / 150 >= 0.87


class TestLatentClasses:
    def test_two_classes_are_found(self):
        fit = latent_classes(expected_table([0.9, 0.1], [0.5, 0.5], 8, 20_000))
        assert fit.reliabilities == pytest.approx((0.1, 0.9), abs=2e-3)
        assert fit.weights == pytest.approx((0.5, 0.5), abs=2e-3)
        assert fit.pass_hat_k(5) == pytest.approx(0.29525, abs=2e-3)  # where independent trials have .03125

    def test_one_class_is_the_pooled_rate(self):
        counts = counts_of([1, 3, 0, 2], [2, 5, 1, 4])
        fit = latent_classes(counts, max_classes=1)
        assert fit.weights == (1.0,)
        assert fit.reliabilities == pytest.approx((6 / 12,))
        assert fit.log_likelihood == pytest.approx(12 * np.log(0.5))
        assert fit.bic == pytest.approx(-2 * fit.log_likelihood + np.log(4))

    def test_the_likelihood_is_that_of_a_mixture_and_at_its_top(self):
        rng = np.random.default_rng(2)
        counts = drawn(rng, rng.choice([0.2, 0.7], size=60), 6)
        fit = latent_classes(counts, max_classes=2)

        def log_likelihood(w, p):
            return sum(
                np.log(sum(wk * binom.pmf(c, n, pk) for wk, pk in zip(w, p, strict=True)) / comb(n, c))
                for c, n in zip(counts.successes, counts.trials, strict=True)
            )

        w, p = np.array(fit.weights), np.array(fit.reliabilities)
        assert len(w) == 2
        assert fit.log_likelihood == pytest.approx(log_likelihood(w, p), abs=1e-5)
        for step in (1e-3, -1e-3):
            for dw, dp in (([step, -step], [0, 0]), ([0, 0], [step, 0]), ([0, 0], [0, step])):
                assert log_likelihood(w + np.array(dw), p + np.array(dp)) < log_likelihood(w, p)

    def test_bic_sees_one_class_where_there_is_one(self):
        rng = np.random.default_rng(3)
        found = [len(latent_classes(drawn(rng, np.full(100, 0.6), 8)).weights) for _ in range(10)]
        assert found.count(1) >= 9

    def test_classes_that_trials_cannot_tell_apart_are_not_fitted(self):
        """Mixtures of K binomials need 2 K - 1 trials: with two trials there is one class, whatever is asked for."""
        fit = latent_classes(counts_of([0, 0, 2, 2, 1], [2] * 5), max_classes=4)
        assert len(fit.bic_by_classes) == 1
        assert len(latent_classes(counts_of([0, 0, 5, 5, 1, 3], [5] * 6)).bic_by_classes) == 3

    def test_reliabilities_at_the_ends(self):
        fit = latent_classes(counts_of([0] * 10 + [6] * 10, [6] * 20))
        assert fit.reliabilities == pytest.approx((0, 1), abs=1e-9)
        assert fit.log_likelihood == pytest.approx(20 * np.log(0.5))
        assert latent_classes(counts_of([4, 4], [4, 4])).pass_hat_k(7) == 1

    def test_no_task_and_no_class(self):
        with pytest.raises(NothingToCheckError):
            latent_classes(counts_of([], []))
        with pytest.raises(UsageError, match="one class"):
            latent_classes(counts_of([1], [2]), max_classes=0)


class TestBetaBinomial:
    def test_it_finds_the_beta_that_tasks_come_from(self):
        shares = betabinom.pmf(np.arange(9), 8, 2, 3)
        successes = np.repeat(np.arange(9), np.round(20_000 * shares).astype(int))
        fit = beta_binomial(counts_of(successes, np.full(len(successes), 8)))
        assert fit.mean == pytest.approx(2 / 5, abs=1e-3)
        assert fit.correlation == pytest.approx(1 / 6, abs=1e-3)
        assert fit.pass_hat_k(3) == pytest.approx((2 / 5) * (3 / 6) * (4 / 7), abs=2e-3)  # moments of a beta

    def test_the_likelihood_is_scipys_and_at_its_top(self):
        rng = np.random.default_rng(4)
        counts = drawn(rng, rng.beta(3, 2, size=40), 5)
        fit = beta_binomial(counts)

        def log_likelihood(mean, correlation):
            size = 1 / correlation - 1
            log = betabinom.logpmf(counts.successes, counts.trials, mean * size, (1 - mean) * size)
            return float(np.sum(log - np.log([comb(5, c) for c in counts.successes])))

        assert fit.log_likelihood == pytest.approx(log_likelihood(fit.mean, fit.correlation), abs=1e-8)
        for mean, correlation in ((1.01, 1), (0.99, 1), (1, 1.02), (1, 0.98)):
            assert log_likelihood(fit.mean * mean, fit.correlation * correlation) < fit.log_likelihood

    def test_tasks_that_do_not_differ(self):
        """Under-dispersed counts: the likelihood is highest without any correlation, and stays finite there."""
        fit = beta_binomial(counts_of([2, 2, 2, 2], [4] * 4))
        assert fit.mean == pytest.approx(0.5, abs=1e-6)
        assert fit.correlation < 1e-6
        assert fit.log_likelihood == pytest.approx(16 * np.log(0.5), abs=1e-5)
        assert beta_binomial(counts_of([3, 3], [3, 3])).pass_hat_k(10) == 1


class TestRepeatedTrials:
    def test_every_method_on_two_kinds_of_tasks(self):
        rng = np.random.default_rng(8)
        counts = drawn(rng, rng.choice([0.9, 0.1], size=400), 8)
        found = repeated_trials(counts, (1, 5, 16), replicates=40)
        one, five, far = found.rows
        assert five.independent < 0.06
        for row in (one, five):
            assert row.n_tasks == 400
            assert row.unbiased == pytest.approx(row.classes, abs=0.02)
            assert row.unbiased in row.classes_interval
            assert row.unbiased in row.unbiased_interval
            assert not row.beyond
        assert one.independent == pytest.approx(one.beta, abs=0.01)
        assert far.unbiased is None
        assert far.unbiased_interval is None
        assert far.beyond
        assert found.preferred == "classes"

    def test_a_beta_is_preferred_where_difficulty_is_spread_evenly(self):
        shares = betabinom.pmf(np.arange(7), 6, 1, 1)
        successes = np.repeat(np.arange(7), np.round(2_100 * shares).astype(int))
        found = repeated_trials(counts_of(successes, np.full(len(successes), 6)), (2,), replicates=3)
        assert found.preferred == "beta"
        assert found.rows[0].beta == pytest.approx(1 / 3, abs=1e-3)  # E p^2 of a uniform p

    def test_unequal_numbers_of_trials(self):
        found = repeated_trials(counts_of([1, 2, 0, 3], [1, 2, 2, 4]), (2,), replicates=20)
        assert found.rows[0].n_tasks == 3
        assert found.rows[0].unbiased == pytest.approx((1 + 0 + 3 / 6) / 3)

    def test_its_interval_covers(self):
        """30 corpora of 60 tasks, pass^3 of p in {.9, .3}; at a true .90, 23 or more of 30 with probability .996."""
        rng = np.random.default_rng(11)
        truth = (0.9**3 + 0.3**3) / 2
        covered = 0
        for seed in range(30):
            counts = drawn(rng, rng.choice([0.9, 0.3], size=60), 5)
            covered += truth in repeated_trials(counts, (3,), replicates=60, seed=seed).rows[0].classes_interval
        assert covered >= 23

    def test_it_is_the_same_for_the_same_seed(self):
        counts = counts_of([1, 2, 0, 3, 4], [4] * 5)
        assert repeated_trials(counts, (2,), replicates=10) == repeated_trials(counts, (2,), replicates=10)

    def test_options_out_of_range(self):
        with pytest.raises(UsageError, match="one or more"):
            repeated_trials(counts_of([1], [2]), (0,))
        with pytest.raises(UsageError, match="replicate"):
            repeated_trials(counts_of([1], [2]), (1,), replicates=0)


def test_tasks_of_one_rate_leave_a_width():
    """Resampled tasks are all alike: Wilson's interval of 3/7 in three tasks, and no interval of the variance."""
    from tracebridge.inference.intervals import wilson

    counts = TaskCounts(tasks=("t", "u", "v"), successes=(3, 3, 3), trials=(7, 7, 7))
    score = wilson(9 / 7, 3)
    one, two, four = repeated_trials(counts, (1, 2, 4), replicates=20).rows
    for found in (one.unbiased_interval, one.classes_interval):
        assert (found.lower, found.upper) == pytest.approx((score.lower, score.upper))
    assert (two.unbiased_interval.lower, two.unbiased_interval.upper) == pytest.approx((score.lower**2, score.upper))
    assert four.unbiased == four.unbiased_interval.lower == 0  # no task had four successes
    assert four.unbiased_interval.upper == pytest.approx(score.upper)
    assert shared_difficulty(counts, replicates=20).interval is None
