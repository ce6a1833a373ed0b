"""The equations of an absorbing chain, in doubles or in rationals behind the same names.

What the closed forms of `fundamental` and `firstpassage` are written in: ``N b`` by a solve, ``pi0 N`` by a transposed
one, and products with Q and R. In rationals the solves are those of `rational_solution`.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.absorbing import AbsorbingChain
from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.entries import Array, Entries, gathered, object_array
from tracebridge.closedform.factorization import factorize
from tracebridge.closedform.rational_solution import solve_exact, solve_exact_transposed
from tracebridge.errors import ModelError, UnsupportedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.linear_solver import Factorization

Chain = AbsorbingChain | MarkovChain
Scalar = float | Fraction


def absorbing_form(chain: Chain) -> AbsorbingChain:
    """The canonical form. Raises ModelError, naming states, if some state can reach no absorbing one."""
    if not isinstance(chain, AbsorbingChain | MarkovChain):
        raise UsageError(f"a chain is needed, not {type(chain).__name__}; the chain of a fit is its attribute chain")
    return chain if isinstance(chain, AbsorbingChain) else AbsorbingChain(chain=chain)


def absorbers_in(chain: AbsorbingChain, target: str | Collection[str]) -> NDArray[np.bool_]:
    """Which absorbing states carry one of the labels (or names) in ``target``; shape (a,).

    Raises:
        ModelError: for an unknown label, or one that also holds in a transient state.
    """
    names = [target] if isinstance(target, str) else list(target)
    hit = np.zeros(chain.chain.n_states, dtype=np.bool_)
    for name in names:
        mask = chain.chain.label(name)
        passing = np.flatnonzero(mask[chain.transient])
        if len(passing):
            state = chain.transient_states[int(passing[0])]
            raise ModelError(
                f'the target "{name}" holds in the transient state {state!r}, which runs leave again: '
                f'check a property such as P=? [ F "{name}" ] instead'
            )
        hit |= mask
    return np.asarray(hit[chain.absorbing])


def complementary(hit: Any, missed: Any, *, exact: bool) -> tuple[Scalar, Scalar]:
    """Two probabilities that sum to one: the larger in doubles is one minus the smaller, which is the accurate one."""
    if exact:
        return Fraction(hit), Fraction(missed)
    hit, missed = float(hit), float(missed)
    return (hit, 1.0 - hit) if hit <= missed else (1.0 - missed, missed)


def scalar(value: Any, *, exact: bool | None = None) -> Scalar:
    """A Python float or Fraction out of an array's entry or sum (an empty sum of objects is the integer 0)."""
    if exact is None:
        exact = isinstance(value, Fraction)
    return Fraction(value) if exact else float(value)


class AbsorbingSystem:
    """``(I - Q) x = b`` and R of one chain, in doubles or in Fractions behind the same names.

    Attributes:
        chain: the canonical form. exact: whether entries are Fractions. size: m.
        Q: shape (m, m). R: shape (m, a). Rows of doubles are divided by their sum.
        initial: shape (m,). initial_absorbed: shape (a,). Together they sum to one.
    """

    def __init__(self, chain: AbsorbingChain, *, exact: bool) -> None:
        self.chain = chain
        self.exact = exact
        self.size = len(chain.transient)
        initial: Array
        if exact:
            self.Q, self.R = _exact_blocks(chain)
            initial = object_array(chain.chain.exact_initial())
        else:
            mass = np.asarray(chain.Q.sum(axis=1)).ravel() + np.asarray(chain.R.sum(axis=1)).ravel()
            self.Q, self.R = _float_block(chain.Q, mass), _float_block(chain.R, mass)
            initial = chain.chain.initial / chain.chain.initial.sum()
        self.initial = initial[chain.transient]
        self.initial_absorbed = initial[chain.absorbing]

    @cached_property
    def _factorization(self) -> Factorization:
        Q = csr_array((self.Q.values, (self.Q.rows, self.Q.columns)), shape=self.Q.shape)
        return factorize(Q, self.exits(self.every_absorber))

    @property
    def every_absorber(self) -> NDArray[np.bool_]:
        """The mask of all absorbing states, shape (a,)."""
        return np.ones(self.R.shape[1], dtype=np.bool_)

    def ones(self) -> Array:
        """The vector of ones, shape (m,)."""
        return object_array([Fraction(1)] * self.size) if self.exact else np.ones(self.size)

    def exits(self, absorbers: NDArray[np.bool_]) -> Array:
        """One-step probabilities of ending in any of ``absorbers`` (shape (a,)); shape (m,)."""
        kept = absorbers[self.R.columns]
        rows, values = self.R.rows[kept], self.R.values[kept]
        return gathered(rows, values, np.ones(len(rows), dtype=np.int64), self.size)

    def solve(self, rhs: Array) -> Array:
        """``N rhs``; shape (m,) or (m, k), non-negative. Raises UnsupportedError beyond the range of doubles."""
        if not self.exact:
            return _finite(self._factorization.solve(rhs))
        if rhs.size == 0:
            return rhs
        columns = rhs.reshape(self.size, -1).T.tolist()
        solved = solve_exact(self.chain.chain.exact_transitions(), self.chain.transient, _fractions(columns))
        return _columns(solved).reshape(rhs.shape)

    def visits(self) -> Array:
        """``pi0 N``, shape (m,); exactly zero in states that no run reaches."""
        if self.exact:
            if self.size == 0:
                return self.initial
            P = self.chain.chain.exact_transitions()
            return _columns(solve_exact_transposed(P, self.chain.transient, [self.initial.tolist()])).reshape(-1)
        visits = _finite(self._factorization.solve_transposed(self.initial))
        reached = self.chain.chain.reachable_states()[self.chain.transient]
        return np.where(reached, visits, 0.0)

    def outcomes(self) -> Array:
        """``pi0 B`` plus the initial mass of absorbers: where runs end; shape (a,)."""
        return np.asarray(self.R.left(self.visits()) + self.initial_absorbed)


def _finite(solution: Array) -> Array:
    if not np.all(np.isfinite(solution)):
        raise UnsupportedError("the solution is beyond the range of doubles; use exact=True")
    return solution


def _float_block(matrix: Any, mass: NDArray[np.float64]) -> Entries:
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return Entries(rows, matrix.indices.astype(np.int64), matrix.data / mass[rows], matrix.shape)


def _exact_blocks(chain: AbsorbingChain) -> tuple[Entries, Entries]:
    P = chain.chain.exact_transitions()
    position = np.empty(chain.chain.n_states, dtype=np.int64)
    position[chain.transient] = np.arange(len(chain.transient))
    position[chain.absorbing] = np.arange(len(chain.absorbing))
    absorbing = chain.chain.absorbing
    sources = P.row_of_entry
    blocks = []
    for columns in (~absorbing, absorbing):
        kept = ~absorbing[sources] & columns[P.indices]
        tops = P.numerators[kept].tolist()
        bottoms = P.denominators[sources[kept]].tolist()
        values = [Fraction(int(top), int(bottom)) for top, bottom in zip(tops, bottoms, strict=True)]
        shape = (len(chain.transient), int(columns.sum()))
        blocks.append(Entries(position[sources[kept]], position[P.indices[kept]], object_array(values), shape))
    return blocks[0], blocks[1]


def _fractions(columns: list[list[Any]]) -> list[list[Fraction]]:
    return [[Fraction(value) for value in column] for column in columns]


def _columns(columns: Sequence[Sequence[Fraction]]) -> Array:
    array = np.empty((len(columns[0]), len(columns)), dtype=object)
    for j, column in enumerate(columns):
        array[:, j] = column
    return array
