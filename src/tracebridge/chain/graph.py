"""Questions about the edges of a chain alone: reachability and recurrent classes. No number is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


def _edges(matrix: csr_array, through: Mask | None) -> csr_array:
    """The stored entries, of the rows in ``through``, as edges of one byte and narrow indices.

    An explicit zero would be an edge too; chains store none.
    """
    narrow = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
    indptr, indices = matrix.indptr.astype(narrow, copy=False), matrix.indices.astype(narrow, copy=False)
    if through is not None:
        lengths = np.diff(indptr)
        indices = indices[np.repeat(through, lengths)]
        indptr = np.concatenate([[0], np.cumsum(np.where(through, lengths, 0))]).astype(narrow)
    return csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=matrix.shape)


def _visited(edges: csr_array, sources: Mask) -> Mask:
    """What a search from all of ``sources`` at once finds: from one more vertex with edges to them."""
    n = edges.shape[0]
    starts = np.flatnonzero(sources).astype(edges.indices.dtype)
    if not len(starts):
        return np.zeros(n, dtype=np.bool_)
    indices = np.concatenate([edges.indices, starts])
    indptr = np.append(edges.indptr, edges.indptr.dtype.type(len(indices)))
    graph = csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=(n + 1, n + 1))
    order = breadth_first_order(graph, n, directed=True, return_predecessors=False)
    found = np.zeros(n + 1, dtype=np.bool_)
    found[order] = True
    return found[:n]


def reachable(matrix: csr_array, sources: Mask, *, through: Mask | None = None) -> Mask:
    """States reachable from ``sources`` in zero or more steps, shape (n,).

    With ``through``, a path may go on only from states in ``through``; the state it ends in may lie outside.
    """
    return _visited(_edges(matrix, through), sources)


def reaching(matrix: csr_array, targets: Mask, *, through: Mask | None = None) -> Mask:
    """States from which ``targets`` can be reached in zero or more steps, shape (n,).

    With ``through``, every state before the target must be in ``through``: the set where ``P>0 [through U targets]``.
    """
    return _visited(csr_array(_edges(matrix, through).T.tocsr()), targets)


def recurrent_classes(matrix: csr_array) -> list[NDArray[np.int64]]:
    """The bottom strongly connected components, each as ascending state indices, ordered by their first state."""
    n_components, component = connected_components(_edges(matrix, None), directed=True, connection="strong")
    sources = np.repeat(component, np.diff(matrix.indptr))
    leaving = np.zeros(n_components, dtype=np.bool_)
    leaving[sources[sources != component[matrix.indices]]] = True
    members = np.flatnonzero(~leaving[component])
    members = members[np.argsort(component[members], kind="stable")]
    bounds = np.flatnonzero(np.diff(component[members])) + 1
    return sorted(np.split(members, bounds), key=lambda states: int(states[0]))
