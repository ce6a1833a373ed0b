"""A chain unfolded over the levels of its budgets into one system of equations, to be differentiated.

The nodes are the states of each level of what is left to spend, level after level; see `reward_bounded`, which solves
the same equations one level after the other and forgets them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.graph import reaching
from tracebridge.closedform.budget import level_after, levels_below
from tracebridge.closedform.gradient_tape import Edges
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.budget import Budget
    from tracebridge.closedform.reward_bounded import Recursion

    Mask = NDArray[np.bool_]

#: Transitions of all levels together.
MAX_EDGES = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnfoldedEquations:
    """``x = gain + P x`` on active nodes, of which there are levels times n.

    Attributes:
        edges: of the active nodes. active: they are left almost surely. settled: the values of the others, where they
            do not hang on the chain. stuck: from these the run never spends anything any more, nor leaves the open
            states: what they are worth is a question of its own.
    """

    edges: Edges
    active: Mask
    settled: NDArray[np.float64]
    stuck: Mask

    def reaching(self, targets: Mask) -> Mask:
        """The nodes from which some nodes can be reached, through active ones; masks of shape (levels * n,)."""
        shape = (self.edges.nodes, self.edges.nodes)
        ones = np.ones(len(self.edges.sources), dtype=np.int8)
        graph = csr_array((ones, (self.edges.sources, self.edges.targets)), shape=shape)
        return reaching(graph, targets, through=self.active)


def unfold(matrix: csr_array, recursion: Recursion, dimensions: Sequence[Budget]) -> UnfoldedEquations:
    """The equations of all levels; the whole budget is the last one.

    Args:
        matrix: of the chain, shape (n, n). recursion: what is computed. dimensions: not empty, none of them impossible.

    Raises:
        UnsupportedError: above `MAX_EDGES`.
    """
    n = matrix.shape[0]
    amounts = np.stack([np.minimum(each.cost, each.top + 1) for each in dimensions], axis=1)
    different, kinds = np.unique(amounts, axis=0, return_inverse=True)
    costs = [tuple(row) for row in different.tolist()]
    levels = levels_below(dimensions, costs)
    if len(levels) * matrix.nnz > MAX_EDGES:
        raise UnsupportedError(
            f"{len(levels):,} levels of a budget times {matrix.nnz} transitions are too many to differentiate (at most "
            f"{MAX_EDGES:,})"
        )
    number = {level: i for i, level in enumerate(levels)}
    active, stuck = np.zeros((2, len(levels), n), dtype=np.bool_)
    settled, after = np.empty((len(levels), n)), np.empty((len(levels), n), dtype=np.int64)
    exceeded = recursion.exceeded.to_float().value
    for i, level in enumerate(levels):
        fits = all(each.fits(amount) for each, amount in zip(dimensions, level, strict=True))
        following = [level_after(dimensions, level, cost) for cost in costs]
        after[i] = np.array([-1 if each is None else number[each] for each in following])[kinds.reshape(-1)]
        open_ = recursion.open_[fits]
        settled[i] = np.where(open_, exceeded, recursion.settled[fits].to_float().value)
        free = open_ & (after[i] == i)
        stuck[i] = free & ~reaching(matrix, ~free, through=free)
        active[i] = open_ & (after[i] >= 0) & ~stuck[i]
    rows, states = np.nonzero(active)
    lengths = np.diff(matrix.indptr)[states]
    ends = np.cumsum(lengths)
    entries = np.repeat(matrix.indptr[states] - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
    edges = Edges(
        sources=np.repeat(rows * n + states, lengths),
        targets=np.repeat(after[rows, states], lengths) * n + matrix.indices[entries],
        entries=entries,
        nodes=len(levels) * n,
    )
    return UnfoldedEquations(edges=edges, active=active.ravel(), settled=settled.ravel(), stuck=stuck.ravel())
