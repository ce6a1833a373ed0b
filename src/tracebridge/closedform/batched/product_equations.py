"""Linear equations on the product of an automaton with many chains that have the same edges, and so one product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.batched.linear_system import StackedSystem, row_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.batched.chain_stack import ChainStack
    from tracebridge.closedform.ltl.product import Product

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Nodes = NDArray[np.bool_]  # shape (formulas, states)
    Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StackedProductEquations:
    """``x = gain + P x`` on the open nodes of a product, which are left almost surely; elsewhere x is given.

    The same as `tracebridge.closedform.ltl.equations.ProductEquations`, in the same order, for all draws at a time.

    Attributes:
        open: shape (F, n).
        given: F arrays of shape (n, draws) or (n, 1). gain: F arrays of shape (n,) or (n, draws); None for none.
    """

    stack: ChainStack
    product: Product
    open: Nodes
    given: Sequence[Floats]
    gain: Sequence[Floats] | None = None

    def solve(self) -> list[Floats]:
        """x, an array of the shape (n, draws) for each formula, or as given for those without open nodes."""
        x = list(self.given)
        for i in np.flatnonzero(self.open.any(axis=1)).tolist():
            x[i] = np.array(np.broadcast_to(x[i], (len(x[i]), self.stack.draws)))
        for layer in self.product.solution_order(self.open):
            for i, rows in layer.steps:
                self._step(x, i, rows)
            for formulas, states in layer.systems:
                self._solve_together(x, formulas, states)
        return x

    def _gain(self, i: int) -> Floats | None:
        return None if self.gain is None else self.gain[i]

    def _step(self, x: list[Floats], i: int, states: Mask) -> None:
        """The nodes of formula i whose next formula is solved already."""
        following = self.product.following[i]
        for j in np.unique(following[states]).tolist():
            rows = states & (following == j)
            x[i][rows] = self.stack.iterate(x[j], 1, rows, self._gain(i))[rows]

    def _solve_together(self, x: list[Floats], formulas: Integers, states: Integers) -> None:
        """The equations of some nodes; those of one formula are some of the chain's own."""
        stack, n = self.stack, self.open.shape[1]
        if formulas[0] == formulas[-1]:
            i = int(formulas[0])
            active = np.zeros(n, dtype=np.bool_)
            active[states] = True
            x[i] = stack.solve(active, x[i], self._gain(i))
            return
        nodes = formulas * n + states
        leaving = self.product.leaving(stack.chain.transitions, formulas, states)
        rows = np.repeat(np.arange(len(nodes)), leaving.lengths)
        inside = np.isin(leaving.targets, nodes)
        outside = ~inside
        leading_out = stack.entries[leaving.entries[outside]]
        exits = row_sums(rows[outside], leading_out, len(nodes))
        system = StackedSystem(
            rows[inside],
            np.searchsorted(nodes, leaving.targets[inside]),
            stack.entries[leaving.entries[inside]],
            exits,
        )
        reached = self._gathered(x, leaving.targets[outside])
        inflow = row_sums(rows[outside], leading_out * reached, len(nodes))
        if self.gain is not None:
            inflow += self._gathered([_column(gain) for gain in self.gain], nodes)
        solution = system.solve(inflow)
        for i in np.unique(formulas).tolist():
            of_formula = formulas == i
            x[i][states[of_formula]] = solution[of_formula]

    def _gathered(self, arrays: Sequence[Floats], nodes: Integers) -> Floats:
        """The rows of some nodes, shape (nodes, draws)."""
        formulas, states = np.divmod(nodes, self.open.shape[1])
        rows = np.empty((len(nodes), self.stack.draws))
        for i in np.unique(formulas).tolist():
            of_formula = formulas == i
            rows[of_formula] = arrays[i][states[of_formula]]
        return rows


def _column(values: Floats) -> Floats:
    return values[:, None] if values.ndim == 1 else values
