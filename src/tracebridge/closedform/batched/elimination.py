"""Linear equations of many absorbing chains at a time, by state reduction, which never subtracts.

Grassmann, Taksar and Heyman (1985): states are eliminated one by one; the probability of leaving a state is summed from
what leads elsewhere, never taken as one minus the probability of staying. So every entry of a solution has a small
relative error, however rare the exits are (O'Cinneide 1993), and no system is numerically singular that is not so by
its edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class StackedElimination:
    """A factorisation of ``I - Q`` for each draw; m states, the draws along the last axis.

    Args:
        Q: non-negative, shape (m, m, draws); it is overwritten.
        exits: what each state leads to outside of Q, shape (m, draws): a row of Q and its exit sum to one. From every
            state an exit must be reachable in every draw. It is overwritten.
    """

    def __init__(self, Q: Floats, exits: Floats) -> None:
        self._Q = Q
        self._leaving = np.empty_like(exits)
        m = len(Q)
        for k in range(m):
            later = slice(k + 1, m)
            self._leaving[k] = Q[k, later].sum(axis=0) + exits[k]
            Q[later, k] /= self._leaving[k]
            Q[later, later] += Q[later, k, None] * Q[k, None, later]
            exits[later] += Q[later, k] * exits[k]

    def solve(self, gains: Floats) -> Floats:
        """The x with ``x = gains + Q x`` for non-negative gains; both of shape (m, draws)."""
        Q, m = self._Q, len(self._Q)
        x = gains.copy()
        for k in range(m - 1):
            x[k + 1 :] += Q[k + 1 :, k] * x[k]
        for k in range(m - 1, -1, -1):
            x[k] = (x[k] + (Q[k, k + 1 :] * x[k + 1 :]).sum(axis=0)) / self._leaving[k]
        return x
