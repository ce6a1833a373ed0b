"""Step counts are checked for minimality against exact curves."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.closedform.passage_chains import in_doubles, make_chain, pipeline, small_chains

from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform import step_counts
from tracebridge.closedform.approach import horizon_bound, paper_horizon_heuristic, spectral_radius
from tracebridge.closedform.firstpassage import (
    absorption_time_cdf,
    mean_time_to_success,
    reliability,
    reliability_curve,
    reliability_split,
    runs_per_failure,
)
from tracebridge.closedform.fundamental import long_run_reliability
from tracebridge.closedform.step_counts import (
    absorption_time_quantile,
    budget_for,
    first_passage_quantile,
    horizon,
)
from tracebridge.errors import UnsupportedError, UsageError

F = Fraction
law = settings(deadline=None, max_examples=40)


@pytest.fixture
def example() -> MarkovChain:
    tenths = [[1, 5, 4, 0, 0], [1, 2, 3, 3, 1], [0, 1, 6, 0, 3]]
    return make_chain([[F(x, 10) for x in row] for row in tenths])


class TestGoldenNumbers:
    def test_horizons(self, example: MarkovChain) -> None:
        assert horizon(example, 0.01) == 9
        assert horizon(example, 0.001) == 16
        assert horizon(in_doubles(example), 0.01) == 9

    @pytest.mark.parametrize(("length", "steps"), [(2, 14), (3, 18), (5, 25), (8, 34)])
    def test_horizon_of_a_defective_pipeline(self, length: int, steps: int) -> None:
        chain = pipeline(length, F(6, 10), F(2, 100))
        assert horizon(chain, 0.01) == steps
        assert paper_horizon_heuristic(chain, 0.01) == 9  # not a bound
        assert horizon_bound(chain, 0.01) >= steps
        assert spectral_radius(chain) == 0.6

    def test_acyclic(self) -> None:
        half = [[F(0), F(9, 10), F(0), F(0), F(1, 10)], [F(0), F(0), F(9, 10), F(0), F(1, 10)]]
        chain = make_chain([*half, [F(0), F(0), F(0), F(8, 10), F(2, 10)]])
        assert spectral_radius(chain) == 0
        assert horizon(chain, 0.01) == horizon(chain, 0) == 3


def first_index(curve: list[Fraction], holds: object) -> int | None:
    return next((d for d, value in enumerate(curve) if holds(value)), None)  # type: ignore[operator]


class TestStepCounts:
    @law
    @given(small_chains(), st.integers(0, 12), st.sampled_from([F(-1, 10**9), F(0), F(1, 10**9)]))
    def test_quantile_is_the_inverse_of_the_curve(self, chain: MarkovChain, d: int, nudge: Fraction) -> None:
        """At every value of the curve, a tie, and just beside it."""
        curve = reliability_curve(chain, 80, exact=True).tolist()
        p = min(max(curve[d] + nudge, F(0)), F(1))
        expected = first_index(curve, lambda value: value >= p)
        found = first_passage_quantile(chain, p)
        if expected is not None:
            assert found == expected
            assert budget_for(chain, p) == expected
        elif p > long_run_reliability(chain, exact=True):
            assert found == math.inf
            assert budget_for(chain, p) is None
        else:
            assert found > 80

    @law
    @given(small_chains(), st.integers(0, 12))
    def test_quantile_given_success(self, chain: MarkovChain, d: int) -> None:
        total = long_run_reliability(chain, exact=True)
        assume(total > 0)
        curve = [value / total for value in reliability_curve(chain, 80, exact=True).tolist()]
        p = curve[d]
        assert first_passage_quantile(chain, p, given_success=True) == first_index(curve, lambda value: value >= p)

    @law
    @given(small_chains(), st.integers(0, 12))
    def test_absorption_time_quantile(self, chain: MarkovChain, d: int) -> None:
        curve = absorption_time_cdf(chain, 40, exact=True).tolist()
        assert absorption_time_quantile(chain, curve[d]) == first_index(curve, lambda value: value >= curve[d])

    @law
    @given(small_chains(), st.integers(0, 12), st.sampled_from([F(-1, 10**9), F(0), F(1, 10**9)]))
    def test_horizon_is_minimal(self, chain: MarkovChain, d: int, nudge: Fraction) -> None:
        total = long_run_reliability(chain, exact=True)
        gaps = [total - value for value in reliability_curve(chain, 200, exact=True).tolist()]
        gap = max(gaps[d] + nudge, F(0))
        expected = first_index(gaps, lambda value: value <= gap)
        found = horizon(chain, gap)
        assert found == expected if expected is not None else found > 200

    @law
    @given(small_chains(acyclic=True))
    def test_without_cycles_everything_is_reached_in_finite_time(self, chain: MarkovChain) -> None:
        curve = reliability_curve(chain, chain.n_states, exact=True).tolist()
        total = long_run_reliability(chain, exact=True)
        assert horizon(chain, 0) == first_index(curve, lambda value: value == total)
        assert first_passage_quantile(chain, total) == first_index(curve, lambda value: value == total)
        times = absorption_time_cdf(chain, chain.n_states, exact=True).tolist()
        assert absorption_time_quantile(chain, 1) == first_index(times, lambda value: value == 1)

    @law
    @given(small_chains(), st.floats(1e-6, 0.999))
    def test_doubles_agree_with_balls(self, chain: MarkovChain, level: float) -> None:
        """The search in doubles, meant for large chains, proves the same step counts wherever it answers."""

        def answers() -> list[float]:
            return [
                horizon(chain, level),
                first_passage_quantile(chain, level * 0.7),
                first_passage_quantile(chain, level, given_success=True),
                absorption_time_quantile(chain, level),
            ]

        in_balls = answers()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(step_counts, "_BALLS_FIRST", -1)
            assert np.array_equal(answers(), in_balls, equal_nan=True)

    def test_threshold_in_decimals(self, example: MarkovChain) -> None:
        """0.207 is R(3) exactly, although no double is 207/1000."""
        assert first_passage_quantile(example, 0.207) == 3
        assert first_passage_quantile(example, math.nextafter(0.207, 1)) == 4
        assert budget_for(example, 0.31) is None
        assert first_passage_quantile(example, F(24, 79)) == math.inf  # R_inf itself is never reached
        assert first_passage_quantile(example, 1, given_success=True) == math.inf

    @pytest.mark.parametrize("exit_probability", [F(1, 10**6), F(1, 10**12), F(1, 10**15)])
    def test_long_horizons_to_the_step(self, exit_probability: Fraction) -> None:
        e = exit_probability
        chain = make_chain([[1 - e, e / 2, e / 2]])
        with localcontext() as context:
            context.prec = 60
            stay = Decimal(1) - Decimal(e.numerator) / Decimal(e.denominator)
            expected = math.ceil((Decimal("0.01") / Decimal("0.5")).ln() / stay.ln())
            assert horizon(chain, 0.01) == expected
            assert first_passage_quantile(chain, 0.49) == expected
            assert absorption_time_quantile(chain, 0.98) == expected
            # R(d) at such a budget, and what is missing of one
            reached = (1 - stay**expected) / 2
            hit, missed = reliability_split(chain, expected)
            assert hit == pytest.approx(float(reached), rel=4e-16 if expected > 10**7 else 1e-11)
            assert missed == pytest.approx(float(1 - reached), rel=4e-16 if expected > 10**7 else 1e-11)

    def test_budget_far_beyond_every_run(self, example: MarkovChain) -> None:
        assert reliability(example, 10**15) == pytest.approx(24 / 79, rel=4e-16)
        assert reliability(make_chain([[F(1, 2), F(1, 2), F(0)]]), 10**15) == 1.0
        assert reliability(make_chain([[F(1, 2), F(0), F(1, 2)]]), 10**15) == 0.0

    @pytest.mark.parametrize("exact", [False, True])
    def test_every_run_without_a_step(self, exact: bool) -> None:
        chain = make_chain([], [F(2, 3), F(1, 3)])
        assert reliability(chain, 0, exact=exact) == pytest.approx(2 / 3, rel=1e-15)
        assert reliability_curve(chain, 2, exact=exact).astype(float) == pytest.approx([2 / 3] * 3, rel=1e-15)
        assert mean_time_to_success(chain, exact=exact) == 0
        assert runs_per_failure(chain, exact=exact) == pytest.approx(3, rel=1e-15)
        assert first_passage_quantile(chain, F(2, 3)) == horizon(chain, 0) == absorption_time_quantile(chain, 1) == 0
        assert first_passage_quantile(chain, 0.7) == math.inf

    def test_large_chain(self) -> None:
        """A corridor of 600 states, each a geometric wait: success takes a negative binomial number of steps."""
        m = 600
        inner = np.arange(m)
        rows = np.concatenate([inner, inner, [m]])
        columns = np.concatenate([inner, inner + 1, [m]])
        chain = MarkovChain(
            states=(*(f"s{i}" for i in range(m)), "+"),
            transitions=csr_array((np.full(2 * m + 1, 0.5), (rows, columns))) + csr_array(([0.5], ([m], [m]))),
            initial=(np.arange(m + 1) == 0).astype(float),
            labels={"success": np.arange(m + 1) == m},
        )
        # Pr(T <= d) = Pr(at least m heads in d fair tosses); the median of T is close to 2 m.
        d = int(first_passage_quantile(chain, 0.9))

        def heads(tosses: int) -> Fraction:
            return F(sum(math.comb(tosses, k) for k in range(m, tosses + 1)), 2**tosses)

        assert heads(d - 1) < F(9, 10) <= heads(d)
        assert horizon(chain, 0.1) == d
        assert first_passage_quantile(chain, 1) == math.inf
        with pytest.raises(UnsupportedError, match="chain with 600 states cannot be decided"):
            first_passage_quantile(chain, heads(d))  # a tie, which only rationals could decide


class TestMistakes:
    @pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, math.inf])
    def test_probability(self, example: MarkovChain, p: float) -> None:
        with pytest.raises(UsageError):
            first_passage_quantile(example, p)

    def test_gap(self, example: MarkovChain) -> None:
        with pytest.raises(UsageError, match="zero or more"):
            horizon(example, -0.1)
        with pytest.raises(UsageError, match="above zero"):
            paper_horizon_heuristic(example, 0)
