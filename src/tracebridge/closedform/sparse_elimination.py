"""Elimination of a sparse matrix without subtraction, in an order that keeps it sparse.

States are censored one by one, always one with the fewest detours to add (predecessors times successors, Markowitz,
Management Sci. 3, 1957). States on no cycle cost nothing, corridors and trees next to nothing. What is left when states
become expensive is the *core*, where everything leads to everything: it is solved as a full matrix, or by iteration if
it is large and mixes well.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from tracebridge.closedform.dense_elimination import DenseElimination
from tracebridge.closedform.krylov import JumpChainIteration, NoConvergenceError
from tracebridge.closedform.linear_solver import Factorization
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Triplets = list[tuple[int, int, Any]]

#: Detours that elimination may add in all, half a microsecond each; enough for a core of 12,000 states.
MAX_WORK = 200_000_000

#: A core of so many states is solved as a full matrix before anything else is tried.
DENSE_CORE = 2_000

_ENTRY = 5  # a transition costs about as much as so many detours before anything is eliminated
_CHEAP = 6  # detours that a state may cost while other means are not tried
_FULL_ADVANTAGE = 3_000  # how many entries a full elimination updates while a sparse one adds a detour


class SparseElimination(Factorization):
    """``I - Q = L C U``: the censored states in triangles L and U, the core in C."""

    def __init__(self, offdiagonal: csr_array, exits: Floats, *, max_work: int | None = None) -> None:
        """Eliminate.

        Args:
            offdiagonal: shape (m, m), no diagonal. exits: shape (m,). max_work: instead of `MAX_WORK`.

        Raises:
            EngineError: if the mass that leaves a state is beyond doubles, or the core is large and mixes too slowly.
        """
        self.size = len(exits)
        self._max_work = MAX_WORK if max_work is None else max_work
        self._offdiagonal, self._exits = offdiagonal, exits
        self._eliminate(iterate=True)

    def _eliminate(self, *, iterate: bool) -> None:
        if self._offdiagonal.nnz * _ENTRY > self._max_work:
            raise EngineError(
                f"the linear system of {self.size} states is too hard for doubles: {self._offdiagonal.nnz} transitions "
                "are too many to be eliminated one by one"
            )
        bounds = self._offdiagonal.indptr.tolist()
        targets, masses = self._offdiagonal.indices.tolist(), self._offdiagonal.data.tolist()
        successors = [dict(zip(targets[a:b], masses[a:b], strict=True)) for a, b in pairwise(bounds)]
        censoring = Censoring(successors, self._exits.tolist(), fsum)
        censoring.run(lambda _: _CHEAP, self._max_work)
        core: Factorization | None = None
        if censoring.left > DENSE_CORE and iterate:
            iteration = JumpChainIteration(*censoring.core())
            core = iteration if iteration.converges() else None
        if core is None:
            if censoring.left > DENSE_CORE:  # a state stays in the core if it is cheaper there
                censoring.run(lambda left: left * left / _FULL_ADVANTAGE, self._max_work)
            if censoring.work + censoring.left**3 / (3 * _FULL_ADVANTAGE) > self._max_work:
                raise EngineError(
                    f"the linear system of {self.size} states is too hard for doubles: {censoring.left} of them lead "
                    "to one another in too many ways to be eliminated, and too slowly for an iteration"
                )
            matrix, exits = censoring.core()
            core = DenseElimination(matrix.toarray(), exits)
        self._core = core
        self.componentwise = core.componentwise
        self._order, self._pivots, self._lower, self._upper = censoring.factors()

    def _solve(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:
        try:
            return self._substitute(rhs, transposed=transposed, tolerance=tolerance)
        except NoConvergenceError:
            self._eliminate(iterate=False)
            return self._substitute(rhs, transposed=transposed, tolerance=tolerance)

    def _substitute(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:
        first, second = (self._upper, self._lower) if transposed else (self._lower, self._upper)
        mode = "T" if transposed else "N"
        x = np.asarray(first.solve(rhs[self._order], trans=mode))
        censored = len(self._pivots)
        with np.errstate(over="ignore"):  # a number beyond all doubles is infinite
            x[:censored] /= self._pivots[:, None]
        x[censored:] = self._core._solve_checked(x[censored:], transposed=transposed, tolerance=tolerance)
        result = np.empty_like(x)
        result[self._order] = second.solve(x, trans=mode)
        return result


class Censoring:
    """The work of elimination: for every state that is left its successors, with the mass, and its predecessors.

    Masses are doubles, or balls (flint ``arb``).

    Attributes:
        censored: the states without the core, in the order in which they were censored. pivots: what left them then.
        shares: entries (predecessor, state, share) of the rows of predecessors, in the places of L, in that order.
        onward: entries (state, successor, probability) of the states themselves, in the places of U, in that order.
        work: detours so far.
    """

    def __init__(
        self, successors: list[dict[int, Any]], exits: list[Any], total: Callable[[Iterable[Any]], Any]
    ) -> None:
        """Takes over ``successors``, the mass that goes to each from each state, and ``exits``; ``total`` adds up."""
        self._successors = successors
        self._total = total
        self._predecessors: list[dict[int, None]] = [{} for _ in self._successors]  # ordered, unlike a set
        for source, row in enumerate(self._successors):
            for target in row:
                self._predecessors[target][source] = None
        self._exits = exits
        self._queue = [(self._detours(state), state) for state in range(len(self._exits))]
        heapify(self._queue)
        self._gone = [False] * len(self._exits)
        self.censored: list[int] = []
        self.pivots: list[Any] = []
        self.shares: Triplets = []
        self.onward: Triplets = []
        self.work = 0

    @property
    def left(self) -> int:
        """The number of states in the core."""
        return len(self._exits) - len(self.censored)

    def run(self, affordable: Callable[[int], float], max_work: int) -> None:
        """Censor states while the cheapest has at most ``affordable(states left)`` detours and work is left."""
        while self._queue:
            detours, state = heappop(self._queue)
            if self._gone[state] or detours != self._detours(state):
                continue
            if detours > affordable(self.left) or self.work > max_work:
                heappush(self._queue, (detours, state))
                return
            self.work += detours
            self._censor(state)

    def _detours(self, state: int) -> int:
        return len(self._successors[state]) * len(self._predecessors[state])

    def _censor(self, state: int) -> None:
        row, into = self._successors[state], self._predecessors[state]
        pivot = self._total(row.values()) + self._exits[state]
        if not 0 < pivot < math.inf:
            raise EngineError(f"the mass leaving state {state} of the set is beyond the range of doubles")
        self._gone[state] = True
        self.censored.append(state)
        self.pivots.append(pivot)
        for target, mass in row.items():
            del self._predecessors[target][state]
            self.onward.append((state, target, mass / pivot))
        for source in into:
            onward = self._successors[source]
            share = onward.pop(state) / pivot
            self.shares.append((source, state, share))
            self._exits[source] += share * self._exits[state]
            for target, mass in row.items():
                if target in onward:
                    onward[target] += share * mass
                elif target != source:  # the way back is no way out: the diagonal is what leaves
                    onward[target] = share * mass
                    self._predecessors[target][source] = None
        for neighbour in dict.fromkeys([*into, *row]):
            heappush(self._queue, (self._detours(neighbour), neighbour))

    def core(self) -> tuple[csr_array, Floats]:
        """Off-diagonal matrix and exits of the states that are left, ascending."""
        states = [state for state, gone in enumerate(self._gone) if not gone]
        position = {state: i for i, state in enumerate(states)}
        rows = [position[state] for state in states for _ in self._successors[state]]
        columns = [position[target] for state in states for target in self._successors[state]]
        masses = np.array([mass for state in states for mass in self._successors[state].values()], dtype=np.float64)
        matrix = csr_array((masses, (rows, columns)), shape=(len(states), len(states)))
        return matrix, np.array([self._exits[state] for state in states], dtype=np.float64)

    def factors(self) -> tuple[NDArray[np.int64], Floats, Any, Any]:
        """States in the order of elimination, the core last; pivots; solvers with the unit triangles L and U."""
        order = np.array(self.censored + [state for state, gone in enumerate(self._gone) if not gone], dtype=np.int64)
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        return (
            order,
            np.array(self.pivots, dtype=np.float64),
            _unit_triangle(self.shares, position),
            _unit_triangle(self.onward, position),
        )


def _unit_triangle(triplets: Triplets, position: NDArray[np.int64]) -> Any:
    """A solver with ``I - T``, T strictly triangular: its factors are the matrix itself and the identity."""
    rows, columns = (np.array([triplet[side] for triplet in triplets], dtype=np.int64) for side in (0, 1))
    values = np.array([triplet[2] for triplet in triplets], dtype=np.float64)
    m = len(position)
    strict = csr_array((values, (position[rows], position[columns])), shape=(m, m))
    return splu((eye_array(m) - strict).tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0.0, relax=1, panel_size=1)
