"""The equations ``x = gain + P x`` of one set of states for many boundaries, by where the set is left.

A run that starts in the set leaves it at each state outside with some probability. These are found once, one solution a
state, and then every boundary is a weighted mean.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import reaching
from tracebridge.closedform import directed
from tracebridge.closedform.enclosure import EnclosureVector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.arithmetic import Arithmetic

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]

#: Entries of a table of exit probabilities.
MAX_ENTRIES = 250_000

_SOLUTION_WORK = 20_000  # of one state in a solution with rigorous bounds

_UNIT, _SUBNORMAL = 2.0**-53, 2.0**-1074


class BoundarySolver:
    """`Arithmetic.solve` for one set and gain; from the call on at which that pays, by exit probabilities."""

    def __init__(self, arithmetic: Arithmetic, active: Mask, gain: EnclosureVector | None) -> None:
        self._arithmetic = arithmetic
        self._active = active
        self._gain = gain
        matrix = arithmetic.chain.transitions
        rows = np.flatnonzero(active)
        successors = np.unique(matrix[rows].indices)
        self._rows = rows
        self._exits = successors[~active[successors]]
        self._calls = 0
        self._table: ExitDistribution | None = None

    @property
    def work(self) -> float:
        """About the cost of a call, in multiplications."""
        return float(len(self._rows) * (len(self._exits) if self._may_tabulate else _SOLUTION_WORK))

    @property
    def _may_tabulate(self) -> bool:
        return len(self._rows) * len(self._exits) <= MAX_ENTRIES

    def __call__(self, boundary: EnclosureVector) -> EnclosureVector:
        """The solution in the set, else the boundary."""
        if not len(self._rows):
            return boundary
        self._calls += 1
        if not self._may_tabulate or self._calls <= len(self._exits):
            return self._solved(boundary)
        if self._table is None:
            self._table = ExitDistribution(self._arithmetic, self._active, self._exits, self._gain)
        return self._table.mean_of(boundary)

    def _solved(self, boundary: EnclosureVector) -> EnclosureVector:
        """By `Arithmetic.solve`; a mean of numbers that all are the largest possible is exactly that."""
        solution = self._arithmetic.solve(self._active, boundary, self._gain)
        if self._gain is not None or solution.exact:
            return solution
        most = boundary.lower[self._exits].max()
        less = np.zeros_like(self._active)
        less[self._exits] = boundary.lower[self._exits] < most
        sure = self._active & ~reaching(self._arithmetic.chain.transitions, less, through=self._active)
        lower = np.where(sure, np.maximum(solution.lower, most), solution.lower)
        return EnclosureVector.from_bounds(solution.value, lower, np.maximum(solution.upper, lower))


class ExitDistribution:
    """Where a set that is left almost surely is left, from each of its states."""

    def __init__(
        self, arithmetic: Arithmetic, active: Mask, exits: NDArray[np.int64], gain: EnclosureVector | None
    ) -> None:
        """All of ``exits``, states outside, are successors of states of the set, and no others are."""
        self._rows, self._exits = np.flatnonzero(active), exits
        states = np.arange(len(active))
        columns = [arithmetic.solve(active, arithmetic.vector(states == t)).take(self._rows) for t in exits.tolist()]
        self._columns = tuple(
            np.stack([getattr(x, part) for x in columns], axis=1) for part in ("value", "lower", "upper")
        )
        zero = arithmetic.vector(np.zeros_like(active))
        self._gain = None if gain is None else arithmetic.solve(active, zero, gain).take(self._rows)

    def mean_of(self, boundary: EnclosureVector) -> EnclosureVector:
        """The solution in the set for this boundary, else the boundary."""
        if boundary.exact:
            return self._exact_mean(boundary)
        at_exits = boundary.take(self._exits)
        value, lower, upper = self._columns
        mean = value @ at_exits.value
        # k products and their sum: k + 1 roundings, and one to apply the factor, and what underflow may lose
        relative = (len(self._exits) + 4) * _UNIT
        lost = 2 * len(self._exits) * _SUBNORMAL * max(1.0, float(at_exits.upper.max()))
        low = np.maximum((lower @ at_exits.lower) * (1 - relative) - lost, 0.0)
        high = (upper @ at_exits.upper) * (1 + relative) + lost
        possible = upper > 0
        low = np.maximum(low, np.where(possible, at_exits.lower, np.inf).min(axis=1))
        high = np.minimum(high, np.where(possible, at_exits.upper, -np.inf).max(axis=1))
        mean = np.clip(mean, low, high)
        if self._gain is not None:
            mean = mean + self._gain.value
            low, high = directed.add_down(low, self._gain.lower), directed.add_up(high, self._gain.upper)
        columns = [boundary.value.copy(), boundary.lower.copy(), boundary.upper.copy()]
        for column, part in zip(columns, (mean, low, high), strict=True):
            column[self._rows] = part
        return EnclosureVector.from_bounds(*columns)

    def _exact_mean(self, boundary: EnclosureVector) -> EnclosureVector:
        at_exits = boundary.value[self._exits].tolist()
        merged = boundary.value.tolist()
        gains = [Fraction(0)] * len(self._rows) if self._gain is None else self._gain.value.tolist()
        for i, weights, gain in zip(self._rows.tolist(), self._columns[0].tolist(), gains, strict=True):
            merged[i] = sum((w * x for w, x in zip(weights, at_exits, strict=True) if w and x), gain)
        return EnclosureVector.from_fractions(merged)
