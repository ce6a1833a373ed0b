"""Strongly connected components one after the other: what a run has left for good is no part of what is ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from tracebridge.closedform.linear_solver import Factorization

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Factorize = Callable[[csr_array, Floats, bool], Factorization]

#: Components of up to so many states are taken together, in their order.
SMALL_COMPONENT = 64

#: More blocks than this are not worth their overhead.
MOST_BLOCKS = 500


class Block(NamedTuple):
    """Some states, and whether they are one component; if not, many small ones, each before what leads to it."""

    states: Indices
    connected: bool


def blocks_in_order(pattern: csr_array) -> list[Block] | None:
    """All states in blocks such that a run goes from a block to itself and to blocks before it, never to a later one.

    None if all states are one component, or the blocks are too many.
    """
    n_components, component = connected_components(pattern, directed=True, connection="strong")
    if n_components == 1:
        return None
    rows = np.repeat(component, np.diff(pattern.indptr))
    onward = component[pattern.indices]
    if np.any(onward > rows):
        component, rows, onward = n_components - 1 - component, n_components - 1 - rows, n_components - 1 - onward
        if np.any(onward > rows):
            return None
    sizes = np.bincount(component, minlength=n_components)
    large = sizes > SMALL_COMPONENT
    begins = large | np.concatenate([[True], large[:-1]])  # a block begins with every large component and behind it
    if np.count_nonzero(begins) > MOST_BLOCKS:
        return None
    order = np.argsort(component, kind="stable")
    bounds = np.cumsum(sizes)[:-1][begins[1:]]
    parts = np.split(order, bounds)
    return [Block(states, bool(connected)) for states, connected in zip(parts, large[begins], strict=True)]


class BlockTriangular(Factorization):
    """``I - Q`` by blocks, each with a factorization of its own."""

    def __init__(self, offdiagonal: csr_array, exits: Floats, blocks: list[Block], factorize: Factorize) -> None:
        """Factorize every block.

        Args:
            offdiagonal: shape (m, m), no diagonal. exits: shape (m,). blocks: see `blocks_in_order`.
            factorize: takes matrix and exits of a block, where what leaves the block is one more exit, and whether it
                is one component.
        """
        self.size = len(exits)
        self._parts: list[tuple[Indices, csr_array, Factorization]] = []
        for states, connected in blocks:
            rows = csr_array(offdiagonal[states])
            inside = np.zeros(self.size, dtype=np.bool_)
            inside[states] = True
            onward = csr_array(rows, copy=True)
            onward.data[inside[rows.indices]] = 0.0
            onward.eliminate_zeros()
            leaving = exits[states] + np.asarray(onward.sum(axis=1)).ravel()
            self._parts.append((states, onward, factorize(csr_array(rows[:, states]), leaving, connected)))
        self.componentwise = all(factors.componentwise for _, _, factors in self._parts)

    def _solve(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:
        x = np.zeros_like(rhs)
        if transposed:
            inflow = rhs.copy()
            for states, onward, factors in reversed(self._parts):
                x[states] = factors._solve_checked(inflow[states], transposed=True, tolerance=tolerance)
                inflow += onward.T @ x[states]
            return x
        for states, onward, factors in self._parts:
            x[states] = factors._solve_checked(rhs[states] + onward @ x, transposed=False, tolerance=tolerance)
        return x
