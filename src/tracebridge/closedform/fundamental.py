"""The fundamental matrix ``N = (I - Q)^-1`` of an absorbing chain and what follows from it.

Visits, absorption probabilities, times to absorption and their variances (Kemeny and Snell, Finite Markov Chains,
chapter 3). Systems are solved, never inverted, and every formula is arranged so that no digits cancel: with tiny exit
probabilities the answers keep their relative accuracy. With ``exact=True`` the same formulas run over Fractions.

All functions take an `AbsorbingChain`, or a `MarkovChain` that is one (else ModelError). Arrays are aligned with
`AbsorbingChain.transient_states` and `AbsorbingChain.absorbing_states`; they hold float64, or Fractions (dtype object)
when exact. A row of doubles stands for the row divided by its sum, in both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracebridge.chain.absorbing import AbsorbingChain
from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.elimination import Factorization, factorize, solve_exact, solve_exact_transposed
from tracebridge.errors import ModelError, UnsupportedError

Chain = AbsorbingChain | MarkovChain
Scalar = float | Fraction
Array = NDArray[Any]

#: N has m^2 entries: above this many transient states it is not formed in doubles (a gigabyte).
N_LIMIT = 11_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateValues:
    """One number for each transient state, and the number for a run that starts from the initial distribution.

    Attributes:
        states: names of the m transient states.
        values: shape (m,); float64, or Fractions (dtype object).
        overall: for a run from the initial distribution, runs without a step included.
    """

    states: tuple[str, ...]
    values: Array
    overall: Scalar

    def __getitem__(self, state: str) -> Scalar:
        """The number of one state. Raises KeyError for a name that is no transient state."""
        try:
            position = self.states.index(state)
        except ValueError:
            raise KeyError(state) from None
        return scalar(self.values[position])

    def to_dict(self) -> dict[str, Any]:
        """Plain data; Fractions become ``"p/q"``."""

        def plain(value: Any) -> float | str:
            return str(value) if isinstance(value, Fraction) else float(value)

        pairs = zip(self.states, self.values.tolist(), strict=True)
        return {"values": {state: plain(value) for state, value in pairs}, "overall": plain(self.overall)}

    def _repr_html_(self) -> str:
        pairs = [*list(zip(self.states, self.values.tolist(), strict=True))[:50], ("from the start", self.overall)]
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(format(value))}</td></tr>" for name, value in pairs)
        return f"<table><tr><th>state</th><th>value</th></tr>{rows}</table>"


# ---------------------------------------------------------------- visits


def fundamental_matrix(chain: Chain, *, exact: bool = False) -> Array:
    """N: the expected number of visits to state j from state i, the start counted; shape (m, m).

    Raises:
        UnsupportedError: above `N_LIMIT` states; `expected_visits` and the other functions never form N.
    """
    return _formed(CanonicalForm(absorbing_form(chain), exact=exact))


def expected_visits(chain: Chain, *, exact: bool = False) -> Array:
    """``pi0 N``: expected visits to each transient state from the initial distribution; shape (m,)."""
    return CanonicalForm(absorbing_form(chain), exact=exact).visits()


def visit_variances(chain: Chain, *, exact: bool = False) -> Array:
    """``N (2 N_dg - I) - N_sq``: variances of the number of visits to j from i; shape (m, m).

    Evaluated as ``H N_dg (N_dg - I) + H (1 - H) N_dg^2`` with H the probability that j is visited at all (the start
    counted): the visits are geometric once j is reached.
    """
    system = CanonicalForm(absorbing_form(chain), exact=exact)
    N = _formed(system)
    visits_at_home = N.diagonal()
    revisits = system.Q.right(N).diagonal()  # N - I = Q N, without the subtraction
    reached = N / visits_at_home
    missed = 1 - reached if exact else np.maximum(1 - reached, 0.0)
    return np.asarray(reached * visits_at_home * revisits + reached * missed * visits_at_home**2)


def hitting_probabilities(chain: Chain, *, exact: bool = False) -> Array:
    """``H = (N - I) N_dg^-1``: the probability of a visit to j after leaving i (for i = j a return); shape (m, m).

    ``N - I`` is taken as ``Q N``.
    """
    system = CanonicalForm(absorbing_form(chain), exact=exact)
    N = _formed(system)
    H = system.Q.right(N) / N.diagonal()
    return H if exact else np.minimum(H, 1.0)


# ---------------------------------------------------------------- where runs end


def absorption_probabilities(chain: Chain, *, exact: bool = False) -> Array:
    """``B = N R``: the probability that a run from transient state i ends in absorbing state j; shape (m, a)."""
    system = CanonicalForm(absorbing_form(chain), exact=exact)
    B = system.solve(system.R.right(_eye(system.R.shape[1], exact=exact)))
    return B if exact else np.minimum(B, 1.0)


def long_run_outcomes(chain: Chain, *, exact: bool = False) -> dict[str, Scalar]:
    """``pi0 B`` plus the runs without a step: where runs end, by the name of the absorbing state; sums to one."""
    system = CanonicalForm(absorbing_form(chain), exact=exact)
    outcomes = system.outcomes()
    return {name: scalar(value) for name, value in zip(system.chain.absorbing_states, outcomes, strict=True)}


def long_run_reliability(chain: Chain, *, target: str | Collection[str] = "success", exact: bool = False) -> Scalar:
    """``R_inf = pi0 B[:, target]`` plus the initial mass in the target: the probability that a run ever succeeds.

    Args:
        chain: the chain; absorbers outside the target count as failure, whatever they are called.
        target: the label or state that means success, or several of them; all of its states must be absorbing.
        exact: compute in Fractions.

    Raises:
        ModelError: for an unknown label, or one that holds in a transient state.
    """
    return long_run_split(chain, target=target, exact=exact)[0]


def long_run_unreliability(chain: Chain, *, target: str | Collection[str] = "success", exact: bool = False) -> Scalar:
    """``1 - R_inf``, summed from the other absorbers and so accurate however small it is; see `long_run_reliability`.

    It is zero if and only if no other absorber can be reached.
    """
    return long_run_split(chain, target=target, exact=exact)[1]


def long_run_split(chain: Chain, *, target: str | Collection[str], exact: bool = False) -> tuple[Scalar, Scalar]:
    """``(R_inf, 1 - R_inf)`` by one solve, both with full relative accuracy."""
    system = CanonicalForm(absorbing_form(chain), exact=exact)
    hit = absorbers_in(system.chain, target)
    outcomes = system.outcomes()
    return complementary(outcomes[hit].sum(), outcomes[~hit].sum(), exact=exact)


# ---------------------------------------------------------------- how long runs take


def mean_time_to_absorption(chain: Chain, *, exact: bool = False) -> StateValues:
    """``t = N 1``: expected steps until a run ends (MTTA), for each state and overall.

    A run without a step counts 0 in the overall value ``pi0 t``.
    """
    system = CanonicalForm(absorbing_form(chain), exact=exact)
    t = system.solve(system.ones())
    return StateValues(states=system.chain.transient_states, values=t, overall=scalar(system.initial @ t, exact=exact))


def absorption_time_variance(chain: Chain, *, exact: bool = False) -> StateValues:
    """``(2 N - I) t - t_sq``: variance of the number of steps until a run ends, in steps squared.

    Evaluated as ``N w`` with ``w_i`` the variance of t over the successors of i (0 in absorbers): by the law of total
    variance the same number, as a sum of non-negative terms. The overall value is the variance of the mixture over
    the initial distribution, runs without a step included as zeros.
    """
    system = CanonicalForm(absorbing_form(chain), exact=exact)
    t = system.solve(system.ones())
    ahead = system.Q.right(t)  # t - 1: the expected time from the successor on
    Q = system.Q
    spread = Entries(Q.rows, Q.columns, Q.values * (t[Q.columns] - ahead[Q.rows]) ** 2, Q.shape).right(system.ones())
    variance = system.solve(spread + system.exits(system.every_absorber) * ahead**2)
    mean = system.initial @ t
    overall = system.initial @ (variance + (t - mean) ** 2) + system.initial_absorbed.sum() * mean**2
    return StateValues(states=system.chain.transient_states, values=variance, overall=scalar(overall, exact=exact))


# ---------------------------------------------------------------- the system behind all of them


def absorbing_form(chain: Chain) -> AbsorbingChain:
    """The canonical form. Raises ModelError, naming states, if some state can reach no absorbing one."""
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


@dataclass(frozen=True, slots=True)
class Entries:
    """A sparse matrix of doubles, Fractions or integers; multiplies from both sides in any of them.

    Attributes:
        rows, columns: shape (nnz,). values: shape (nnz,), float64 or object.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: Array
    shape: tuple[int, int]

    def right(self, x: Array) -> Array:
        """``A x``; x of shape (n,) or (n, k)."""
        return _gathered(self.rows, self.values, x[self.columns], self.shape[0])

    def left(self, x: Array) -> Array:
        """``x A``; x of shape (n,)."""
        return _gathered(self.columns, self.values, x[self.rows], self.shape[1])


def _gathered(into: NDArray[np.int64], values: Array, factors: Array, length: int) -> Array:
    if values.dtype == object:
        total = np.zeros((length, *factors.shape[1:]), dtype=object)
        np.add.at(total, into, values.reshape(-1, *[1] * (factors.ndim - 1)) * factors)
        return total
    if factors.ndim == 1:
        return np.bincount(into, weights=values * factors, minlength=length)
    columns = [np.bincount(into, weights=values * column, minlength=length) for column in factors.T]
    return np.stack(columns, axis=1) if columns else np.zeros((length, 0))


class CanonicalForm:
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
            initial = _object_array(chain.chain.exact_initial())
        else:
            mass = np.asarray(chain.Q.sum(axis=1)).ravel() + np.asarray(chain.R.sum(axis=1)).ravel()
            self.Q, self.R = _float_block(chain.Q, mass), _float_block(chain.R, mass)
            initial = chain.chain.initial / chain.chain.initial.sum()
        self.initial = initial[chain.transient]
        self.initial_absorbed = initial[chain.absorbing]

    @cached_property
    def _factorization(self) -> Factorization:
        from scipy.sparse import csr_array

        Q = csr_array((self.Q.values, (self.Q.rows, self.Q.columns)), shape=self.Q.shape)
        return factorize(Q, self.exits(self.every_absorber))

    @property
    def every_absorber(self) -> NDArray[np.bool_]:
        """The mask of all absorbing states, shape (a,)."""
        return np.ones(self.R.shape[1], dtype=np.bool_)

    def ones(self) -> Array:
        """The vector of ones, shape (m,)."""
        return _object_array([Fraction(1)] * self.size) if self.exact else np.ones(self.size)

    def exits(self, absorbers: NDArray[np.bool_]) -> Array:
        """One-step probabilities of ending in any of ``absorbers`` (shape (a,)); shape (m,)."""
        kept = absorbers[self.R.columns]
        rows, values = self.R.rows[kept], self.R.values[kept]
        return _gathered(rows, values, np.ones(len(rows), dtype=np.int64), self.size)

    def solve(self, rhs: Array) -> Array:
        """``N rhs``; shape (m,) or (m, k), non-negative."""
        if not self.exact:
            return self._factorization.solve(rhs)
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
        visits = self._factorization.solve_transposed(self.initial)
        reached = self.chain.chain.reachable_states()[self.chain.transient]
        return np.where(reached, visits, 0.0)

    def outcomes(self) -> Array:
        """``pi0 B`` plus the initial mass of absorbers: where runs end; shape (a,)."""
        return np.asarray(self.R.left(self.visits()) + self.initial_absorbed)


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
        blocks.append(Entries(position[sources[kept]], position[P.indices[kept]], _object_array(values), shape))
    return blocks[0], blocks[1]


def _object_array(values: Sequence[Any]) -> Array:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _fractions(columns: list[list[Any]]) -> list[list[Fraction]]:
    return [[Fraction(value) for value in column] for column in columns]


def _columns(columns: Sequence[Sequence[Fraction]]) -> Array:
    array = np.empty((len(columns[0]), len(columns)), dtype=object)
    for j, column in enumerate(columns):
        array[:, j] = column
    return array


def _eye(size: int, *, exact: bool) -> Array:
    if not exact:
        return np.eye(size)
    eye = np.full((size, size), Fraction(0), dtype=object)
    np.fill_diagonal(eye, Fraction(1))
    return eye


def _formed(system: CanonicalForm) -> Array:
    if system.size > N_LIMIT:
        raise UnsupportedError(
            f"the fundamental matrix of {system.size} transient states is too large to form (limit {N_LIMIT}): "
            "ask for expected visits, absorption probabilities or times instead"
        )
    return system.solve(_eye(system.size, exact=system.exact))
