"""Cycles inside a set of states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


def on_cycle(matrix: csr_array, states: Mask, *, touching: Mask | None = None) -> Mask:
    """The states on a closed walk inside the set, one that visits ``touching`` if that is given, shape (n,).

    These are the strong components inside the set that have two or more states or a self-loop.
    """
    inside = np.flatnonzero(states)
    found = np.zeros_like(states)
    if len(inside):
        edges = csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
        edges = csr_array(edges[inside][:, inside])
        n_components, component = connected_components(edges, directed=True, connection="strong")
        closed = (np.bincount(component)[component] > 1) | (edges.diagonal() > 0)
        if touching is not None:
            touched = np.zeros(n_components, dtype=np.bool_)
            touched[component[touching[inside]]] = True
            closed &= touched[component]
        found[inside] = closed
    return found
