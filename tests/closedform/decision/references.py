"""Brute force: every memoryless deterministic scheduler, and backward induction in Fractions, one state at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from tracebridge.chain.decision import DecisionProcess
from tracebridge.closedform.exact_arithmetic import ExactArithmetic
from tracebridge.closedform.modelcheck import evaluate_operator
from tracebridge.pctl import parse_formula
from tracebridge.pctl.ast import Formula, Label, Operator, Truth, Unary


def operator_of(text: str) -> Operator:
    formula = parse_formula(text)
    assert isinstance(formula, Operator)
    return formula


def holds_in(process: DecisionProcess) -> Callable[[Formula], NDArray[np.bool_]]:
    def holds(formula: Formula) -> NDArray[np.bool_]:
        match formula:
            case Label(name):
                return process.label(name)
            case Truth(value):
                return np.full(process.n_states, value)
            case Unary("!", operand):
                return ~holds(operand)
        raise AssertionError(formula)

    return holds


def schedulers(process: DecisionProcess) -> Iterator[NDArray[np.int64]]:
    starts = process.choice_starts.tolist()
    rows = [range(first, last) for first, last in pairwise(starts)]
    return (np.array(choice, dtype=np.int64) for choice in product(*rows))


def values_by_schedulers(process: DecisionProcess, text: str) -> list[list[Fraction | float]]:
    """For each state the values under all memoryless deterministic schedulers, each chain evaluated by itself."""
    operator, holds = operator_of(text), holds_in(process)
    values = [
        evaluate_operator(ExactArithmetic(process.induced(scheduler)), operator, holds).value.tolist()
        for scheduler in schedulers(process)
    ]
    return [list(column) for column in zip(*values, strict=True)]


def backward_induction(
    process: DecisionProcess,
    start: list[Fraction],
    steps: int,
    best: Callable[[Iterator[Fraction]], Fraction],
    *,
    active: NDArray[np.bool_] | None = None,
    gain: Callable[[int, int], Fraction] = lambda state, choice: Fraction(0),
) -> list[Fraction]:
    """``x <- best_a gain + p_a x`` in the active states; ``gain`` is of a state and a row."""
    matrix, starts = process.exact_transitions(), process.choice_starts.tolist()
    values = list(start)
    for _ in range(steps):
        new = list(values)
        for i in range(process.n_states):
            if active is None or active[i]:
                new[i] = best(
                    gain(i, a) + sum((p * values[j] for j, p in matrix.row(a).items()), Fraction(0))
                    for a in range(starts[i], starts[i + 1])
                )
        values = new
    return values
