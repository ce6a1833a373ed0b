"""The optimality equation of many states by value iteration, with bounds that one rigorous step proves.

Where each policy leaves the unknown states the equation has one solution, and since it is monotone, values that one
step of it does not raise are an upper bound, and such that one does not lower are a lower bound (induction of Park).
Plain value iteration comes close to the solution x; with w the greatest expected number of steps before the unknown
states are left, ``x + d w`` and ``x - d w`` are such bounds for a distance d of about the residual (Hartmanns and
Kaminski, CAV 2020). Where policies may earn for ever instead, iterating upward from zero with every step rounded
downward gives a lower bound; an upper one is the value of any policy, which is left to the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.closedform.decision.equation import extended
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.stochastic_step import StochasticStep

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.decision.equation import OptimalityEquation

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]

#: Value iteration ends at a relative change of this, and is given up after so many sweeps, or multiplications.
_CHANGE, _MOST_SWEEPS, _MOST_WORK = 1e-14, 5_000, 5e9
_MOST_DOUBLINGS = 40


def solve_by_iteration(equation: OptimalityEquation, matrix: csr_array) -> tuple[EnclosureVector, Indices] | None:
    """Bounds of the solution in all states and a policy that is optimal up to rounding, shape (u,); None without any.

    Args:
        equation: what is solved. matrix: the rows of the process in doubles, off by two roundings, shape (m, n).

    Returns:
        Upper bounds are infinite unless every choice leaves the unknown states.
    """
    iteration = _Iteration(equation, csr_array(extended(matrix)[equation.rows]))
    values = iteration.limit(equation.known.astype(np.float64), iteration.gains)
    if values is None:
        return None
    policy = iteration.policy(values)
    if not equation.is_proper(policy):
        return None
    bounds = iteration.proved_around(values) if equation.every_choice_leaves else iteration.proved_below()
    return None if bounds is None else (EnclosureVector.from_bounds(values, *bounds), policy)


class _Iteration:
    """Steps of an equation, in plain doubles and rounded outward; vectors have shape (n,)."""

    def __init__(self, equation: OptimalityEquation, rows: csr_array) -> None:
        self.equation = equation
        self.rows = rows
        self.starts = equation.choices.starts[:-1]
        self.optimum = np.maximum if equation.maximise else np.minimum
        k = len(equation.rows)
        earned = None if equation.gains is None else EnclosureVector.from_fractions(equation.gains.tolist()).to_float()
        self.gains: Floats = np.zeros(k) if earned is None else earned.value
        self._rigorous = StochasticStep(rows, np.arange(k), earned)

    def limit(self, start: Floats, gains: Floats, *, longest: bool = False) -> Floats | None:
        """Where the iteration goes; with ``longest`` the greatest values, until they rise by half a step at most."""
        values, unknown = start.copy(), self.equation.unknown
        optimum = np.maximum if longest else self.optimum
        for _ in range(self._affordable(self.rows.nnz)):
            new = optimum.reduceat(self.rows @ values + gains, self.starts)
            change = np.abs(new - values)[unknown]
            values[unknown] = new[unknown]
            if not np.isfinite(change).all():
                return None
            if longest and change.max() <= 0.5:
                return values
            if not longest and bool((change <= _CHANGE * np.maximum(1.0, values[unknown])).all()):
                return values
        return None

    def policy(self, values: Floats) -> Indices:
        """The best choice of each unknown state, the first of equals."""
        worth = (self.rows @ values + self.gains) * (1.0 if self.equation.maximise else -1.0)
        best = np.repeat(np.maximum.reduceat(worth, self.starts), np.diff(self.equation.choices.starts))
        attaining = np.flatnonzero(worth >= best)
        return attaining[np.searchsorted(attaining, self.starts)][self.equation.unknown]

    def step(self, values: Floats) -> tuple[Floats, Floats]:
        """Lower and upper bounds of one step."""
        stepped = self._rigorous.apply(np.stack([values] * 3, axis=1))
        return self.optimum.reduceat(stepped[:, 1], self.starts), self.optimum.reduceat(stepped[:, 2], self.starts)

    def proved_around(self, values: Floats) -> tuple[Floats, Floats] | None:
        """A lower and an upper bound near to values, or None."""
        unknown = self.equation.unknown
        stay = self.limit(np.zeros(len(values)), np.ones(len(self.rows.indptr) - 1), longest=True)
        if stay is None:
            return None
        weights = 2 * stay + 1
        found = []
        for upper in (False, True):
            sign = 1.0 if upper else -1.0
            residual = sign * (self.step(values)[upper] - values)
            distance = max(2 * float(np.max(residual, where=unknown, initial=0)), 1e-300)
            for _ in range(_MOST_DOUBLINGS):
                candidate = np.where(unknown, values + sign * distance * weights, values)
                if not upper:
                    candidate = np.maximum(candidate, 0.0)
                if bool((sign * (self.step(candidate)[upper] - candidate)[unknown] <= 0).all()):
                    found.append(candidate)
                    break
                distance = max(2 * distance, 2.0**-60 * float(np.max(values / weights)))
        return (found[0], found[1]) if len(found) == 2 else None

    @staticmethod
    def _affordable(work: int) -> int:
        """How many sweeps of so many multiplications are taken at most."""
        return int(min(_MOST_SWEEPS, _MOST_WORK / work))

    def proved_below(self) -> tuple[Floats, Floats] | None:
        """A lower bound, and none above."""
        unknown = self.equation.unknown
        values = self.equation.known.astype(np.float64)
        for _ in range(self._affordable(5 * self.rows.nnz)):
            below = np.maximum(self.step(values)[0], values)
            change = (below - values)[unknown]
            values[unknown] = below[unknown]
            if bool((change <= _CHANGE * np.maximum(1.0, values[unknown])).all()):
                break
        return values, np.where(unknown, np.inf, values)
