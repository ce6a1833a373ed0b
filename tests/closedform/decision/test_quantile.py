"""Quantiles of decision processes against a scan of exact values, bound by bound, also with thresholds at the limit."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.closedform.decision.random_processes import random_process
from tests.closedform.decision.references import backward_induction, holds_in, values_by_schedulers

from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform.decision import ExactOptimiser, FloatOptimiser, optimal_quantile
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.errors import UnsupportedError
from tracebridge.pctl import fold_steps, parse_formula
from tracebridge.pctl.ast import Quantile

F = Fraction
SCAN = 40
LONGEST = 400

#: The operator, the one without a bound, whether values rise, and from which labels a backward induction starts.
OPERATORS = {
    'P{}{} [ F<=B "a" ]': ('P{}=? [ F "a" ]', True, "until"),
    'P{}{} [ F<B "a" ]': ('P{}=? [ F "a" ]', True, "strict"),
    'P{}{} [ "c" U<=B "a" ]': ('P{}=? [ "c" U "a" ]', True, "until"),
    'P{}{} [ G<=B "c" ]': ('P{}=? [ G "c" ]', False, "globally"),
    'R{{"cost"}}{}{} [ C<=B ]': ('R{{"cost"}}{}=? [ C ]', True, "collected"),
}


def quantile_of(text: str) -> Quantile:
    formula = fold_steps(parse_formula(f"quantile(min B, {text})"))
    assert isinstance(formula, Quantile)
    return formula


def found(process: DecisionProcess, text: str, *, exact: bool) -> tuple[EnclosureVector, Enclosure]:
    optimiser = ExactOptimiser(process) if exact else FloatOptimiser(process)
    return optimal_quantile(optimiser, quantile_of(text), holds_in(process), process.exact_initial())


class Scan:
    """The values for each bound, by backward induction in Fractions, with their mean at the start appended."""

    def __init__(self, process: DecisionProcess, kind: str, optimum: str, text: str) -> None:
        everywhere = np.ones(process.n_states, dtype=np.bool_)
        a, c = process.label("a"), process.label("c")
        self.process, self.kind = process, kind
        self.active = {
            "until": (c if '"c" U' in text else everywhere) & ~a,
            "strict": ~a,
            "globally": c,
            "collected": everywhere,
        }[kind]
        start = {"until": a, "strict": a, "globally": c, "collected": ~everywhere}[kind]
        self.values = [[F(bool(each)) for each in start.tolist()]]
        self.best = {"min": min, "max": max}[optimum]
        cost = process.rewards["cost"]
        assert cost.exact_action is not None
        state, action = cost.fractions(action=False), cost.exact_action.to_fractions()
        self.gain = (lambda s, x: state[s] + action[x]) if kind == "collected" else (lambda s, x: F(0))

    def at(self, bound: int) -> list[Fraction]:
        steps = bound - (self.kind == "strict")
        while len(self.values) <= max(steps, 0):
            last = self.values[-1]
            self.values.append(backward_induction(self.process, last, 1, self.best, active=self.active, gain=self.gain))
        values = [F(0)] * self.process.n_states if steps < 0 else self.values[steps]
        return [*values, sum((w * x for w, x in zip(self.process.exact_initial(), values, strict=True)), F(0))]


def satisfied(value: Fraction | float, comparison: str, threshold: Fraction) -> bool:
    return {"<": value < threshold, "<=": value <= threshold, ">": value > threshold, ">=": value >= threshold}[
        comparison
    ]


@cache
def limits(seed: int, text: str) -> tuple[tuple[Fraction | float, ...], ...]:
    return tuple(map(tuple, values_by_schedulers(random_process(seed, 4), text)))


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 60),
    st.sampled_from(sorted(OPERATORS)),
    st.sampled_from(["min", "max"]),
    st.sampled_from(["<", "<=", ">", ">="]),
    st.integers(0, 9),
)
def test_a_quantile_is_where_a_scan_of_the_bounds_crosses(
    seed: int, text: str, optimum: str, comparison: str, choice: int
) -> None:
    process = random_process(seed, 4)
    assume(process.transitions.data.min() > 0.01)  # with less a crossing may be millions of steps away
    unbounded, rising, kind = OPERATORS[text]
    by_state = limits(seed, unbounded.format(optimum))
    limit = [{"min": min, "max": max}[optimum](values) for values in by_state]
    ties = [x for x in limit if not math.isinf(x)]
    threshold = F(ties[choice % len(ties)]) if ties and choice < 6 else [F(0), F(1, 3), F(9, 10), F(1)][choice % 4]
    asked = text.format(optimum, f"{comparison}{threshold}")
    scan = Scan(process, kind, optimum, text)
    exact, at_start = found(process, asked, exact=True)
    rough, rough_start = found(process, asked, exact=False)
    limit.append(sum((w * x for w, x in zip(process.exact_initial(), limit, strict=True) if w), F(0)))
    beyond = (comparison in {">", ">="}) == rising
    for i, value in enumerate([*exact.value.tolist(), at_start.value]):
        low, high = (rough.lower[i], rough.upper[i]) if i < len(exact) else (rough_start.lower, rough_start.upper)
        assert math.isnan(value) or low <= value <= high

        def holds(bound: int, i: int = i) -> bool:
            return satisfied(scan.at(bound)[i], comparison, threshold)

        if math.isnan(value):  # no bound satisfies it
            assert not beyond
            assert not holds(0)
        elif math.isinf(value):
            assert holds(SCAN) == (not beyond)
            gap = limit[i] - threshold
            assert (gap <= 0) if rising else (gap >= 0)  # never strictly beyond the threshold
        else:
            assert value <= LONGEST
            bound = int(value)
            assert holds(bound)
            assert (bound == 0 or not holds(bound - 1)) if beyond else not holds(bound + 1)


def two_ways(p: Fraction, tokens: tuple[int, int] = (5, 1)) -> DecisionProcess:
    """s goes for certain in one step, or tries its luck again and again, which is no better; t must try."""
    rows = [{2: F(1)}, {0: 1 - p, 2: p}, {1: 1 - p, 2: p}, {2: F(1)}]
    return DecisionProcess(
        states=("s", "t", "done"),
        actions=(("go", "try"), ("try",), ("",)),
        transitions=RationalMatrix.from_rows(rows, 3),
        initial=RationalVector(np.array([1, 0, 0]), 1),
        labels={"a": np.array([False, False, True])},
        rewards={"tokens": RewardStructure.from_fractions([0, 0, 0], [tokens[0], tokens[1], tokens[1], 0])},
    )


def test_certainty_within_finitely_many_steps_is_decided_by_the_graph() -> None:
    process = two_ways(F(1, 100))
    values, start = found(process, 'Pmax>=1 [ F<=B "a" ]', exact=True)
    assert (values.value.tolist(), start.value) == ([1, math.inf, 0], 1)
    values, _ = found(process, 'Pmin>=1 [ F<=B "a" ]', exact=True)  # who tries may go on for ever
    assert values.value.tolist() == [math.inf, math.inf, 0]
    values, _ = found(process, 'P>=9/10 [ F<=B "a" ]', exact=True)
    # 1 - 0.99^d >= 0.9
    assert values.value.tolist() == [230, 230, 0]


def test_a_minimum_may_be_attained_only_after_many_steps() -> None:
    """From s, one way has half a chance at once, the other more than that after many tries: half is attained."""
    p = F(1, 50)
    rows = [{2: F(1, 2), 3: F(1, 2)}, {1: 1 - p, 2: p}, {1: F(1)}, {2: F(1)}, {3: F(1)}]
    rows = [rows[0], rows[2], rows[1], rows[3], rows[4]]
    process = DecisionProcess(
        states=("s", "t", "done", "lost"),
        actions=(("toss", "wait"), ("",), ("",), ("",)),
        transitions=RationalMatrix.from_rows(rows, 4),
        initial=RationalVector(np.array([1, 0, 0, 0]), 1),
        labels={"a": np.array([False, False, True, False])},
    )
    first = next(d for d in range(200) if 1 - (1 - p) ** (d - 1) >= F(1, 2))
    values, _ = found(process, 'Pmin>=0.5 [ F<=B "a" ]', exact=True)
    assert values.value[0] == first > process.n_states


def test_a_bound_on_a_reward_is_counted_in_its_units() -> None:
    process = two_ways(F(1, 2))
    values, _ = found(process, 'Pmax>=1 [ F{"tokens"}<=B "a" ]', exact=True)
    assert values.value.tolist() == [5, math.inf, 0]
    for exact in (True, False):  # four tries make 15/16, five 31/32
        values, _ = found(process, 'Pmax>=15/16 [ F{"tokens"}<=B "a" ]', exact=exact)
        assert values.value.tolist() == [4, 4, 0]
        values, _ = found(process, 'Pmax>15/16 [ F{"tokens"}<=B "a" ]', exact=exact)
        assert values.value.tolist() == [5, 5, 0]


def test_what_costs_nothing_may_be_tried_for_ever() -> None:
    free = two_ways(F(1, 2), tokens=(5, 0))
    values, _ = found(free, 'Pmax>=1 [ F{"tokens"}<=B "a" ]', exact=True)
    assert values.value.tolist() == [0, 0, 0]
    values, _ = found(free, 'Pmin>=1 [ F{"tokens"}<=B "a" ]', exact=True)  # whoever goes must be able to pay for it
    assert values.value.tolist() == [5, 0, 0]
    costly = two_ways(F(1, 2), tokens=(0, 1))
    values, _ = found(costly, 'Pmax>=1 [ F{"tokens"}<=B "a" ]', exact=True)
    assert values.value.tolist() == [0, math.inf, 0]
    values, _ = found(costly, 'Pmin>=1 [ F{"tokens"}<=B "a" ]', exact=True)
    assert values.value.tolist() == [math.inf, math.inf, 0]


@pytest.mark.parametrize("seed", [2, 4, 5, 7])
@pytest.mark.parametrize("optimum", ["min", "max"])
def test_a_bound_on_a_reward_of_one_a_step_is_one_on_steps(seed: int, optimum: str) -> None:
    process = random_process(seed, 4)
    limit = limits(seed, f'P{optimum}=? [ F "a" ]')
    for threshold in {F(1, 3), *({"min": min, "max": max}[optimum](values) for values in limit)}:
        on_reward = found(process, f'P{optimum}>={threshold} [ F{{"steps"}}<=B "a" ]', exact=True)
        on_steps = found(process, f'P{optimum}>={threshold} [ F<=B "a" ]', exact=True)
        assert on_reward[0].value.tolist() == on_steps[0].value.tolist()
        assert on_reward[1].value == on_steps[1].value


def test_what_has_no_answer_is_refused() -> None:
    process = two_ways(F(1, 2))
    with pytest.raises(UnsupportedError, match="from below"):
        found(process, 'Pmax>=0.5 [ F>=B "a" ]', exact=True)
    both = fold_steps(parse_formula('quantile(min B, min D, Pmax>=0.5 [ F{"tokens"}<=B,{"tokens"}<=D "a" ])'))
    assert isinstance(both, Quantile)
    with pytest.raises(UnsupportedError, match="no single value"):
        optimal_quantile(ExactOptimiser(process), both, holds_in(process), process.exact_initial())
