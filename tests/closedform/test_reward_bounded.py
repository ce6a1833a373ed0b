"""Bounds on rewards, discounts and CTL against runs followed one by one, in both arithmetics."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from tests.closedform.strategies import (
    branching_operators,
    budgeted_probabilities,
    budgeted_rewards,
    chains,
    discounted_rewards,
    number,
)
from tests.closedform.test_modelcheck import amplification, make_chain, values
from tests.closedform.unfolding_reference import UnfoldingReference

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform import budget, reward_bounded
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl.ast import (
    CumulativeReward,
    Eventually,
    Globally,
    Label,
    Number,
    OnePerStep,
    Operator,
    Probability,
    Quantified,
    ReachReward,
    Reward,
    RewardBound,
    StepBound,
    Until,
)

F = Fraction


def check(chain: MarkovChain, operator: Operator, width: float = 1e-12) -> EnclosureVector:
    truth = UnfoldingReference(chain).value(operator)
    assert list(values(chain, operator, exact=True).value) == truth
    enclosed = values(chain, operator, exact=False)
    for state, (lower, upper, true) in enumerate(zip(enclosed.lower, enclosed.upper, truth, strict=True)):
        assert lower <= true <= upper, (state, operator)
        if math.isfinite(true):
            assert upper - lower <= width * true, (state, operator)
        if true in {0, math.inf} or (true == 1 and isinstance(operator, Probability)):
            assert lower == upper, (state, operator)
    assert amplification(chain, operator) >= 0
    return enclosed


class TestAgainstRuns:
    @given(chains(max_states=4), budgeted_probabilities())
    @settings(max_examples=80, deadline=None)
    def test_probabilities_within_budgets(self, chain: MarkovChain, operator: Probability) -> None:
        check(chain, operator)

    @given(chains(max_states=4), budgeted_rewards())
    @settings(max_examples=60, deadline=None)
    def test_rewards_within_budgets(self, chain: MarkovChain, operator: Reward) -> None:
        check(chain, operator)

    @given(chains(max_states=4), discounted_rewards())
    @settings(max_examples=50, deadline=None)
    def test_discounted_rewards(self, chain: MarkovChain, operator: Reward) -> None:
        check(chain, operator)

    @given(chains(max_states=5), branching_operators())
    @settings(max_examples=80, deadline=None)
    def test_branching(self, chain: MarkovChain, operator: Quantified) -> None:
        found = check(chain, operator)
        assert set(found.value.tolist()) <= {0.0, 1.0}
        assert found.lower.tolist() == found.upper.tolist()

    @given(chains(max_states=3, exact=False), budgeted_probabilities())
    @settings(max_examples=40, deadline=None)
    def test_rows_of_doubles(self, chain: MarkovChain, operator: Probability) -> None:
        check(chain, operator)


class TestGolden:
    """The answers of Storm 2.0.0 (rational engine, initial state) on the chain below, as fractions."""

    chain = MarkovChain(
        states=("a", "b", "success", "failure"),
        transitions=RationalMatrix.from_rows(
            [{1: F(1, 2), 2: F(3, 10), 3: F(2, 10)}, {0: F(9, 10), 3: F(1, 10)}, {2: F(1)}, {3: F(1)}]
        ),
        initial=RationalVector.from_fractions([1, 0, 0, 0]),
        rewards={
            "steps": RewardStructure.from_fractions([1, 1, 0, 0]),
            "cost": RewardStructure.from_fractions([2, 1, 0, 0]),
            "half": RewardStructure.from_fractions([F(1, 2), F(1, 3), 0, 0]),
            "one": RewardStructure.from_fractions([1, 1, 1, 1]),
        },
    )

    @staticmethod
    def bound(structure: str, **ends: object) -> RewardBound:
        numbers = {
            side: Number(F(str(end)), F(str(end)).denominator == 1)
            for side, end in ends.items()
            if not side.endswith("strict")
        }
        return RewardBound(structure, StepBound(**{**ends, **numbers}))  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("goal", "bounds", "value"),
        [
            ("success", [("steps", {"upper": 5})], F(1983, 4000)),
            ("success", [("cost", {"upper": 5})], F(87, 200)),
            ("success", [("cost", {"upper": 5, "upper_strict": True})], F(3, 10)),
            ("success", [("cost", {"upper": "5/2"})], F(3, 10)),
            ("success", [("cost", {"upper": 0, "upper_strict": True})], F(0)),
            ("a", [("cost", {"upper": 0})], F(1)),
            ("success", [("half", {"upper": 2})], F(87, 200)),
            ("success", [("cost", {"lower": 3})], F(27, 110)),
            ("success", [("cost", {"lower": 3, "lower_strict": True})], F(27, 110)),
            ("success", [("one", {"lower": 3})], F(6, 11)),
            ("b", [("cost", {"lower": 3})], F(9, 40)),
            ("b", [("cost", {"lower": 2})], F(1, 2)),
            ("b", [("cost", {"lower": 2, "lower_strict": True})], F(9, 40)),
            ("success", [("steps", {"upper": 5}), ("cost", {"upper": 4})], F(3, 10)),
            ("success", [("steps", {"upper": 5}), ("cost", {"lower": 4})], F(783, 4000)),
        ],
    )
    def test_probabilities(self, goal: str, bounds: list[tuple[str, dict[str, object]]], value: Fraction) -> None:
        path = Eventually(Label(goal), None, tuple(self.bound(name, **ends) for name, ends in bounds))
        assert values(self.chain, Probability(path), exact=True)[0].value == value

    def test_until_stays_on_the_left(self) -> None:
        path = Until(Label("a"), Label("success"), None, (self.bound("cost", upper=2),))
        assert values(self.chain, Probability(path), exact=True)[0].value == F(3, 10)

    @pytest.mark.parametrize(
        ("structure", "budget", "value"),
        [
            ("steps", [("cost", {"upper": 3})], F(3, 2)),
            ("steps", [("cost", {"upper": 3, "upper_strict": True})], F(1)),
            ("cost", [("cost", {"upper": 3})], F(5, 2)),
            ("cost", [("cost", {"upper": 0})], F(0)),
            ("cost", [("steps", {"upper": 3})], F(17, 5)),
            ("cost", [("steps", {"upper": 0})], F(0)),
            ("cost", [("steps", {"upper": 3}), ("cost", {"upper": 2})], F(2)),
        ],
    )
    def test_rewards(self, structure: str, budget: list[tuple[str, dict[str, object]]], value: Fraction) -> None:
        path = CumulativeReward(reward_bounds=tuple(self.bound(name, **ends) for name, ends in budget))
        assert values(self.chain, Reward(path, structure), exact=True)[0].value == value

    def test_endless_reward_at_no_cost(self) -> None:
        """Of this Storm says that the equation system has no solution."""
        path = CumulativeReward(reward_bounds=(self.bound("steps", upper=3),))
        assert values(self.chain, Reward(path, "one"), exact=True)[0].value == math.inf

    def test_discount_counts_from_the_first_step_in_full(self) -> None:
        discount = Number(F(9, 10), False)
        assert values(self.chain, Reward(CumulativeReward(number(2), discount=discount), "cost"), exact=True).value[
            :2
        ].tolist() == [F(49, 20), F(131, 50)]
        assert values(self.chain, Reward(CumulativeReward(discount=discount), "one"), exact=True)[0].value == 10

    def test_expected_time(self) -> None:
        path = ReachReward(Label("done"))
        chain = make_chain([{1: F(1, 2), 2: F(1, 2)}, {0: F(9, 10), 2: F(1, 10)}, {2: F(1)}], [2, 1, 0], done={2})
        assert values(chain, Reward(path, OnePerStep()), exact=True)[0].value == F(30, 11)


class TestLargeBudgets:
    def test_a_budget_with_a_thousand_levels_keeps_relative_accuracy(self) -> None:
        """Tokens 7 a try, a try succeeds with 1/100: within 7,000 tokens all but .99^1000 of the runs."""
        chain = make_chain([{0: F(99, 100), 1: F(1, 100)}, {1: F(1)}], [7, 0], goal={1})
        bound = RewardBound("cost", StepBound(upper=number(7_000)))
        missed = values(chain, Probability(Globally(Label("s0"), None, (bound,))), exact=False)[0]
        assert missed.lower <= F(99, 100) ** 1000 <= missed.upper
        assert missed.width <= 2e-12 * missed.value

    @pytest.mark.parametrize("exact", [False, True])
    def test_what_is_free_is_solved_once(self, exact: bool) -> None:
        """A try costs one and leads to two free states that end in another try (1/2) or for good (1/4 and 1/4)."""
        eighth = F(1, 8)
        rows = [
            {1: F(1)},
            {1: F(1, 2), 2: F(1, 2)},
            {1: F(1, 2), 0: F(1, 4), 3: eighth, 4: eighth},
            {3: F(1)},
            {4: F(1)},
        ]
        chain = make_chain(rows, [1, 0, 0, 0, 0], goal={3})
        for k in (1, 2, 3, 50):
            bound = RewardBound("cost", StepBound(upper=number(k)))
            found = values(chain, Probability(Eventually(Label("goal"), None, (bound,))), exact=exact)
            collected = values(chain, Reward(CumulativeReward(reward_bounds=(bound,)), OnePerStep()), exact=exact)
            for i, true in ((0, (1 - F(1, 2**k)) / 2), (1, (1 - F(1, 2 ** (k + 1))) / 2)):
                assert found[i].lower <= true <= found[i].upper
                assert found[i].width <= (0 if exact else 1e-14)
            assert collected[0].upper == math.inf  # it ends in states that are free and go on for ever

    def test_values_that_settle_need_no_more_levels(self) -> None:
        """A budget of 10^9 units, of which no run that is not over after 60 can need more."""
        rows = [{i + 1: F(1, 2), 5: F(1, 2)} for i in range(4)] + [{4: F(1)}, {5: F(1)}]
        chain = make_chain(rows, [3, 7, 20, 30, 0, 0], goal={4})
        bound = RewardBound("cost", StepBound(upper=number(10**9)))
        found = values(chain, Probability(Eventually(Label("goal"), None, (bound,))), exact=True)
        assert found[0].value == F(1, 16)
        assert values(chain, Reward(CumulativeReward(reward_bounds=(bound,))), exact=True)[0].value == F(61, 4)

    def test_amounts_share_their_unit(self) -> None:
        chain = make_chain([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}], [10**12, 0], goal={1})
        bound = RewardBound("cost", StepBound(upper=number(3 * 10**12 + 5)))
        assert values(chain, Probability(Eventually(Label("goal"), None, (bound,))), exact=True)[0].value == F(7, 8)

    def test_doubles_of_no_common_unit_need_few_levels(self) -> None:
        """.1 and .3 as doubles are multiples of 2^-55; only the sums that occur are levels."""
        chain = MarkovChain(
            states=("a", "b", "c"),
            transitions=np.array([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
            initial=np.array([1.0, 0.0, 0.0]),
            rewards={"cost": RewardStructure(state=np.array([0.1, 0.3, 0.0]))},
        )
        bound = RewardBound("cost", StepBound(upper=Number(F(1), True)))
        found = values(chain, Probability(Eventually(Label("c"), None, (bound,))), exact=True)
        assert found[0].value == F(7, 8)  # after one, three and five steps: .1, .5 and .9

    @pytest.mark.parametrize("structures", [1, 2])
    def test_too_many_levels_are_refused(self, structures: int, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (budget, reward_bounded):
            monkeypatch.setattr(module, "MAX_LEVELS", 50)
        chain = make_chain([{0: F(999, 1000), 1: F(1, 1000)}, {1: F(1)}], [1, 0], goal={1})
        bounds = (RewardBound("cost", StepBound(upper=number(60))),) * structures
        with pytest.raises(UnsupportedError, match="more than 50 levels"):
            values(chain, Probability(Eventually(Label("goal"), None, bounds)), exact=False)

    def test_bounds_beyond_counting_are_refused(self) -> None:
        chain = make_chain([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}], [F(1, 10**30), 0], goal={1})
        bound = RewardBound("cost", StepBound(upper=number(1)))
        with pytest.raises(UnsupportedError, match="levels"):
            values(chain, Probability(Eventually(Label("goal"), None, (bound,))), exact=False)

    @pytest.mark.parametrize("exact", [False, True])
    def test_work_and_memory_are_limited(self, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        chain = make_chain([{0: F(2, 3), 1: F(1, 3)}, {1: F(1)}], [1, 0], goal={1})
        path = Eventually(Label("goal"), None, (RewardBound("cost", StepBound(upper=number(500))),))
        monkeypatch.setattr(reward_bounded, "MAX_WORK", 1e4)
        monkeypatch.setattr(reward_bounded, "MAX_EXACT_WORK", 1e4)
        with pytest.raises(UnsupportedError, match="too much work"):
            values(chain, Probability(path), exact=exact)
        monkeypatch.setattr(reward_bounded, "MAX_STORED", 1)
        with pytest.raises(UnsupportedError, match="in memory at once"):
            values(chain, Probability(path), exact=exact)


class TestAmplification:
    """How many steps an unfolding takes, at most, in the mean."""

    tries = make_chain([{1: F(1)}, {1: F(3, 4), 0: F(1, 8), 2: F(1, 8)}, {2: F(1)}], [2, 0, 0], goal={2})

    def test_steps_that_cost_and_the_stays_between(self) -> None:
        """Three steps of 2 in a budget of 7, and after each four free ones."""
        bound = RewardBound("cost", StepBound(upper=number(7)))
        assert amplification(self.tries, Probability(Eventually(Label("goal"), None, (bound,)))) == 3 * (1 + 4)

    def test_of_a_budget_alone(self) -> None:
        chain = make_chain([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}], [1, 1], goal={1})
        bound = RewardBound("cost", StepBound(upper=number(10**9)))
        assert amplification(chain, Probability(Eventually(Label("goal"), None, (bound,)))) == 10**9
        both = RewardBound("cost", StepBound(lower=number(5)))
        assert amplification(chain, Probability(Eventually(Label("goal"), None, (both,)))) == 5 + 6 * 2

    def test_of_a_discount_is_its_horizon(self) -> None:
        discount = Number(F(9, 10), False)
        assert amplification(self.tries, Reward(CumulativeReward(discount=discount))) == pytest.approx(10)

    def test_of_what_the_graph_decides_is_zero(self) -> None:
        assert amplification(self.tries, Quantified("A", Eventually(Label("goal")))) == 0


class TestBounds:
    chain = make_chain([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}], [1, 0], goal={1})

    def test_a_negative_budget(self) -> None:
        bound = RewardBound("cost", StepBound(upper=Number(F(-1), True)))
        with pytest.raises(PropertyError, match="never falls below zero"):
            values(self.chain, Probability(Eventually(Label("goal"), None, (bound,))), exact=False)

    def test_a_structure_that_is_not_there(self) -> None:
        bound = RewardBound("coast", StepBound(upper=number(1)))
        with pytest.raises(PropertyError, match='did you mean "cost"'):
            values(self.chain, Probability(Eventually(Label("goal"), None, (bound,))), exact=False)

    def test_a_window_that_is_empty(self) -> None:
        bound = RewardBound("cost", StepBound(lower=number(2), upper=number(1)))
        assert values(self.chain, Probability(Eventually(Label("goal"), None, (bound,))), exact=False)[1].value == 0
        assert values(self.chain, Probability(Globally(Label("goal"), None, (bound,))), exact=False)[0].value == 1

    def test_c_with_a_lower_bound(self) -> None:
        bound = RewardBound("cost", StepBound(lower=number(1)))
        with pytest.raises(PropertyError, match="upper bounds only"):
            values(self.chain, Reward(CumulativeReward(reward_bounds=(bound,))), exact=False)

    def test_a_discount_of_what_a_budget_allows(self) -> None:
        bound = RewardBound("cost", StepBound(upper=number(1)))
        path = CumulativeReward(discount=Number(F(1, 2), False), reward_bounds=(bound,))
        with pytest.raises(UnsupportedError, match="discount"):
            values(self.chain, Reward(path), exact=False)

    @pytest.mark.parametrize("factor", [F(0), F(1), F(3, 2), F(-1, 2)])
    def test_a_factor_that_does_not_discount(self, factor: Fraction) -> None:
        with pytest.raises(PropertyError, match="strictly between 0 and 1"):
            values(self.chain, Reward(CumulativeReward(discount=Number(factor, False))), exact=False)


class TestBranching:
    def test_exact_step_of_a_long_time_in_a_ring(self) -> None:
        """After 10^12 steps in a ring of 7 a run is 10^12 mod 7 = 1 states on."""
        chain = make_chain([{(i + 1) % 7: F(1)} for i in range(7)], goal={3})
        k = number(10**12)
        assert pow(10, 12, 7) == 1
        path = Eventually(Label("goal"), StepBound(lower=k, upper=k, exact=True))
        for quantifier in ("A", "E"):
            found = values(chain, Quantified(quantifier, path), exact=True).value.tolist()  # type: ignore[arg-type]
            assert found == [int(i == 2) for i in range(7)]

    def test_an_almost_sure_goal_may_be_missed_by_a_run(self) -> None:
        chain = make_chain([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}], goal={1})
        path = Eventually(Label("goal"))
        assert values(chain, Probability(path), exact=True)[0].value == 1
        assert values(chain, Quantified("A", path), exact=True)[0].value == 0

    def test_reward_bounds_are_refused(self) -> None:
        chain = make_chain([{0: F(1)}], [1], goal={0})
        path = Eventually(Label("goal"), None, (RewardBound("cost", StepBound(upper=number(1))),))
        with pytest.raises(UnsupportedError, match="step bounds"):
            values(chain, Quantified("A", path), exact=False)
