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
from tracebridge.closedform.dense_elimination import DenseElimination
from tracebridge.closedform.sparse_elimination import SparseElimination
from tracebridge.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.linear_solver import Factorization

#: Up to this many states a full matrix is quickest.
DENSE_LIMIT = 500


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
