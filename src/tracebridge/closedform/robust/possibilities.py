"""What the edges of an interval chain alone decide: probabilities zero and one, and where nature can stay for ever.

An edge with a positive upper bound *may* exist, one with a lower bound of zero may vanish, and a set of states can be
stayed in if each of them has a row inside it: no positive lower bound leads out and the upper bounds inside sum to one
at least. Sums are compared with one exactly. Baier and Katoen, Principles of Model Checking, section 10.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from tracebridge.chain.graph import reaching
from tracebridge.chain.interval import compared_with_one
from tracebridge.closedform.robust.rows import IntervalRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.interval import IntervalChain

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Possibilities:
    """The edges that nature may use, each with positive probability: ``rows`` has no others; row i is state i."""

    rows: IntervalRows
    n: int

    @classmethod
    def of_chain(cls, chain: IntervalChain) -> Possibilities:
        """Without the edges that get no mass because the lower bounds of others sum to one."""
        rows = IntervalRows(
            indptr=chain.upper.indptr,
            indices=chain.upper.indices,
            lower=chain.lower.data,
            upper=chain.upper.data,
            n_columns=chain.n_states,
        )
        free = np.ones(chain.n_states, dtype=np.bool_)
        asked = np.unique(rows.row_of_entry[rows.lower == 0])
        if len(asked):
            entries, indptr = _entries_of(rows, asked)
            free[asked] = compared_with_one(rows.lower[entries], indptr) < 0
        return cls(rows.keep((rows.lower > 0) | free[rows.row_of_entry]), chain.n_states)

    def edges(self, entries: Mask | None = None) -> csr_array:
        """The edges, or some of them, as a matrix of ones, shape (n, n)."""
        chosen = np.ones(len(self.rows.indices), dtype=np.bool_) if entries is None else entries
        pairs = self.rows.row_of_entry[chosen], self.rows.indices[chosen]
        return csr_array((np.ones(len(pairs[0])), pairs), shape=(self.n, self.n))

    # ------------------------------------------------------------ until

    def avoidable(self, open_: Mask, goal: Mask) -> Mask:
        """Where nature can keep ``open_ U goal`` from happening, surely: its least probability is zero."""
        avoiding = ~goal
        suspects = np.flatnonzero(avoiding & open_)
        backward = csr_array(self.edges().T.tocsr())
        while len(suspects):
            entries, indptr = _entries_of(self.rows, suspects)
            stays = self._can_stay(entries, indptr, avoiding[self.rows.indices[entries]])
            lost = suspects[~stays]
            avoiding[lost] = False
            predecessors = np.unique(backward[lost].indices) if len(lost) else lost
            suspects = predecessors[avoiding[predecessors] & open_[predecessors]]
        return avoiding

    def possible(self, open_: Mask, goal: Mask) -> Mask:
        """Where the greatest probability of ``open_ U goal`` is positive."""
        return reaching(self.edges(), goal, through=open_)

    def certain(self, open_: Mask, goal: Mask) -> Mask:
        """Where the least probability of ``open_ U goal`` is one."""
        return ~reaching(self.edges(), self.avoidable(open_, goal), through=open_ & ~goal)

    def attainable(self, open_: Mask, goal: Mask) -> Mask:
        """Where the greatest probability of ``open_ U goal`` is one."""
        entries = np.arange(len(self.rows.indices))
        inside = self.possible(open_, goal)
        while True:
            kept = inside[self.rows.indices]
            stays = self._can_stay(entries, self.rows.indptr, kept)
            found = reaching(self.edges(kept), goal, through=open_ & inside & stays)
            if np.array_equal(found, inside):
                return inside
            inside = found

    # ------------------------------------------------------------ end components

    def end_components(self, within: Mask) -> Indices:
        """The maximal sets inside ``within`` that nature can stay in and move about: their numbers, -1 in none.

        Returns:
            Shape (n,), numbered from zero.
        """
        rows = self.rows
        entries, sources = np.arange(len(rows.indices)), rows.row_of_entry
        members = within.copy()
        while True:
            among = members[sources] & members[rows.indices]
            _, component = connected_components(self.edges(among), directed=True, connection="strong")
            inside = among & (component[sources] == component[rows.indices])
            kept = members & self._can_stay(entries, rows.indptr, inside)
            if np.array_equal(kept, members):
                break
            members = kept
        numbers = np.full(self.n, -1, dtype=np.int64)
        if members.any():
            numbers[members] = np.unique(component[members], return_inverse=True)[1]
        return numbers

    def contracted(self, components: Indices) -> Possibilities:
        """The same with each end component left at once, towards whichever successor outside nature likes.

        Nothing outside has a positive lower bound there, and nature can move about inside until it takes the exit that
        it wants, surely. So the first state of a component gets the bounds [0, 1] for each exit, and the others lead to
        the first. Every component has an exit.
        """
        if not (components >= 0).any():
            return self
        rows = self.rows
        sources = rows.row_of_entry
        inside = components[sources] >= 0
        exits = inside & (components[sources] != components[rows.indices])
        numbers, heads = np.unique(components, return_index=True)
        head_of = heads[np.searchsorted(numbers, components)]
        members = np.flatnonzero((components >= 0) & (head_of != np.arange(self.n)))
        exit_pairs = np.unique(np.stack([head_of[sources[exits]], rows.indices[exits]]), axis=1)
        k = exit_pairs.shape[1]
        source = np.concatenate([sources[~inside], members, exit_pairs[0]])
        target = np.concatenate([rows.indices[~inside], head_of[members], exit_pairs[1]])
        lower = np.concatenate([rows.lower[~inside], np.ones(len(members)), np.zeros(k)])
        upper = np.concatenate([rows.upper[~inside], np.ones(len(members)), np.ones(k)])
        order = np.lexsort((target, source))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=self.n))])
        contracted = IntervalRows(
            indptr=indptr, indices=target[order], lower=lower[order], upper=upper[order], n_columns=self.n
        )
        return Possibilities(contracted, self.n)

    # ------------------------------------------------------------ parts

    def restricted(self, states: Mask, targets: Mask) -> Possibilities:
        """Without the edges from ``states`` to other than ``targets``; each of the states has a row on the others."""
        return Possibilities(self.rows.keep(~states[self.rows.row_of_entry] | targets[self.rows.indices]), self.n)

    def rows_of(self, states: Mask) -> IntervalRows:
        """The rows of some states, in their order."""
        return self.rows.keep(states[self.rows.row_of_entry])

    def distances(self, goal: Mask) -> NDArray[np.float64]:
        """The least number of edges to the goal, shape (n,); infinite where there is no way."""
        backward = self.edges().T.tocoo()
        starts = np.flatnonzero(goal)
        source = np.concatenate([backward.coords[0], np.full(len(starts), self.n)])
        target = np.concatenate([backward.coords[1], starts])
        graph = csr_array((np.ones(len(source)), (source, target)), shape=(self.n + 1, self.n + 1))
        return np.asarray(dijkstra(graph, unweighted=True, indices=self.n)[: self.n] - 1)

    def _can_stay(self, entries: Indices, indptr: Indices, inside: Mask) -> Mask:
        """Whether rows, laid end to end, have a distribution on their entries ``inside`` alone."""
        if len(indptr) == 1:
            return np.empty(0, dtype=np.bool_)
        first = indptr[:-1]
        whole = np.logical_and.reduceat(inside, first)
        forced = np.logical_or.reduceat(~inside & (self.rows.lower[entries] > 0), first)
        stays = np.asarray(whole, dtype=np.bool_).copy()
        asked = np.flatnonzero(~whole & ~forced)
        if len(asked):
            sizes = np.diff(indptr)[asked]
            ends = np.concatenate([[0], np.cumsum(sizes)])
            chosen = np.repeat(first[asked] - ends[:-1], sizes) + np.arange(ends[-1])
            upper = np.where(inside[chosen], self.rows.upper[entries[chosen]], 0.0)
            stays[asked] = compared_with_one(upper, ends) >= 0
        return stays


def _entries_of(rows: IntervalRows, chosen: Indices) -> tuple[Indices, Indices]:
    """The entries of some rows laid end to end, and where each row begins."""
    sizes = rows.sizes[chosen]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return np.repeat(rows.indptr[:-1][chosen] - indptr[:-1], sizes) + np.arange(indptr[-1]), indptr
