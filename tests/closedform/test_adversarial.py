"""Chains at the edge of what doubles, structure and definitions allow, and answers that are known there."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.closedform.reference import Reference
from tests.closedform.strategies import number, operators

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform import (
    EnclosureVector,
    ExactArithmetic,
    FloatArithmetic,
    absorption_probabilities,
    absorption_time_quantile,
    absorption_time_variance,
    evaluate_operator,
    expected_visits,
    first_passage_quantile,
    fundamental_matrix,
    horizon,
    long_run_outcomes,
    mean_time_to_absorption,
    mean_time_to_success,
    perron_bound,
    reliability,
    reliability_curve,
    rounding_amplification,
    spectral_radius,
    steps_per_failure,
)
from tracebridge.errors import PropertyError
from tracebridge.pctl.ast import (
    CumulativeReward,
    Eventually,
    Globally,
    InstantaneousReward,
    Label,
    LongRunReward,
    Operator,
    Probability,
    ReachReward,
    Reward,
    Span,
    SteadyState,
    StepBound,
)

F = Fraction
A, B, NOWHERE, EVERYWHERE = Label("a"), Label("b"), Label("nowhere"), Label("everywhere")


def make_chain(
    rows: list[dict[int, Fraction]],
    a: set[int],
    b: set[int] | None = None,
    *,
    cost: list[Fraction] | None = None,
    initial: list[Fraction] | None = None,
) -> MarkovChain:
    n = len(rows)
    return MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector.from_fractions(initial or [F(1), *[F(0)] * (n - 1)]),
        labels={
            "a": np.isin(np.arange(n), list(a)),
            "b": np.isin(np.arange(n), list(b or ())),
            "nowhere": np.zeros(n, dtype=np.bool_),
            "everywhere": np.ones(n, dtype=np.bool_),
        },
        rewards={"cost": RewardStructure.from_fractions(cost or [F(1)] * n)},
    )


def both(chain: MarkovChain, operator: Operator) -> tuple[list[Fraction | float], EnclosureVector]:
    """In rationals, and in doubles; the doubles must enclose the rationals."""

    def holds(formula: object) -> np.ndarray:
        assert isinstance(formula, Label)
        return chain.label(formula.name)

    exact = evaluate_operator(ExactArithmetic(chain), operator, holds).value.tolist()
    enclosed = evaluate_operator(FloatArithmetic(chain), operator, holds)
    for i, true in enumerate(exact):
        assert enclosed.lower[i] <= true <= enclosed.upper[i], (operator, i)
    assert rounding_amplification(chain, operator, holds) >= 0
    return exact, enclosed


@st.composite
def hostile_chains(draw: st.DrawFn, digits: int = 2_000) -> MarkovChain:
    """Probabilities of 1e-300, states that stay with 1 - 1e-300, denominators of so many digits."""
    n = draw(st.integers(1, 5))
    long = 10**digits + draw(st.integers(1, 10**6))
    sizes = [F(1), F(1), F(1, 3), F(1, 10**300), F(1, 10**17), F(10 ** (digits - 10), long), F(long - 1, long)]
    rows = []
    for _ in range(n):
        successors = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3, unique=True))
        weights = [draw(st.sampled_from(sizes)) for _ in successors]
        rows.append({target: weight / sum(weights) for target, weight in zip(successors, weights, strict=True)})
    masks = [draw(st.sets(st.integers(0, n - 1))) for _ in range(2)]
    amounts = st.sampled_from([F(0), F(1), F(1, 10**300), F(10**300), F(1, 7)])
    return make_chain(rows, *masks, cost=draw(st.lists(amounts, min_size=n, max_size=n)))


class TestHostileNumbers:
    @given(hostile_chains(), operators())
    @settings(max_examples=60, deadline=None)
    def test_doubles_enclose_rationals(self, chain: MarkovChain, operator: Operator) -> None:
        exact, enclosed = both(chain, operator)
        for i, true in enumerate(exact):
            if true == math.inf:
                assert enclosed.lower[i] == math.inf
            elif true == 0:
                assert enclosed.upper[i] <= 2.0**-1022

    @given(hostile_chains(digits=50), operators())
    @settings(max_examples=40, deadline=None)
    def test_rationals_are_right(self, chain: MarkovChain, operator: Operator) -> None:
        assert both(chain, operator)[0] == Reference(chain).value(operator)

    def test_an_exit_of_1e_300(self) -> None:
        tiny = F(1, 10**300)
        chain = make_chain(
            [{0: 1 - 3 * tiny, 1: tiny, 2: 2 * tiny}, {1: F(1)}, {2: F(1)}], {1}, cost=[F(1), F(0), F(0)]
        )
        exact, enclosed = both(chain, Probability(Eventually(A)))
        assert exact[0] == F(1, 3)
        assert enclosed[0].width <= 2**-53
        exact, enclosed = both(chain, Reward(CumulativeReward(), "cost"))
        assert exact[0] == F(10**300, 3)
        assert enclosed[0].width <= 2**-51 * enclosed.value[0]
        assert both(chain, Probability(Eventually(A, StepBound(upper=number(10)))))[1].value[0] == pytest.approx(1e-299)

    def test_a_probability_below_all_doubles(self) -> None:
        tiny = F(1, 10**200)
        chain = make_chain([{1: tiny, 3: 1 - tiny}, {2: tiny, 3: 1 - tiny}, {2: F(1)}, {3: F(1)}], {2})
        exact, enclosed = both(chain, Probability(Eventually(A)))
        assert exact[0] == tiny**2
        assert (enclosed.lower[0], enclosed.upper[0]) == (0, 2.0**-1074)

    def test_a_time_beyond_all_doubles(self) -> None:
        """What is finite stays below infinity, and what is next to it keeps its digits."""
        tiny = F(1, 10**200)
        rows = [{0: 1 - tiny, 1: tiny}, {0: 1 - tiny, 2: tiny}, {2: F(1)}]
        chain = make_chain(rows, {2}, cost=[F(1), F(1), F(0)])
        exact, enclosed = both(chain, Reward(ReachReward(A), "cost"))
        assert exact[0] == 1 / tiny**2 + 1 / tiny
        assert (enclosed.lower[0], enclosed.upper[0]) == (np.finfo(np.float64).max, math.inf)
        assert enclosed.lower[2] == enclosed.upper[2] == 0
        assert both(chain, Probability(Eventually(A)))[1].lower[0] == 1

    def test_mixtures_of_staying_for_ever(self) -> None:
        """States that are never left, under the start's mean: certain ones, endless ones and sticky ones at once."""
        stay = 1 - F(1, 10**15)
        rows = [{0: F(1)}, {1: F(1)}, {2: stay, 0: (1 - stay) / 4, 1: 3 * (1 - stay) / 4}, {3: F(1, 2), 2: F(1, 2)}]
        initial = [F(1, 8), F(3, 8), F(1, 4), F(1, 4)]
        chain = make_chain(rows, {0}, initial=initial)
        exact, enclosed = both(chain, Probability(Eventually(A)))
        assert exact == [1, 0, F(1, 4), F(1, 4)]
        mean = enclosed.weighted_mean(chain.exact_initial())
        assert mean.lower <= F(1, 4) <= mean.upper
        assert both(chain, SteadyState(A))[0] == exact


class TestEdgesOfDefinition:
    """0 transient states, empty and full targets, classes that nothing reaches."""

    everything = (
        Probability(Eventually(A)),
        Probability(Globally(A)),
        Reward(ReachReward(A), "cost"),
        Reward(CumulativeReward(), "cost"),
        Reward(CumulativeReward(number(3)), "cost"),
        Reward(InstantaneousReward(number(3)), "cost"),
        Reward(LongRunReward(), "cost"),
        SteadyState(A),
    )

    def test_no_transient_state(self) -> None:
        chain = make_chain([{0: F(1)}, {1: F(1)}], {1}, cost=[F(0), F(2)], initial=[F(1, 4), F(3, 4)])
        expected = [[0, 1], [0, 1], [math.inf, 0], [0, math.inf], [0, 6], [0, 2], [0, 2], [0, 1]]
        for operator, values in zip(self.everything, expected, strict=True):
            exact, enclosed = both(chain, operator)
            assert exact == values == enclosed.value.tolist() == enclosed.lower.tolist() == enclosed.upper.tolist()

    @pytest.mark.parametrize("exact", [False, True])
    def test_closed_forms_without_a_transient_state(self, exact: bool) -> None:
        chain = make_chain([{0: F(1)}, {1: F(1)}], {1}, initial=[F(1, 4), F(3, 4)])
        assert fundamental_matrix(chain, exact=exact).shape == (0, 0)
        assert absorption_probabilities(chain, exact=exact).shape == (0, 2)
        assert expected_visits(chain, exact=exact).shape == (0,)
        assert mean_time_to_absorption(chain, exact=exact).overall == 0
        assert absorption_time_variance(chain, exact=exact).overall == 0
        assert long_run_outcomes(chain, exact=exact) == {"s0": F(1, 4), "s1": F(3, 4)}
        assert reliability(chain, 0, target="a", exact=exact) == F(3, 4)
        assert reliability_curve(chain, 2, target="a", exact=exact).tolist() == [F(3, 4)] * 3
        assert mean_time_to_success(chain, target="a", exact=exact) == 0
        assert steps_per_failure(chain, target="a", exact=exact) == 0
        assert first_passage_quantile(chain, F(3, 4), target="a") == 0
        assert first_passage_quantile(chain, 0.76, target="a") == math.inf
        assert absorption_time_quantile(chain, 1) == 0
        assert horizon(chain, 0, target="a") == 0
        assert spectral_radius(chain) == 0
        assert perron_bound(chain, target="a").at(0) <= 1e-300

    def test_empty_and_full_targets(self) -> None:
        chain = make_chain([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}], {1}, cost=[F(1), F(0)])
        for target, probability, reward in ((NOWHERE, 0, math.inf), (EVERYWHERE, 1, 0)):
            exact, enclosed = both(chain, Probability(Eventually(target)))
            assert exact == enclosed.lower.tolist() == enclosed.upper.tolist() == [probability] * 2
            exact, enclosed = both(chain, Probability(Globally(target)))
            assert exact == enclosed.lower.tolist() == enclosed.upper.tolist() == [probability] * 2
            exact, enclosed = both(chain, Reward(ReachReward(target), "cost"))
            assert exact == enclosed.lower.tolist() == enclosed.upper.tolist() == [reward] * 2
            assert both(chain, SteadyState(target))[0] == [probability] * 2

    def test_classes_that_nothing_reaches(self) -> None:
        """A periodic pair, with rewards without end, beside a chain that ends: neither disturbs the other."""
        rows = [{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}, {3: F(1)}, {2: F(1)}, {2: F(1, 3), 0: F(2, 3)}]
        chain = make_chain(rows, {2}, cost=[F(1), F(0), F(5), F(0), F(0)])
        assert both(chain, Reward(CumulativeReward(), "cost"))[0] == [2, 0, math.inf, math.inf, math.inf]
        assert both(chain, Reward(LongRunReward(), "cost"))[0] == [0, 0, F(5, 2), F(5, 2), F(5, 6)]
        assert both(chain, SteadyState(A))[0] == [0, 0, F(1, 2), F(1, 2), F(1, 6)]
        assert both(chain, Probability(Eventually(A)))[0] == [0, 0, 1, 1, F(1, 3)]

    @pytest.mark.parametrize(("mass", "mean"), [(F(0), F(2)), (F(1, 10**300), math.inf)])
    def test_the_mean_is_infinite_where_the_start_sees_it(self, mass: Fraction, mean: Fraction | float) -> None:
        """A start of mass zero does not count, not even with an infinite reward; one of any other mass does."""
        rows = [{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}, {2: F(1)}]
        chain = make_chain(rows, {1}, cost=[F(1), F(0), F(1)], initial=[1 - mass, F(0), mass])
        for operator in (Reward(ReachReward(A), "cost"), Reward(CumulativeReward(), "cost")):
            exact, enclosed = both(chain, operator)
            assert exact == [2, 0, math.inf]
            assert EnclosureVector.from_fractions(exact).weighted_mean(chain.exact_initial()).value == mean
            overall = enclosed.weighted_mean(chain.exact_initial())
            assert overall.lower == overall.upper == mean


def test_an_unknown_reward_is_refused_with_place_and_names() -> None:
    structure = RewardStructure(state=np.array([1.0]))
    chain = MarkovChain(
        states=("s",),
        transitions=np.array([[1.0]]),
        initial=np.array([1.0]),
        rewards={"cost": structure, "time": structure},
    )
    place = Span(line=7, column=3, end_line=7, end_column=12)
    with pytest.raises(PropertyError) as caught:
        evaluate_operator(FloatArithmetic(chain), Reward(LongRunReward(), "x", span=place), lambda _: np.array([True]))
    message = str(caught.value)
    assert message.startswith(":7:3: ")
    assert '"cost", "time"' in message
