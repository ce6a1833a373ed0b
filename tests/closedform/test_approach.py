"""Analytic bounds are checked against exact horizons."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.closedform.passage_chains import make_chain, pipeline, small_chains

from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.approach import horizon_bound, paper_horizon_heuristic, perron_bound, spectral_radius
from tracebridge.closedform.firstpassage import (
    reliability,
)
from tracebridge.closedform.fundamental import long_run_reliability
from tracebridge.closedform.step_counts import (
    horizon,
)
from tracebridge.errors import UnsupportedError

F = Fraction
law = settings(deadline=None, max_examples=40)


@pytest.fixture
def example() -> MarkovChain:
    tenths = [[1, 5, 4, 0, 0], [1, 2, 3, 3, 1], [0, 1, 6, 0, 3]]
    return make_chain([[F(x, 10) for x in row] for row in tenths])


class TestGoldenNumbers:
    def test_spectral_radius(self, example: MarkovChain) -> None:
        assert spectral_radius(example) == pytest.approx(0.690589595418, abs=1e-12)

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
