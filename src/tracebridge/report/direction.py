"""Which way the number of a property gets worse: what its threshold says, or what it says of success and failure.

The probability of success is better the greater it is, that of failure the smaller it is, and sums, products and powers
of such numbers follow from their parts. Of every other number, such as the mean number of steps, nobody but its owner
knows which way is better: an agent that gives up early takes few steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tracebridge.pctl import ast

#: The side on which a number is worse than before.
Worse = Literal["lower", "higher"]

_PATHS_OF_ONE = ast.Eventually | ast.Globally | ast.Next
_PATHS_OF_TWO = ast.Until | ast.WeakUntil
_ANYTHING = (-math.inf, math.inf)

#: Nobody writes arithmetic that is nested deeper by hand; of what is, nothing is told.
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Direction:
    """What is known of a number.

    Attributes:
        sense: 1 if greater is better, -1 if smaller is, 0 for a constant, None if that cannot be told.
        lower, upper: what it cannot lie outside of.
    """

    sense: Literal[-1, 0, 1] | None
    lower: float
    upper: float

    @property
    def worse(self) -> Worse | None:
        """The side on which it is worse."""
        return {1: "lower", -1: "higher"}.get(self.sense or 0)  # type: ignore[return-value]

    @property
    def is_share(self) -> bool:
        """Whether it lies between 0 and 1."""
        return self.lower >= 0 and self.upper <= 1


def direction(formula: ast.Formula) -> Direction:
    """The direction of the number of a resolved property; a lone operator with a threshold has the threshold's."""
    if isinstance(formula, ast.Quantitative) and formula.threshold is not None:
        lower, upper = (0.0, math.inf) if isinstance(formula, ast.Reward) else (0.0, 1.0)
        return Direction(1 if formula.threshold.comparison in (">", ">=") else -1, lower, upper)
    try:
        return _of_number(formula, _DEEPEST)
    except OverflowError:  # a constant beyond the largest double
        return Direction(None, *_ANYTHING)


def _of_number(formula: ast.Formula, depth: int) -> Direction:
    if not depth:
        return Direction(None, *_ANYTHING)
    depth -= 1
    match formula:
        case ast.Number():
            value = float(formula.value)
            return Direction(0, value, value)
        case ast.Probability() if formula.threshold is None:
            return Direction(None if formula.condition is not None else _of_path(formula.path), 0.0, 1.0)
        case ast.SteadyState() if formula.threshold is None:
            return Direction(_of_states(formula.operand), 0.0, 1.0)
        case ast.Reward() if formula.threshold is None:
            return Direction(None, *_ANYTHING)
        case ast.Unary(operator="-"):
            return _negated(_of_number(formula.operand, depth))
        case ast.Binary():
            left, right = _of_number(formula.left, depth), _of_number(formula.right, depth)
            return _of_arithmetic(formula.operator, left, right)
        case ast.Call(function="pow", arguments=(base, exponent)):
            return _power(_of_number(base, depth), _of_number(exponent, depth))
        case ast.Filter(kind="min" | "max" | "avg" | "sum" | "state" | "first"):
            inner = _of_number(formula.operand, depth)
            return Direction(inner.sense, *_ANYTHING) if formula.kind == "sum" else inner
        case _:
            return Direction(None, *_ANYTHING)


# ---------------------------------------------------------------- probabilities


def _of_path(path: ast.PathFormula) -> Literal[-1, 0, 1] | None:
    """Of a path that is over sooner or later: by what it ends with."""
    if isinstance(path, _PATHS_OF_ONE | _PATHS_OF_TWO):
        bounds = [] if isinstance(path, ast.Next) else [path.bound, *(each.bound for each in path.reward_bounds)]
        if any(bound is not None and (bound.exact or bound.lower is not None) for bound in bounds):
            return None  # not so early, but perhaps later
        operand = path.right if isinstance(path, _PATHS_OF_TWO) else path.operand
        return _of_states(operand)
    return None


def _of_states(formula: ast.Formula | ast.PathFormula) -> Literal[-1, 0, 1] | None:
    """Of a condition on states, which names success or failure, plainly or as what does not hold."""
    match formula:
        case ast.Label(name="success"):
            return 1
        case ast.Label(name="failure"):
            return -1
        case ast.Unary(operator="!"):
            inner = _of_states(formula.operand)
            return None if inner is None else _sense(-inner)
        case _:
            return None


# ---------------------------------------------------------------- arithmetic


def _of_arithmetic(operator: str, left: Direction, right: Direction) -> Direction:
    if operator == "-":
        return _of_arithmetic("+", left, _negated(right))
    if operator == "+":
        return Direction(_joint(left.sense, right.sense), left.lower + right.lower, left.upper + right.upper)
    if operator == "*":
        return _times(left, right)
    if operator == "/" and right.sense == 0 and right.lower != 0:
        return _times(left, Direction(0, 1 / right.lower, 1 / right.lower))
    return Direction(None, *_ANYTHING)


def _negated(number: Direction) -> Direction:
    return Direction(None if number.sense is None else _sense(-number.sense), -number.upper, -number.lower)


def _times(left: Direction, right: Direction) -> Direction:
    """A product; its direction is known for a constant factor, and for factors that are not negative."""
    ends = [a * b if a and b else 0.0 for a in (left.lower, left.upper) for b in (right.lower, right.upper)]
    sense: Literal[-1, 0, 1] | None = None
    if left.sense == 0 or right.sense == 0:
        constant, other = (left, right) if left.sense == 0 else (right, left)
        factor = constant.lower
        sense = None if other.sense is None else _sense(other.sense * (0 if factor == 0 else math.copysign(1, factor)))
    elif left.lower >= 0 and right.lower >= 0:
        sense = _joint(left.sense, right.sense)
    return Direction(sense, min(ends), max(ends))


def _power(base: Direction, exponent: Direction) -> Direction:
    """A power of what is not negative, to a constant that is not negative."""
    if exponent.sense != 0 or exponent.lower < 0 or base.lower < 0:
        return Direction(None, *_ANYTHING)
    k = exponent.lower
    return Direction(0 if k == 0 else base.sense, base.lower**k, base.upper**k)


def _joint(one: Literal[-1, 0, 1] | None, other: Literal[-1, 0, 1] | None) -> Literal[-1, 0, 1] | None:
    """Of something that grows with both."""
    if one is None or other is None or one * other < 0:
        return None
    return _sense(one + other)


def _sense(number: float) -> Literal[-1, 0, 1]:
    return 1 if number > 0 else -1 if number < 0 else 0
