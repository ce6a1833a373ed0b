"""What every way to solve the equations of transient states has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: What iterations aim at where nothing else is said.
TOLERANCE = 1e-10


class Factorization(ABC):
    """``I - Q`` of m transient states, prepared for solving; a non-negative right-hand side has such a solution.

    Attributes:
        size: the number m of states.
        componentwise: whether every component is accurate to a few units of rounding times m, whatever the condition:
            so it is with elimination that never subtracts, and a right-hand side without negative entries.
        finest: the tolerance below which `approximate` gets no better.
    """

    size: int
    componentwise: bool
    finest: float = TOLERANCE

    def solve(self, rhs: Floats) -> Floats:
        """``(I - Q) x = rhs``; shape (m,) or (m, k), non-negative; the result has the same shape."""
        return self._solve_checked(rhs, transposed=False, tolerance=None)

    def solve_transposed(self, rhs: Floats) -> Floats:
        """``x (I - Q) = rhs`` (a row vector of visits from a start); shape (m,) or (m, k), one system a column."""
        return self._solve_checked(rhs, transposed=True, tolerance=None)

    def approximate(self, rhs: Floats, *, transposed: bool, tolerance: float = TOLERANCE) -> Floats:
        """A solution good to several digits, for any right-hand side; it is the step of a refinement.

        ``tolerance`` is what an iteration aims at, relative to the largest component; elimination is as good as it is.
        """
        return self._solve_checked(rhs, transposed=transposed, tolerance=tolerance)

    def _solve_checked(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:
        rhs = np.asarray(rhs, dtype=np.float64)
        if rhs.ndim not in {1, 2} or rhs.shape[0] != self.size:
            raise ValueError(f"{self.size} states need a right-hand side of that length, not of shape {rhs.shape}")
        columns = rhs[:, None] if rhs.ndim == 1 else rhs
        if self.size == 0 or columns.shape[1] == 0:
            return np.zeros_like(rhs)
        return self._solve(columns, transposed=transposed, tolerance=tolerance).reshape(rhs.shape)

    @abstractmethod
    def _solve(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:
        """For a right-hand side of shape (m, k), m and k positive; without a tolerance as well as doubles allow."""
