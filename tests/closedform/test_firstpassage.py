"""Step counts are checked for minimality against exact curves, distributions against enumerated paths."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.closedform import firstpassage
from tracebridge.closedform.firstpassage import (
    absorption_time_cdf,
    absorption_time_pmf,
    absorption_time_quantile,
    budget_for,
    first_passage_pmf,
    first_passage_quantile,
    horizon,
    horizon_bound,
    mean_time_to_success,
    paper_horizon_heuristic,
    perron_bound,
    reliability,
    reliability_curve,
    reliability_split,
    runs_per_failure,
    spectral_radius,
    steps_per_failure,
)
from tracebridge.closedform.fundamental import long_run_reliability, mean_time_to_absorption
from tracebridge.errors import UnsupportedError, UsageError

F = Fraction
law = settings(deadline=None, max_examples=40)


def make_chain(rows: list[list[Fraction]], initial: list[Fraction] | None = None) -> MarkovChain:
    """Transient rows over the transient states, then success, then failure; the start is the first by default."""
    m = len(rows)
    table = [dict(enumerate(row)) for row in rows] + [{m: F(1)}, {m + 1: F(1)}]
    start = initial or [F(1)] + [F(0)] * (m + 1)
    return MarkovChain(
        states=(*(f"s{i}" for i in range(m)), "+", "-"),
        transitions=RationalMatrix.from_rows(table),
        initial=RationalVector.from_fractions(start),
        labels={"success": np.arange(m + 2) == m, "failure": np.arange(m + 2) == m + 1},
    )


def in_doubles(chain: MarkovChain) -> MarkovChain:
    return MarkovChain(states=chain.states, transitions=chain.transitions, initial=chain.initial, labels=chain.labels)


def pipeline(length: int, loop: Fraction, fail: Fraction) -> MarkovChain:
    """Stages with equal self-loops; each goes on to the next one, the last to success: Q is defective."""
    rows = []
    for i in range(length):
        row = [F(0)] * (length + 2)
        row[i], row[i + 1], row[length + 1] = loop, 1 - loop - fail, fail
        rows.append(row)
    return make_chain(rows)


def distribution(weights: list[int]) -> list[Fraction]:
    return [F(weight, sum(weights)) for weight in weights]


@st.composite
def small_chains(draw: st.DrawFn, max_transient: int = 4, acyclic: bool = False) -> MarkovChain:
    """Exact chains with small denominators, so that ties in comparisons are common."""
    m = draw(st.integers(1, max_transient))
    rows = []
    for i in range(m):
        weights = draw(st.lists(st.integers(0, 3), min_size=m + 2, max_size=m + 2))
        if acyclic:
            weights[: i + 1] = [0] * (i + 1)
        weights[draw(st.sampled_from([i + 1, m, m + 1]))] += 1
        rows.append(distribution(weights))
    start = draw(st.lists(st.integers(0, 2), min_size=m + 2, max_size=m + 2).filter(any))
    return make_chain(rows, distribution(start))


@pytest.fixture
def example() -> MarkovChain:
    tenths = [[1, 5, 4, 0, 0], [1, 2, 3, 3, 1], [0, 1, 6, 0, 3]]
    return make_chain([[F(x, 10) for x in row] for row in tenths])


class TestGoldenNumbers:
    def test_curve(self, example: MarkovChain) -> None:
        expected = [F(0), F(0), F("0.15"), F("0.207"), F("0.2403"), F("0.26088"), F("0.274437")]
        assert reliability_curve(example, 6, exact=True).tolist() == expected
        assert reliability_curve(example, 6) == pytest.approx([float(x) for x in expected], rel=1e-15)
        assert reliability(example, 6, exact=True) == F("0.274437")

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

    def test_spectral_radius_and_failures(self, example: MarkovChain) -> None:
        assert spectral_radius(example) == pytest.approx(0.690589595418, abs=1e-12)
        assert steps_per_failure(example, exact=True) == F(200, 33)
        assert steps_per_failure(example) == pytest.approx(6.060606060606, abs=1e-12)
        assert runs_per_failure(example, exact=True) == F(79, 55)

    @pytest.mark.parametrize(
        ("long_run", "radius", "printed"),
        [
            ("0.4497", "0.442", 5),
            ("0.3866", "0.370", 4),
            ("0.3262", "0.654", 9),
            ("0.2853", "0.656", 8),
            ("0.0695", "0.636", 5),
            ("0.0684", "0.526", 3),
            ("0.0581", "0.509", 3),
        ],
    )
    def test_paper_table_iv(self, long_run: str, radius: str, printed: int) -> None:
        loop, success = F(radius), F(long_run)
        chain = make_chain([[loop, success * (1 - loop), (1 - success) * (1 - loop)]])
        assert paper_horizon_heuristic(chain, 0.01) == printed

    def test_perron_bound_is_tight_where_irreducible(self, example: MarkovChain) -> None:
        bound = perron_bound(example)
        assert bound.rate == pytest.approx(0.690589595418, abs=1e-11)
        assert 9 <= horizon_bound(example, 0.01) <= 9 * 1.34


class TestDistributions:
    @law
    @given(small_chains(max_transient=3))
    def test_against_enumerated_paths(self, chain: MarkovChain) -> None:
        P = [chain.exact_transitions().row(i) for i in range(chain.n_states)]
        start = chain.exact_initial()
        m, d_max = chain.n_states - 2, 4
        expected = [start[m]] + [F(0)] * d_max
        for d in range(1, d_max + 1):
            for path in product(range(m), repeat=d):
                probability = start[path[0]]
                for i, j in zip(path, [*path[1:], m], strict=True):
                    probability *= P[i].get(j, F(0))
                expected[d] += probability
        assert first_passage_pmf(chain, d_max, exact=True).tolist() == expected
        assert first_passage_pmf(chain, d_max) == pytest.approx([float(x) for x in expected], rel=1e-14, abs=0)

    @law
    @given(small_chains(), st.integers(0, 30))
    def test_curves_hang_together(self, chain: MarkovChain, d: int) -> None:
        curve = reliability_curve(chain, d, exact=True)
        failing = reliability_curve(chain, d, target="failure", exact=True)
        assert all(a <= b for a, b in zip(curve.tolist(), curve.tolist()[1:], strict=False))
        assert np.all(curve + failing == absorption_time_cdf(chain, d, exact=True))
        assert absorption_time_pmf(chain, d, exact=True).sum() == absorption_time_cdf(chain, d, exact=True)[-1]
        assert curve[-1] == reliability(chain, d, exact=True) <= long_run_reliability(chain, exact=True)
        hit, missed = reliability_split(chain, d)
        exact_hit, exact_missed = reliability_split(chain, d, exact=True)
        assert exact_hit + exact_missed == 1
        assert hit == pytest.approx(float(exact_hit), rel=1e-14, abs=0)
        assert missed == pytest.approx(float(exact_missed), rel=1e-14, abs=0)

    @settings(law, max_examples=20)
    @given(small_chains())
    def test_everything_is_reached_in_the_end(self, chain: MarkovChain) -> None:
        d = int(absorption_time_quantile(chain, 1 - F(1, 10**30)))
        assume(d <= 5000)
        assert reliability(chain, d) == pytest.approx(long_run_reliability(chain), rel=1e-13, abs=0)
        pmf = first_passage_pmf(chain, d)
        assert pmf.sum() == pytest.approx(long_run_reliability(chain), rel=1e-13, abs=0)
        times = absorption_time_pmf(chain, d)
        assert times.sum() == pytest.approx(1, rel=1e-13)
        assert times @ np.arange(d + 1) == pytest.approx(mean_time_to_absorption(chain).overall, rel=1e-12, abs=0)
        if pmf.sum():
            mean = pmf @ np.arange(d + 1) / pmf.sum()
            assert mean_time_to_success(chain) == pytest.approx(mean, rel=1e-12, abs=0)
            exact = mean_time_to_success(chain, exact=True)
            assert mean_time_to_success(chain) == pytest.approx(float(exact), rel=1e-14, abs=0)

    def test_conditional_mean_of_a_geometric(self) -> None:
        # One state: success and failure have the same conditional time, geometric with parameter 1/5.
        assert mean_time_to_success(make_chain([[F(4, 5), F(1, 20), F(3, 20)]]), exact=True) == 5

    def test_undefined_and_infinite(self) -> None:
        never = make_chain([[F(1, 2), F(0), F(1, 2)]])
        assert math.isnan(mean_time_to_success(never))
        assert math.isnan(first_passage_quantile(never, 0.5, given_success=True))
        always = make_chain([[F(1, 2), F(1, 2), F(0)]])
        assert steps_per_failure(always) == runs_per_failure(always) == math.inf
        assert steps_per_failure(always, exact=True) == math.inf
        idle = make_chain([[F(1, 2), F(1, 2), F(0)]], [F(0), F(1), F(0)])
        assert math.isnan(steps_per_failure(idle))
        assert runs_per_failure(idle) == math.inf


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
            patch.setattr(firstpassage, "_BALLS_FIRST", -1)
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


class TestBounds:
    @law
    @given(small_chains(), st.integers(0, 40))
    def test_geometric_bound_holds(self, chain: MarkovChain, d: int) -> None:
        gap = long_run_reliability(chain, exact=True) - reliability(chain, d, exact=True)
        assert gap <= perron_bound(chain).at(d)

    @law
    @given(small_chains(), st.sampled_from([0.3, 0.1, 0.01, 1e-4]))
    def test_horizon_bound_is_a_bound(self, chain: MarkovChain, gap: float) -> None:
        bound = perron_bound(chain)
        d = horizon_bound(chain, gap)
        assert d >= horizon(chain, gap)
        assert bound.at(int(d)) <= gap
        assert d == 0 or bound.at(int(d) - 1) > gap

    def test_nothing_bounds_a_gap_of_zero(self, example: MarkovChain) -> None:
        assert horizon_bound(example, 0) == horizon(example, 0) == math.inf

    @law
    @given(small_chains())
    def test_spectral_radius(self, chain: MarkovChain) -> None:
        dense = chain.transitions.toarray()[:-2, :-2]
        expected = np.abs(np.linalg.eigvals(dense)).max()
        # Eigenvalues of defective matrices are only good to a root of the rounding unit.
        assert spectral_radius(chain) == pytest.approx(expected, abs=2e-3)

    def test_heuristic_of_an_acyclic_chain_is_not_a_number_to_use(self) -> None:
        assert paper_horizon_heuristic(pipeline(4, F(0), F(1, 10)), 0.01) == 0

    def test_heuristic_of_a_chain_that_hardly_ends(self) -> None:
        e = F(1, 10**18)
        with pytest.raises(UnsupportedError, match="rounds to one"):
            paper_horizon_heuristic(make_chain([[1 - 2 * e, e, e]]), 0.01)


class TestMistakes:
    @pytest.mark.parametrize("d", [-1, 1.5, True, "3", None])
    def test_steps(self, example: MarkovChain, d: object) -> None:
        with pytest.raises(UsageError, match="number of steps"):
            reliability_curve(example, d)  # type: ignore[arg-type]

    @pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, math.inf])
    def test_probability(self, example: MarkovChain, p: float) -> None:
        with pytest.raises(UsageError):
            first_passage_quantile(example, p)

    def test_gap(self, example: MarkovChain) -> None:
        with pytest.raises(UsageError, match="zero or more"):
            horizon(example, -0.1)
        with pytest.raises(UsageError, match="above zero"):
            paper_horizon_heuristic(example, 0)

    def test_too_much_work(self, example: MarkovChain) -> None:
        with pytest.raises(UnsupportedError, match="too much work in exact arithmetic"):
            reliability(example, 10**7, exact=True)
        with pytest.raises(UnsupportedError, match="too long to list"):
            reliability_curve(example, 10**12)
