"""Arithmetic of many intervals of doubles at once, rounded outward; a NaN value means undefined."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tracebridge.closedform import directed
from tracebridge.closedform.powers import interval_power

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]


class Bounds(NamedTuple):
    """n numbers and what they lie between, each of shape (n,)."""

    value: Floats
    lower: Floats
    upper: Floats

    @property
    def undefined(self) -> Mask:
        """Where there is no number."""
        return np.isnan(self.value)

    @property
    def may_be_zero(self) -> Mask:
        """Where zero is among the numbers."""
        return np.asarray((self.lower <= 0) & (self.upper >= 0))

    @property
    def surely_infinite(self) -> Mask:
        """Where the number is infinite."""
        return np.asarray(np.isinf(self.lower) & (self.lower == self.upper))


def add(a: Bounds, b: Bounds) -> Bounds:
    """``a + b``."""
    with np.errstate(invalid="ignore", over="ignore"):
        return Bounds(a.value + b.value, directed.add_down(a.lower, b.lower), directed.add_up(a.upper, b.upper))


def multiply(a: Bounds, b: Bounds) -> Bounds:
    """``a * b``; undefined where infinity may meet zero."""
    corners = [(x, y) for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        value = a.value * b.value  # NaN for 0 * inf
        # An infinite bound stands for arbitrarily large numbers: times zero it bounds zero.
        lower = np.min([_zero_if_nan(directed.multiply_down(x, y)) for x, y in corners], axis=0)
        upper = np.max([_zero_if_nan(directed.multiply_up(x, y)) for x, y in corners], axis=0)
    infinite_times_zero = (a.surely_infinite & b.may_be_zero) | (a.may_be_zero & b.surely_infinite)
    undefined = infinite_times_zero | a.undefined | b.undefined
    return Bounds(np.where(undefined, np.nan, _zero_if_nan(value)), lower, upper)


def divide(a: Bounds, b: Bounds) -> Bounds:
    """``a / b``; undefined where the divisor may be zero or both may be infinite."""
    corners = [(x, y) for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    with np.errstate(invalid="ignore", over="ignore", under="ignore", divide="ignore"):
        value = a.value / b.value
        # inf / inf at a corner: the other corners bound the quotient unless both numbers are infinite.
        lower = np.min([_zero_if_nan(directed.divide_down(x, y)) for x, y in corners], axis=0)
        upper = np.max([_zero_if_nan(directed.divide_up(x, y)) for x, y in corners], axis=0)
    unbounded = ~np.isfinite(a.lower) | ~np.isfinite(a.upper)
    unbounded &= ~np.isfinite(b.lower) | ~np.isfinite(b.upper)
    undefined = b.may_be_zero | unbounded | a.undefined | b.undefined
    return Bounds(np.where(undefined, np.nan, value), lower, upper)


def power(a: Bounds, b: Bounds, odd: Sequence[bool | None]) -> Bounds:
    """``a ** b``, one by one; see `interval_power` for ``odd``, of length n."""
    entries = zip(_triples(a), _triples(b), odd, strict=True)
    value, lower, upper = np.array([interval_power(*entry) for entry in entries], dtype=float).reshape(-1, 3).T.copy()
    return Bounds(value, lower, upper)


def natural_log(a: Bounds) -> Bounds:
    """The logarithm; undefined where the number may be negative."""
    undefined = a.undefined | (a.lower < 0)
    lower, upper, value = (
        np.array([directed.log_bounds(x)[side] for x in np.where(undefined, 1.0, part).tolist()])
        for part, side in ((a.lower, 0), (a.upper, 1), (a.value, 0))
    )
    return Bounds(np.where(undefined, np.nan, value), lower, upper)


def round_half_up(values: Floats) -> Floats:
    """The nearest integers, halves upward."""
    with np.errstate(invalid="ignore"):
        below = np.floor(values)
        # the difference is exact except next to one, where it rounds to the same side of a half
        return np.where(np.isfinite(values), below + (values - below >= 0.5), values)


def _triples(bounds: Bounds) -> list[tuple[float, float, float]]:
    return list(zip(bounds.value.tolist(), bounds.lower.tolist(), bounds.upper.tolist(), strict=True))


def _zero_if_nan(values: Floats) -> Floats:
    return np.where(np.isnan(values), 0.0, values)
