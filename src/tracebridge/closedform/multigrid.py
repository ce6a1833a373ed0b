"""Aggregation multigrid: for large chains that neither mix nor can be eliminated, such as walks on wide grids.

States that lead to one another are lumped in pairs, twice for each level, down to a chain small enough for elimination.
The lumped chain is formed by adding non-negative numbers, also the ways out, so that the slowest motion of a nearly
decomposable chain is seen without cancellation. A cycle through the levels preconditions BiCGSTAB (Notay, Electronic
Trans. Numer. Anal. 37, 2010; SIAM J. Sci. Comput. 34, 2012).

The lumping of rows has to weigh states as the chain visits them: weights come from steps of the chain itself, forward
from the uniform distribution (compare Koury, McAllister and Stewart, SIAM J. Alg. Disc. Meth. 5, 1984).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.closedform.dense_elimination import DenseElimination
from tracebridge.closedform.krylov import bicgstab
from tracebridge.closedform.linear_solver import TOLERANCE, Factorization
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

#: A lumped chain of so many states is eliminated.
SMALL = 700

#: Every level has at most this share of the states of the one before, or the states are not pairs of anything.
_LEAST_COARSENING = 0.75

_DAMPING = 0.7  # of the Jacobi steps; below one, and they smooth whatever the graph
_MATCHING_ROUNDS = 4
_SMOOTHING_OF_WEIGHTS = 200
_STEADY = 1e-12
_LEAST_WEIGHT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Level:
    """``D - A`` of a level; ``lump`` is the state of the next level that each state belongs to."""

    entries: csr_array
    transposed: csr_array
    leaving: Floats
    lump: Indices
    n_lumps: int


class AggregationMultigrid(Factorization):
    """BiCGSTAB on the weighted jump chain with a W-cycle over lumped chains."""

    def __init__(self, offdiagonal: csr_array, exits: Floats) -> None:
        """Set up the levels.

        Args:
            offdiagonal: shape (m, m), no diagonal. exits: shape (m,).

        Raises:
            EngineError: if the states cannot be lumped, or lumped mass is beyond the range of doubles.
        """
        self.size = len(exits)
        self.componentwise = False
        leaving = np.asarray(offdiagonal.sum(axis=1)).ravel() + exits
        lengths = np.diff(offdiagonal.indptr)
        jumps = csr_array(
            (offdiagonal.data / np.repeat(leaving, lengths), offdiagonal.indices, offdiagonal.indptr),
            shape=offdiagonal.shape,
        )
        weights = _visit_weights(jumps)
        self._row_scale = weights / leaving
        entries = csr_array(
            (jumps.data * np.repeat(weights, lengths), jumps.indices, jumps.indptr), shape=offdiagonal.shape
        )
        ways_out = exits * self._row_scale
        self._levels: list[_Level] = []
        while entries.shape[0] > SMALL:
            level, entries, ways_out = _lumped(entries, ways_out)
            self._levels.append(level)
        self._core = DenseElimination(entries.toarray(), ways_out)

    def _solve(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:
        aim = TOLERANCE if tolerance is None else tolerance
        scaled = rhs if transposed else rhs * self._row_scale[:, None]
        solution = np.stack(
            [self._iterate(column, transposed=transposed, tolerance=aim) for column in scaled.T], axis=1
        )
        return solution * self._row_scale[:, None] if transposed else solution

    def _iterate(self, rhs: Floats, *, transposed: bool, tolerance: float) -> Floats:
        if not self._levels:
            return self._core.approximate(rhs, transposed=transposed)
        finest = self._levels[0]
        matrix = finest.transposed if transposed else finest.entries
        with np.errstate(all="ignore"):  # an iteration that diverges overflows; what it found before is returned
            return bicgstab(
                lambda x: finest.leaving * x - matrix @ x,
                rhs,
                lambda r: self._cycle(0, r, transposed=transposed),
                tolerance=tolerance,
            )[0]

    def _cycle(self, depth: int, rhs: Floats, *, transposed: bool) -> Floats:
        if depth == len(self._levels):
            return self._core.approximate(rhs, transposed=transposed)
        level = self._levels[depth]
        matrix = level.transposed if transposed else level.entries
        damped = _DAMPING / level.leaving
        x = damped * rhs
        residual = rhs - level.leaving * x + matrix @ x
        lumped: Floats = np.bincount(level.lump, weights=residual, minlength=level.n_lumps).astype(np.float64)
        correction = self._cycle(depth + 1, lumped, transposed=transposed)
        if depth + 1 < len(self._levels):
            below = self._levels[depth + 1]
            inner = below.transposed if transposed else below.entries
            left = lumped - below.leaving * correction + inner @ correction
            correction = correction + self._cycle(depth + 1, left, transposed=transposed)
        x += correction[level.lump]
        x += damped * (rhs - level.leaving * x + matrix @ x)
        return x


def _visit_weights(jumps: csr_array) -> Floats:
    """How often lazy steps from the uniform distribution visit each state, shape (m,), about one on average."""
    backward = csr_array(jumps.T.tocsr())
    weights = np.ones(jumps.shape[0])
    for _ in range(_SMOOTHING_OF_WEIGHTS):
        new = (weights + backward @ weights) / 2
        steady = bool(np.all(np.abs(new - weights) <= _STEADY * weights))
        weights = new
        if steady:
            break
    # In states that are hardly visited the weight has little effect but on the norm in which convergence is measured.
    return np.asarray(np.maximum(weights / weights.mean(), _LEAST_WEIGHT))


def _lumped(entries: csr_array, ways_out: Floats) -> tuple[_Level, csr_array, Floats]:
    """The level, and the matrix and the ways out of the lumped chain."""
    m = len(ways_out)
    leaving = np.asarray(entries.sum(axis=1)).ravel() + ways_out
    coarse, out, lump = entries, ways_out, np.arange(m)
    for _ in range(2):
        pairs, n_pairs = _pairs(coarse, np.asarray(coarse.sum(axis=1)).ravel() + out)
        membership = csr_array((np.ones(len(pairs)), pairs, np.arange(len(pairs) + 1)), shape=(len(pairs), n_pairs))
        coarse = csr_array(membership.T @ (coarse @ membership))
        coarse.setdiag(0.0)
        coarse.eliminate_zeros()
        coarse.sort_indices()
        out = np.bincount(pairs, weights=out, minlength=n_pairs).astype(np.float64)
        lump = pairs[lump]
    if len(out) > _LEAST_COARSENING * m:
        raise EngineError(f"{m} states do not fall into groups")
    transposed = csr_array(entries.T.tocsr())
    level = _Level(entries=entries, transposed=transposed, leaving=leaving, lump=lump, n_lumps=len(out))
    return level, coarse, out


def _pairs(entries: csr_array, leaving: Floats) -> tuple[Indices, int]:
    """A number for each state, the same for two states that prefer each other; and how many numbers there are."""
    m = len(leaving)
    scaled = csr_array(
        (entries.data / np.repeat(leaving, np.diff(entries.indptr)), entries.indices, entries.indptr),
        shape=entries.shape,
    )
    strength = csr_array(scaled + scaled.T)
    rows = np.repeat(np.arange(m), np.diff(strength.indptr))
    columns = strength.indices.astype(np.int64)
    preference = strength.data * (1 + 0.05 * _shuffled(rows, columns))
    group = np.full(m, -1)
    for _ in range(_MATCHING_ROUNDS):
        free = (group[rows] < 0) & (group[columns] < 0)
        rows, columns, preference = rows[free], columns[free], preference[free]
        if not len(rows):
            break
        starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
        best = np.maximum.reduceat(preference, starts)
        liked = preference == np.repeat(best, np.diff(np.append(starts, len(rows))))
        choice = np.full(m, -1)
        choice[rows[liked]] = columns[liked]
        choosing = np.flatnonzero(choice >= 0)
        mutual = choosing[choice[choice[choosing]] == choosing]
        group[mutual] = np.minimum(mutual, choice[mutual])
    alone = group < 0
    group[alone] = np.flatnonzero(alone)
    names, numbers = np.unique(group, return_inverse=True)
    return numbers, len(names)


def _shuffled(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
    """Numbers in [0, 1) for pairs of states, the same for both directions, to break ties evenly."""
    a, b = np.minimum(rows, columns).astype(np.uint64), np.maximum(rows, columns).astype(np.uint64)
    mixed = (a * np.uint64(0x9E3779B97F4A7C15)) ^ (b * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53)
