"""ChainStack: many chains with the same states and edges, and the two things that operators do with their matrices.

Values of states are arrays of shape (n, draws), or (n, 1) where all draws have the same; draws lie along the last axis,
so that arithmetic runs over contiguous memory.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.batched.linear_system import MOST_SIDE_BY_SIDE, StackedSystem, row_sums
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]
    Mask = NDArray[np.bool_]

#: The matrices of chains of up to so many states are kept dense.
DENSE_STATES = MOST_SIDE_BY_SIDE

#: Larger chains take steps until this many multiplications, over all draws.
MAX_STEP_WORK = 10**11

_KEPT_SYSTEMS = 4

#: A probability that is neither zero nor one, by the edges, is at least and at most this.
SMALLEST, LARGEST = float(np.finfo(np.float64).tiny), 1 - 2.0**-53
_MAX_GRAPH_STEPS = 10_000


class ChainStack:
    """Chains whose transition probabilities differ and whose edges, labels and rewards do not.

    Args:
        chain: says what the chains have in common; its edges are where probabilities may be positive.
        entries: the stored entries of P in the order of ``chain.transitions``, shape (entries, draws); rows sum to one.
            An entry in the row of a transient state may be zero as long as no draw has a recurrent class that the chain
            has not.
        initial: initial distributions, shape (n, draws), or (n, 1) for all draws.
    """

    def __init__(self, chain: MarkovChain, entries: Floats, initial: Floats) -> None:
        self.chain = chain
        self.entries = entries
        self.initial = initial
        self._systems: dict[bytes, StackedSystem] = {}

    @classmethod
    def of_chain(cls, chain: MarkovChain) -> ChainStack:
        """A stack of one chain."""
        return cls(chain, chain.transitions.data[:, None], chain.initial[:, None])

    @property
    def draws(self) -> int:
        """The number of chains."""
        return int(self.entries.shape[1])

    def select(self, draws: Indices) -> ChainStack:
        """Some of the chains."""
        if len(draws) == self.draws:
            return self
        initial = self.initial if self.initial.shape[1] == 1 else self.initial[:, draws]
        return ChainStack(self.chain, self.entries[:, draws], initial)

    def chain_at(self, draw: int) -> MarkovChain:
        """One of the chains by itself; its rows are divided by their sums."""
        P, n = self.chain.transitions, self.chain.n_states
        start = self.initial[:, min(draw, self.initial.shape[1] - 1)]
        return MarkovChain(
            states=self.chain.states,
            transitions=csr_array((self.entries[:, draw], P.indices, P.indptr), shape=(n, n)),
            initial=start / start.sum(),
            labels=self.chain.labels,
            rewards=self.chain.rewards,
            variables=self.chain.variables,
            constants=self.chain.constants,
        )

    def mean_at_start(self, values: Floats) -> Floats:
        """The mean of values of states under the initial distribution, shape (draws,) or (1,).

        Infinite where a start state of the draw has an infinite value, undefined where one has none.
        """
        support = np.flatnonzero(self.chain.initial > 0)
        weights, at_start = np.broadcast_arrays(self.initial[support], values[support])
        starting = weights > 0  # elsewhere 0 * inf would be undefined
        mean = np.multiply(weights, at_start, out=np.zeros(starting.shape), where=starting).sum(axis=0)
        least, most = (
            bound.reduce(at_start, axis=0, where=starting, initial=far)
            for bound, far in ((np.minimum, np.inf), (np.maximum, -np.inf))
        )
        return np.asarray(np.clip(mean, least, most))

    # ------------------------------------------------------------ steps

    def iterate(
        self, start: Floats, steps: int, active: Mask, gain: Floats | None = None, factor: float = 1.0
    ) -> Floats:
        """``x <- gain + factor P x`` on the active states, ``steps`` times; the other entries stay as they are.

        Args:
            start: shape (n, draws) or (n, 1). active: shape (n,). gain: shape (n,) or (n, draws).
            factor: of a discount.

        Raises:
            UnsupportedError: for too many steps of a large chain.
        """
        rows = np.flatnonzero(active)
        if steps == 0 or not len(rows):
            return start
        n = self.chain.n_states
        if n <= DENSE_STATES and steps > 4 * (len(rows) + 1) * steps.bit_length():
            return self._power(start, steps, rows, gain, factor)
        if n > DENSE_STATES and steps * self.entries.size > MAX_STEP_WORK:
            raise UnsupportedError(f"{steps:,} steps of {n} states are too many for {self.draws} draws")
        x = np.array(np.broadcast_to(start, (n, self.draws)))
        gains = None if gain is None else _of_rows(gain, rows)
        matrix = None if n > DENSE_STATES else self._dense if len(rows) == n else self._dense[rows]
        for _ in range(steps):
            new = self._product(x)[rows] if matrix is None else np.einsum("ijd,jd->id", matrix, x)
            if factor < 1:
                new *= factor
            if gains is not None:
                new += gains
            if np.array_equal(new, x[rows]):
                break
            x[rows] = new
        if gains is None and factor == 1:
            self._settle(x, start, steps, active)
        return x

    def _settle(self, x: Floats, start: Floats, steps: int, active: Mask) -> None:
        """What the edges decide about probabilities, exactly: sure things are one, and no others, however likely."""
        ones, zeros = (self._surely(value, start, steps, active) for value in (1, 0))
        if ones is None or zeros is None:
            return
        x[ones], x[zeros] = 1, 0
        if self.has_all_edges and start.min() >= 0 and start.max() <= 1:
            between = active & ~ones & ~zeros
            x[between] = np.clip(x[between], SMALLEST, LARGEST)

    def _surely(self, value: float, start: Floats, steps: int, active: Mask) -> Mask | None:
        """Where every path leads to this value, shape (n,); None after very many steps."""
        P = self.chain.transitions
        found: Mask = (start == value).all(axis=1)
        for _ in range(min(steps, _MAX_GRAPH_STEPS)):
            outside = np.add.reduceat((~found)[P.indices], P.indptr[:-1], dtype=np.int64)
            new = np.asarray(np.where(active, outside == 0, found))
            if np.array_equal(new, found):
                return found
            found = new
        return found if steps <= _MAX_GRAPH_STEPS else None

    @cached_property
    def has_all_edges(self) -> bool:
        """No entry is zero."""
        return bool((self.entries > 0).all())

    def _power(self, start: Floats, steps: int, rows: Indices, gain: Floats | None, factor: float) -> Floats:
        """Many steps of few states, by repeated squaring of the affine map; nothing is subtracted."""
        m = len(rows)
        x = np.array(np.broadcast_to(start, (self.chain.n_states, self.draws)))
        matrix = self.affine_map(x, rows, gain, factor)
        column = np.concatenate([x[rows].T, np.ones((self.draws, 1))], axis=1)[:, :, None]
        remaining = steps
        while remaining:
            if remaining & 1:
                column = matrix @ column
            remaining >>= 1
            if remaining:
                matrix = matrix @ matrix
        x[rows] = column[:, :m, 0].T
        if gain is None and factor == 1:
            active = np.zeros(len(x), dtype=np.bool_)
            active[rows] = True
            self._settle(x, start, steps, active)
        return x

    def affine_map(self, x: Floats, rows: Indices, gain: Floats | None = None, factor: float = 1.0) -> Floats:
        """``x <- gain + factor P x`` on m rows, as a matrix for each draw, shape (draws, m + 1, m + 1).

        It is applied to x on the rows with a one below, which stays; the other entries of x, shape (n, draws), are
        fixed.
        """
        m = len(rows)
        fixed = x.copy()
        fixed[rows] = 0
        constant = factor * np.einsum("ijd,jd->id", self._dense[rows], fixed)
        if gain is not None:
            constant += _of_rows(gain, rows)
        matrix = np.zeros((self.draws, m + 1, m + 1))
        matrix[:, :m, :m] = factor * self._dense[np.ix_(rows, rows)].transpose(2, 0, 1)
        matrix[:, :m, m] = constant.T
        matrix[:, m, m] = 1
        return matrix

    @cached_property
    def _dense(self) -> Floats:
        """P, shape (n, n, draws)."""
        P, n = self.chain.transitions, self.chain.n_states
        dense = np.zeros((n, n, self.draws))
        dense[np.repeat(np.arange(n), np.diff(P.indptr)), P.indices] = self.entries
        return dense

    @cached_property
    def _block_diagonal(self) -> csr_array:
        """All matrices along one diagonal."""
        P, n = self.chain.transitions, self.chain.n_states
        size, ends = n * self.draws, P.indptr[1:]
        indices = (P.indices + n * np.arange(self.draws)[:, None]).ravel()
        indptr = np.concatenate([[0], (ends + P.indptr[-1] * np.arange(self.draws)[:, None]).ravel()])
        return csr_array((self.entries.T.ravel(), indices, indptr), shape=(size, size))

    def _product(self, x: Floats) -> Floats:
        """``P x`` for each draw, shape (n, draws)."""
        return np.asarray(self._block_diagonal @ x.T.ravel()).reshape(self.draws, -1).T

    # ------------------------------------------------------------ equations

    def solve(self, active: Mask, boundary: Floats, gain: Floats | None = None, factor: float = 1.0) -> Floats:
        """The x with ``x = gain + factor P x`` on the active states, else x = boundary; no number is negative.

        Args:
            active: states that are left almost surely, shape (n,). boundary: shape (n, draws) or (n, 1).
            gain: shape (n,) or (n, draws). factor: of a discount, 0 < factor <= 1.

        Raises:
            EngineError: a chain has no solution in doubles.
        """
        states = np.flatnonzero(active)
        if not len(states):
            return boundary
        x = np.array(np.broadcast_to(boundary, (self.chain.n_states, self.draws)))
        x[states] = 0
        inflow = self._inflow(states, x) * factor
        if gain is not None:
            inflow += _of_rows(gain, states)
        x[states] = self._system(states, factor).solve(inflow)
        return x

    @property
    def _is_dense(self) -> bool:
        return self.chain.n_states <= DENSE_STATES

    def _inflow(self, states: Indices, outside: Floats) -> Floats:
        if not outside.any():
            return np.zeros((len(states), self.draws))
        if self._is_dense:
            return np.asarray(np.einsum("ijd,jd->id", self._dense[states], outside))
        return self._product(outside)[states]

    def _system(self, states: Indices, factor: float) -> StackedSystem:
        """The equations of some states; the last ones are kept, if they are few."""
        if len(states) > MOST_SIDE_BY_SIDE:
            return self._equations(states, factor)
        key = states.tobytes() + np.float64(factor).tobytes()
        if key not in self._systems:
            while len(self._systems) >= _KEPT_SYSTEMS:
                self._systems.pop(next(iter(self._systems)))
            self._systems[key] = self._equations(states, factor)
        return self._systems[key]

    def _equations(self, states: Indices, factor: float) -> StackedSystem:
        P = self.chain.transitions
        number = np.full(self.chain.n_states, -1, dtype=np.int64)
        number[states] = np.arange(len(states))
        own, following = np.repeat(number, np.diff(P.indptr)), number[P.indices]
        inner, outer = (np.flatnonzero((own >= 0) & part) for part in (following >= 0, following < 0))
        exits = row_sums(own[outer], self.entries[outer], len(states))
        if factor < 1:
            exits = factor * exits + (1 - factor)
        return StackedSystem(own[inner], following[inner], factor * self.entries[inner], exits)


def _of_rows(gain: Floats, rows: Indices) -> Floats:
    """A gain of shape (n,) or (n, draws) in some rows, shape (rows, 1) or (rows, draws)."""
    return gain[rows, None] if gain.ndim == 1 else gain[rows]
