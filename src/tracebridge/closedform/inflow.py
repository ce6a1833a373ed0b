"""What flows into a set of states in one step, in rationals: the right-hand side of ``x = gain + P x`` on the set."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.rational import RationalMatrix
    from tracebridge.closedform.arithmetic import Mask


def inflow(rows: RationalMatrix, active: Mask, boundary: NDArray[Any], gain: NDArray[Any] | None) -> list[Fraction]:
    """``gain_i + sum_j p_ij boundary_j`` over the inactive j, in rationals; ``rows`` and gain are of the active i."""
    kept = ~active[rows.indices]
    sources, targets = rows.row_of_entry[kept], rows.indices[kept]
    sums = np.zeros(rows.shape[0], dtype=object)
    np.add.at(sums, sources, rows.numerators[kept].astype(object) * _as_rationals(boundary[targets]))
    sums_by_row = [
        Fraction(total) / bottom if isinstance(total, Fraction) else Fraction(total, bottom)
        for total, bottom in zip(sums.tolist(), rows.denominators.tolist(), strict=True)
    ]
    if gain is None:
        return sums_by_row
    return [a + b for a, b in zip(sums_by_row, _as_rationals(gain).tolist(), strict=True)]


def _as_rationals(values: NDArray[Any]) -> NDArray[Any]:
    """Doubles or Fractions as Fractions, whole numbers as ints, dtype object."""
    result = np.empty(len(values), dtype=object)
    result[:] = [int(x) if x == int(x) else Fraction(x) for x in values.tolist()]
    return result
