"""ChainStack: many chains with the same states and edges, and the two things that operators do with their matrices.

Values of states are arrays of shape (n, draws), or (n, 1) where all draws have the same; draws lie along the last axis,
so that arithmetic runs over contiguous memory.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.batched.elimination import StackedElimination
from tracebridge.errors import EngineError, UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]
    Mask = NDArray[np.bool_]

#: Chains of up to so many states are dense and solved side by side, larger ones one by one.
DENSE_STATES = 50

#: Larger chains take steps until this many multiplications, over all draws.
MAX_STEP_WORK = 10**11

_MOST_DENSE_ELIMINATION = 2_000  # states of a single chain that is eliminated densely
_KEPT_FACTORS = 4

#: A probability that is neither zero nor one, by the edges, is at least and at most this.
SMALLEST, LARGEST = float(np.finfo(np.float64).tiny), 1 - 2.0**-53
_MAX_GRAPH_STEPS = 10_000
_SPARSE_DENSITY = 0.1


class ChainStack:
    """Chains whose transition probabilities differ and whose edges, labels and rewards do not.

    Args:
        chain: says what the chains have in common; its edges are where probabilities may be positive.
        entries: the stored entries of P in the order of ``chain.transitions``, shape (entries, draws); rows sum to one.
            An entry may be zero as long as no draw has a recurrent class that the chain has not.
        initial: initial distributions, shape (n, draws), or (n, 1) for all draws.
    """

    def __init__(self, chain: MarkovChain, entries: Floats, initial: Floats) -> None:
        self.chain = chain
        self.entries = entries
        self.initial = initial
        self._factors: dict[bytes, StackedElimination] = {}

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

        Infinite where a start state has an infinite value, undefined where one has none.
        """
        support = np.flatnonzero(self.chain.initial > 0)  # elsewhere 0 * inf would be undefined
        mean = (self.initial[support] * values[support]).sum(axis=0)
        return np.asarray(np.clip(mean, values[support].min(axis=0), values[support].max(axis=0)))

    # ------------------------------------------------------------ steps

    def iterate(
        self, start: Floats, steps: int, active: Mask, gain: Floats | None = None, factor: float = 1.0
    ) -> Floats:
        """``x <- gain + factor P x`` on the active states, ``steps`` times; the other entries stay as they are.

        Args:
            start: shape (n, draws) or (n, 1). active: shape (n,). gain: shape (n,). factor: of a discount.

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
        gains = None if gain is None else gain[rows, None]
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
        fixed = x.copy()
        fixed[rows] = 0
        constant = factor * np.einsum("ijd,jd->id", self._dense[rows], fixed)
        if gain is not None:
            constant += gain[rows, None]
        matrix = np.zeros((self.draws, m + 1, m + 1))
        matrix[:, :m, :m] = factor * self._dense[np.ix_(rows, rows)].transpose(2, 0, 1)
        matrix[:, :m, m] = constant.T
        matrix[:, m, m] = 1
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
            gain: shape (n,). factor: of a discount, 0 < factor <= 1.

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
            inflow += gain[states, None]
        x[states] = (
            self._eliminated(states, inflow, factor) if self._is_dense else self._factored(states, inflow, factor)
        )
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

    def _eliminated(self, states: Indices, inflow: Floats, factor: float) -> Floats:
        key = states.tobytes() + np.float64(factor).tobytes()
        if key not in self._factors:
            while len(self._factors) >= _KEPT_FACTORS:
                self._factors.pop(next(iter(self._factors)))
            Q = self._dense[np.ix_(states, states)]
            outside = np.setdiff1d(np.arange(self.chain.n_states), states)
            exits = self._dense[np.ix_(states, outside)].sum(axis=1)
            if factor < 1:
                exits = factor * exits + (1 - factor)
                Q *= factor
            self._factors[key] = StackedElimination(Q, exits)
        return self._factors[key].solve(inflow)

    def _factored(self, states: Indices, inflow: Floats, factor: float) -> Floats:
        """One chain after the other, by the factorisation that suits its size and density."""
        P = self.chain.transitions
        place = np.arange(P.nnz)
        numbered = csr_array((place + 1, P.indices, P.indptr), shape=P.shape)[states]
        inner = numbered[:, states].tocoo()
        own, following = inner.coords
        which = inner.data - 1  # position among the entries
        m = len(states)
        row_of_entry = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
        leaving = np.isin(row_of_entry, states)
        leaving[which] = False
        outer_row = np.searchsorted(states, row_of_entry[leaving])
        result = np.empty_like(inflow)
        for draw in range(self.draws):
            values = self.entries[which, draw] * factor
            exits = np.zeros(m)
            np.add.at(exits, outer_row, self.entries[leaving, draw])
            exits = exits * factor + (1 - factor)
            result[:, draw] = _solve_one(own, following, values, exits, inflow[:, draw])
        return result


def _solve_one(own: Indices, following: Indices, values: Floats, exits: Floats, gains: Floats) -> Floats:
    """``x = gains + Q x`` of one chain; the diagonal of ``I - Q`` is summed from what leads elsewhere."""
    m = len(exits)
    elsewhere = own != following
    rows, columns, others = own[elsewhere], following[elsewhere], values[elsewhere]
    diagonal = exits + np.bincount(rows, weights=others, minlength=m)
    every = np.arange(m)
    entries = (np.concatenate([-others, diagonal]), (np.concatenate([rows, every]), np.concatenate([columns, every])))
    system = csc_array(entries, shape=(m, m))
    try:
        x = splu(system).solve(gains) if system.nnz < _SPARSE_DENSITY * m * m else _dense_solution(system, gains)
    except (RuntimeError, np.linalg.LinAlgError):  # singular as far as doubles can tell
        x = np.full(m, np.nan)
    if np.isfinite(x).all():
        return np.maximum(x, 0.0)
    if m > _MOST_DENSE_ELIMINATION:
        raise EngineError(f"a draw of a chain of {m} states has no solution in doubles")
    Q = np.zeros((m, m, 1))
    Q[own, following, 0] = values
    return StackedElimination(Q, exits[:, None].copy()).solve(gains[:, None])[:, 0]


def _dense_solution(system: csc_array, gains: Floats) -> Floats:
    return np.asarray(np.linalg.solve(system.toarray(), gains))
