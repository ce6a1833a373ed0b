"""Optima over schedulers against brute force, in rationals and in doubles."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.closedform.decision.random_processes import random_process
from tests.closedform.decision.references import (
    backward_induction,
    holds_in,
    operator_of,
    values_by_schedulers,
)

from tracebridge.chain import RationalMatrix, RationalVector, RewardStructure
from tracebridge.chain.decision import DecisionProcess
from tracebridge.closedform.decision import ExactOptimiser, FloatOptimiser, Optimiser, optimal_values, optimum_of
from tracebridge.closedform.exact_arithmetic import ExactArithmetic
from tracebridge.closedform.modelcheck import evaluate_operator
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl.ast import Probability, Reward

UNBOUNDED = [
    'P{}=? [ F "a" ]',
    'P{}=? [ "b" U "a" ]',
    'P{}=? [ G "c" ]',
    'P{}=? [ "c" W "a" ]',
    'P{}=? [ "a" R "c" ]',
    'R{{"cost"}}{}=? [ F "a" ]',
    'R{{"steps"}}{}=? [ F "a" ]',
    'R{{"cost"}}{}=? [ C ]',
]
BOUNDED = [
    'P{}=? [ X "a" ]',
    'P{}=? [ F<=4 "a" ]',
    'P{}=? [ "c" U[2,5] "a" ]',
    'P{}=? [ G<=3 "c" ]',
    'P{}=? [ F>=3 "a" ]',
    'R{{"cost"}}{}=? [ C<=4 ]',
    'R{{"cost"}}{}=? [ I=3 ]',
]


def texts(templates: list[str]) -> list[str]:
    return [template.format(optimum) for template in templates for optimum in ("min", "max")]


def values_of(optimiser: Optimiser, text: str) -> list[Fraction | float]:
    values = optimal_values(optimiser, operator_of(text), holds_in(optimiser.process)).values
    return values.value.tolist()


@pytest.mark.parametrize("seed", range(8))
def test_no_scheduler_is_better_and_one_is_as_good(seed: int) -> None:
    process = random_process(seed, 3 if seed else 4)
    optimiser = ExactOptimiser(process)
    for template in UNBOUNDED:
        found = values_by_schedulers(process, template.format("max"))
        assert values_of(optimiser, template.format("min")) == [min(values) for values in found], template
        assert values_of(optimiser, template.format("max")) == [max(values) for values in found], template


@pytest.mark.parametrize("seed", range(40, 46))
def test_bounded_operators_are_backward_induction(seed: int) -> None:
    process = random_process(seed, 6)
    optimiser = ExactOptimiser(process)
    a, c = process.label("a"), process.label("c")
    goal = [Fraction(int(x)) for x in a]
    cost = process.rewards["cost"]
    assert cost.exact_action is not None
    state, action = cost.fractions(action=False), cost.exact_action.to_fractions()
    zero = [Fraction(0)] * process.n_states

    def gain(i: int, row: int) -> Fraction:
        return state[i] + action[row]

    for name, best, worst in (("min", min, max), ("max", max, min)):
        bad = [Fraction(int(x)) for x in ~c]
        broken = backward_induction(process, bad, 3, worst, active=c)
        late = backward_induction(process, goal, 3, best, active=c & ~a)
        late = backward_induction(process, late, 1, best)
        late = [x if inside else Fraction(0) for x, inside in zip(late, c, strict=True)]
        expected = {
            'P{}=? [ X "a" ]': backward_induction(process, goal, 1, best),
            'P{}=? [ F<=4 "a" ]': backward_induction(process, goal, 4, best, active=~a),
            'P{}=? [ G<=3 "c" ]': [1 - x for x in broken],
            'P{}=? [ "c" U[2,5] "a" ]': backward_induction(process, late, 1, best, active=c),
            'R{{"cost"}}{}=? [ C<=4 ]': backward_induction(process, zero, 4, best, gain=gain),
            'R{{"cost"}}{}=? [ I=3 ]': backward_induction(process, state, 3, best),
        }
        for template, values in expected.items():
            assert values_of(optimiser, template.format(name)) == values, (template, name)


@pytest.mark.parametrize("seed", [60, 62])
@pytest.mark.parametrize(("rational_states", "iterated_states"), [(0, 100), (100, 100), (0, 0)])
def test_bounds_of_doubles_contain_the_exact_optimum(seed: int, rational_states: int, iterated_states: int) -> None:
    process = random_process(seed, 8)
    exact = ExactOptimiser(process)
    floating = FloatOptimiser(process, rational_states=rational_states, iterated_states=iterated_states)
    holds = holds_in(process)
    for text in texts(UNBOUNDED + BOUNDED if rational_states else UNBOUNDED):
        operator = operator_of(text)
        truth = optimal_values(exact, operator, holds).values.value.tolist()
        found = optimal_values(floating, operator, holds).values
        for value, lower, upper in zip(truth, found.lower.tolist(), found.upper.tolist(), strict=True):
            assert lower <= value <= upper, text
            assert upper - lower <= 1e-6 * max(1.0, float(value)) or upper == lower, text


@pytest.mark.parametrize("seed", range(80, 82))
def test_the_chain_under_the_optimal_scheduler_has_the_optimum(seed: int) -> None:
    process = random_process(seed, 7)
    optimiser, holds = ExactOptimiser(process), holds_in(process)
    for text in texts(UNBOUNDED):
        operator = operator_of(text)
        found = optimal_values(optimiser, operator, holds)
        assert found.scheduler is not None
        chain = process.induced(found.scheduler)
        assert evaluate_operator(ExactArithmetic(chain), operator, holds).value.tolist() == found.values.value.tolist()


@pytest.mark.parametrize("seed", range(100, 103))
def test_randomised_schedulers_lie_between_the_optima(seed: int) -> None:
    process = random_process(seed, 6)
    rng = np.random.default_rng(seed)
    decisions = {}
    for state, names in zip(process.states, process.actions, strict=True):
        weights = rng.integers(1, 5, len(names)).tolist()
        decisions[state] = {i: Fraction(weight, sum(weights)) for i, weight in enumerate(weights)}
    chain = process.induced(decisions)
    optimiser, holds = ExactOptimiser(process), holds_in(process)
    for template in UNBOUNDED + BOUNDED:
        operator = operator_of(template.format("max"))
        values = evaluate_operator(ExactArithmetic(chain), operator, holds).value.tolist()
        least, greatest = (values_of(optimiser, template.format(optimum)) for optimum in ("min", "max"))
        assert all(a <= x <= b for a, x, b in zip(least, values, greatest, strict=True)), template


@pytest.mark.parametrize("seed", range(120, 122))
def test_with_one_action_a_process_is_its_chain(seed: int) -> None:
    chain = random_process(seed, 7)
    chain_ = chain.induced(chain.choice_starts[:-1])
    process = DecisionProcess.of_chain(chain_)
    optimiser, holds = ExactOptimiser(process), holds_in(process)
    for text in texts(UNBOUNDED + BOUNDED):
        expected = evaluate_operator(ExactArithmetic(chain_), operator_of(text), holds).value.tolist()
        assert values_of(optimiser, text) == expected, text


def test_idle_cycles_do_not_count_as_reaching() -> None:
    """Staying in an end component for nothing is no way to a target, and leaving it may take a detour."""
    process = DecisionProcess(
        states=("s", "t", "goal"),
        actions=(("stay", "jump"), ("back", "pay"), ("loop",)),
        transitions=RationalMatrix.from_rows(  # type: ignore[arg-type]
            [{0: 1}, {1: 1}, {0: 1}, {0: Fraction(1, 2), 2: Fraction(1, 2)}, {2: 1}], 3
        ),
        initial=RationalVector(np.array([1, 0, 0]), 1),  # type: ignore[arg-type]
        labels={"a": np.array([False, False, True])},
        rewards={"cost": RewardStructure.from_fractions([0, 0, 0], [0, 0, 0, 3, 0])},
    )
    for optimiser in (ExactOptimiser(process), FloatOptimiser(process, rational_states=0)):
        assert values_of(optimiser, 'R{"cost"}min=? [ F "a" ]') == pytest.approx([6, 6, 0])
        assert values_of(optimiser, 'R{"cost"}max=? [ F "a" ]') == [np.inf, np.inf, 0]
        assert values_of(optimiser, 'Pmin=? [ F "a" ]') == [0, 0, 1]
        assert values_of(optimiser, 'Pmax=? [ F "a" ]') == [1, 1, 1]
        assert values_of(optimiser, 'R{"cost"}min=? [ C ]') == [0, 0, 0]
        assert values_of(optimiser, 'R{"cost"}max=? [ C ]') == pytest.approx([6, 6, 0])


def test_a_gambler_who_may_choose_the_stake_plays_boldly() -> None:
    """With p < 1/2 bold play is optimal (Dubins and Savage 1965): from a quarter of the goal p^2,
    from a half p, from three quarters p + p q."""
    p, q = Fraction(2, 5), Fraction(3, 5)
    rows, actions = [], []
    for i in range(5):
        stakes = range(1, min(i, 4 - i) + 1) or [0]
        rows += [{i: Fraction(1)} if not stake else {i + stake: p, i - stake: q} for stake in stakes]
        actions.append(tuple(f"stake {stake}" for stake in stakes))
    process = DecisionProcess(
        states=tuple(f"{i}" for i in range(5)),
        actions=tuple(actions),
        transitions=RationalMatrix.from_rows(rows, 5),  # type: ignore[arg-type]
        initial=RationalVector(np.array([0, 1, 0, 0, 0]), 1),  # type: ignore[arg-type]
        labels={"a": np.arange(5) == 4},
    )
    assert values_of(ExactOptimiser(process), 'Pmax=? [ F "a" ]') == [0, p * p, p, p + p * q, 1]


def test_large_processes_are_bounded_in_doubles() -> None:
    """A walk of 400 states that may be pushed up: pushing surely is best, not pushing a gambler's ruin of p = 0.4."""
    n = 401
    rows: list[dict[int, float]] = []
    for i in range(n):
        rows += [{i: 1.0}] if i in {0, n - 1} else [{i - 1: 0.6, i + 1: 0.4}, {i - 1: 0.5, i + 1: 0.5}]
    matrix = np.zeros((len(rows), n))
    for k, row in enumerate(rows):
        matrix[k, list(row)] = list(row.values())
    process = DecisionProcess(
        states=tuple(f"{i}" for i in range(n)),
        actions=(("end",), *[("fall", "climb")] * (n - 2), ("end",)),
        transitions=matrix,  # type: ignore[arg-type]
        initial=np.eye(n)[200],
        labels={"a": np.arange(n) == n - 1},
    )
    optimiser, holds = FloatOptimiser(process), holds_in(process)
    best = optimal_values(optimiser, operator_of('Pmax=? [ F "a" ]'), holds).values
    assert best.lower[200] <= 0.5 <= best.upper[200]
    assert best.upper[200] - best.lower[200] < 1e-9
    worst = optimal_values(optimiser, operator_of('Pmin=? [ F "a" ]'), holds).values
    ruin = (Fraction(3, 2) ** 200 - 1) / (Fraction(3, 2) ** 400 - 1)
    assert worst.lower[200] <= float(ruin) * (1 + 1e-9)
    assert worst.upper[200] >= float(ruin) * (1 - 1e-9)


def test_thresholds_say_which_optimum_is_meant() -> None:
    meant = {'P>=0.5 [ F "a" ]': "min", 'P<0.5 [ F "a" ]': "max", 'Pmax>=0.5 [ F "a" ]': "max", "R<=3 [ C ]": "max"}
    for text, optimum in meant.items():
        operator = operator_of(text)
        assert isinstance(operator, Probability | Reward)
        assert optimum_of(operator) == optimum


def test_a_query_without_an_optimum_is_refused_with_what_to_write() -> None:
    process = random_process(1, 4)
    with pytest.raises(PropertyError, match="Pmin=\\? or Pmax=\\?"):
        optimal_values(ExactOptimiser(process), operator_of('P=? [ F "a" ]'), holds_in(process))


@pytest.mark.parametrize("text", ['Pmax=? [ G F "a" ]', 'Smax=? [ "a" ]', 'R{"cost"}max=? [ F "a" || F "b" ]'])
def test_other_operators_are_refused(text: str) -> None:
    process = random_process(2, 4)
    with pytest.raises(UnsupportedError):
        optimal_values(ExactOptimiser(process), operator_of(text), holds_in(process))


def test_all_and_some_runs_are_over_all_schedulers() -> None:
    process = random_process(3, 5)
    optimiser = ExactOptimiser(process)
    some = values_of(optimiser, 'E [ F "a" ]')
    assert some == [Fraction(int(x > 0)) for x in values_of(optimiser, 'Pmax=? [ F "a" ]')]
