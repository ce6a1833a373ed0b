"""Linear equations on the product of a chain with an automaton of formulas, in rigorous arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.rational_solution import EXACT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.ltl.product import Product

    Mask = NDArray[np.bool_]
    Nodes = NDArray[np.bool_]  # shape (formulas, states)
    Integers = NDArray[np.int64]

#: So many nodes are solved for at once in doubles; as many can be solved for in rationals if doubles fail.
BUNDLE = EXACT_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductEquations:
    """``x = gain + P x`` on the open nodes of a product, which are left almost surely; elsewhere x is given.

    They are solved one set of formulas that lead to each other after the other, the last ones first. Most sets are a
    single formula, and its equations are some of the chain's own. In doubles, where a few equations cost as much as
    some hundred, sets that do not depend on each other are solved at once.

    Attributes:
        open: shape (F, n).
        given: F vectors, looked at where a node is not open. gain: F vectors, None for none.
    """

    arithmetic: Arithmetic
    product: Product
    open: Nodes
    given: Sequence[EnclosureVector]
    gain: Sequence[EnclosureVector] | None = None

    def solve(self) -> list[EnclosureVector]:
        """x, one vector a formula."""
        x = list(self.given)
        for layer in self.product.solution_order(self.open):
            for i, rows in layer.steps:
                self._step(x, i, rows)
            for nodes in _bundles(layer.systems, 0 if self.arithmetic.exact else BUNDLE):
                self._solve_together(x, *nodes)
        return x

    def _gain(self, i: int) -> EnclosureVector | None:
        return None if self.gain is None else self.gain[i]

    def _step(self, x: list[EnclosureVector], i: int, rows: Mask) -> None:
        """The nodes of formula i whose next formula is solved already."""
        following = self.product.following[i]
        numbers = np.unique(following[rows])
        source = np.where(rows, np.searchsorted(numbers, following), -1)
        new = self.arithmetic.advance([x[j] for j in numbers.tolist()], source, self._gain(i))
        x[i] = EnclosureVector.where(rows, new, x[i])

    def _solve_together(self, x: list[EnclosureVector], formulas: Integers, states: Integers) -> None:
        """The equations of some nodes; of several formulas, as those of a chain of their own."""
        if formulas[0] == formulas[-1]:
            i = int(formulas[0])
            active = np.zeros(self.open.shape[1], dtype=np.bool_)
            active[states] = True
            x[i] = self.arithmetic.solve(active, x[i], self._gain(i))
            return
        P = self.arithmetic.chain.exact_transitions()
        n = P.n_columns
        nodes = formulas * n + states
        leaving = self.product.leaving(P, formulas, states)
        local = np.union1d(nodes, leaving.targets)
        is_open = np.isin(local, nodes)
        # the rows of the nodes as they are; what lies around them stays where it is
        row_lengths = np.ones(len(local), dtype=np.int64)
        row_lengths[is_open] = leaving.lengths
        of_node = np.repeat(is_open, row_lengths)
        indices = np.repeat(np.arange(len(local)), row_lengths)
        indices[of_node] = np.searchsorted(local, leaving.targets)
        numerators = np.ones(len(indices), dtype=P.numerators.dtype)
        numerators[of_node] = P.numerators[leaving.entries]
        denominators = np.ones(len(local), dtype=P.denominators.dtype)
        denominators[is_open] = P.denominators[states]
        chain = MarkovChain(
            states=tuple(map(str, range(len(local)))),
            transitions=RationalMatrix(np.r_[0, np.cumsum(row_lengths)], indices, numerators, denominators, len(local)),
            initial=(np.arange(len(local)) == 0).astype(np.float64),
        )
        local_formulas, local_states = np.divmod(local, n)
        gain = None if self.gain is None else _gather(self.gain, local_formulas, local_states)
        solution = self.arithmetic.on(chain).solve(is_open, _gather(x, local_formulas, local_states), gain)
        at_nodes = solution.take(is_open)
        for i in np.unique(formulas).tolist():
            of_formula = formulas == i
            x[i] = _scatter(x[i], states[of_formula], at_nodes.take(of_formula))


def _bundles(parts: list[tuple[Integers, Integers]], size: int) -> Iterator[tuple[Integers, Integers]]:
    """Independent sets of nodes put together in bundles of at most ``size`` nodes, or as they are if larger."""
    bundle: list[tuple[Integers, Integers]] = []
    for part in parts:
        if bundle and sum(len(states) for _, states in bundle) + len(part[1]) > size:
            yield _joined(bundle)
            bundle = []
        bundle.append(part)
    if bundle:
        yield _joined(bundle)


def _joined(bundle: list[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """Formulas and states, ordered by formula."""
    formulas, states = (np.concatenate(column) for column in zip(*bundle, strict=True))
    order = np.argsort(formulas, kind="stable")
    return formulas[order], states[order]


def _gather(vectors: Sequence[EnclosureVector], formulas: Integers, states: Integers) -> EnclosureVector:
    """The entries ``vectors[formula][state]``."""
    exact = vectors[0].exact
    values = [np.empty(len(states), dtype=object if exact else np.float64) for _ in range(1 if exact else 3)]
    for i in np.unique(formulas).tolist():
        of_formula = formulas == i
        for column, part in zip(values, ("value", "lower", "upper"), strict=False):
            column[of_formula] = getattr(vectors[i], part)[states[of_formula]]
    return EnclosureVector(*(values * 3)[:3])


def _scatter(vector: EnclosureVector, states: Integers, entries: EnclosureVector) -> EnclosureVector:
    """The vector with other entries at some states."""
    columns = [getattr(vector, part).copy() for part in (("value",) if vector.exact else ("value", "lower", "upper"))]
    for column, part in zip(columns, ("value", "lower", "upper"), strict=False):
        column[states] = getattr(entries, part)
    return EnclosureVector(*(columns * 3)[:3])
