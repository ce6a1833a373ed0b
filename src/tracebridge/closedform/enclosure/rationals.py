"""Functions of rationals that may also be infinite or undefined (the floats inf, -inf and NaN)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tracebridge.closedform import directed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tracebridge.closedform.enclosure.scalar import Real

_LOG_PRECISION = 160  # bits of ball arithmetic behind one logarithm


def field_operation(function: Callable[..., Real], *columns: NDArray[Any]) -> list[Real]:
    """A sum, product or quotient entry by entry; at infinity only the sign of the other operand matters."""
    return [
        function(*entries if all(isinstance(x, Fraction) for x in entries) else map(_sign_or_infinity, entries))
        for entries in zip(*(column.tolist() for column in columns), strict=True)
    ]


def quotient(top: Real, bottom: Real) -> Real:
    """A quotient; NaN where the divisor is zero."""
    return top / bottom if bottom != 0 else math.nan


def unless_undefined(function: Callable[..., Real], *columns: NDArray[Any]) -> list[Real]:
    """A function entry by entry; NaN where an operand is."""
    return [
        math.nan if any(entry != entry for entry in entries) else function(*entries)  # noqa: PLR0124 - NaN alone differs
        for entries in zip(*(column.tolist() for column in columns), strict=True)
    ]


def step_function(function: Callable[..., int]) -> Callable[[Real], Real]:
    """A function from rationals to integers that leaves infinities alone."""
    return lambda number: Fraction(function(number)) if isinstance(number, Fraction) else number


def round_half_up(number: Fraction) -> int:
    """The nearest integer, halves upward."""
    return math.floor(number + Fraction(1, 2))


def natural_log(value: Real) -> tuple[float, float, float]:
    """The logarithm with bounds, also of a number beyond all doubles; undefined (NaN) of one below zero."""
    if not isinstance(value, Fraction) or value <= 0:
        logarithm = -math.inf if value == 0 else math.inf if value > 0 else math.nan
        return logarithm, logarithm, logarithm
    from flint import arb, ctx, fmpq

    with ctx.workprec(_LOG_PRECISION):
        lower, upper = directed.ball_bounds(arb(fmpq(value.numerator, value.denominator)).log())
    return lower, lower, upper


def is_integer(value: Real) -> bool:
    """Whether this is a whole number."""
    return isinstance(value, Fraction) and value.denominator == 1


def _sign_or_infinity(value: Real) -> float:
    return float((value > 0) - (value < 0)) if isinstance(value, Fraction) else value
