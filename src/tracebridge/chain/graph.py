"""Questions about the edges of a chain alone: reachability and recurrent classes. No number is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


def _edges(matrix: csr_array) -> csr_array:
    """The stored entries as edges of weight one (an explicit zero would be an edge too; chains store none)."""
    return csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)


def reachable(matrix: csr_array, sources: Mask, *, through: Mask | None = None) -> Mask:
    """States reachable from ``sources`` in zero or more steps, shape (n,).

    With ``through``, a path may go on only from states in ``through``; the state it ends in may lie outside.
    """
    n = matrix.shape[0]
    edges = _edges(matrix).tocoo()
    rows, columns = edges.coords
    if through is not None:
        kept = through[rows]
        rows, columns = rows[kept], columns[kept]
    starts = np.flatnonzero(sources)
    if not len(starts):
        return np.zeros(n, dtype=np.bool_)
    rows = np.concatenate([rows, np.full(len(starts), n)])
    columns = np.concatenate([columns, starts])
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n + 1, n + 1))
    order = breadth_first_order(graph, n, directed=True, return_predecessors=False)
    found = np.zeros(n + 1, dtype=np.bool_)
    found[order] = True
    return found[:n]


def reaching(matrix: csr_array, targets: Mask, *, through: Mask | None = None) -> Mask:
    """States from which ``targets`` can be reached in zero or more steps, shape (n,).

    With ``through``, every state before the target must be in ``through``: the set where ``P>0 [through U targets]``.
    """
    transposed = csr_array(_edges(matrix).T.tocsr())
    n = matrix.shape[0]
    if through is None:
        return reachable(transposed, targets)
    coordinates = transposed.tocoo()
    rows, columns = coordinates.coords  # an edge row -> column here is column -> row in the chain
    kept = through[columns]
    graph = csr_array((np.ones(int(kept.sum())), (rows[kept], columns[kept])), shape=(n, n))
    return reachable(graph, targets)


def recurrent_classes(matrix: csr_array) -> list[NDArray[np.int64]]:
    """The bottom strongly connected components, each as ascending state indices, ordered by their first state."""
    n_components, component = connected_components(_edges(matrix), directed=True, connection="strong")
    coordinates = matrix.tocoo()
    rows, columns = coordinates.coords
    leaving = np.zeros(n_components, dtype=np.bool_)
    leaving[component[rows[component[rows] != component[columns]]]] = True
    members = np.argsort(component, kind="stable")
    bounds = np.searchsorted(component[members], np.arange(n_components + 1))
    classes = [np.sort(members[bounds[c] : bounds[c + 1]]) for c in range(n_components) if not leaving[c]]
    return sorted(classes, key=lambda states: int(states[0]))
