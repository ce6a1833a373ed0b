"""The product of a chain with an automaton of formulas: its graph, and in which order equations on it are solved.

A node is a formula and a state: the formula that the run from this state on still has to satisfy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from tracebridge.chain import graph
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tracebridge.closedform.ltl.progression import Automaton

    Mask = NDArray[np.bool_]
    Nodes = NDArray[np.bool_]  # shape (formulas, states)
    Integers = NDArray[np.int64]

#: Products with more transitions than this are refused: about a gigabyte while their graph is searched.
MAX_PRODUCT_TRANSITIONS = 20_000_000


class Rows(Protocol):
    """Where the entries of a sparse matrix stand."""

    @property
    def indptr(self) -> NDArray[np.integer]:
        """Where each row begins, and the last one ends."""

    @property
    def indices(self) -> NDArray[np.integer]:
        """The column of each entry."""


class Product:
    """The nodes of F formulas and n states; a set of them is a mask of shape (F, n)."""

    def __init__(self, matrix: csr_array, letter_of_state: Integers, automaton: Automaton) -> None:
        """Raises UnsupportedError above `MAX_PRODUCT_TRANSITIONS`."""
        self.forms = automaton.forms
        size = len(self.forms) * matrix.nnz
        if size > MAX_PRODUCT_TRANSITIONS:
            raise UnsupportedError(
                f"the path formula is too large for this chain: {len(self.forms)} formulas times {matrix.nnz} "
                f"transitions are more than {MAX_PRODUCT_TRANSITIONS}"
            )
        #: The formula after each node, shape (F, n); -1 where the automaton cannot be.
        self.following: Integers = automaton.table[:, letter_of_state]
        self._graph = self._edges(matrix)

    def reachable(self, sources: Nodes) -> Nodes:
        """Nodes that are reachable from some nodes in zero or more steps."""
        return graph.reachable(self._graph, sources.ravel()).reshape(sources.shape)

    def reaching(self, targets: Nodes, *, through: Nodes | None = None) -> Nodes:
        """Nodes from which some can be reached in zero or more steps, all before the last in ``through``."""
        if through is not None:
            return graph.reaching(self._graph, targets.ravel(), through=through.ravel()).reshape(targets.shape)
        return graph.reachable(self._reversed, targets.ravel()).reshape(targets.shape)

    def solution_order(self, open_: Nodes) -> Iterator[Layer]:
        """The open nodes in layers, so that equations on each lead to the same layer and earlier ones only.

        Sets of formulas that lead to each other come together; most are a single formula. What leads out of its set at
        once is one step on from earlier layers, the rest of the set is one system of equations. The sets of a layer do
        not depend on each other.
        """
        for sets in _strong_sets(self.following, open_):
            steps: list[tuple[int, Mask]] = []
            systems: list[tuple[Integers, Integers]] = []
            for members in sets:
                among = open_[members] & np.isin(self.following[members], members)
                leading_out = ((i, open_[i] & ~inside) for i, inside in zip(members.tolist(), among, strict=True))
                steps += [(i, states) for i, states in leading_out if states.any()]
                rows, states = np.nonzero(among)
                if len(rows):
                    systems.append((members[rows], states))
            yield Layer(steps, systems)

    def leaving(self, matrix: Rows, formulas: Integers, states: Integers) -> Transitions:
        """The transitions of some nodes, for the matrix of the chain."""
        lengths = np.diff(matrix.indptr)[states]
        ends = np.cumsum(lengths)
        entries = np.repeat(matrix.indptr[states] - (ends - lengths), lengths) + np.arange(ends[-1])
        n = self.following.shape[1]
        targets = np.repeat(self.following[formulas, states], lengths) * n + matrix.indices[entries]
        return Transitions(lengths, entries, targets)

    @cached_property
    def _reversed(self) -> csr_array:
        return csr_array(self._graph.T.tocsr())

    def _edges(self, matrix: csr_array) -> csr_array:
        n_forms, n = self.following.shape
        lengths = np.tile(np.diff(matrix.indptr), n_forms)
        after = self.following.ravel()
        columns = np.tile(matrix.indices.astype(np.int64), n_forms) + np.repeat(after, lengths) * n
        columns = columns[np.repeat(after >= 0, lengths)]
        indptr = np.r_[0, np.cumsum(np.where(after >= 0, lengths, 0))]
        return csr_array((np.ones(len(columns), dtype=np.int8), columns, indptr), shape=(n_forms * n, n_forms * n))


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Open nodes whose equations need no other nodes than those of earlier layers and their own.

    Attributes:
        steps: a formula and the states, shape (n,), from which its nodes lead to earlier layers at once.
        systems: formulas and states of the nodes whose equations are solved together, in ascending order.
    """

    steps: list[tuple[int, Mask]]
    systems: list[tuple[Integers, Integers]]


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """What leaves some nodes, one node after the other.

    Attributes:
        lengths: how many transitions each node has. entries: the place of each among the entries of the chain's matrix.
        targets: the node that each leads to, ``formula * n + state``.
    """

    lengths: Integers
    entries: Integers
    targets: Integers


def _strong_sets(following: Integers, open_: Nodes) -> Iterator[list[Integers]]:
    """Layers of sets of formulas that lead to each other on open nodes."""
    n_forms = len(following)
    rows, columns = np.nonzero(open_)
    edges = np.unique(rows * n_forms + following[rows, columns])
    sources, targets = np.divmod(edges, n_forms)
    matrix = csr_array((np.ones(len(edges)), (sources, targets)), shape=(n_forms, n_forms))
    count, component = connected_components(matrix, directed=True, connection="strong")
    after: dict[int, set[int]] = {c: set() for c in range(count)}
    for a, b in zip(component[sources].tolist(), component[targets].tolist(), strict=True):
        if a != b:
            after[a].add(b)
    members = np.argsort(component, kind="stable")
    starts = np.searchsorted(component[members], np.arange(count + 1))
    sorter = TopologicalSorter(after)
    sorter.prepare()
    while sorter.is_active():
        layer = sorted(sorter.get_ready())
        yield [members[starts[c] : starts[c + 1]] for c in layer]
        sorter.done(*layer)
