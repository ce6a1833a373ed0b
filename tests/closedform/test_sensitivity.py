"""Gradients against finite differences in rationals, effects against the changed chain solved anew."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector
from tracebridge.chain.edit import Redirection, RowChange, edited, row_changes
from tracebridge.closedform import (
    expected_visits,
    fundamental_matrix,
    long_run_reliability,
    mean_time_to_absorption,
    reliability,
)
from tracebridge.closedform.sensitivity import (
    mean_time_effect,
    mean_time_gradient,
    norm_bound,
    reliability_effect,
    reliability_gradient,
)
from tracebridge.errors import ModelError, UnsupportedError, UsageError

F = Fraction
law = settings(deadline=None, max_examples=25)
NAMES = ("s0", "s1", "s2", "success", "failure")
TENTHS = [{0: 1, 1: 5, 2: 4}, {0: 1, 1: 2, 2: 3, 3: 3, 4: 1}, {1: 1, 2: 6, 4: 3}, {3: 10}, {4: 10}]
SWAP = RowChange(state="s2", by={"s1": F(7, 100), "s2": F(-7, 100)})  # (0, .1, -.1) at .7


def chain_of(rows: list[dict[int, Fraction]], initial: list[Fraction]) -> MarkovChain:
    return MarkovChain(
        states=NAMES,
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector.from_fractions(initial),
    )


@pytest.fixture
def example() -> MarkovChain:
    return chain_of([{j: F(x, 10) for j, x in row.items()} for row in TENTHS], [F(int(i == 0)) for i in range(5)])


@st.composite
def chains(draw: st.DrawFn) -> MarkovChain:
    """Three transient states, each of which can fail; several starts, runs without a step among them."""
    rows = []
    for _ in range(3):
        weights = [*draw(st.lists(st.integers(0, 5), min_size=4, max_size=4)), draw(st.integers(1, 5))]
        rows.append({j: F(w, sum(weights)) for j, w in enumerate(weights) if w})
    start = draw(st.lists(st.integers(0, 3), min_size=5, max_size=5).filter(sum))
    return chain_of([*rows, {3: F(1)}, {4: F(1)}], [F(x, sum(start)) for x in start])


@st.composite
def changed_chains(draw: st.DrawFn) -> tuple[MarkovChain, tuple[RowChange, ...]]:
    chain = draw(chains())
    moves = [
        Redirection(
            state=state,
            share=draw(st.fractions(0, F(9, 10), max_denominator=10)),
            target=draw(st.sampled_from(NAMES)),
        )
        for state in draw(st.lists(st.sampled_from(NAMES[:3]), min_size=1, max_size=3, unique=True))
    ]
    return chain, row_changes(chain, moves)


class TestGoldenNumbers:
    def test_the_effect_of_one_changed_row(self, example):
        effect = reliability_effect(example, [SWAP])
        assert effect.before == pytest.approx(24 / 79, abs=1e-15)
        assert effect.after == pytest.approx(0.346681922197, abs=1e-12)
        assert effect.before + effect.first_order == pytest.approx(0.351241788175, abs=1e-12)

    def test_it_is_the_formula_of_sherman_and_morrison(self, example):
        N = fundamental_matrix(example, exact=True)
        h = [F(24, 79), F(36, 79), F(9, 79)]
        delta = [F(0), F(7, 100), F(-7, 100)]
        top = N[0, 2] * sum(a * b for a, b in zip(delta, h, strict=True))
        bottom = 1 - sum(a * N[j, 2] for j, a in enumerate(delta))
        effect = reliability_effect(example, [SWAP], exact=True)
        assert effect.first_order == top
        assert effect.change == top / bottom
        assert effect.before == F(24, 79)

    def test_the_gradient_is_visits_times_worth(self, example):
        gradient = reliability_gradient(example, exact=True)
        visits = expected_visits(example, exact=True)
        assert gradient.value == F(24, 79)
        assert gradient.entry("s1", "success") == visits[1]
        assert gradient.entry("s2", "s1") == visits[2] * F(36, 79)
        assert gradient.entry("s2", "failure") == 0
        assert mean_time_gradient(example, exact=True).value == F(1000, 237)
        assert mean_time_gradient(example, exact=True).entry("s0", "s2") == visits[0] * F(770, 237)

    def test_a_harmful_change_has_a_negative_effect(self, example):
        changes = row_changes(example, [Redirection(state="s1", share=F(1, 2), target="failure")])
        assert reliability_effect(example, changes).change < 0
        assert mean_time_effect(example, changes).change < 0


class TestEffects:
    @law
    @given(changed_chains(), st.integers(0, 6))
    def test_they_are_what_the_changed_chain_has_exactly(self, case, d):
        chain, changes = case
        after = edited(chain, changes)
        effect = reliability_effect(chain, changes, exact=True)
        assert effect.before == long_run_reliability(chain, exact=True)
        assert effect.after == long_run_reliability(after, exact=True)
        budget = reliability_effect(chain, changes, d=d, exact=True)
        assert budget.before == reliability(chain, d, exact=True)
        assert budget.after == reliability(after, d, exact=True)
        times = mean_time_effect(chain, changes, exact=True)
        assert times.before == mean_time_to_absorption(chain, exact=True).overall
        assert times.after == mean_time_to_absorption(after, exact=True).overall

    @law
    @given(changed_chains(), st.integers(0, 6))
    def test_doubles_agree_with_rationals(self, case, d):
        chain, changes = case
        for compute in (
            lambda exact: reliability_effect(chain, changes, exact=exact),
            lambda exact: reliability_effect(chain, changes, d=d, exact=exact),
            lambda exact: mean_time_effect(chain, changes, exact=exact),
        ):
            rough, exact = compute(False), compute(True)
            assert rough.before == pytest.approx(float(exact.before), rel=1e-13, abs=1e-15)
            assert rough.change == pytest.approx(float(exact.change), rel=1e-12, abs=1e-13)
            assert rough.first_order == pytest.approx(float(exact.first_order), rel=1e-12, abs=1e-13)

    def test_a_tiny_effect_keeps_its_digits(self, example):
        by = {"s1": F(1, 10**15), "s2": F(-1, 10**15)}
        effect = reliability_effect(example, [RowChange(state="s2", by=by)])
        exact = reliability_effect(example, [RowChange(state="s2", by=by)], exact=True)
        assert effect.change == pytest.approx(float(exact.change), rel=1e-12, abs=0)

    def test_in_exact_mode_no_change_of_a_chain_of_doubles_is_rounded(self, example):
        doubles = MarkovChain(states=NAMES, transitions=example.transitions, initial=example.initial)
        rationals = MarkovChain(
            states=NAMES,
            transitions=doubles.exact_transitions(),
            initial=RationalVector.from_fractions(doubles.exact_initial()),
        )
        change = RowChange(state="s2", by={"s1": F(1, 3), "s2": F(-1, 3)})
        assert reliability_effect(doubles, [change], exact=True) == reliability_effect(rationals, [change], exact=True)

    def test_a_run_that_may_never_end_is_refused(self, example):
        moves = [
            Redirection(state=name, share=F(1), target=to) for name, to in [("s0", "s1"), ("s1", "s2"), ("s2", "s0")]
        ]
        with pytest.raises(ModelError, match="no absorbing state can be reached from 's0', 's1', 's2'"):
            reliability_effect(example, row_changes(example, moves))


class TestGradients:
    @law
    @given(changed_chains(), st.sampled_from([None, 0, 1, 2, 5]))
    def test_finite_differences_in_rationals_converge_to_them(self, case, d):
        """The difference quotient of a smooth function misses the derivative by O(step), here tenfold less."""
        chain, changes = case
        gradient = reliability_gradient(chain, d=d, exact=True)
        misses = []
        for step in (F(1, 10**6), F(1, 10**7)):
            small = [RowChange(state=c.state, by={name: step * v for name, v in c.by.items()}) for c in changes]
            after = (
                long_run_reliability(edited(chain, small), exact=True)
                if d is None
                else reliability(edited(chain, small), d, exact=True)
            )
            misses.append((after - gradient.value) / step - gradient.along(changes))
        assert abs(misses[1] * 10 - misses[0]) <= abs(misses[0]) / 1000
        assert abs(misses[1]) < F(1, 1000)

    @law
    @given(changed_chains())
    def test_finite_differences_of_the_mean_time(self, case):
        chain, changes = case
        gradient = mean_time_gradient(chain, exact=True)
        misses = []
        for step in (F(1, 10**7), F(1, 10**8)):
            small = [RowChange(state=c.state, by={name: step * v for name, v in c.by.items()}) for c in changes]
            after = mean_time_to_absorption(edited(chain, small), exact=True).overall
            misses.append((after - gradient.value) / step - gradient.along(changes))
        assert abs(misses[1] * 10 - misses[0]) <= abs(misses[0]) / 100

    @law
    @given(chains(), st.sampled_from([None, 0, 3]))
    def test_the_matrix_has_the_entries(self, chain, d):
        gradient = reliability_gradient(chain, d=d, exact=True)
        matrix = gradient.matrix()
        assert matrix.shape == (3, 5)
        for i, source in enumerate(NAMES[:3]):
            assert [gradient.entry(source, target) for target in NAMES] == matrix[i].tolist()
        doubles = reliability_gradient(chain, d=d)
        assert doubles.matrix() == pytest.approx(matrix.astype(float), rel=1e-12, abs=1e-15)
        assert doubles.value == pytest.approx(float(gradient.value), rel=1e-13, abs=1e-16)

    def test_what_it_cannot_give(self, example):
        gradient = reliability_gradient(example)
        with pytest.raises(UsageError, match="'success' is where runs end"):
            gradient.entry("success", "s0")
        with pytest.raises(ModelError, match="no state 'nowhere'"):
            gradient.entry("s0", "nowhere")
        with pytest.raises(UnsupportedError, match="smaller budget"):
            reliability_gradient(example, d=10**9)
        with pytest.raises(UsageError, match="number of steps"):
            reliability_gradient(example, d=-1)


class TestRanking:
    def test_redirecting_a_row_to_success_gains_visits_times_what_was_missing(self, example):
        visits = expected_visits(example, exact=True)
        missing = {"s0": 1 - F(24, 79), "s1": 1 - F(36, 79), "s2": 1 - F(9, 79)}
        ranking = reliability_gradient(example, exact=True).ranking()
        assert {row.state for row in ranking} == set(missing)
        for row in ranking:
            i = NAMES.index(row.state)
            assert (row.best, row.worst) == ("success", "failure")
            assert row.visits == visits[i]
            assert row.gain == visits[i] * missing[row.state]
            assert row.loss == -visits[i] * (1 - missing[row.state])
        assert [row.leverage for row in ranking] == sorted((row.leverage for row in ranking), reverse=True)

    @law
    @given(chains(), st.sampled_from([None, 4]), st.lists(st.integers(-3, 3), min_size=5, max_size=5))
    def test_no_change_within_the_support_does_more_than_the_leverage(self, chain, d, direction):
        gradient = reliability_gradient(chain, d=d, exact=True)
        for row in gradient.ranking():
            probabilities = chain.exact_transitions().row(chain.index(row.state))
            assume(any(direction[j] != direction[k] for j in probabilities for k in probabilities))
            mean = sum(p * direction[j] for j, p in probabilities.items())
            by = {NAMES[j]: p * (direction[j] - mean) for j, p in probabilities.items()}
            length = math.sqrt(sum(p * (direction[j] - mean) ** 2 for j, p in probabilities.items()))
            effect = float(gradient.along([RowChange(state=row.state, by=by)]))
            assert abs(effect) <= row.leverage * length * (1 + 1e-12)

    def test_the_steepest_change_reaches_the_leverage(self, example):
        gradient = reliability_gradient(example, d=5, exact=True)
        for row in gradient.ranking():
            probabilities = example.exact_transitions().row(example.index(row.state))
            worth = {j: gradient.entry(row.state, NAMES[j]) for j in probabilities}
            mean = sum(p * worth[j] for j, p in probabilities.items())
            by = {NAMES[j]: p * (worth[j] - mean) for j, p in probabilities.items()}
            length = math.sqrt(sum(p * (worth[j] - mean) ** 2 for j, p in probabilities.items()))
            effect = float(gradient.along([RowChange(state=row.state, by=by)]))
            assert effect == pytest.approx(row.leverage * length, rel=1e-12)

    @law
    @given(chains())
    def test_doubles_rank_as_rationals_do(self, chain):
        exact = {row.state: row for row in reliability_gradient(chain, exact=True).ranking()}
        for row in reliability_gradient(chain).ranking():
            reference = exact[row.state]
            assert row.leverage == pytest.approx(reference.leverage, rel=1e-9, abs=1e-12)
            assert row.gain == pytest.approx(float(reference.gain), rel=1e-12, abs=1e-14)
            assert row.loss == pytest.approx(float(reference.loss), rel=1e-12, abs=1e-14)

    def test_the_delta_method_in_rows(self):
        """With one state, R_inf is the row's success share and its standard error the binomial one."""
        chain = MarkovChain(
            states=("try", "success", "failure"),
            transitions=RationalMatrix.from_rows([{1: F(3, 4), 2: F(1, 4)}, {1: F(1)}, {2: F(1)}]),
            initial=RationalVector.from_fractions([1, 0, 0]),
        )
        (row,) = reliability_gradient(chain).ranking()
        assert row.leverage / math.sqrt(100) == pytest.approx(math.sqrt(0.75 * 0.25 / 100))


class TestNormBound:
    @law
    @given(chains(), st.fractions(0, F(1, 10), max_denominator=1000), st.sampled_from(NAMES[:3]))
    def test_it_bounds_every_change_among_states(self, chain, share, state):
        row = chain.exact_transitions().row(chain.index(state))
        inside = [NAMES[j] for j in row if j < 3]
        assume(len(inside) >= 2)
        moved = share * row[NAMES.index(inside[0])]
        change = RowChange(state=state, by={inside[0]: -moved, inside[1]: moved})
        bound = norm_bound(chain, [change], exact=True)
        if bound.value is not None:
            assert abs(reliability_effect(chain, [change], exact=True).change) <= bound.value

    def test_one_row_by_hand(self, example):
        """|N| is the longest mean time 1000/237, |dQ| = 1/50, |r| = 3/10."""
        bound = norm_bound(example, [RowChange(state="s2", by={"s1": F(1, 100), "s2": F(-1, 100)})], exact=True)
        n, size, r = F(1000, 237), F(1, 50), F(3, 10)
        assert bound.smallness == n * size
        assert bound.value == n**2 * size * r + n**3 * size**2 * r / (1 - n * size)
        assert norm_bound(example, [RowChange(state="s2", by={"s1": F(1, 100), "s2": F(-1, 100)})]).value == (
            pytest.approx(float(bound.value))
        )

    def test_where_it_says_nothing_it_says_why(self, example):
        large = norm_bound(example, [RowChange(state="s2", by={"s1": F(3, 10), "s2": F(-3, 10)})])
        assert large.value is None
        assert large.smallness == pytest.approx(1000 / 237 * 0.6)
        assert "too large" in str(large.reason)
        exits = norm_bound(example, [RowChange(state="s2", by={"success": F(1, 100), "failure": F(-1, 100)})])
        assert exits.value is None
        assert "exits" in str(exits.reason)
        assert norm_bound(example, []).value == 0


def test_a_chain_without_transient_states_has_nothing_to_move():
    chain = MarkovChain(states=("success", "failure"), transitions=np.eye(2), initial=[0.25, 0.75])
    gradient = reliability_gradient(chain)
    assert gradient.value == 0.25
    assert gradient.matrix().shape == (0, 2)
    assert gradient.ranking() == []
    assert mean_time_effect(chain, []).after == 0
