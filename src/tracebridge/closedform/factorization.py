"""Linear systems of transient states, solved in doubles without subtraction.

Every unbounded quantity of a Markov chain is ``(I - Q) x = b`` with ``b >= 0`` on a set of transient states. The
diagonal of ``I - Q`` is taken as the mass that leaves the state (to other states of the set and out of the set), never
as ``1 - q_ii``: then elimination adds, multiplies and divides non-negative numbers only, and no digit is lost however
sticky or nearly decomposable the chain is (Grassmann, Taksar and Heyman, Oper. Res. 33, 1985; O'Cinneide, Numer. Math.
65, 1993).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import bicgstab, splu

from tracebridge.chain.graph import reaching
from tracebridge.errors import EngineError, ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: Up to this many states elimination is dense and subtraction-free.
DENSE_LIMIT = 500

_KRYLOV_TOLERANCE = 1e-10
_KRYLOV_ITERATIONS = 300
_REFINEMENTS = 2


class Factorization(ABC):
    """``I - Q`` of m transient states, prepared for solving.

    A non-negative right-hand side has a non-negative solution. With dense elimination every component of it is
    accurate to a few units of rounding times m, whatever the condition of the system.
    """

    def solve(self, rhs: Floats) -> Floats:
        """``(I - Q) x = rhs``; shape (m,) or (m, k), non-negative; the result has the same shape."""
        return self._solve_checked(rhs, transposed=False, refined=True)

    def solve_transposed(self, rhs: Floats) -> Floats:
        """``x (I - Q) = rhs`` (a row vector of visits from a start); shape (m,) or (m, k), one system a column."""
        return self._solve_checked(rhs, transposed=True, refined=True)

    def approximate(self, rhs: Floats, *, transposed: bool) -> Floats:
        """A solution good to several digits, for any right-hand side; it is the step of a refinement."""
        return self._solve_checked(rhs, transposed=transposed, refined=False)

    def _solve_checked(self, rhs: Floats, *, transposed: bool, refined: bool) -> Floats:
        rhs = np.asarray(rhs, dtype=np.float64)
        if rhs.ndim not in {1, 2} or rhs.shape[0] != self.size:
            raise ValueError(f"{self.size} states need a right-hand side of that length, not of shape {rhs.shape}")
        columns = rhs[:, None] if rhs.ndim == 1 else rhs
        if self.size == 0 or columns.shape[1] == 0:
            return np.zeros_like(rhs)
        return self._solve(columns, transposed=transposed, refined=refined).reshape(rhs.shape)

    @property
    @abstractmethod
    def size(self) -> int:
        """The number m of states."""

    @abstractmethod
    def _solve(self, rhs: Floats, *, transposed: bool, refined: bool) -> Floats:
        """For a right-hand side of shape (m, k), m and k positive."""


def factorize(Q: csr_array, exits: Floats) -> Factorization:
    """Prepare ``I - Q``, read as ``diag(offdiagonal row sums of Q + exits) - offdiag(Q)``.

    Args:
        Q: shape (m, m), non-negative; its diagonal is ignored.
        exits: the mass that leaves the set from each state, shape (m,), non-negative.

    Raises:
        ModelError: if some state of the set can never leave it; the message gives its position in the set.
        ValueError: for shapes that do not fit, and for negative or non-finite entries.
    """
    Q = csr_array(Q, dtype=np.float64)
    exits = np.asarray(exits, dtype=np.float64)
    m = exits.shape[0]
    if exits.ndim != 1 or Q.shape != (m, m):
        raise ValueError(f"Q of shape {Q.shape} does not fit exits of shape {exits.shape}")
    for name, values in (("Q", Q.data), ("exits", exits)):
        if not np.all(np.isfinite(values) & (values >= 0)):
            raise ValueError(f"{name} must be finite and not negative")
    offdiagonal = without_diagonal(Q)
    require_leaving(offdiagonal, exits > 0)
    if m <= DENSE_LIMIT:
        return _DenseElimination(offdiagonal.toarray(), exits)
    return _SparseElimination(offdiagonal, exits)


def without_diagonal(matrix: csr_array) -> csr_array:
    """The entries off the diagonal; stored zeros are dropped, duplicates added."""
    coordinates = matrix.tocoo()
    rows, columns = coordinates.coords
    kept = (rows != columns) & (coordinates.data != 0)
    return csr_array((coordinates.data[kept], (rows[kept], columns[kept])), shape=matrix.shape)


def require_leaving(edges: csr_array, exiting: NDArray[np.bool_]) -> None:
    """Raise ModelError unless every state has a path to a state of ``exiting``: otherwise ``I - Q`` is singular."""
    stuck = np.flatnonzero(~reaching(edges, exiting)) if len(exiting) else np.empty(0, dtype=np.int64)
    if len(stuck):
        listed = ", ".join(str(i) for i in stuck[:5].tolist())
        more = f" and {len(stuck) - 5} more" if len(stuck) > 5 else ""
        raise ModelError(f"the set of states cannot be left from its states at positions {listed}{more}")


class _DenseElimination(Factorization):
    """GTH elimination in place: state k is censored, its mass flows on to the states after it."""

    def __init__(self, offdiagonal: Floats, exits: Floats) -> None:
        factors = offdiagonal
        remaining = exits.copy()
        for k in range(len(exits)):
            onward = factors[k, k + 1 :]
            pivot = onward.sum() + remaining[k]
            if not pivot > 0:
                raise EngineError(f"the mass leaving state {k} of the set underflows: rescale the rows")
            factors[k, k] = pivot
            into = np.flatnonzero(factors[k + 1 :, k]) + k + 1
            if len(into) == 0:
                continue
            shares = factors[into, k] / pivot
            factors[into, k] = shares
            remaining[into] += shares * remaining[k]
            if 2 * len(into) < len(exits) - k:
                factors[into, k + 1 :] += np.outer(shares, onward)
            else:  # one in-place update is faster than gathering and scattering most rows
                full = factors[k + 1 :, k]
                factors[k + 1 :, k + 1 :] += np.outer(full, onward)
        # Both factors are M-matrices: with a non-negative right-hand side substitution, too, only adds.
        self._factors = -factors
        np.fill_diagonal(self._factors, factors.diagonal().copy())

    @property
    def size(self) -> int:
        return len(self._factors)

    def _solve(self, rhs: Floats, *, transposed: bool, refined: bool) -> Floats:  # noqa: ARG002 - nothing to refine
        if transposed:
            upper = solve_triangular(self._factors, rhs, trans="T", check_finite=False)
            return np.asarray(
                solve_triangular(self._factors, upper, lower=True, unit_diagonal=True, trans="T", check_finite=False)
            )
        lower = solve_triangular(self._factors, rhs, lower=True, unit_diagonal=True, check_finite=False)
        return np.asarray(solve_triangular(self._factors, lower, check_finite=False))


class _SparseElimination(Factorization):
    """The jump chain (every row divided by the mass that leaves it), by a Krylov method or else a sparse LU.

    Well mixing chains converge in a few dozen matrix products, where an LU would fill up; long corridors, which a
    Krylov method crawls through, have sparse factors. Both are followed by iterative refinement.
    """

    def __init__(self, offdiagonal: csr_array, exits: Floats) -> None:
        self._leaving = np.asarray(offdiagonal.sum(axis=1)).ravel() + exits
        scaled = offdiagonal.copy()
        scaled.data = scaled.data / np.repeat(self._leaving, np.diff(offdiagonal.indptr))
        m = len(exits)
        self._system = csr_array(eye_array(m, format="csr") - scaled)
        self._transposed_system = csr_array(self._system.T.tocsr())
        self._lu: Any = None
        if not self._converges():
            self._factorize()

    def _factorize(self) -> None:
        try:
            # Diagonal pivots keep an M-matrix an M-matrix, which bounds the growth of its factors.
            self._lu = splu(self._system.tocsc(), diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError as error:
            message = f"the linear system of {self.size} states cannot be factorized in doubles: {error}"
            raise EngineError(message) from error

    def _converges(self) -> bool:
        """Whether the Krylov method finds the expected number of jumps, the hardest right-hand side, quickly."""
        return self._iterate(np.ones(self.size), transposed=False) is not None

    @property
    def size(self) -> int:
        return len(self._leaving)

    def _solve(self, rhs: Floats, *, transposed: bool, refined: bool) -> Floats:
        system = self._transposed_system if transposed else self._system
        scaled = rhs if transposed else rhs / self._leaving[:, None]
        solution = self._solve_roughly(scaled, transposed=transposed)
        if refined:
            for _ in range(_REFINEMENTS):
                solution = solution + self._solve_roughly(scaled - system @ solution, transposed=transposed)
            solution = np.maximum(solution, 0.0)
        return solution / self._leaving[:, None] if transposed else solution

    def _solve_roughly(self, rhs: Floats, *, transposed: bool) -> Floats:
        if self._lu is None:
            columns = [self._iterate(column, transposed=transposed) for column in rhs.T]
            found = [column for column in columns if column is not None]
            if len(found) == len(columns):
                return np.stack(found, axis=1)
            self._factorize()
        return np.asarray(self._lu.solve(rhs, trans="T" if transposed else "N"))

    def _iterate(self, rhs: Floats, *, transposed: bool) -> Floats | None:
        """One column by the Krylov method; None if it does not converge."""
        system = self._transposed_system if transposed else self._system
        with np.errstate(all="ignore"):  # an iteration that diverges overflows; it is then not used
            found, failed = bicgstab(system, rhs, rtol=_KRYLOV_TOLERANCE, atol=0.0, maxiter=_KRYLOV_ITERATIONS)
        return None if failed else np.asarray(found)
