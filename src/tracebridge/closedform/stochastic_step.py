"""One step of a chain applied to enclosed numbers, in doubles, and the rows that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.closedform import directed
from tracebridge.closedform.accurate_product import AccurateProduct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.enclosure import EnclosureVector

    Floats = NDArray[np.float64]

_UNIT = 2.0**-53
_SUBNORMAL = 2.0**-1074
_SAFE_PRODUCT = 2.0**-960  # above this no product of a probability and an entry underflows


class StochasticStep:
    """``gain + P x`` for some rows of P and x = (value, lower, upper), shape (n, 3), with rigorous bounds.

    A row with k non-negative products has a relative error below (k + 2) 2^-53 whatever the order of its sum, k for the
    products and the sum and two for the rounding of the entries of P; the rest pays for applying the factor itself.
    Rows of the exact chain sum to one, so the result also lies between the extremes of its successors.
    """

    def __init__(self, matrix: csr_array, rows: NDArray[np.int64], gain: EnclosureVector | None) -> None:
        self._matrix = csr_array(matrix[rows])
        self._starts = self._matrix.indptr[:-1]
        self._lengths = np.diff(self._matrix.indptr)
        self._relative = (self._lengths + 6) * _UNIT
        self._smallest = float(self._matrix.data.min())
        self._gain = None if gain is None else gain.take(rows)

    @property
    def work(self) -> int:
        """The cost of one step, in multiplications."""
        return int(self._matrix.nnz) + 1_000

    def apply(self, x: Floats) -> Floats:
        """The new entries of the rows, shape (rows, 3)."""
        new = np.asarray(self._matrix @ x)
        lower, upper = new[:, 1] * (1 - self._relative), new[:, 2] * (1 + self._relative)
        positive = x[:, 1:][x[:, 1:] > 0]
        if positive.size and positive.min() * self._smallest < _SAFE_PRODUCT:
            lost = 2 * self._lengths * _SUBNORMAL * max(1.0, float(x[:, 2].max()))
            lower = np.maximum(lower - lost, 0.0)
            upper = upper + lost
        lower = np.maximum(lower, np.minimum.reduceat(x[:, 1].take(self._matrix.indices), self._starts))
        upper = np.minimum(upper, np.maximum.reduceat(x[:, 2].take(self._matrix.indices), self._starts))
        value = np.clip(new[:, 0], lower, upper)
        if self._gain is not None:
            value = value + self._gain.value
            lower = directed.add_down(lower, self._gain.lower)
            upper = directed.add_up(upper, self._gain.upper)
        return np.stack([np.clip(value, lower, upper), lower, upper], axis=1)


def distributions(rows: csr_array, *, rounded: bool) -> csr_array:
    """Rows in doubles that denote distributions; an entry is off by two roundings at most.

    Args:
        rows: CSR. rounded: they are roundings of rationals; else each row stands for its quotient by its exact sum.
    """
    if rounded:
        return rows
    sums = AccurateProduct(rows).row_sums().high
    return csr_array((rows.data / np.repeat(sums, np.diff(rows.indptr)), rows.indices, rows.indptr), shape=rows.shape)
