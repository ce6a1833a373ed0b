"""Linear equations of many absorbing chains with the same edges: side by side if they are few, else one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from tracebridge.closedform.batched.elimination import StackedElimination
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]

#: Up to so many equations are eliminated for all draws side by side, more for one draw after the other.
MOST_SIDE_BY_SIDE = 50

_MOST_DENSE_ELIMINATION = 2_000  # equations of a single chain that are eliminated densely
_SPARSE_DENSITY = 0.1


class StackedSystem:
    """``x = gains + Q x`` for each draw, m equations; the draws lie along the last axis.

    Args:
        rows, columns: where Q has entries, shape (entries,). values: the entries, non-negative, shape (entries, draws).
        exits: what each row leads to outside of Q, shape (m, draws): a row of Q and its exit sum to one. From every row
            an exit must be reachable in every draw.
    """

    def __init__(self, rows: Indices, columns: Indices, values: Floats, exits: Floats) -> None:
        self._rows, self._columns, self._values, self._exits = rows, columns, values, exits
        m, draws = exits.shape
        self._elimination: StackedElimination | None = None
        if m <= MOST_SIDE_BY_SIDE:
            Q = np.zeros((m, m, draws))
            Q[rows, columns] = values
            self._elimination = StackedElimination(Q, exits.copy())

    def solve(self, gains: Floats) -> Floats:
        """The x for non-negative gains, both of shape (m, draws); no number is negative.

        Raises:
            EngineError: a draw has no solution in doubles.
        """
        if self._elimination is not None:
            return self._elimination.solve(gains)
        x = np.empty_like(gains)
        for draw in range(gains.shape[1]):
            x[:, draw] = _solve_one(
                self._rows, self._columns, self._values[:, draw], self._exits[:, draw], gains[:, draw]
            )
        return x


def row_sums(rows: Indices, values: Floats, count: int) -> Floats:
    """Sums of the values that belong to each of so many rows, shape (rows, draws); the values' is (entries, draws)."""
    places = np.arange(len(rows))
    summed = csr_array((np.ones(len(rows)), (rows, places)), shape=(count, len(rows))) @ values
    return np.asarray(summed)


def _solve_one(own: Indices, following: Indices, values: Floats, exits: Floats, gains: Floats) -> Floats:
    """``x = gains + Q x`` of one chain; the diagonal of ``I - Q`` is summed from what leads elsewhere."""
    m = len(exits)
    elsewhere = own != following
    rows, columns, others = own[elsewhere], following[elsewhere], values[elsewhere]
    diagonal = exits + np.bincount(rows, weights=others, minlength=m)
    every = np.arange(m)
    entries = (np.concatenate([-others, diagonal]), (np.concatenate([rows, every]), np.concatenate([columns, every])))
    system = csc_array(entries, shape=(m, m))
    try:
        x = splu(system).solve(gains) if system.nnz < _SPARSE_DENSITY * m * m else _dense_solution(system, gains)
    except (RuntimeError, np.linalg.LinAlgError):  # singular as far as doubles can tell
        x = np.full(m, np.nan)
    if np.isfinite(x).all():
        return np.maximum(x, 0.0)
    if m > _MOST_DENSE_ELIMINATION:
        raise EngineError(f"a draw of a chain of {m} states has no solution in doubles")
    Q = np.zeros((m, m, 1))
    Q[own, following, 0] = values
    return StackedElimination(Q, exits[:, None].copy()).solve(gains[:, None])[:, 0]


def _dense_solution(system: csc_array, gains: Floats) -> Floats:
    return np.asarray(np.linalg.solve(system.toarray(), gains))
