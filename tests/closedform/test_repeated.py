"""Repeated trials against enumeration: of the trials that are drawn, and of the samples that could have been."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.closedform.repeated import (
    correlated_pass_at_k,
    correlated_pass_hat_k,
    estimate_pass_at_k,
    estimate_pass_hat_k,
    pass_at_k,
    pass_hat_k,
    trial_gap,
)
from tracebridge.errors import UsageError

F = Fraction
law = settings(deadline=None, max_examples=50)
probabilities = st.fractions(0, 1, max_denominator=10**6)
tasks = st.lists(st.integers(1, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=5)


@pytest.fixture
def example() -> MarkovChain:
    tenths = [{0: 1, 1: 5, 2: 4}, {0: 1, 1: 2, 2: 3, 3: 3, 4: 1}, {1: 1, 2: 6, 4: 3}, {3: 10}, {4: 10}]
    return MarkovChain(
        states=("s0", "s1", "s2", "+", "-"),
        transitions=RationalMatrix.from_rows([{j: F(x, 10) for j, x in row.items()} for row in tenths]),
        initial=RationalVector.from_fractions([1, 0, 0, 0, 0]),
        labels={"success": np.arange(5) == 3},
    )


class TestIndependentTrials:
    @law
    @given(probabilities, st.integers(1, 5))
    def test_against_enumeration(self, p: Fraction, k: int) -> None:
        def probability(outcomes: tuple[bool, ...]) -> Fraction:
            return math.prod((p if success else 1 - p for success in outcomes), start=F(1))

        trials = list(product([False, True], repeat=k))
        assert pass_hat_k(p, k) == sum(probability(t) for t in trials if all(t))
        assert pass_at_k(p, k) == sum(probability(t) for t in trials if any(t))

    @law
    @given(st.floats(0, 1), st.integers(1, 1000))
    def test_doubles_are_accurate_at_both_ends(self, p: float, k: int) -> None:
        exact = F(p)
        assert pass_hat_k(p, k) == pytest.approx(float(exact**k), rel=1e-12, abs=1e-300)
        assert pass_at_k(p, k) == pytest.approx(float(1 - (1 - exact) ** k), rel=1e-12, abs=0)

    def test_tiny_probabilities(self) -> None:
        assert pass_at_k(1e-20, 5) == pytest.approx(5e-20, rel=1e-15)
        assert 1 - pass_hat_k(1 - 2.0**-50, 4) == pytest.approx(4 * 2.0**-50, rel=1e-12)
        assert (pass_at_k(0.0, 3), pass_at_k(1.0, 3), pass_hat_k(0.0, 3), pass_hat_k(1.0, 3)) == (0, 1, 0, 1)

    def test_of_a_chain(self, example: MarkovChain) -> None:
        assert pass_hat_k(example, 5, exact=True) == F(24, 79) ** 5
        assert pass_at_k(example, 5, exact=True) == 1 - F(55, 79) ** 5
        assert pass_at_k(example, 5) == pytest.approx(float(1 - F(55, 79) ** 5), rel=1e-14)

    def test_within_a_budget(self, example: MarkovChain) -> None:
        assert pass_hat_k(example, 3, d=3, exact=True) == F(207, 1000) ** 3
        assert pass_hat_k(example, 3, d=3) == pytest.approx(0.207**3, rel=1e-14)
        assert pass_at_k(example, 3, d=3, exact=True) == 1 - F(793, 1000) ** 3
        assert pass_hat_k(example, 2, d=0) == 0

    def test_of_a_chain_that_hardly_fails(self) -> None:
        e = F(1, 10**18)
        chain = MarkovChain(
            states=("s", "+", "-"),
            transitions=RationalMatrix.from_rows([{1: 1 - e, 2: e}, {1: F(1)}, {2: F(1)}]),
            initial=RationalVector.from_fractions([1, 0, 0]),
            labels={"success": np.arange(3) == 1},
        )
        assert pass_hat_k(chain, 10**16) == pytest.approx(math.exp(-0.01), rel=1e-14)
        assert pass_at_k(chain, 2) == 1.0

    @pytest.mark.parametrize("k", [0, -1, 1.5, True])
    def test_number_of_trials(self, k: object) -> None:
        for function in (pass_at_k, pass_hat_k):
            with pytest.raises(UsageError, match="number of trials"):
                function(0.5, k)  # type: ignore[arg-type]

    @pytest.mark.parametrize("p", [-0.1, 1.5, math.nan])
    def test_reliability(self, p: float) -> None:
        with pytest.raises(UsageError, match="between 0 and 1"):
            pass_at_k(p, 2)

    def test_budget_without_a_chain(self) -> None:
        with pytest.raises(UsageError, match="needs a chain"):
            pass_at_k(0.5, 2, d=8)


class TestCorrelatedTrials:
    def test_golden(self) -> None:
        p, w = [F(9, 10), F(1, 10)], [F(1, 2), F(1, 2)]
        assert correlated_pass_hat_k(p, w, 2) - pass_hat_k(F(1, 2), 2) == F(16, 100)
        assert correlated_pass_hat_k(p, w, 5) == F("0.29525")
        assert pass_hat_k(F(1, 2), 5) == F("0.03125")
        assert correlated_pass_at_k(p, w, 5) == F("0.70475")
        assert pass_at_k(F(1, 2), 5) == F("0.96875")
        assert correlated_pass_at_k([0.9, 0.1], [0.5, 0.5], 5) == pytest.approx(0.70475, rel=1e-14)

    @law
    @given(st.lists(st.tuples(probabilities, st.integers(1, 9)), min_size=1, max_size=5), st.integers(1, 6))
    def test_sharing_helps_all_of_and_hurts_any_of(self, mixture: list[tuple[Fraction, int]], k: int) -> None:
        """Theorem 4, by Jensen's inequality; for k = 2 the difference is the variance."""
        p = [value for value, _ in mixture]
        weights = [F(weight, sum(w for _, w in mixture)) for _, weight in mixture]
        mean = sum((a * b for a, b in zip(weights, p, strict=True)), F(0))
        assert correlated_pass_hat_k(p, weights, k) >= pass_hat_k(mean, k)
        assert correlated_pass_at_k(p, weights, k) <= pass_at_k(mean, k)
        variance = sum(w * (x - mean) ** 2 for w, x in zip(weights, p, strict=True))
        assert correlated_pass_hat_k(p, weights, 2) - mean**2 == variance
        in_doubles = correlated_pass_hat_k([float(x) for x in p], [float(w) for w in weights], k)
        assert in_doubles == pytest.approx(float(correlated_pass_hat_k(p, weights, k)), rel=1e-12)

    @pytest.mark.parametrize("weights", [[0.5, 0.4], [1.5, -0.5], [1.0], [F(1, 2), F(1, 3)]])
    def test_weights(self, weights: list[float]) -> None:
        with pytest.raises(UsageError, match="weights"):
            correlated_pass_hat_k([F(1, 2), F(1, 4)], weights, 2)


class TestEstimates:
    @law
    @given(tasks, st.data())
    def test_against_every_choice_of_k_trials(self, counts: list[tuple[int, int]], data: st.DataObject) -> None:
        k = data.draw(st.integers(1, min(n for _, n in counts)))
        every = [list(combinations([True] * c + [False] * (n - c), k)) for c, n in counts]
        all_of = sum(F(sum(all(choice) for choice in choices), len(choices)) for choices in every) / len(every)
        any_of = sum(F(sum(any(choice) for choice in choices), len(choices)) for choices in every) / len(every)
        c, n = [c for c, _ in counts], [n for _, n in counts]
        assert estimate_pass_hat_k(c, n, k, exact=True) == all_of
        assert estimate_pass_at_k(c, n, k, exact=True) == any_of
        assert estimate_pass_hat_k(c, n, k) == pytest.approx(float(all_of), rel=1e-13, abs=0)
        assert estimate_pass_at_k(c, n, k) == pytest.approx(float(any_of), rel=1e-13, abs=0)

    @law
    @given(probabilities, st.integers(1, 7), st.data())
    def test_unbiased(self, p: Fraction, n: int, data: st.DataObject) -> None:
        k = data.draw(st.integers(1, n))
        binomial = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
        all_of = sum(w * estimate_pass_hat_k([c], [n], k, exact=True) for c, w in enumerate(binomial))
        any_of = sum(w * estimate_pass_at_k([c], [n], k, exact=True) for c, w in enumerate(binomial))
        assert all_of == p**k
        assert any_of == 1 - (1 - p) ** k

    def test_one_success_among_very_many(self) -> None:
        exact = estimate_pass_at_k([1], [10**9], 3, exact=True)
        assert exact == F(3, 10**9)
        assert estimate_pass_at_k([1], [10**9], 3) == pytest.approx(3e-9, rel=1e-14)

    @pytest.mark.parametrize(
        ("successes", "trials", "message"),
        [
            ([], [], "two lists"),
            ([1, 2], [3], "two lists"),
            ([4], [3], "task 0 has 4 successes in 3 trials"),
            ([1, -1], [3, 3], "task 1 has -1 successes"),
            ([1, 1], [3, 1], "task 1 has 1 trials, 2 are needed"),
            ([0.5], [3], "integers"),
        ],
    )
    def test_counts(self, successes: list[int], trials: list[int], message: str) -> None:
        for function in (estimate_pass_at_k, estimate_pass_hat_k):
            with pytest.raises(UsageError, match=message):
                function(successes, trials, 2)


class TestTrialGap:
    @law
    @given(st.lists(probabilities, min_size=2, max_size=3), st.integers(2, 3))
    def test_unbiased(self, p: list[Fraction], n: int) -> None:
        """Over all samples of n trials a task, tasks drawn from a population of equally likely reliabilities."""
        population = len(p)
        mean = sum(p, F(0)) / population
        variance = sum((x - mean) ** 2 for x in p) / population
        expected = 0.0
        law_of_count = [
            sum((math.comb(n, c) * x**c * (1 - x) ** (n - c) for x in p), F(0)) / population for c in range(n + 1)
        ]
        for counts in product(range(n + 1), repeat=2):
            weight = math.prod((law_of_count[c] for c in counts), start=F(1))
            expected += float(weight) * trial_gap(counts, [n, n], permutations=1).gap
        assert expected == pytest.approx(float(variance), abs=1e-12)

    def test_by_hand(self) -> None:
        result = trial_gap([2, 0], [2, 2], permutations=1)
        assert (result.mean, result.pass_hat_2, result.gap) == (0.5, 0.5, 0.5)

    def test_p_value_is_the_permutation_distribution(self) -> None:
        """Two tasks of two trials, two successes: of the six deals, two give one task both."""
        result = trial_gap([2, 0], [2, 2], permutations=20_000, seed=1)
        assert result.p_value == pytest.approx(1 / 3, abs=5 * math.sqrt(2 / 9 / 20_000))
        assert trial_gap([1, 1], [2, 2], permutations=50).p_value == 1

    def test_positive_gaps_are_common_without_sharing(self) -> None:
        rng = np.random.default_rng(0)
        results = [trial_gap(rng.binomial(5, 0.5, 50), np.full(50, 5), permutations=199) for _ in range(300)]
        share = np.mean([result.gap > 0 for result in results])
        assert 0.38 < share < 0.55
        rejected = np.mean([result.p_value <= 0.05 for result in results])
        assert rejected < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)

    def test_shared_difficulty_is_found(self) -> None:
        rng = np.random.default_rng(0)
        counts = rng.binomial(5, np.repeat([0.9, 0.1], 25))
        result = trial_gap(counts, np.full(50, 5))
        assert result.p_value == 0.001
        assert result.gap == pytest.approx(0.16, abs=0.05)

    @settings(max_examples=15)
    @given(
        st.lists(st.integers(2, 5).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=4)
    )
    def test_its_p_value_is_that_of_all_deals(self, tasks: list[tuple[int, int]]) -> None:
        c, n = zip(*tasks, strict=True)
        p = Fraction(sum(c), sum(n))

        def differing(dealt: tuple[int, ...]) -> Fraction:
            return sum(((x - m * p) ** 2 for x, m in zip(dealt, n, strict=True)), Fraction(0))

        deals = [dealt for dealt in product(*(range(m + 1) for m in n)) if sum(dealt) == sum(c)]
        ways = [math.prod(math.comb(m, x) for x, m in zip(dealt, n, strict=True)) for dealt in deals]
        as_large = sum(w for w, dealt in zip(ways, deals, strict=True) if differing(dealt) >= differing(c))
        exact = as_large / sum(ways)
        error = math.sqrt(exact * (1 - exact) / 1_999) + 1 / 2_000
        assert trial_gap(c, n, permutations=1_999).p_value == pytest.approx(exact, abs=5 * error)

    def test_shared_difficulty_is_found_where_tasks_have_few_trials_and_many(self) -> None:
        """100 corpora: a power of .92 stays above .8 with probability .9999; the gap as a statistic has .59."""
        rng = np.random.default_rng(1)
        found = 0
        for _ in range(100):
            n = rng.integers(2, 21, 20)
            found += trial_gap(rng.binomial(n, rng.beta(4, 2, 20)), n, permutations=199).p_value <= 0.05
        assert found > 80

    def test_reproducible(self) -> None:
        assert trial_gap([3, 1, 0], [4, 4, 4], seed=7) == trial_gap([3, 1, 0], [4, 4, 4], seed=7)

    def test_mistakes(self) -> None:
        with pytest.raises(UsageError, match="two tasks"):
            trial_gap([1], [2])
        with pytest.raises(UsageError, match="2 are needed"):
            trial_gap([1, 1], [2, 1])
        with pytest.raises(UsageError, match="permutation"):
            trial_gap([1, 1], [2, 2], permutations=0)
