"""Bounds of operators as the numbers that Storm is given."""

from __future__ import annotations

from fractions import Fraction

from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula


def step_window(bound: ast.StepBound | None) -> tuple[int, int | None]:
    """The first and the last step that count, the last None if all later ones do; none counts if last < first.

    Raises:
        PropertyError: an end is no number of steps. UnsupportedError: it has more than 63 bits.
    """
    if bound is None:
        return 0, None
    first = 0 if bound.lower is None else whole_steps(bound.lower) + bound.lower_strict
    last = None if bound.upper is None else whole_steps(bound.upper) - bound.upper_strict
    return first, last


def whole_steps(number: ast.Formula) -> int:
    """A number of steps; raises as `step_window` does."""
    if not isinstance(number, ast.Number) or number.value.denominator != 1 or number.value < 0:
        raise PropertyError(f"a step bound must be a whole number of steps, not {format_formula(number)}")
    if number.value >= 1 << 63:
        raise UnsupportedError(f"Storm counts steps in 64 bits, too few for {format_formula(number)}")
    return number.value.numerator


def constant_number(number: ast.Formula) -> Fraction:
    """A bound on a reward, or a discount. Raises PropertyError for what is no number."""
    if not isinstance(number, ast.Number):
        raise PropertyError(f"a number is needed here, not {format_formula(number)}")
    return number.value
