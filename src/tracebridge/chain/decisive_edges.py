"""Which edges that a chain does not have would change a verdict about reachability, each by itself.

Only the edges of a graph are looked at: an added edge has some positive probability, and all others keep theirs. The
kinds of verdict, for runs that begin in one of the ``start`` states:

``possible``     some run reaches the target: ``P>0 [ F target ]`` and CTL's ``E [ F target ]``.
``almost-sure``  runs reach the target with probability one: ``P>=1 [ F target ]``.
``inevitable``   every path reaches the target, also those of probability zero: CTL's ``A [ F target ]``.

A verdict and its negation rest on the same edges, so that these are all there is: ``P<=0 [ F target ]``,
``P>=1 [ G safe ]`` and ``A [ G safe ]`` deny ``possible`` (of what is not safe), ``P<1 [ F target ]`` and
``P>0 [ G safe ]`` deny ``almost-sure``, ``E [ G safe ]`` denies ``inevitable``. With ``through`` a path may go on only
from states in it, which makes ``F target`` into ``through U target``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from tracebridge.chain.graph import reachable, reaching, recurrent_classes
from tracebridge.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

ReachabilityKind = Literal["possible", "almost-sure", "inevitable"]

#: More candidate edges than this are not listed.
MAX_EDGES = 5_000_000


def reachability_holds(
    matrix: csr_array, start: Mask, target: Mask, kind: ReachabilityKind, *, through: Mask | None = None
) -> bool:
    """Whether the verdict holds: ``possible`` from some start state, the others from all of them.

    Args:
        matrix: the edges as stored entries, CSR, shape (n, n); every state has a successor.
        start, target, through: states, shape (n,); some start state.
        kind: the verdict.
    """
    return _Question(matrix, start, target, kind, through).holds


def edges_that_matter(
    matrix: csr_array,
    allowed: Mask,
    start: Mask,
    target: Mask,
    kind: ReachabilityKind,
    *,
    through: Mask | None = None,
) -> NDArray[np.int64]:
    """The edges whose addition, of one alone, would change the verdict; source and target, ascending, shape (k, 2).

    Where every state can be reached from the start, as in a chain fitted to runs, a set of edges that makes an
    impossible target possible holds at least one of those listed.

    Args:
        matrix, start, target, kind, through: as in `reachability_holds`.
        allowed: the edges that might be added, shape (n, n); or the states that might have another successor, shape
            (n,). What the matrix has already is left out.

    Raises:
        UsageError: for another kind, arrays of another shape, or no start state.
        UnsupportedError: for more than five million candidates.
    """
    n = matrix.shape[0]
    question = _Question(matrix, start, target, kind, through)
    if allowed.shape not in ((n,), (n, n)):
        raise UsageError(f"the allowed edges of {n} states have shape {allowed.shape}, not ({n},) or ({n}, {n})")
    found = []
    for sources, targets in question.changing():
        own = np.flatnonzero(sources & (allowed if allowed.ndim == 1 else allowed.any(axis=1)))
        following = np.flatnonzero(targets)
        if len(own) * len(following) > MAX_EDGES:
            raise UnsupportedError(
                f"the verdict rests on up to {len(own) * len(following)} edges, more than can be listed"
            )
        chosen = matrix[own][:, following].toarray() == 0
        if allowed.ndim == 2:
            chosen &= allowed[np.ix_(own, following)]
        i, j = np.nonzero(chosen)
        found.append(np.column_stack([own[i], following[j]]))
    pairs = np.concatenate(found) if found else np.empty((0, 2))
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].astype(np.int64)


class _Question:
    """A verdict on a graph. Runs stop in the target and where they may not go on; ``moving`` are the other states."""

    def __init__(
        self, matrix: csr_array, start: Mask, target: Mask, kind: ReachabilityKind, through: Mask | None
    ) -> None:
        n = matrix.shape[0]
        through = np.ones(n, dtype=np.bool_) if through is None else through
        if any(mask.shape != (n,) or mask.dtype != np.bool_ for mask in (start, target, through)):
            raise UsageError(f"sets of {n} states are truth values of shape ({n},)")
        if not start.any():
            raise UsageError("a verdict needs a start state")
        self._matrix, self._target, self._kind = matrix, target, kind
        self._moving = moving = through & ~target
        self._reached = reachable(matrix, start, through=moving)
        self._able = reaching(matrix, target, through=moving)
        if kind == "possible":
            self.holds = bool((start & self._able).any())
        elif kind == "almost-sure":
            self._missing = reaching(matrix, ~self._able, through=moving)
            self.holds = not (start & self._missing).any()
        elif kind == "inevitable":
            ever = self._on_cycles() | ~(moving | target)
            self._avoiding = reaching(matrix, ever, through=moving)
            self.holds = not (start & self._avoiding).any()
        else:
            raise UsageError(f"{kind!r} is no kind of verdict; there are {', '.join(get_args(ReachabilityKind))}")

    def changing(self) -> list[tuple[Mask, Mask]]:
        """Pairs of sets: any new edge from the first to the second changes the verdict, and no other edge does."""
        within = self._reached & self._moving
        if self._kind == "possible":
            return [] if self.holds else [(within, self._able)]
        if self._kind == "almost-sure":
            return [(within, self._missing)] if self.holds else self._ways_out()
        if not self.holds:
            return []  # a path that avoids the target is still one
        # A new edge from u opens a path that avoids the target for ever, or closes a cycle through u.
        pairs = []
        for u in np.flatnonzero(within).tolist():
            alone = np.zeros_like(within)
            alone[u] = True
            pairs.append((alone, self._avoiding | reaching(self._matrix, alone, through=self._moving)))
        return pairs

    def _ways_out(self) -> list[tuple[Mask, Mask]]:
        """The target is missed because runs end up in closed classes; one edge helps only if there is just one."""
        kept = np.where(self._moving, np.diff(self._matrix.indptr), 0)
        entries = np.repeat(self._moving, np.diff(self._matrix.indptr))
        indptr = np.concatenate([[0], np.cumsum(kept)])
        cut = csr_array((np.ones(int(kept.sum())), self._matrix.indices[entries], indptr), shape=self._matrix.shape)
        traps = [members for members in recurrent_classes(cut) if not self._able[members[0]]]
        entered = [k for k, members in enumerate(traps) if self._reached[members[0]]]
        if len(entered) > 1:
            return []
        (only,) = entered
        sources = np.zeros_like(self._able)
        sources[traps[only]] = True
        others = np.zeros_like(self._able)
        others[[state for k, members in enumerate(traps) if k != only for state in members.tolist()]] = True
        leads_to_others = reaching(self._matrix, others, through=self._moving)
        return [(sources & self._moving, self._able & ~leads_to_others)]

    def _on_cycles(self) -> Mask:
        """States that a cycle among ``moving`` states passes through."""
        n = self._matrix.shape[0]
        rows, columns = self._matrix.tocoo().coords
        inside = self._moving[rows] & self._moving[columns]
        rows, columns = rows[inside], columns[inside]
        graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
        _, component = connected_components(graph, directed=True, connection="strong")
        on_cycle = np.bincount(component, minlength=n)[component] > 1
        on_cycle[rows[rows == columns]] = True
        return np.asarray(on_cycle)
