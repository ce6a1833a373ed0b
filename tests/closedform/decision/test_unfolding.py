"""Bounds on rewards of a decision process: against steps, against chains, and by a budget that changes the choice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.closedform.decision.random_processes import random_process
from tests.closedform.decision.references import holds_in, operator_of

from tracebridge.chain import RationalMatrix, RationalVector, RewardStructure
from tracebridge.chain.decision import DecisionProcess
from tracebridge.closedform.decision import ExactOptimiser, FloatOptimiser, optimal_values
from tracebridge.closedform.exact_arithmetic import ExactArithmetic
from tracebridge.closedform.modelcheck import evaluate_operator
from tracebridge.errors import UnsupportedError

F = Fraction

#: Operators over the reward of one a step, and the same over steps.
STEPS = {
    'P{}=? [ F{{"steps"}}<=4 "a" ]': 'P{}=? [ F<=4 "a" ]',
    'P{}=? [ "c" U{{"steps"}}[2,5] "a" ]': 'P{}=? [ "c" U[2,5] "a" ]',
    'P{}=? [ G{{"steps"}}<=3 "c" ]': 'P{}=? [ G<=3 "c" ]',
    'P{}=? [ F{{"steps"}}>=3 "a" ]': 'P{}=? [ F>=3 "a" ]',
    'P{}=? [ F{{"steps"}}<=5,{{"steps"}}<4 "a" ]': 'P{}=? [ F<4 "a" ]',
    'R{{"cost"}}{}=? [ C{{"steps"}}<=3 ]': 'R{{"cost"}}{}=? [ C<=3 ]',
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("optimum", ["min", "max"])
def test_a_reward_of_one_a_step_bounds_the_steps(seed: int, optimum: str) -> None:
    process = random_process(seed, 4)
    holds, exact, rough = holds_in(process), ExactOptimiser(process), FloatOptimiser(process)
    for on_reward, on_steps in STEPS.items():
        expected = optimal_values(exact, operator_of(on_steps.format(optimum)), holds).values.value.tolist()
        operator = operator_of(on_reward.format(optimum))
        assert optimal_values(exact, operator, holds).values.value.tolist() == expected, on_reward
        enclosed = optimal_values(rough, operator, holds).values
        assert bool((enclosed.lower <= expected).all() and (expected <= enclosed.upper).all()), on_reward


@pytest.mark.parametrize("seed", range(6))
def test_a_process_without_choices_is_the_chain(seed: int) -> None:
    source = random_process(seed, 4)
    chain = source.induced(source.choice_starts[:-1])
    process = DecisionProcess.of_chain(chain)
    texts = ['P{}=? [ "c" U{{"cost"}}<=1 "a" ]', 'P{}=? [ F{{"cost"}}>1 "b" ]', 'R{{"steps"}}{}=? [ C{{"cost"}}<=2 ]']
    for text in texts:
        expected = evaluate_operator(ExactArithmetic(chain), operator_of(text.format("")), holds_in(process))
        for optimum in ("min", "max"):
            found = optimal_values(ExactOptimiser(process), operator_of(text.format(optimum)), holds_in(process))
            assert found.values.value.tolist() == expected.value.tolist(), text


def one_shot(tokens: int) -> DecisionProcess:
    """One request costs five tokens and succeeds with 9/10, or one token and succeeds with 1/2; else it is repeated."""
    rows = [{0: F(1, 10), 1: F(9, 10)}, {0: F(1, 2), 1: F(1, 2)}, {1: F(1)}]
    return DecisionProcess(
        states=("ask", "done"),
        actions=(("large", "small"), ("",)),
        transitions=RationalMatrix.from_rows(rows, 2),
        initial=RationalVector(np.array([1, 0]), 1),
        labels={"a": np.array([False, True])},
        rewards={"tokens": RewardStructure.from_fractions([0, 0], [tokens, 1, 0])},
    )


def test_the_best_choice_depends_on_what_is_left() -> None:
    process = one_shot(3)
    optimiser, holds = ExactOptimiser(process), holds_in(process)

    def best(budget: int) -> Fraction:
        if budget < 1:
            return F(0)
        small = F(1, 2) + best(budget - 1) / 2
        return max(small, F(9, 10) + best(budget - 3) / 10) if budget >= 3 else small

    for budget in range(8):
        found = optimal_values(optimiser, operator_of(f'Pmax=? [ F{{"tokens"}}<={budget} "a" ]'), holds)
        assert found.values.value.tolist() == [best(budget), 1]
        assert found.scheduler is None
    worst = optimal_values(optimiser, operator_of('Pmin=? [ F{"tokens"}<=2 "a" ]'), holds)
    assert worst.values.value.tolist() == [0, 1]  # the large request is not affordable


def test_a_bound_that_nothing_satisfies_and_one_that_unfolds_too_far() -> None:
    process = one_shot(5)
    optimiser, holds = ExactOptimiser(process), holds_in(process)
    impossible = optimal_values(optimiser, operator_of('Pmax=? [ F{"tokens"}<0 "a" ]'), holds)
    assert impossible.values.value.tolist() == [0, 0]
    with pytest.raises(UnsupportedError, match="too many"):
        optimal_values(optimiser, operator_of('Pmax=? [ F{"tokens"}<=5000 "a" ]'), holds)
    rough = optimal_values(FloatOptimiser(process), operator_of('Pmax=? [ F{"tokens"}<=300 "a" ]'), holds).values
    assert rough.lower[0] <= 1 - F(1, 2) ** 300 <= rough.upper[0]
