"""The choices of a decision process as a graph, and what that alone decides: probabilities zero and one.

The algorithms are those of Baier and Katoen, Principles of Model Checking, section 10.6, and of de Alfaro, Formal
Verification of Probabilistic Systems (1997). No number is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from tracebridge.chain.graph import reaching

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Choices:
    """Rows of successors, state by state: those of state i are ``starts[i]`` up to ``starts[i + 1]``, one at least.

    Attributes:
        starts: shape (n + 1,). pattern: CSR, shape (m, n); its stored entries are the successors, no row is empty.
    """

    starts: Indices
    pattern: csr_array

    @property
    def n(self) -> int:
        """The number of states."""
        return len(self.starts) - 1

    @cached_property
    def owner(self) -> Indices:
        """The state of each choice, shape (m,)."""
        return np.repeat(np.arange(self.n), np.diff(self.starts))

    @cached_property
    def _owner_of_entry(self) -> Indices:
        """The state of the choice of each stored entry, shape (nnz,)."""
        return np.repeat(self.owner, np.diff(self.pattern.indptr))

    @cached_property
    def _predecessors(self) -> csr_array:
        """The choices that lead to each state, CSR of shape (n, m)."""
        return csr_array(self.pattern.T.tocsr())

    def _choices_to(self, states: Indices) -> Indices:
        """The choices that may lead to some of these states, each once."""
        ends = self._predecessors.indptr
        sizes = ends[states + 1] - ends[states]
        entries = np.repeat(ends[states] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        return np.unique(self._predecessors.indices[entries])

    def staying_in(self, states: Mask) -> Mask:
        """The choices all of whose successors are in a set, shape (m,)."""
        return np.logical_and.reduceat(states[self.pattern.indices], self.pattern.indptr[:-1])

    def staying_among(self, components: Indices) -> Mask:
        """The choices of states in some component (numbers; -1 in none) that cannot lead out of it, shape (m,)."""
        same = components[self._owner_of_entry] == components[self.pattern.indices]
        return (components[self.owner] >= 0) & np.logical_and.reduceat(same, self.pattern.indptr[:-1])

    def returning(self, components: Indices) -> Mask:
        """The choices some of whose successors are in the component of their state, shape (m,)."""
        same = components[self._owner_of_entry] == components[self.pattern.indices]
        return np.logical_or.reduceat(same, self.pattern.indptr[:-1])

    def having(self, choices: Mask) -> Mask:
        """The states that have some of these choices, shape (n,)."""
        return np.logical_or.reduceat(choices, self.starts[:-1])

    def edges(self, choices: Mask | None = None) -> csr_array:
        """Which state may follow which by some of these choices, or by any: shape (n, n), edges perhaps twice."""
        indices, ends = self.pattern.indices, self.pattern.indptr
        if choices is not None:
            sizes = np.where(choices, np.diff(ends), 0)
            indices = indices[np.repeat(choices, np.diff(ends))]
            ends = np.concatenate([[0], np.cumsum(sizes)])
        ones = np.ones(len(indices), dtype=np.int8)
        return csr_array((ones, indices, ends[self.starts]), shape=(self.n, self.n))

    # ------------------------------------------------------------ until

    def possible(self, open_: Mask, goal: Mask) -> Mask:
        """Where the greatest probability of ``open_ U goal`` is above zero, shape (n,)."""
        return reaching(self.edges(), goal, through=open_)

    def avoidable(self, open_: Mask, goal: Mask) -> Mask:
        """Where the least probability of ``open_ U goal`` is zero, shape (n,).

        The complement of what is bound to be possible: the goal, and open states each of whose choices leads there.
        """
        bound = goal.copy()
        unsettled = np.diff(self.starts).astype(np.int64)  # choices that have not been found to lead there
        led = np.zeros(len(self.owner), dtype=np.bool_)
        new = np.flatnonzero(goal)
        while len(new):
            choices = self._choices_to(new)
            choices = choices[~led[choices]]
            led[choices] = True
            states, counts = np.unique(self.owner[choices], return_counts=True)
            unsettled[states] -= counts
            new = states[(unsettled[states] == 0) & open_[states] & ~bound[states]]
            bound[new] = True
        return ~bound

    def certain(self, open_: Mask, goal: Mask) -> Mask:
        """Where the least probability of ``open_ U goal`` is one, shape (n,)."""
        return ~reaching(self.edges(), self.avoidable(open_, goal), through=open_ & ~goal)

    def attainable(self, open_: Mask, goal: Mask, allowed: Mask | None = None) -> Mask:
        """Where the greatest probability of ``open_ U goal`` is one, of all choices or the allowed ones, shape (n,)."""
        inside = self.possible(open_, goal)
        while True:
            safe = self.staying_in(inside)
            if allowed is not None:
                safe &= allowed
            found = reaching(self.edges(safe), goal, through=open_ & inside & self.having(safe))
            if np.array_equal(found, inside):
                return inside
            inside = found

    def towards(self, targets: Mask, allowed: Mask, *, within: Mask) -> Indices:
        """For each state of ``within`` a choice with a successor that is nearer to the targets; -1 where there is none.

        Args:
            targets, within: shape (n,). allowed: the choices to take from, shape (m,).

        Returns:
            Shape (n,). Nearness is counted in allowed choices of states in ``within``; under these choices the targets
            are reached with positive probability, and surely if no allowed choice leads out of ``within`` and targets.
        """
        chosen = np.full(self.n, -1, dtype=np.int64)
        reached = targets.copy()
        new = np.flatnonzero(targets)
        while len(new):
            choices = self._choices_to(new)
            owners = self.owner[choices]
            usable = allowed[choices] & within[owners] & ~reached[owners]
            new, first = np.unique(owners[usable], return_index=True)
            chosen[new] = choices[usable][first]
            reached[new] = True
        return chosen

    # ------------------------------------------------------------ end components

    def end_components(self, allowed: Mask) -> tuple[Indices, Mask]:
        """The maximal end components made of allowed choices: sets that a scheduler can stay in and move about.

        Returns:
            The number of the component of each state, -1 in none, shape (n,), numbered from zero; and the choices that
            stay inside, shape (m,).
        """
        alive = allowed.copy()
        while True:
            members = self.having(alive)
            alive &= self.staying_in(members)
            _, component = connected_components(self.edges(alive), directed=True, connection="strong")
            kept = alive & self.staying_among(component)
            if np.array_equal(kept, alive) and np.array_equal(self.having(alive), members):
                break
            alive = kept
        numbers = np.full(self.n, -1, dtype=np.int64)
        if members.any():
            numbers[members] = np.unique(component[members], return_inverse=True)[1]
        return numbers, alive
