"""Distributions are checked against enumerated paths."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.closedform.passage_chains import make_chain, small_chains

from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.firstpassage import (
    absorption_time_cdf,
    absorption_time_pmf,
    first_passage_pmf,
    mean_time_to_success,
    reliability,
    reliability_curve,
    reliability_split,
    runs_per_failure,
    steps_per_failure,
)
from tracebridge.closedform.fundamental import long_run_reliability, mean_time_to_absorption
from tracebridge.closedform.step_counts import (
    absorption_time_quantile,
    first_passage_quantile,
)
from tracebridge.errors import UnsupportedError, UsageError

F = Fraction
law = settings(deadline=None, max_examples=40)


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

    def test_failures(self, example: MarkovChain) -> None:
        assert steps_per_failure(example, exact=True) == F(200, 33)
        assert steps_per_failure(example) == pytest.approx(6.060606060606, abs=1e-12)
        assert runs_per_failure(example, exact=True) == F(79, 55)


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


class TestMistakes:
    @pytest.mark.parametrize("d", [-1, 1.5, True, "3", None])
    def test_steps(self, example: MarkovChain, d: object) -> None:
        with pytest.raises(UsageError, match="number of steps"):
            reliability_curve(example, d)  # type: ignore[arg-type]

    def test_too_much_work(self, example: MarkovChain) -> None:
        with pytest.raises(UnsupportedError, match="too much work in exact arithmetic"):
            reliability(example, 10**7, exact=True)
        with pytest.raises(UnsupportedError, match="too long to list"):
            reliability_curve(example, 10**12)
