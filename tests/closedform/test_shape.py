"""Shapes against enumeration in rationals, limits and rules against golden numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector
from tracebridge.closedform import horizon, reliability
from tracebridge.closedform.shape import curve_shape, exponential_limit, horizon_rules
from tracebridge.errors import UnsupportedError, UsageError

F = Fraction
law = settings(deadline=None, max_examples=25)
TENTHS = [{0: 1, 1: 5, 2: 4}, {0: 1, 1: 2, 2: 3, 3: 3, 4: 1}, {1: 1, 2: 6, 4: 3}]


def chain_of(Q: list[list[Fraction]], w: list[Fraction], start: list[Fraction] | None = None) -> MarkovChain:
    m = len(Q)
    rows = [
        {**{j: value for j, value in enumerate(row) if value}, m: exit_, m + 1: 1 - sum(row) - exit_}
        for row, exit_ in zip(Q, w, strict=True)
    ]
    return MarkovChain(
        states=(*(f"s{i}" for i in range(m)), "success", "failure"),
        transitions=RationalMatrix.from_rows([*rows, {m: F(1)}, {m + 1: F(1)}]),
        initial=RationalVector.from_fractions([*(start or [F(int(i == 0)) for i in range(m)]), 0, 0]),
    )


def thousandths(rows: list[list[int]]) -> list[list[Fraction]]:
    return [[F(x, 1000) for x in row] for row in rows]


@pytest.fixture
def example() -> MarkovChain:
    return chain_of(
        [[F(row.get(j, 0), 10) for j in range(3)] for row in TENTHS], [F(row.get(3, 0), 10) for row in TENTHS]
    )


@st.composite
def chains(draw: st.DrawFn) -> MarkovChain:
    rows, exits = [], []
    for _ in range(3):
        weights = draw(st.lists(st.integers(0, 4), min_size=4, max_size=4))
        total = sum(weights) + draw(st.integers(1, 4))
        rows.append([F(x, total) for x in weights[:3]])
        exits.append(F(weights[3], total))
    start = draw(st.lists(st.integers(0, 2), min_size=3, max_size=3).filter(sum))
    return chain_of(rows, exits, [F(x, sum(start)) for x in start])


class TestShape:
    @law
    @given(chains())
    def test_signs_are_those_of_the_curve_in_rationals(self, chain):
        curve = [reliability(chain, d, exact=True) for d in range(14)]
        differences = [curve[d + 1] - 2 * curve[d] + curve[d - 1] for d in range(1, 13)]
        convex = tuple(d for d, value in enumerate(differences, start=1) if value > 0)
        rational, doubles = curve_shape(chain, 12, exact=True), curve_shape(chain, 12)
        assert rational.second_differences.tolist() == differences
        assert doubles.second_differences == pytest.approx([float(x) for x in differences], abs=1e-15)
        assert rational.convex == doubles.convex == convex
        assert doubles.undecided == ()

    @law
    @given(chains())
    def test_what_is_said_beyond_the_range_holds_there(self, chain):
        shape = curve_shape(chain, 3)
        far = curve_shape(chain, 25, exact=True)
        if shape.concave:
            assert far.convex == ()
        if shape.concave_from is not None:
            assert all(d < shape.concave_from for d in far.convex)
        if shape.falling:
            assert shape.concave

    def test_ordered_exits_are_not_enough(self):
        """A stochastically monotone Q with exits in order, and yet a convex step: the claim of concavity fails."""
        Q = thousandths([[300, 274, 263], [266, 280, 71], [221, 233, 153]])
        chain = chain_of(Q, [F(163, 1000), F(105, 1000), F(23, 1000)], [F(0), F(0), F(1)])
        shape = curve_shape(chain, 10)
        assert 1 in shape.convex
        assert not shape.falling
        assert shape.concave is False

    def test_a_barrier_is_convex_and_then_it_is_concave_for_ever(self, example):
        shape = curve_shape(example, 20)
        assert shape.convex == (1,)
        assert shape.second_differences[:3] == pytest.approx([0.15, 0.057 - 0.15, 0.0333 - 0.057], abs=1e-15)
        assert shape.concave_from is not None
        assert 1 < shape.concave_from < 10

    def test_a_single_state_is_concave_for_ever(self):
        shape = curve_shape(chain_of([[F(9, 10)]], [F(1, 20)]), 1)
        assert shape.falling
        assert shape.concave is True
        assert shape.concave_from == 1

    def test_ties_are_decided_in_rationals(self):
        """Success after exactly one or two steps, each with probability one half: the second difference is 0 at 1."""
        shape = curve_shape(chain_of([[F(0), F(1, 2)], [F(0), F(0)]], [F(1, 2), F(1)]), 4)
        assert shape.convex == ()
        assert shape.undecided == ()

    def test_a_range_has_a_budget(self, example):
        with pytest.raises(UsageError, match="one or more"):
            curve_shape(example, 0)


class TestExponentialLimit:
    @pytest.mark.parametrize(
        ("mu", "constant", "vanishing"),
        [
            (F(1, 5), 0.0314, 0.0849),
            (F(1, 10), 0.0440, 0.0440),
            (F(1, 20), 0.0502, 0.0224),
            (F(1, 50), 0.0539, 0.0091),
            (F(1, 100), 0.0551, 0.0046),
            (F(1, 200), 0.0557, 0.0023),
        ],
    )
    def test_the_published_regimes(self, mu, constant, vanishing):
        """With eps = mu / 10 the gap grows towards .0563; with eps = mu^2 it vanishes."""
        budget = int(2 / mu)
        for eps, gap in ((mu / 10, constant), (mu**2, vanishing)):
            limit = exponential_limit(chain_of([[1 - mu - eps]], [mu]), d_max=budget)
            assert limit.success_rate == pytest.approx(float(mu), rel=1e-12)
            assert limit.failure_rate == pytest.approx(float(eps), rel=1e-12)
            assert limit.gap == pytest.approx(gap, abs=5e-5)

    def test_over_all_budgets_the_gap_is_at_least_what_fails(self):
        limit = exponential_limit(chain_of([[F(89, 100)]], [F(1, 10)]))
        assert limit.d_max is None
        assert limit.ratio == pytest.approx(0.1)
        assert limit.gap == pytest.approx(1 / 11, abs=1e-8)
        assert any("not rare" in text for text in limit.obstacles(0.05))

    def test_where_the_law_holds_nothing_stands_in_its_way(self):
        mu = F(1, 1000)
        limit = exponential_limit(chain_of([[1 - mu - mu**2]], [mu]))
        assert limit.gap < 0.002
        assert limit.obstacles(0.01) == []

    def test_a_pipeline_is_not_exponential(self):
        Q = [[F(9, 10) if j == i else F(1, 10) if j == i + 1 else F(0) for j in range(6)] for i in range(6)]
        limit = exponential_limit(chain_of(Q, [F(0)] * 5 + [F(1, 10)]))
        assert any("more than one state" in text for text in limit.obstacles(0.05))

    def test_one_state_is_geometric_and_not_blamed_on_several(self):
        limit = exponential_limit(chain_of([[F(1, 50)]], [F(40, 50)]))
        assert limit.geometric_gap < 1e-12
        (reason,) = [text for text in limit.obstacles(0.05) if "not exponential" in text]
        assert "1.02 on average" in reason

    def test_the_scaled_law_needs_no_rare_failures(self):
        limit = exponential_limit(chain_of([[F(998, 1000)]], [F(1, 1000)]))
        assert limit.gap == pytest.approx(0.5, abs=1e-6)
        assert limit.scaled_gap < 0.001

    def test_what_has_no_rate_or_no_end_in_sight(self):
        with pytest.raises(UsageError, match="no rate of success"):
            exponential_limit(chain_of([[F(1, 2)]], [F(0)]))
        slow = F(1, 10**9)
        with pytest.raises(UnsupportedError, match="give a d_max"):
            exponential_limit(chain_of([[1 - 2 * slow]], [slow]))
        assert exponential_limit(chain_of([[1 - 2 * slow]], [slow]), d_max=10).gap < 1e-9


class TestHorizonRules:
    def test_the_golden_chain(self, example):
        rules = horizon_rules(example, F(1, 100))
        assert rules.exact == 9
        assert horizon_rules(example, 0.001).exact == 16
        assert rules.condition == pytest.approx(6.9188, abs=5e-5)
        assert rules.diagonal == pytest.approx(15.54, abs=5e-3)
        assert rules.exact <= rules.perron <= rules.diagonal

    def test_by_hand_from_its_eigenvalues(self, example):
        rules = horizon_rules(example, 0.01)
        assert rules.heuristic == math.ceil(math.log(24 / 79 / 0.01) / -math.log(0.690589595418))

    @pytest.mark.parametrize(("length", "exact"), [(2, 14), (3, 18), (5, 25), (8, 34)])
    def test_a_defective_chain_has_no_diagonal_bound_and_the_heuristic_falls_short(self, length, exact):
        Q = [[F(6, 10) if j == i else F(38, 100) if j == i + 1 else F(0) for j in range(length)] for i in range(length)]
        rules = horizon_rules(chain_of(Q, [F(0)] * (length - 1) + [F(38, 100)]), 0.01)
        assert rules.exact == exact
        assert rules.diagonal is None
        assert "diagonalised" in str(rules.reason)
        assert rules.heuristic == 9
        assert rules.perron >= exact

    def test_a_chain_without_cycles(self):
        chain = chain_of([[F(0), F(9, 10), F(0)], [F(0), F(0), F(9, 10)], [F(0)] * 3], [F(0), F(0), F(8, 10)])
        rules = horizon_rules(chain, 0.01)
        assert rules.exact == 3
        assert rules.diagonal is None
        assert "no cycle" in str(rules.reason)

    @law
    @given(chains(), st.sampled_from([F(1, 10), F(1, 100)]))
    def test_bounds_are_bounds(self, chain, gap):
        rules = horizon_rules(chain, gap)
        assert rules.exact == horizon(chain, gap)
        assert rules.perron >= rules.exact
        if rules.diagonal is not None:
            assert math.ceil(rules.diagonal + 1e-9) >= rules.exact

    def test_a_gap_of_zero_has_no_rules(self, example):
        with pytest.raises(UsageError, match="above zero"):
            horizon_rules(example, 0)


def test_second_differences_are_of_the_curve(example):
    curve = np.array([reliability(example, d) for d in range(8)])
    assert curve_shape(example, 6).second_differences == pytest.approx(np.diff(curve, 2), abs=1e-15)
