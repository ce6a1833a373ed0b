"""Error-free transformations: the rounding error of a sum or a product of doubles, itself a double.

Knuth, The Art of Computer Programming 2 (1969); Dekker, Numer. Math. 18 (1971). A pair of doubles whose second is
below half a unit in the last place of the first, a *double-double*, holds about 106 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: Half the distance from one to the next double: the relative error of one rounding.
UNIT = 2.0**-53

#: The smallest positive double; an operation that underflows is off by less.
SUBNORMAL = 2.0**-1074

_SPLITTER = 2.0**27 + 1


class DoubleDouble(NamedTuple):
    """Numbers ``high + low`` with ``|low| <= 2^-53 |high|``; two arrays of one shape."""

    high: Floats
    low: Floats

    def plus(self, addend: Floats) -> DoubleDouble:
        """The sum with doubles; relative error below 2^-104 where nothing cancels."""
        high, error = two_sum(self.high, addend)
        return normalised(high, error + self.low)

    def clipped(self) -> DoubleDouble:
        """The same numbers, zero in place of negative ones."""
        negative = self.high < 0
        return DoubleDouble(np.where(negative, 0.0, self.high), np.where(negative, 0.0, self.low))


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """``a + b`` rounded, and exactly what rounding left out; barring overflow."""
    total = a + b
    second = total - a
    return total, (a - (total - second)) + (b - second)


def product_error(a: Floats, b: Floats, product: Floats) -> Floats:
    """``a * b - product`` exactly, for the rounded product, where nothing over- or underflows."""
    a_high, b_high = _high_half(a), _high_half(b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def normalised(high: Floats, low: Floats) -> DoubleDouble:
    """``high + low`` as a double-double, exactly."""
    return DoubleDouble(*two_sum(high, low))


def _high_half(values: Floats) -> Floats:
    shifted = _SPLITTER * values
    return shifted - (shifted - values)
