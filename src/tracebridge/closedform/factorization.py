"""Linear systems of transient states in doubles: which elimination fits which system.

Every unbounded quantity of a Markov chain is ``(I - Q) x = b`` with ``b >= 0`` on a set of transient states. The
diagonal of ``I - Q`` is taken as the mass that leaves the state (to other states of the set and out of the set), never
as ``1 - q_ii``: then elimination adds, multiplies and divides non-negative numbers only, and no digit is lost however
sticky or nearly decomposable the chain is (Grassmann, Taksar and Heyman, Oper. Res. 33, 1985; O'Cinneide, Numer. Math.
65, 1993).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.graph import reaching
from tracebridge.closedform.band_elimination import WIDEST, BandElimination, bandwidth
from tracebridge.closedform.block_triangular import BlockTriangular, blocks_in_order
from tracebridge.closedform.dense_elimination import DenseElimination
from tracebridge.closedform.krylov import JumpChainIteration, NoConvergenceError
from tracebridge.closedform.multigrid import AggregationMultigrid
from tracebridge.closedform.sparse_elimination import DENSE_CORE, SparseElimination
from tracebridge.closedform.sparse_lu import SparseLU, is_affordable, is_narrow
from tracebridge.errors import EngineError, ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from tracebridge.closedform.linear_solver import Factorization

#: Up to this many states a full matrix is quickest.
DENSE_LIMIT = 500

#: Elimination state by state, the last resort of `factorizations`, takes some kilobytes and 0.1 ms a state.
ELIMINATION_LIMIT = 50_000


def factorize(Q: csr_array, exits: NDArray[np.float64], *, max_work: int | None = None) -> Factorization:
    """Prepare ``I - Q``, read as ``diag(offdiagonal row sums of Q + exits) - offdiag(Q)``.

    Args:
        Q: shape (m, m), non-negative; its diagonal is ignored.
        exits: the mass that leaves the set from each state, shape (m,), non-negative.
        max_work: a limit on the elimination of a large set; half a microsecond each, `MAX_WORK` by default.

    Raises:
        ModelError: if some state of the set can never leave it; the message gives its position in the set.
        EngineError: if masses underflow, or the system is too large for how entangled it is.
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
        return DenseElimination(offdiagonal.toarray(), exits)
    return SparseElimination(offdiagonal, exits, max_work=max_work)


def factorizations(offdiagonal: csr_array, exits: NDArray[np.float64]) -> Iterator[Callable[[], Factorization]]:
    """Ways to prepare ``I - Q`` for a refinement, the most promising first; they raise EngineError where they fail.

    Which of them fits shows in the shape of the graph or in a trial. One that solves the system roughly is good enough;
    how well it did is found out by the residual.

    Args:
        offdiagonal: shape (m, m), positive entries, none on the diagonal. exits: shape (m,).
    """
    m = len(exits)
    if m <= DENSE_LIMIT:
        yield lambda: DenseElimination(offdiagonal.toarray(), exits)
        return
    banded = bandwidth(offdiagonal) <= WIDEST
    narrow = banded or is_narrow(offdiagonal)
    if banded:
        yield lambda: BandElimination(offdiagonal, exits)
    elif narrow:
        yield lambda: SparseLU(offdiagonal, exits, keep_order=True)
    if JumpChainIteration.better_in_single(offdiagonal, exits):
        yield lambda: JumpChainIteration(offdiagonal, exits, single=True)
    yield lambda: JumpChainIteration(offdiagonal, exits)
    if m <= DENSE_CORE:
        yield lambda: DenseElimination(offdiagonal.toarray(), exits)
        return
    blocks = None if narrow else blocks_in_order(offdiagonal)
    if blocks is not None:
        yield lambda: BlockTriangular(offdiagonal, exits, blocks, _factorize_block)
    else:
        if not narrow and is_affordable(offdiagonal):
            yield lambda: SparseLU(offdiagonal, exits, keep_order=False)
        yield lambda: AggregationMultigrid(offdiagonal, exits)
    if m <= ELIMINATION_LIMIT:
        yield lambda: SparseElimination(offdiagonal, exits)


def _factorize_block(offdiagonal: csr_array, exits: NDArray[np.float64], connected: bool) -> Factorization:
    """The first of `factorizations` that works; small components in their order fill in only among themselves."""
    if not connected:
        return SparseLU(offdiagonal, exits, keep_order=True)
    failures: list[EngineError] = []
    for make in factorizations(offdiagonal, exits):
        try:
            factors = make()
            if not isinstance(factors, JumpChainIteration) or factors.converges():
                return factors
            failures.append(NoConvergenceError(f"{len(exits)} states mix too slowly for an iteration"))
        except EngineError as failure:
            failures.append(failure)
    raise EngineError(
        f"no way was found to solve the equations of {len(exits)} states that lead to one another: "
        + "; ".join(str(failure) for failure in failures)
    )


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
