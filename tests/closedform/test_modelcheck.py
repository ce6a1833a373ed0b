"""The operators against independent answers, in both arithmetics."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.closedform.reference import Reference
from tests.closedform.strategies import (
    bounded_probabilities,
    chains,
    number,
    operators,
    rewards,
    unbounded_probabilities,
)

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform import conditioning, krylov, sparse_elimination
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.exact_arithmetic import ExactArithmetic
from tracebridge.closedform.float_arithmetic import MAX_STEPS, FloatArithmetic
from tracebridge.closedform.modelcheck import evaluate_operator, rounding_amplification
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl.ast import (
    AutomatonPath,
    Coalition,
    CumulativeReward,
    Eventually,
    Formula,
    Globally,
    Identifier,
    InstantaneousReward,
    Label,
    LongRunReward,
    Multi,
    Next,
    Number,
    OnePerStep,
    Operator,
    PathNot,
    PathReward,
    Probability,
    Quantified,
    Quantile,
    QuantileVariable,
    ReachReward,
    Reward,
    SteadyState,
    StepBound,
    Structure,
    Threshold,
    Until,
)


def values(chain: MarkovChain, operator: Operator, *, exact: bool) -> EnclosureVector:
    def holds(formula: Formula) -> np.ndarray:
        assert isinstance(formula, Label)
        return chain.label(formula.name)

    arithmetic = ExactArithmetic(chain) if exact else FloatArithmetic(chain)
    return evaluate_operator(arithmetic, operator, holds)


def amplification(chain: MarkovChain, operator: Operator) -> float:
    return rounding_amplification(chain, operator, lambda formula: chain.label(formula.name))


def make_chain(
    rows: list[dict[int, Fraction]], cost: list[Fraction | int] | None = None, **labels: set[int]
) -> MarkovChain:
    n = len(rows)
    return MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector.from_fractions([Fraction(int(i == 0)) for i in range(n)]),
        labels={name: np.array([i in held for i in range(n)]) for name, held in labels.items()},
        rewards={} if cost is None else {"cost": RewardStructure.from_fractions(cost)},
    )


def until(k: int | None = None) -> Probability:
    return Probability(Eventually(Label("goal"), None if k is None else StepBound(upper=number(k))))


class TestAgainstIndependentAnswers:
    @staticmethod
    def check(chain: MarkovChain, operator: Operator, width: float) -> None:
        truth = Reference(chain).value(operator)
        assert list(values(chain, operator, exact=True).value) == truth
        enclosed = values(chain, operator, exact=False)
        for state, (lower, upper, true) in enumerate(zip(enclosed.lower, enclosed.upper, truth, strict=True)):
            assert lower <= true <= upper, (state, operator)
            if math.isfinite(true):
                assert upper - lower <= width * true, (state, operator)

    @given(chains(max_states=4), bounded_probabilities())
    @settings(max_examples=50, deadline=None)
    def test_bounded_probabilities(self, chain: MarkovChain, operator: Probability) -> None:
        self.check(chain, operator, 1e-13)

    @given(chains(), unbounded_probabilities())
    @settings(max_examples=50, deadline=None)
    def test_unbounded_probabilities(self, chain: MarkovChain, operator: Probability) -> None:
        self.check(chain, operator, 1e-13)

    @given(chains(max_states=5), rewards())
    @settings(max_examples=50, deadline=None)
    def test_rewards(self, chain: MarkovChain, operator: Reward) -> None:
        self.check(chain, operator, 1e-13)

    @given(chains())
    @settings(max_examples=40, deadline=None)
    def test_long_run_fraction(self, chain: MarkovChain) -> None:
        self.check(chain, SteadyState(Label("a")), 1e-13)

    @given(chains(max_states=4, exact=False), operators())
    @settings(max_examples=50, deadline=None)
    def test_rows_of_doubles_denote_themselves_over_their_sum(self, chain: MarkovChain, operator: Operator) -> None:
        self.check(chain, operator, 1e-13)


class TestGolden:
    def chain_g(self) -> MarkovChain:
        tenth = Fraction(1, 10)
        rows = [
            {0: tenth, 1: 5 * tenth, 2: 4 * tenth},
            {0: tenth, 1: 2 * tenth, 2: 3 * tenth, 3: 3 * tenth, 4: tenth},
            {1: tenth, 2: 6 * tenth, 4: 3 * tenth},
            {3: Fraction(1)},
            {4: Fraction(1)},
        ]
        return make_chain(rows, [1, 1, 1, 0, 0], goal={3}, bad={4}, end={3, 4})

    def test_absorption_of_the_worked_example(self) -> None:
        found = values(self.chain_g(), until(), exact=True).value.tolist()
        assert found == [Fraction(24, 79), Fraction(36, 79), Fraction(9, 79), 1, 0]

    def test_expected_steps_of_the_worked_example(self) -> None:
        found = values(self.chain_g(), Reward(ReachReward(Label("end"))), exact=True).value.tolist()
        assert found == [Fraction(1000, 237), Fraction(710, 237), Fraction(770, 237), 0, 0]

    def test_budgets_of_the_worked_example(self) -> None:
        expected = ["0", "0", "0.15", "0.207", "0.2403", "0.26088", "0.274437"]
        for d, printed in enumerate(expected):
            assert values(self.chain_g(), until(d), exact=True)[0].value == Fraction(printed)

    @pytest.mark.parametrize("digits", [12, 15])
    def test_sticky_state_has_exactly_even_odds(self, digits: int) -> None:
        leave = Fraction(1, 10**digits)
        rows = [{0: 1 - leave, 1: leave / 2, 2: leave / 2}, {1: Fraction(1)}, {2: Fraction(1)}]
        found = values(make_chain(rows, goal={1}), until(), exact=False)[0]
        assert (found.lower, found.value, found.upper) == (0.5, 0.5, 0.5)

    def test_sticky_state_of_doubles(self) -> None:
        """In doubles 1 - 1e-15 is off by 5 % of 1e-15: the odds depend on the exits alone."""
        chain = MarkovChain(
            states=("s", "yes", "no"),
            transitions=np.array([[1 - 1e-15, 5e-16, 5e-16], [0, 1, 0], [0, 0, 1]]),
            initial=np.array([1.0, 0, 0]),
            labels={"goal": np.array([False, True, False])},
        )
        assert values(chain, until(), exact=False)[0].value == 0.5

    def test_nearly_decomposable_pair(self) -> None:
        """Two states that pass on to each other and leave with 1e-18: out of either, equally often."""
        out = Fraction(1, 10**18)
        rows = [{1: 1 - out, 2: out}, {0: 1 - out, 3: out}, {2: Fraction(1)}, {3: Fraction(1)}]
        chain = make_chain(rows, [1, 1, 0, 0], goal={2}, end={2, 3})
        found = values(chain, until(), exact=False)
        assert Fraction(found.lower[0]) <= 1 / (2 - out) <= Fraction(found.upper[0])
        assert found[0].width <= 2**-52
        steps = values(chain, Reward(ReachReward(Label("end"))), exact=False)[0]
        assert steps.lower <= 10**18 <= steps.upper
        assert steps.width <= 256

    def test_ruin_of_a_gambler_with_a_thousand(self) -> None:
        n = 1000
        half = Fraction(1, 2)
        fair = [{0: Fraction(1)}, *({i - 1: half, i + 1: half} for i in range(1, n)), {n: Fraction(1)}]
        chain = make_chain(fair, [0, *[1] * (n - 1), 0], goal={n}, end={0, n})
        win = values(chain, until(), exact=False)
        duration = values(chain, Reward(ReachReward(Label("end"))), exact=False)
        for i in range(n + 1):
            assert win.lower[i] <= Fraction(i, n) <= win.upper[i]
            assert duration.lower[i] <= i * (n - i) <= duration.upper[i]
        assert np.all(win.upper - win.lower <= 2**-51 * win.value)
        assert np.all(duration.upper - duration.lower <= 2**-51 * duration.value)

    def test_ruin_against_the_odds_keeps_small_probabilities(self) -> None:
        n, up, down = 600, Fraction(2, 5), Fraction(3, 5)
        rows = [{0: Fraction(1)}, *({i - 1: down, i + 1: up} for i in range(1, n)), {n: Fraction(1)}]
        win = values(make_chain(rows, goal={n}), until(), exact=False)
        ratio = down / up
        for i in (1, 2, 300, 599):
            true = (ratio**i - 1) / (ratio**n - 1)
            assert Fraction(win.lower[i]) <= true <= Fraction(win.upper[i])
            assert win[i].width <= 2**-51 * win.value[i]

    def test_defective_pipeline(self) -> None:
        """Five equal stages in a row, a matrix that cannot be diagonalised: (.38 / .4)^5 succeed."""
        stay, fail = Fraction(3, 5), Fraction(1, 50)
        rows = [{i: stay, i + 1: 1 - stay - fail, 6: fail} for i in range(5)]
        chain = make_chain([*rows, {5: Fraction(1)}, {6: Fraction(1)}], goal={5})
        true = Fraction(19, 20) ** 5
        assert values(chain, until(), exact=True)[0].value == true
        gap = [true - values(chain, until(d), exact=True)[0].value for d in (24, 25)]
        assert gap[1] <= Fraction(1, 100) < gap[0]

    def test_small_chance_of_staying_keeps_relative_accuracy(self) -> None:
        """G<=k of a state left with probability 1 - 1e-9 is 1e-9^k; as a complement it would be noise."""
        small = Fraction(1, 10**9)
        chain = make_chain([{0: small, 1: 1 - small}, {1: Fraction(1)}], goal={0})
        found = values(chain, Probability(Globally(Label("goal"), StepBound(upper=number(8)))), exact=False)[0]
        assert Fraction(found.lower) <= small**8 <= Fraction(found.upper)
        assert found.width <= 2e-14 * found.value

    def test_periodic_class(self) -> None:
        one = Fraction(1)
        chain = make_chain([{1: one}, {2: one}, {0: one}], [1, 2, 6], goal={1})
        assert values(chain, Reward(LongRunReward()), exact=True).value.tolist() == [3, 3, 3]
        assert values(chain, SteadyState(Label("goal")), exact=True).value.tolist() == [Fraction(1, 3)] * 3


class TestManySteps:
    def test_a_power_takes_the_place_of_a_trillion_steps(self) -> None:
        leave = Fraction(1, 10**12)
        chain = make_chain([{0: 1 - leave, 1: leave}, {1: Fraction(1)}], [1, 0], goal={1})
        k = 10**12
        found = values(chain, until(k), exact=False)[0]
        assert found.width <= 2.3e-16
        assert found.value == pytest.approx(-math.expm1(k * math.log1p(-1e-12)), rel=1e-15)
        collected = values(chain, Reward(CumulativeReward(number(k))), exact=False)[0]
        assert collected.value == pytest.approx(1e12 * -math.expm1(k * math.log1p(-1e-12)), rel=1e-14)
        at_end = values(chain, Reward(InstantaneousReward(number(k))), exact=False)[0]
        assert at_end.value == pytest.approx(math.exp(k * math.log1p(-1e-12)), rel=1e-14)

    def test_large_sticky_chains_are_bounded_by_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracebridge.closedform.float_arithmetic.MAX_STEPS", 50)
        monkeypatch.setattr("tracebridge.closedform.float_arithmetic.POWER_STATES", 0)
        leave = Fraction(1, 100)
        rows = [{0: 1 - leave, 1: leave / 2, 2: leave / 2}, {1: Fraction(1)}, {2: Fraction(1)}]
        chain = make_chain(rows, [1, 0, 0], goal={1}, stay={0})
        left = (1 - leave) ** 200
        rising = values(chain, until(200), exact=False)[0]
        assert rising.lower <= (1 - left) / 2 <= rising.upper <= 0.5
        assert rising.lower >= (1 - (1 - leave) ** 50) / 2 * (1 - Fraction(1, 10**9))
        falling = values(chain, Probability(Globally(Label("stay"), StepBound(upper=number(200)))), exact=False)[0]
        assert falling.lower <= left <= falling.upper <= 0.61
        cost = values(chain, Reward(CumulativeReward(number(200))), exact=False)[0]
        assert cost.lower <= 100 * (1 - left) <= cost.upper <= 100.001
        instant = values(chain, Reward(InstantaneousReward(number(200))), exact=False)[0]
        assert instant.lower <= left <= instant.upper

    @given(chains(max_states=5), st.integers(5, 60), st.booleans(), st.integers(0, 4))
    @settings(max_examples=50, deadline=None)
    def test_powers_and_steps_agree_with_rationals(self, chain: MarkovChain, k: int, powers: bool, which: int) -> None:
        bound = StepBound(lower=number(k // 3), upper=number(k))
        operator: Operator = [
            Probability(Eventually(Label("a"), bound)),
            Probability(Globally(Label("a"), bound)),
            Probability(Until(Label("a"), Label("b"), bound)),
            Reward(CumulativeReward(number(k))),
            Reward(InstantaneousReward(number(k))),
        ][which]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tracebridge.closedform.float_arithmetic.POWER_STATES", 128 if powers else 0)
            found = values(chain, operator, exact=False)
        for i, true in enumerate(values(chain, operator, exact=True).value):
            assert found.lower[i] <= true <= found.upper[i]
            assert found[i].width <= max(1e-13 * true, 2.0**-1060)  # doubles that small have fewer digits
            if true == 0 or (true == 1 and isinstance(operator, Probability)):
                assert found.lower[i] == found.upper[i]

    def test_fixed_points_end_the_loop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracebridge.closedform.float_arithmetic.POWER_STATES", 0)
        chain = make_chain([{0: Fraction(1, 2), 1: Fraction(1, 2)}, {1: Fraction(1)}], goal={1})
        found = values(chain, until(MAX_STEPS), exact=False)[0]
        assert found.upper == 1
        assert found.lower > 1 - 1e-14

    def test_exact_work_is_limited(self) -> None:
        chain = make_chain([{0: Fraction(2, 3), 1: Fraction(1, 3)}, {1: Fraction(1)}], goal={1})
        with pytest.raises(UnsupportedError, match="too much work"):
            values(chain, until(10**8), exact=True)


class TestSteps:
    chain = make_chain([{0: Fraction(1, 2), 1: Fraction(1, 2)}, {1: Fraction(1)}], [1, 0], goal={1})

    @pytest.mark.parametrize(
        "literal", [Number(Fraction(5, 2), False), Number(Fraction(2), False), Number(Fraction(-1), True)]
    )
    def test_bounds_that_are_no_counts(self, literal: Number) -> None:
        with pytest.raises(PropertyError, match="is not a number of steps"):
            values(self.chain, Probability(Eventually(Label("goal"), StepBound(upper=literal))), exact=False)
        with pytest.raises(PropertyError, match="is not a number of steps"):
            values(self.chain, Reward(InstantaneousReward(literal)), exact=False)

    @pytest.mark.parametrize("exact", [False, True])
    def test_an_empty_window(self, exact: bool) -> None:
        empty = StepBound(lower=number(2), upper=number(1))
        assert values(self.chain, Probability(Eventually(Label("goal"), empty)), exact=exact)[1].value == 0
        assert values(self.chain, Probability(Globally(Label("goal"), empty)), exact=exact)[0].value == 1

    def test_a_strict_reward_bound_of_zero(self) -> None:
        with pytest.raises(PropertyError, match="C<0"):
            values(self.chain, Reward(CumulativeReward(number(0), strict=True)), exact=False)


class TestRewardStructures:
    def chain(self, **rewards: int) -> MarkovChain:
        return MarkovChain(
            states=("s",),
            transitions=np.array([[1.0]]),
            initial=np.array([1.0]),
            rewards={name: RewardStructure.from_fractions([amount]) for name, amount in rewards.items()},
        )

    @pytest.mark.parametrize(
        ("structure", "amount"),
        [(None, 5), ("cost", 5), ("time", 7), (number(1), 5), (number(2), 7), (OnePerStep(), 1)],
    )
    def test_by_name_by_number_from_one_or_the_first(self, structure: Structure, amount: int) -> None:
        chain = self.chain(cost=5, time=7)
        assert values(chain, Reward(LongRunReward(), structure), exact=True)[0].value == amount

    def test_one_per_step_needs_no_structure(self) -> None:
        assert values(self.chain(), Reward(CumulativeReward(number(3)), OnePerStep()), exact=False)[0].value == 3

    @pytest.mark.parametrize(
        ("known", "asked", "message"),
        [
            ({}, None, "no reward structure"),
            ({"cost": 1, "time": 1}, "coast", 'did you mean "cost"'),
            ({"cost": 1}, "latency", 'the chain has "cost"'),
            ({"cost": 1, "time": 1}, number(3), 'no reward structure number 3 (1 is "cost", 2 is "time")'),
            ({"cost": 1}, number(0), "no reward structure number 0"),
            ({"cost": 1}, Number(Fraction(1, 2), False), "no reward structure number 1/2"),
        ],
    )
    def test_names_that_do_not_fit(self, known: dict[str, int], asked: Structure, message: str) -> None:
        with pytest.raises(PropertyError, match=re.escape(message)):
            values(self.chain(**known), Reward(LongRunReward(), asked), exact=False)


class TestWhatAChainCannotAnswer:
    chain = make_chain([{0: Fraction(1)}], [1], goal={0})
    target = Probability(Eventually(Label("goal")))

    @pytest.mark.parametrize(
        ("operator", "message"),
        [
            (Multi("multi", (target,)), "decision process"),
            (Multi("multilex", (target,)), "decision process"),
            (Coalition(("p",), False, target), "games"),
            (Probability(AutomatonPath("a.hoa", ())), "automata in files"),
            (Probability(PathNot(AutomatonPath("a.hoa", ()))), "automata in files"),
            (Reward(CumulativeReward(), condition=Eventually(Label("goal"))), "under a condition"),
            (Quantified("A", Globally(Eventually(Label("goal")))), "LTL"),
            (Quantified("E", PathNot(Eventually(Label("goal")))), "LTL"),
        ],
    )
    def test_is_refused_with_the_reason(self, operator: Operator, message: str) -> None:
        with pytest.raises(UnsupportedError, match=message):
            values(self.chain, operator, exact=False)


class TestDispatch:
    """Each kind of operator gets to its method; the methods have tests of their own."""

    half = Fraction(1, 2)
    chain = make_chain([{1: half, 2: half}, {1: Fraction(1)}, {2: Fraction(1)}], [3, 0, 0], a={1}, b={1, 2}, start={0})

    @pytest.mark.parametrize(
        ("operator", "value"),
        [
            (Probability(Eventually(Globally(Label("a")))), half),
            (Probability(Eventually(Label("a")), condition=Eventually(Label("b"))), half),
            (Reward(ReachReward(Label("b")), condition=Eventually(Label("a"))), 3),
            (Reward(PathReward(Until(Label("start"), Label("b")))), 3),
            (Reward(PathReward(Eventually(Label("b"), StepBound(upper=number(4))))), 3),
            (Quantified("E", Eventually(Label("a"))), 1),
            (Quantified("A", Eventually(Label("a"))), 0),
            (
                Quantile(
                    (QuantileVariable("B"),),
                    Probability(
                        Eventually(Label("a"), StepBound(upper=Identifier("B"))), Threshold(">=", Number(half, False))
                    ),
                ),
                1,
            ),
        ],
    )
    @pytest.mark.parametrize("exact", [False, True])
    def test_value(self, operator: Operator, value: Fraction | int, exact: bool) -> None:
        assert values(self.chain, operator, exact=exact)[0].value == value
        assert amplification(self.chain, operator) >= 0


class TestCertainty:
    """What the graph decides is exact in doubles too."""

    @given(chains(), unbounded_probabilities())
    @settings(max_examples=50, deadline=None)
    def test_zero_and_one(self, chain: MarkovChain, operator: Probability) -> None:
        exact, enclosed = values(chain, operator, exact=True), values(chain, operator, exact=False)
        for i, true in enumerate(exact.value):
            if true in {0, 1}:
                assert enclosed.lower[i] == enclosed.upper[i] == true

    @given(chains(max_states=4), bounded_probabilities())
    @settings(max_examples=50, deadline=None)
    def test_bounded_zero_and_one(self, chain: MarkovChain, operator: Probability) -> None:
        exact, enclosed = values(chain, operator, exact=True), values(chain, operator, exact=False)
        for i, true in enumerate(exact.value):
            if true in {0, 1}:
                assert enclosed.lower[i] == enclosed.upper[i] == true


class TestAmplification:
    def test_of_a_sticky_state_is_its_expected_stay(self) -> None:
        leave = Fraction(1, 2**30)
        rows = [{0: 1 - leave, 1: leave / 2, 2: leave / 2}, {1: Fraction(1)}, {2: Fraction(1)}]
        chain = make_chain(rows, goal={1})
        assert amplification(chain, until()) == pytest.approx(2**30, rel=1e-12)
        assert amplification(chain, until(7)) == 7

    def test_is_zero_where_the_graph_decides(self) -> None:
        chain = make_chain([{1: Fraction(1)}, {1: Fraction(1)}], goal={1})
        assert amplification(chain, until()) == 0

    @staticmethod
    def random_chain(n: int, leave: Fraction) -> MarkovChain:
        """Three random successors a state, and the same way out of every state: ``1 / leave`` steps in the mean."""
        rng = np.random.default_rng(3)
        rows = []
        for _ in range(n):
            successors = set(rng.integers(0, n, 3).tolist())
            rows.append({**{j: (1 - leave) / len(successors) for j in successors}, n: leave / 3, n + 1: leave * 2 / 3})
        return make_chain([*rows, {n: Fraction(1)}, {n + 1: Fraction(1)}], goal={n})

    @pytest.mark.parametrize("exponent", [1, 9, 14])
    def test_of_a_large_chain_is_a_quick_upper_estimate(self, exponent: int) -> None:
        found = amplification(self.random_chain(1_500, Fraction(1, 2**exponent)), until())
        assert 2**exponent * (1 - 1e-12) <= found <= 2**exponent * 1.12

    def test_what_is_not_known_is_infinite(self, monkeypatch: pytest.MonkeyPatch) -> None:
        chain = self.random_chain(600, Fraction(1, 2**20))
        monkeypatch.setattr(conditioning, "_rough_stay", lambda Q, exits: np.zeros(len(exits)))
        assert amplification(chain, until()) == pytest.approx(2**20, rel=1e-12)
        monkeypatch.setattr(sparse_elimination, "DENSE_CORE", 10)
        monkeypatch.setattr(krylov.JumpChainIteration, "converges", lambda self: False)
        monkeypatch.setattr(conditioning, "_rough_stay", lambda Q, exits: np.full(len(exits), np.nan))
        monkeypatch.setattr(conditioning, "_QUICK", 10)
        assert amplification(chain, until()) == math.inf
        assert amplification(chain, until(50)) == 50

    @given(chains(max_states=5, sticky=False), operators())
    @settings(max_examples=50, deadline=None)
    def test_is_a_number_for_every_operator(self, chain: MarkovChain, operator: Operator) -> None:
        assert amplification(chain, operator) >= 0


def test_next_and_until_in_a_large_chain() -> None:
    """A ring of 3,000 states takes the sparse way; the value falls off geometrically from the goal."""
    n, on = 3_000, Fraction(9, 10)
    rows = [{(i + 1) % n: on, n: 1 - on} for i in range(n)]
    chain = make_chain([*rows, {n: Fraction(1)}], goal={0}, ring=set(range(n)))
    found = values(chain, Probability(Until(Label("ring"), Label("goal"))), exact=False)
    for distance in (0, 1, 10, 2_999):
        i = (n - distance) % n
        assert Fraction(found.lower[i]) <= on**distance <= Fraction(found.upper[i])
        assert found[i].width <= 2**-51 * found.value[i]
    assert values(chain, Probability(Next(Label("goal"))), exact=False)[n - 1].value == 0.9


def test_a_long_pipeline() -> None:
    """Without cycles, whatever the length; the probability and the time are geometric."""
    n, on = 3_000, Fraction(999, 1_000)
    rows = [{i + 1: on, n + 1: 1 - on} for i in range(n)]
    chain = make_chain([*rows, {n: Fraction(1)}, {n + 1: Fraction(1)}], [1] * n + [0, 0], goal={n})
    found = values(chain, until(), exact=False)
    steps = values(chain, Reward(CumulativeReward(), "cost"), exact=False)
    for ahead in (1, 2, 500, n):
        i = n - ahead
        assert Fraction(found.lower[i]) <= on**ahead <= Fraction(found.upper[i])
        assert found[i].width <= 2**-51 * found.value[i]
        assert Fraction(steps.lower[i]) <= (1 - on**ahead) / (1 - on) <= Fraction(steps.upper[i])
        assert steps[i].width <= 2**-51 * steps.value[i]


def test_rational_arithmetic_has_a_size_limit() -> None:
    chain = make_chain([{1: Fraction(1)}, {1: Fraction(1)}])
    with pytest.raises(UnsupportedError, match="2 states are too many for exact arithmetic"):
        ExactArithmetic(chain, max_states=1)
