"""RunTable: the passages of each run, and the figures of the chains of many weightings of the runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.inference.run_counts import RunCounts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.traces.model import Trace

_BLOCK_NUMBERS = 4_000_000
_NOTHING_LEFT = 1e-18  # mass of a state that no figure would show
_POSTERIOR_DRAWS = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class RunTable:
    """Each run's passages over m states, for the runs that count.

    Attributes:
        cells: CSR, shape (n_runs, (m + 1) (m + 2)); see `RunCounts`. tasks: of each run; None if some run names none.
    """

    m: int
    cells: csr_array
    tasks: tuple[str, ...] | None

    @property
    def n_runs(self) -> int:
        """The runs that count."""
        return int(self.cells.shape[0])

    @classmethod
    def of(cls, fit: ChainFit, traces: Iterable[Trace]) -> RunTable:
        """Of the traces that a fit was made from. Raises as `RunCounts.of_traces`."""
        runs = RunCounts.of_traces(fit, traces)
        m = len(runs.states)
        kept = np.flatnonzero(np.diff(runs.table.indptr))
        named = bool(np.all(runs.tasks[kept] >= 0))
        tasks = tuple(runs.task_names[task] for task in runs.tasks[kept].tolist()) if named else None
        return cls(m=m, cells=csr_array(runs.table[kept].astype(np.float64)), tasks=tasks)

    def figures(self, weights: NDArray[np.float64], d: int) -> NDArray[np.float64]:
        """R_inf, R(d) and the mean time for runs with these weights, shape (B, n_runs); shape (B, 3).

        NaN without a run, infinite where a run may never end.
        """
        together = max(1, _BLOCK_NUMBERS // self.cells.shape[1])
        parts = [self._figures(part, d) for part in _blocks(weights, together)]
        return np.concatenate(parts)

    def ended(self) -> NDArray[np.bool_]:
        """Which runs were seen to end, shape (n_runs,)."""
        is_end = np.arange(self.cells.shape[1]) % (self.m + 2) >= self.m
        return np.asarray(self.cells @ is_end.astype(np.float64)) > 0

    def posterior(self, rng: np.random.Generator, scale: float, d: int) -> NDArray[np.float64]:
        """The figures of draws of the chain, shape (draws, 3): a prior of mass one a row, and counts times ``scale``.

        The start has no prior of its own; states without a step are no states of the chain.
        """
        m = self.m
        counts = scale * np.asarray(self.cells.sum(axis=0)).reshape(m + 1, m + 2)
        seen = counts[:m].sum(axis=1) > 0
        allowed = np.append(seen, [True, True])
        counts[:m][np.ix_(seen, allowed)] += 1 / allowed.sum()
        together = max(1, _BLOCK_NUMBERS // counts.size)
        parts = []
        for begin in range(0, _POSTERIOR_DRAWS, together):
            number = min(together, _POSTERIOR_DRAWS - begin)
            drawn = np.zeros((number, *counts.shape))
            drawn[:, counts > 0] = rng.standard_gamma(counts[counts > 0], size=(number, int((counts > 0).sum())))
            parts.append(self._of_counts(drawn, d))
        return np.concatenate(parts)

    def _figures(self, weights: NDArray[np.float64], d: int) -> NDArray[np.float64]:
        m = self.m
        return self._of_counts(np.asarray(self.cells.T @ weights.T).T.reshape(len(weights), m + 1, m + 2), d)

    def _of_counts(self, counts: NDArray[np.float64], d: int) -> NDArray[np.float64]:
        """Of counts, which need not be whole, shape (B, m + 1, m + 2)."""
        m, B = self.m, len(counts)
        starts, counts = counts[:, m], counts[:, :m]
        with np.errstate(invalid="ignore"):
            starts = starts / starts.sum(axis=1, keepdims=True)
        totals = counts.sum(axis=2, keepdims=True)
        rows = counts / np.where(totals > 0, totals, 1.0)
        Q, success = rows[:, :, :m], rows[:, :, m]
        ends = _closure(rows[:, :, m:].sum(axis=2) > 0, Q)
        Q = Q * ends[:, :, None]  # runs that get where no end was seen stay there, and the rest can be solved
        solved = np.linalg.solve(np.eye(m) - Q, np.stack([success, np.ones((B, m))], axis=2))
        ever, steps = np.einsum("bi,bik->kb", starts[:, :m], solved)
        reached = _closure(starts[:, :m] > 0, Q.transpose(0, 2, 1))
        within, v = starts[:, m].copy(), starts[:, :m]
        for _ in range(d):
            within += np.einsum("bi,bi->b", v, success)
            v = np.einsum("bi,bij->bj", v, Q)
            if not np.any(v > _NOTHING_LEFT):
                break
        steps = np.where(np.any(reached & ~ends, axis=1), np.inf, steps)
        return np.column_stack([ever + starts[:, m], within, steps])


def _closure(marked: NDArray[np.bool_], Q: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The marked states and those that lead to them by Q, shape (B, m)."""
    while True:
        more = marked | (np.einsum("bij,bj->bi", Q, marked.astype(np.float64)) > 0)
        if np.array_equal(more, marked):
            return marked
        marked = more


def _blocks(weights: NDArray[np.float64], together: int) -> Iterator[NDArray[np.float64]]:
    for begin in range(0, len(weights), together):
        yield weights[begin : begin + together]
