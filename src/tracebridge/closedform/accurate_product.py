"""Products of a non-negative sparse matrix with double-doubles, as accurate as in twice the precision, with a bound.

Every product is split into a double and its rounding error. The doubles of a row are added without any error at all, by
cutting them at one common bit (Rump, Ogita and Oishi, SIAM J. Sci. Comput. 31, 2008, algorithm ExtractVector); the rest
is so small that plain addition will do. Whole arrays at a time, and no array as long as the matrix but its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.error_free import SUBNORMAL, UNIT, DoubleDouble, normalised, product_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Floats = NDArray[np.float64]

_ALL = slice(None)
# A few arrays of so many doubles stay in the caches of a processor, and memory for them is not mapped anew each time.
_ENTRIES_AT_A_TIME = 12_000


class AccurateProduct:
    """``A x`` for a matrix of non-negative doubles in CSR layout, shape (m, n).

    A product ``y = A x`` is off by at most ``relative_error() * y + absolute_error()``.
    """

    def __init__(self, matrix: csr_array) -> None:
        self._matrix = matrix

    def lengths(self, rows: slice = _ALL) -> Floats:
        """The number of entries of each row."""
        start, stop, _ = rows.indices(self._matrix.shape[0])
        return np.asarray(np.diff(self._matrix.indptr[start : stop + 1]), dtype=np.float64)

    def relative_error(self, rows: slice = _ALL) -> Floats:
        """Of each row, found anew each time: there is less memory than time for it."""
        k = self.lengths(rows)
        # With u the unit of rounding, s the sum of a row and k its length: 5.1 u^2 s for the low parts of the products,
        # u^2 (4.1 k + 3.1) s for adding them to what was cut off, k times as much for adding that up.
        return (5 * k**2 + 8 * k + 10) * UNIT**2

    def absolute_error(self, rows: slice = _ALL) -> Floats:
        """What underflow may cost, of each row."""
        return 16 * self.lengths(rows) * SUBNORMAL

    def __call__(self, x: DoubleDouble) -> DoubleDouble:
        """``A x`` for non-negative x of shape (n,) below 2^900."""
        m = self._matrix.shape[0]
        product = DoubleDouble(np.zeros(m), np.zeros(m))
        for rows, high, low in self.by_rows(x):
            product.high[rows], product.low[rows] = normalised(high, low)
        return product

    def by_rows(self, x: DoubleDouble) -> Iterator[tuple[slice, Floats, Floats]]:
        """``A x``, some rows at a time, as the sum of two arrays; the first is exact and the second small beside it."""
        for rows, entries, row in self._chunks():
            columns = self._matrix.indices[entries]
            values, factors = self._matrix.data[entries], x.high[columns]
            products = values * factors
            small = product_error(values, factors, products) + values * x.low[columns]
            yield rows, *_exact_sums(row, products, small, rows.stop - rows.start)

    def row_sums(self) -> DoubleDouble:
        """``A 1``, with the same errors."""
        m = self._matrix.shape[0]
        sums = DoubleDouble(np.zeros(m), np.zeros(m))
        for rows, entries, row in self._chunks():
            large, small = _exact_sums(row, self._matrix.data[entries], 0.0, rows.stop - rows.start)
            sums.high[rows], sums.low[rows] = normalised(large, small)
        return sums

    def _chunks(self) -> Iterator[tuple[slice, slice, NDArray[np.intp]]]:
        """Some rows at a time, their entries, and the row of each entry among them."""
        indptr = self._matrix.indptr
        m, start = self._matrix.shape[0], 0
        while start < m:
            end = int(np.searchsorted(indptr, indptr[start] + _ENTRIES_AT_A_TIME, side="right")) - 1
            end = min(max(end, start + 1), m)
            row = np.repeat(np.arange(end - start), np.diff(indptr[start : end + 1]))
            yield slice(start, end), slice(int(indptr[start]), int(indptr[end])), row
            start = end


def _exact_sums(row: NDArray[np.intp], terms: Floats, rest: Floats | float, n_rows: int) -> tuple[Floats, Floats]:
    """The sums of ``terms + rest`` of each row, in two parts of which the first is exact and the second small."""
    # A power of two above twice the sum of the row: what is left of its terms above its last bit adds up exactly.
    cut = np.ldexp(1.0, np.frexp(_sums(row, terms, n_rows))[1] + 1)[row]
    large = (cut + terms) - cut
    return _sums(row, large, n_rows), _sums(row, (terms - large) + rest, n_rows)


def _sums(row: NDArray[np.intp], values: Floats, n_rows: int) -> Floats:
    """Of the values of each row, in their order."""
    return np.bincount(row, values, n_rows).astype(np.float64, copy=False)  # integers where there is nothing to add
