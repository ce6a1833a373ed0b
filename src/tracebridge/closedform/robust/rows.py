"""Rows of intervals: the least and greatest mean of given values over all distributions between the bounds.

The greatest mean gives each successor its lower bound and what is left to the successors in descending order of their
values, each up to its upper bound (Givan, Leach and Dean, Artificial Intelligence 122, 2000). As a number it is the
minimum of a convex function, by linear programming duality::

    g(t) = t + sum_{x_j > t} upper_j (x_j - t) + sum_{x_j < t} lower_j (x_j - t)

attained where ``A <= 1 <= B``, the masses with everything above t, or from t on, at its upper bound. Each t gives an
upper bound, whatever rounding did to the choice of t, and by convexity ``g`` is above its minimum by at most
``max(A - 1, 1 - B, 0)`` times the spread of the values. Both are evaluated here with a bound on their rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.closedform.error_free import SUBNORMAL, UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntervalRows:
    """Rows of bounds over some columns, laid end to end; each row has an entry, and a distribution between its bounds.

    Attributes:
        indptr: shape (rows + 1,). indices, lower, upper: shape (entries,). n_columns: of what ``indices`` point into.
    """

    indptr: Indices
    indices: Indices
    lower: Floats
    upper: Floats
    n_columns: int

    @property
    def sizes(self) -> Indices:
        """Entries of each row."""
        return np.diff(self.indptr)

    @property
    def row_of_entry(self) -> Indices:
        """The row of each entry, shape (entries,)."""
        return np.repeat(np.arange(len(self.indptr) - 1), self.sizes)

    def keep(self, entries: Mask) -> IntervalRows:
        """The rows without some of their entries; rows with no entry left are left out."""
        sizes = np.add.reduceat(entries, self.indptr[:-1], dtype=np.int64) if len(entries) else self.sizes
        indptr = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        return IntervalRows(
            indptr=indptr,
            indices=self.indices[entries],
            lower=self.lower[entries],
            upper=self.upper[entries],
            n_columns=self.n_columns,
        )

    def mean_bounds(self, values: Floats, *, maximise: bool) -> tuple[Floats, Floats]:
        """Bounds of the greatest, or least, mean of finite values in each row, rounding included.

        Args:
            values: shape (n_columns,).

        Returns:
            Lower and upper bounds of the optimum, shape (rows,) each, within the range of the values of the row.
        """
        if not maximise:
            low, high = self.mean_bounds(-values, maximise=True)
            return 0.0 - high, 0.0 - low  # no negative zeros
        if len(self.indptr) == 1:
            return np.empty(0), np.empty(0)
        sizes, first = self.sizes, self.indptr[:-1]
        x = values[self.indices]
        order, filled, slack = self._filling(values)
        last = self.indptr[1:] - 1
        places = np.where(filled >= np.repeat(slack, sizes), np.arange(len(x)), len(x))
        t = x[order[np.minimum(np.minimum.reduceat(places, first), last)]]
        at = np.repeat(t, sizes)
        mass = np.where(x > at, self.upper, self.lower)
        terms = mass * (x - at)
        greatest = t + np.add.reduceat(terms, first)
        # A sum of m terms is off by m - 1 units of their sizes; differences, products and the last sums by one each.
        rounding = (sizes + 6) * UNIT * (np.abs(t) + np.add.reduceat(np.abs(terms), first)) + 4 * sizes * SUBNORMAL
        above = np.add.reduceat(mass, first)
        from_on = np.add.reduceat(np.where(x >= at, self.upper, self.lower), first)
        off_optimum = np.maximum(np.maximum(above - 1, 1 - from_on), 0)
        off_optimum += (sizes + 8) * UNIT * (above + from_on + 1)
        top, bottom = np.maximum.reduceat(x, first), np.minimum.reduceat(x, first)
        loss = off_optimum * (top - bottom) * (1 + 8 * UNIT)
        # A mean lies between the values that it is of: where all are the same it is exact.
        return (
            np.clip(greatest - rounding - loss, bottom, top),
            np.clip(greatest + rounding, bottom, top),
        )

    def extreme_rows(self, values: Floats, *, maximise: bool) -> csr_array:
        """The distributions of the greatest or least mean, up to rounding: CSR of shape (rows, n_columns)."""
        order, filled, slack = self._filling(values if maximise else -values)
        room = (self.upper - self.lower)[order]
        data = np.empty_like(room)
        data[order] = self.lower[order] + np.clip(np.repeat(slack, self.sizes) - (filled - room), 0.0, room)
        return csr_array((data, self.indices, self.indptr), shape=(len(self.indptr) - 1, self.n_columns))

    def _filling(self, values: Floats) -> tuple[Indices, Floats, Floats]:
        """Entries of each row by descending value, the room up to and with each, and the mass above lower bounds."""
        rank = np.empty(self.n_columns, dtype=np.int64)
        rank[np.argsort(-values, kind="stable")] = np.arange(self.n_columns)
        # Sorting by columns that are called by their ranks is many times faster than one sort of all entries.
        shape = len(self.indptr) - 1, self.n_columns
        entries = csr_array((np.arange(len(self.indices)), rank[self.indices], self.indptr), shape=shape)
        entries.has_sorted_indices = False
        entries.sort_indices()
        order = entries.data
        room = (self.upper - self.lower)[order]
        filled = np.cumsum(room)
        filled -= np.repeat(filled[self.indptr[:-1]] - room[self.indptr[:-1]], self.sizes)
        return order, filled, 1 - np.add.reduceat(self.lower, self.indptr[:-1])
