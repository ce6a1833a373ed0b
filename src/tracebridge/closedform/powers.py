"""Powers of rationals, exact, and of intervals of doubles, rounded outward. ``0^0 = 1``, as in PRISM and IEEE 754."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from tracebridge.closedform import directed
from tracebridge.errors import UnsupportedError

#: Powers of rationals with more bits than this are refused.
MAX_POWER_BITS = 10_000_000

#: An interval of doubles with a value in it: (value, lower, upper).
Triple = tuple[float, float, float]

#: Two to such a power is no double, nor is two to minus it, whatever the rounding of the power itself.
_BEYOND_DOUBLES = 1_200.0

UNDEFINED: Triple = (math.nan, -math.inf, math.inf)


def exact_power(base: Fraction | float, exponent: Fraction) -> Fraction | float:
    """``base ** exponent`` for a rational or infinite base and a whole exponent; NaN for ``0 ** -k``.

    Raises:
        UnsupportedError: if the result would have more than `MAX_POWER_BITS` bits.
    """
    k = int(exponent)
    if k == 0:
        return Fraction(1)
    if not isinstance(base, Fraction):
        return Fraction(0) if k < 0 else (base if base > 0 or k % 2 else -base)
    if base == 0:
        return math.nan if k < 0 else Fraction(0)
    if abs(base) == 1:
        return base if k % 2 else Fraction(1)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(k) > MAX_POWER_BITS:
        power = f"the power {k}" if k.bit_length() <= 64 else f"a power of {k.bit_length()} bits"
        raise UnsupportedError(f"a rational of {bits} bits to {power} is too large for exact arithmetic")
    return Fraction(base**k)


def interval_power(base: Triple, exponent: Triple, odd: bool | None = None) -> Triple:
    """All powers of an interval; `UNDEFINED` if any of them is, or if a base below zero meets an unsure exponent.

    Args:
        odd: whether the exponent, known to be whole, is odd; None if only its bounds are known.
    """
    _, base_lower, base_upper = base
    _, exponent_lower, exponent_upper = exponent
    if math.isnan(base[0]) or math.isnan(exponent[0]):
        return UNDEFINED
    if base_lower < 0:
        if odd is None and exponent_lower == exponent_upper and exponent_lower.is_integer():
            odd = exponent_lower % 2 == 1
        return UNDEFINED if odd is None else _power_of_signed(base, exponent, odd=odd)
    if base_lower == 0 and exponent_lower < 0:
        return UNDEFINED
    # exponent * log(base) is bilinear: its extremes over a box lie at corners.
    corners = [_corner(x, y) for x in (base_lower, base_upper) for y in (exponent_lower, exponent_upper)]
    if any(math.isnan(low) for low, _ in corners):
        return UNDEFINED
    return _inside(_size(base[0], exponent[0]), min(low for low, _ in corners), max(high for _, high in corners))


def _power_of_signed(base: Triple, exponent: Triple, *, odd: bool) -> Triple:
    """A base that may be negative, with one whole exponent: ``(-b)^k`` is ``b^k`` or ``-b^k``."""
    value, lower, upper = base
    if exponent[1] == exponent[2] == 0:
        return 1.0, 1.0, 1.0
    if upper < 0:
        mirrored = interval_power((-value, -upper, -lower), exponent)
        return (-mirrored[0], -mirrored[2], -mirrored[1]) if odd else mirrored
    if exponent[1] < 0:
        return UNDEFINED
    ends = [[_corner(size, k)[1] for k in exponent[1:]] for size in (-lower, upper)]
    if any(math.isnan(end) for pair in ends for end in pair):
        return UNDEFINED
    below, above = map(max, ends)
    size = _size(abs(value), exponent[0])
    if odd:
        return _inside(math.copysign(size, value), -below, above)
    return _inside(size, 0.0, max(below, above))


def _size(base: float, exponent: float) -> float:
    """One power of a base >= 0, and above zero if that is."""
    low, high = _corner(base, exponent)
    return low if low > 0 else high


def _corner(base: float, exponent: float) -> tuple[float, float]:
    """Bounds of one power of a base >= 0; NaN where the limit depends on the way there."""
    if exponent == 0 or base == 1:
        limit = math.nan if math.isinf(exponent) or math.isinf(base) else 1.0
        return limit, limit
    if base == 0 or math.isinf(base) or math.isinf(exponent):
        limit = math.pow(base, exponent)
        return limit, limit
    magnitude = exponent * math.log2(base)
    if abs(magnitude) > _BEYOND_DOUBLES:  # balls give up on such exponents
        return (sys.float_info.max, math.inf) if magnitude > 0 else (0.0, math.ulp(0.0))
    low, high = directed.power_bounds(base, exponent)
    return max(low, 0.0), high


def _inside(value: float, lower: float, upper: float) -> Triple:
    return min(max(value, lower), upper), lower, upper
