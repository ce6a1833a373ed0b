"""Directed rounding: the largest double below and the smallest double above an exact result.

Scalars may be ints, Fractions or doubles. The array functions find the sign of the rounding error of one operation by
an error-free transformation (Dekker 1971, Knuth 1969) and step to the neighbour only where it was on the wrong side, so
an exact operation keeps its result. Infinities follow IEEE arithmetic; a finite result that overflows rounds downward
to the largest double.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.closedform.error_free import product_error, two_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LARGE, _SMALL = 2.0**990, 2.0**-900  # Dekker's product is error-free between these
_PRECISION = 160  # bits of ball arithmetic behind one logarithm or power


def nearest(number: Fraction | float) -> float:
    """The nearest double; infinite where the number is beyond all doubles."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def enclosing(number: Fraction | float) -> tuple[float, float, float]:
    """`nearest`, `down` and `up`, by one comparison."""
    if isinstance(number, float):
        return number, number, number
    rounded = nearest(number)
    if math.isinf(rounded):
        return rounded, down(number), up(number)
    top, bottom = rounded.as_integer_ratio()
    error = top * number.denominator - number.numerator * bottom
    if error == 0:
        return rounded, rounded, rounded
    if error > 0:
        return rounded, math.nextafter(rounded, -math.inf), rounded
    return rounded, rounded, math.nextafter(rounded, math.inf)


def down(number: Fraction | float) -> float:
    """The largest double that is not above the number."""
    rounded = nearest(number)
    return math.nextafter(rounded, -math.inf) if rounded > number else rounded


def up(number: Fraction | float) -> float:
    """The smallest double that is not below the number."""
    return -down(-number)


def scaled_down(mantissa: int, bits: int) -> float:
    """The largest double that is not above ``mantissa / 2**bits``, for a non-negative mantissa."""
    excess = max(mantissa.bit_length() - 53, bits - 1074, 0)
    if mantissa.bit_length() - bits > 1024:
        return math.nextafter(math.inf, 0.0)
    return math.ldexp(mantissa >> excess, excess - bits)


def scaled_up(mantissa: int, bits: int) -> float:
    """The smallest double that is not below ``mantissa / 2**bits``, for a non-negative mantissa."""
    excess = max(mantissa.bit_length() - 53, bits - 1074, 0)
    if mantissa.bit_length() - bits > 1023:
        return math.inf
    return math.ldexp(-(-mantissa >> excess), excess - bits)


def add_down(a: Floats, b: Floats) -> Floats:
    """``a + b`` rounded downward."""
    with np.errstate(invalid="ignore", over="ignore"):
        total, error = two_sum(a, b)
    given_infinite = np.isinf(a) | np.isinf(b)
    return _step_down(total, keep=given_infinite, wrong=(error < 0) | ~np.isfinite(error))


def add_up(a: Floats, b: Floats) -> Floats:
    """``a + b`` rounded upward."""
    return -add_down(-a, -b)


def multiply_down(a: Floats, b: Floats) -> Floats:
    """``a * b`` rounded downward; NaN for zero times infinity."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        product = a * b
        error = product_error(a, b, product)
        trusted = (np.abs(product) > _SMALL) & (np.abs(product) < _LARGE) & (np.maximum(np.abs(a), np.abs(b)) < _LARGE)
    keep = (a == 0) | (b == 0) | (np.abs(a) == 1) | (np.abs(b) == 1) | np.isinf(a) | np.isinf(b)
    return _step_down(product, keep=keep, wrong=(error < 0) | ~trusted)


def multiply_up(a: Floats, b: Floats) -> Floats:
    """``a * b`` rounded upward; NaN for zero times infinity."""
    return -multiply_down(-a, b)


def divide_down(a: Floats, b: Floats) -> Floats:
    """``a / b`` rounded downward; NaN for 0/0 and for infinity over infinity."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore", divide="ignore"):
        quotient = a / b
        back = quotient * b
        remainder = (a - back) - product_error(quotient, b, back)  # exact: the remainder of a division is a double
        sizes = [np.abs(x) for x in (a, b, quotient)]
        trusted = np.all([(size > _SMALL) & (size < _LARGE) for size in sizes], axis=0)
    keep = (a == 0) | (b == 0) | (np.abs(b) == 1) | np.isinf(a) | np.isinf(b)
    return _step_down(quotient, keep=keep, wrong=(np.sign(remainder) * np.sign(b) < 0) | ~trusted)


def divide_up(a: Floats, b: Floats) -> Floats:
    """``a / b`` rounded upward; NaN for 0/0 and for infinity over infinity."""
    return -divide_down(-a, b)


def log_bounds(x: float) -> tuple[float, float]:
    """Doubles around the natural logarithm of ``x >= 0``; ``-inf`` at zero."""
    if x in {0.0, math.inf}:
        return (-math.inf, -math.inf) if x == 0 else (x, x)
    from flint import arb, ctx

    with ctx.workprec(_PRECISION):
        return ball_bounds(arb(x).log())


def power_bounds(base: float, exponent: float) -> tuple[float, float]:
    """Doubles around ``base ** exponent`` for a finite base above zero and a finite exponent."""
    from flint import arb, ctx

    with ctx.workprec(_PRECISION):
        return ball_bounds(arb(base) ** arb(exponent))


def ball_bounds(ball: Any) -> tuple[float, float]:
    """Doubles around a ball (flint ``arb``); infinite where it is not bounded."""
    if not ball.is_finite():
        return -math.inf, math.inf
    return down(_fraction(ball.lower())), up(_fraction(ball.upper()))


def _fraction(point: Any) -> Fraction:
    mantissa, exponent = (int(part) for part in point.man_exp())
    # A number beyond all doubles need not be written out to be rounded.
    size = mantissa.bit_length() + exponent
    if mantissa and not -1200 < size < 1100:
        mantissa, exponent = (1 if mantissa > 0 else -1), (1100 if size > 0 else -1200)
    return Fraction(mantissa) * Fraction(2) ** exponent


def _step_down(result: Floats, *, keep: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> Floats:
    with np.errstate(over="ignore", under="ignore"):
        return np.where(wrong & ~keep, np.nextafter(result, -np.inf), result)
