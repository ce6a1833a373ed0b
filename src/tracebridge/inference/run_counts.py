"""RunCounts: what each run adds to the counts of a fit, so that runs can be drawn again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, get_args

import numpy as np
from scipy.sparse import csr_array, vstack

from tracebridge.chain.counts import CensoringPolicy
from tracebridge.errors import FitError, UsageError
from tracebridge.states.features import OUTCOMES
from tracebridge.states.flow import closed_walk
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.traces.model import Trace

    Integers = NDArray[np.integer]

_BATCH_RUNS = 4_096
_SUCCESS, _FAILURE, _CENSORED = (OUTCOMES.index(o) for o in (Outcome.SUCCESS, Outcome.FAILURE, Outcome.CENSORED))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunCounts:
    """The counts of each run under a censoring policy; the sum over runs is the `RowCounts` of the corpus.

    Attributes:
        states: m unique names, ascending.
        table: CSR int64, shape (runs, (m + 1) (m + 2)). Cell ``i (m + 2) + j`` counts passages from state i to j, where
            j = m and m + 1 are success and failure, and i = m is the start.
        outcomes: position in ``OUTCOMES`` of each run, as it was seen, shape (runs,).
        lengths: steps of each run, shape (runs,).
        tasks: the task of each run, numbered from 0, shape (runs,); -1 where it is not known.
        task_names: names of the tasks.
    """

    states: tuple[str, ...]
    table: csr_array
    outcomes: NDArray[np.int8]
    lengths: NDArray[np.int64]
    tasks: NDArray[np.int64]
    task_names: tuple[str, ...] = ()

    @property
    def n_runs(self) -> int:
        """All runs, those that add nothing included."""
        return len(self.outcomes)

    @classmethod
    def of_paths(
        cls,
        states: Sequence[str],
        codes: Integers,
        offsets: Integers,
        outcomes: Integers,
        *,
        policy: CensoringPolicy = "censored",
        task_ids: Sequence[str | None] | None = None,
    ) -> RunCounts:
        """Of runs laid end to end: run r visits ``codes[offsets[r]:offsets[r + 1]]``, positions in ``states``.

        Args:
            states: names, ascending. codes: shape (steps,). offsets: shape (runs + 1,).
            outcomes: positions in ``OUTCOMES``, shape (runs,). policy: see `TransitionCounts.under`.
            task_ids: one a run.
        """
        if policy not in get_args(CensoringPolicy):
            raise UsageError(f"{policy!r} is no censoring policy; there are {', '.join(get_args(CensoringPolicy))}")
        m, n_runs = len(states), len(outcomes)
        width = m + 2
        walk = closed_walk(codes, offsets, m)  # m is the outside: before a first step, behind a last one
        lengths = np.diff(offsets)
        run = np.repeat(np.arange(n_runs), lengths + 1)
        source, target = walk[:-1], walk[1:].copy()
        outcome = np.asarray(outcomes, dtype=np.int64)
        ends = np.full(n_runs, -1)
        ends[outcome == _SUCCESS] = m
        ends[outcome == _FAILURE] = m + 1
        if policy == "failure":
            ends[outcome == _CENSORED] = m + 1
        last = np.cumsum(lengths + 1) - 1
        target[last] = ends
        kept = target >= 0
        if policy == "drop":
            kept &= (outcome != _CENSORED)[run]
        entries = (np.ones(int(kept.sum()), dtype=np.int64), (run[kept], (source * width + target)[kept]))
        table = csr_array(entries, shape=(n_runs, (m + 1) * width))
        table.sum_duplicates()
        known = [None] * n_runs if task_ids is None else list(task_ids)
        names = sorted({task for task in known if task is not None})
        number = {name: i for i, name in enumerate(names)}
        return cls(
            states=tuple(states),
            table=table,
            outcomes=outcome.astype(np.int8),
            lengths=lengths.astype(np.int64),
            tasks=np.array([-1 if task is None else number[task] for task in known], dtype=np.int64),
            task_names=tuple(names),
        )

    @classmethod
    def batches(cls, fit: ChainFit, traces: Iterable[Trace]) -> Iterator[RunCounts]:
        """Of traces that a fit was made from, under its policy, some thousands together; all have the same states.

        Raises:
            UsageError: the fit has no map from steps to states. FitError: there is no run.
        """
        if fit.abstraction is None:
            raise UsageError("the fit has no map from steps to states; count its runs by RunCounts.of_paths")
        names = fit.abstraction.space.names
        order = sorted(range(len(names)), key=names.__getitem__)
        position = np.argsort(order)
        states = tuple(names[i] for i in order)
        found = False
        source = iter(traces)
        while batch := list(islice(source, _BATCH_RUNS)):
            found = True
            runs = fit.abstraction.encode_runs(batch)
            codes = position[fit.abstraction.paths(runs)]
            yield cls.of_paths(states, codes, runs.offsets, runs.outcomes, policy=fit.policy, task_ids=runs.task_ids)
        if not found:
            raise FitError("there is no run to draw from")

    @classmethod
    def of_traces(cls, fit: ChainFit, traces: Iterable[Trace]) -> RunCounts:
        """Of all runs that a fit was made from, one by one: memory grows with their number.

        Raises:
            UsageError, FitError: as `batches`; or the traces are not those of the fit: their counts differ.
        """
        whole = cls._joined(list(cls.batches(fit, traces)))
        require_counts_of(fit, whole.states, whole.table)
        return whole

    @classmethod
    def _joined(cls, parts: Sequence[RunCounts]) -> RunCounts:
        names = sorted({name for part in parts for name in part.task_names})
        number = {name: i for i, name in enumerate(names)}
        tasks = []
        for part in parts:
            renumbered = np.array([*(number[name] for name in part.task_names), -1], dtype=np.int64)
            tasks.append(renumbered[part.tasks])  # -1 is the last place
        return cls(
            states=parts[0].states,
            table=csr_array(vstack([part.table for part in parts], format="csr")),
            outcomes=np.concatenate([part.outcomes for part in parts]),
            lengths=np.concatenate([part.lengths for part in parts]),
            tasks=np.concatenate(tasks),
            task_names=tuple(names),
        )


def require_counts_of(fit: ChainFit, states: Sequence[str], table: csr_array) -> None:
    """Refuse runs whose sum is not what a fit was made from.

    Args:
        fit: the fit. states, table: as `RunCounts` has them; rows may be sums of runs.

    Raises:
        FitError: the counts differ.
    """
    total = np.asarray(table.sum(axis=0)).ravel().reshape(len(states) + 1, len(states) + 2)
    rows = fit.counts.under(fit.policy)
    mine = {name: i for i, name in enumerate(states)}
    if any(name not in mine for name in rows.states):
        raise FitError("these are not the runs of the fit: it has a state that none of them visits")
    order = [mine[name] for name in rows.states]
    columns = [*order, len(states), len(states) + 1]
    counted = total[np.ix_([*order, len(states)], columns)]
    expected = np.vstack([rows.counts.toarray(), rows.starts])
    if counted.sum() != total.sum() or not np.array_equal(counted, expected):
        raise FitError("these are not the runs of the fit: their transitions do not add up to its counts")
