"""The equations of a set of transient states in doubles that are exact, with residuals in twice the precision.

A row of the chain is a row of doubles, or of integers below 2^31, over their sum. Multiplied by that sum, the equations
are ``(D - A) x = b`` with A the given numbers off the diagonal and D what leaves a state: nothing is rounded but D,
which is kept as a double-double. What `integer_system` does in integers is done here in arrays, for large systems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.closedform.accurate_product import AccurateProduct
from tracebridge.closedform.error_free import SUBNORMAL, UNIT, DoubleDouble, normalised, product_error, two_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.rational import RationalMatrix

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

#: Entries and unknowns outside this range could under- or overflow in a product.
SMALLEST, LARGEST = 2.0**-900, 2.0**900

_ALL = slice(None)
_SAFETY = 1 + 2.0**-40  # pays for rounding in the bounds themselves


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RightHandSide:
    """``value``, off by at most ``error``: shape (m,) each, non-negative."""

    value: DoubleDouble
    error: Floats

    def in_range(self) -> bool:
        """Whether products with it are within the range of doubles. Raises ValueError for what is no amount."""
        if not np.all(self.value.high >= 0):
            raise ValueError("a right-hand side must be finite and not negative")
        return bool(self.value.high.max(initial=0.0) < LARGEST)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DoubleSystem:
    """``(D - A) x = b`` for m transient states of a chain of n states.

    Attributes:
        entries: A, shape (m, m), positive, nothing on the diagonal. outward: transitions out of the set, shape (m, n).
        diagonal: D, the sums of the rows of both.
        scale: what the rows of the chain were multiplied by, shape (m,). exits: the sums of the rows of ``outward``.
    """

    entries: csr_array
    outward: csr_array
    diagonal: DoubleDouble
    scale: DoubleDouble
    exits: Floats

    @classmethod
    def of_doubles(cls, P: csr_array, active: Mask) -> DoubleSystem:
        """Of a set of states (a mask, shape (n,)) of a chain of doubles, each row divided by its exact sum."""
        return cls._of(P.indptr, P.indices, P.data, active, None)

    @classmethod
    def of_integers(cls, P: RationalMatrix, active: Mask) -> DoubleSystem:
        """Of a set of states of a chain of rationals with numerators and denominators below 2^31 (`fits`)."""
        data = P.numerators.astype(np.float64)
        return cls._of(P.indptr, P.indices, data, active, P.denominators.astype(np.float64)[active])

    @staticmethod
    def fits(P: RationalMatrix) -> bool:
        """Whether numerators and denominators are exact doubles."""
        return P.numerators.dtype != object and P.denominators.dtype != object

    @classmethod
    def _of(
        cls,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int64],
        data: Floats,
        active: Mask,
        denominators: Floats | None,
    ) -> DoubleSystem:
        n = len(active)
        states = np.flatnonzero(active)
        m = len(states)
        position = np.full(n, -1, dtype=np.int32)
        position[states] = np.arange(m, dtype=np.int32)
        sources = np.repeat(position, np.diff(indptr))  # of every entry
        targets = position[indices]
        inside = (sources >= 0) & (targets >= 0) & (sources != targets)
        outside = (sources >= 0) & (targets < 0)
        staying = (sources >= 0) & (sources == targets)
        entries = _rows(data[inside], targets[inside], sources[inside], (m, m))
        outward = _rows(data[outside], indices[outside].astype(np.int32), sources[outside], (m, n))
        own = np.zeros(m)
        own[sources[staying]] = data[staying]
        del sources, targets, inside, outside, staying
        exits = AccurateProduct(outward).row_sums()
        diagonal = _sum(AccurateProduct(entries).row_sums(), exits)
        scale = diagonal.plus(own) if denominators is None else DoubleDouble(denominators, np.zeros(m))
        return cls(entries=entries, outward=outward, diagonal=diagonal, scale=scale, exits=exits.high)

    @property
    def size(self) -> int:
        """The number m of states."""
        return len(self.exits)

    def diagonal_error(self, rows: slice = _ALL) -> Floats:
        """How far D may be off, relative, in each row; the same goes for ``scale``."""
        inward, outward = AccurateProduct(self.entries), AccurateProduct(self.outward)
        return np.maximum(inward.relative_error(rows), outward.relative_error(rows)) + 8 * UNIT**2

    def in_range(self) -> bool:
        """Whether the numbers are so far from the ends of the range of doubles that products with them are, too."""
        data = [part for part in (self.entries.data, self.outward.data, self.scale.high) if len(part)]
        return all(part.min() > SMALLEST and part.max() < LARGEST for part in data)

    def inflow(self, boundary: Floats, gain: Floats | None) -> RightHandSide:
        """b for ``x = gain + P x`` with ``x = boundary`` outside the set; shapes (n,) and (m,), non-negative."""
        product = AccurateProduct(self.outward)
        value = product(DoubleDouble(boundary, np.zeros_like(boundary)))
        error = product.relative_error() * value.high + product.absolute_error()
        if gain is not None:
            amount = self.scale.high * gain
            rest = product_error(self.scale.high, gain, amount) + self.scale.low * gain
            value = _sum(value, normalised(amount, rest))
            error += (self.diagonal_error() + 8 * UNIT**2) * value.high + 16 * SUBNORMAL
        return RightHandSide(value=value, error=error * _SAFETY)


class Residuals:
    """``b - (D - A) x`` with a bound, for one system and many x."""

    def __init__(self, system: DoubleSystem) -> None:
        self._product = AccurateProduct(system.entries)
        self._system = system

    def __call__(self, x: DoubleDouble, rhs: RightHandSide) -> tuple[Floats, Floats]:
        """The residual in doubles and how far it may be off, shape (m,) each."""
        residual, bound = np.empty(self._system.size), np.empty(self._system.size)
        for rows, inflow, rest in self._product.by_rows(x):
            d_high, d_low = (part[rows] for part in self._system.diagonal)
            x_high, x_low = (part[rows] for part in x)
            b_high, b_low = (part[rows] for part in rhs.value)
            outflow = d_high * x_high
            small = rest + b_low - ((product_error(d_high, x_high, outflow) + d_high * x_low) + d_low * x_high)
            total, error = two_sum(b_high, inflow)
            size = total + outflow
            total, second = two_sum(total, -outflow)
            residual[rows] = total + (error + second + small)
            bound[rows] = (self._rounding(rows, np.abs(residual[rows]), size) + rhs.error[rows]) * _SAFETY
        return residual, bound

    def _rounding(self, rows: slice, residual: Floats, size: Floats) -> Floats:
        """How far residuals may be off that are made of terms which add up to ``size``."""
        product = self._product
        # Beside the product with A: 16 u^2 for that with D, (21 k + 31) u^2 for adding up what is small.
        relative = product.relative_error(rows) + self._system.diagonal_error(rows)
        relative += (21 * product.lengths(rows) + 48) * UNIT**2
        return 2 * UNIT * residual + relative * size + product.absolute_error(rows) + 64 * SUBNORMAL

    def moved(self, residual: Floats, error: Floats, step: Floats) -> tuple[Floats, Floats]:
        """The residual of ``x + step`` and how far it may be off, from those of x; shape (m,) each.

        In doubles, which is as good as in twice the precision where the step is small beside x, and much quicker.
        """
        entries, k = self._system.entries, self._product.lengths()
        moved = entries @ step
        size = moved.copy() if np.all(step >= 0) else entries @ np.abs(step)  # of all terms; in place, to save memory
        outflow = self._system.diagonal.high * step
        moved += residual
        moved -= outflow
        for term in (outflow, residual, moved):
            size += np.abs(term)
        # With k entries in a row: k u for the products and their sum, u for D without its second half, u each for the
        # product with it, the sum and the difference, and k u because the size is rounded, too.
        size *= (2 * k + 6) * UNIT
        size += error
        size *= _SAFETY
        size += (4 * k + 16) * SUBNORMAL
        return moved, size

    def lower_bound(self, x: Floats, wanted: Floats) -> Floats:
        """A lower bound of ``(D - A) x`` for doubles x, shape (m,): close, unless a rough one is all that is wanted."""
        zero = np.zeros_like(x)
        residual, error = self.moved(zero, zero, x)
        rough = np.nextafter(-residual - error, -np.inf)
        if np.all(rough >= wanted):
            return np.asarray(rough)
        residual, error = self(DoubleDouble(x, zero), RightHandSide(value=DoubleDouble(zero, zero), error=zero))
        return np.asarray(np.nextafter(-residual - error, -np.inf))


def _rows(data: Floats, columns: NDArray[np.int32], rows: NDArray[np.int32], shape: tuple[int, int]) -> csr_array:
    """A CSR matrix of entries that come row by row."""
    counts = np.bincount(rows, minlength=shape[0])
    small = np.int32 if len(data) < 2**31 else np.int64
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(small)
    return csr_array((data, columns.astype(small, copy=False), indptr), shape=shape)


def _sum(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    high, error = two_sum(a.high, b.high)
    return normalised(high, error + (a.low + b.low))
