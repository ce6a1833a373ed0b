"""From traces to `PathCounts`: one pass, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import UsageError
from tracebridge.inference.corpus_counts import PathCounts
from tracebridge.inference.path_tables import CENSORED, FAILURE
from tracebridge.inference.run_sample import rank_of, sample_runs
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.traces.model import Trace

_BATCH_STEPS = 65_536


def path_counts(fit: ChainFit, traces: Iterable[Trace], *, covariates: Sequence[str] = ()) -> PathCounts:
    """Count the runs that a chain was fitted to, or other runs over its states, in one pass and bounded memory.

    Args:
        fit: gives the states and the censoring policy.
        traces: the runs.
        covariates: what runs may differ by: ``task_id``, ``trial``, ``model``, or keys of their attributes.

    Raises:
        UsageError: if the fit was made from counts and knows no states of steps.
        FitError: for a step that belongs to no state.
        TraceError: for a step that has no category.
    """
    total = PathCounts.empty(covariates)
    for batch in _batches(traces):
        total += _count_batch(fit, batch, covariates)
    return total


def split_counts(
    fit: ChainFit, traces: Iterable[Trace], *, covariates: Sequence[str] = (), seed: int = 0
) -> tuple[PathCounts, PathCounts]:
    """The same in two halves, for a held-out certificate: each task is in one half, whole.

    A run without a task counts as a task of its own. Halves are drawn by hash: shards of a corpus split alike.
    """
    halves = [PathCounts.empty(covariates), PathCounts.empty(covariates)]
    for batch in _batches(traces):
        sides = [_side(trace, seed) for trace in batch]
        for side in (0, 1):
            part = [trace for trace, chosen in zip(batch, sides, strict=True) if chosen == side]
            halves[side] += _count_batch(fit, part, covariates)
    return halves[0], halves[1]


def _side(trace: Trace, seed: int) -> int:
    if trace.task_id is None:
        return (rank_of(trace) ^ blake2b(str(seed).encode(), digest_size=1).digest()[0]) & 1
    return blake2b(f"{seed}:{trace.task_id}".encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] & 1


def _batches(traces: Iterable[Trace]) -> Iterator[list[Trace]]:
    batch: list[Trace] = []
    steps = 0
    for trace in traces:
        batch.append(trace)
        steps += len(trace.steps) + 1
        if steps >= _BATCH_STEPS:
            yield batch
            batch, steps = [], 0
    if batch:
        yield batch


def _count_batch(fit: ChainFit, traces: Sequence[Trace], covariates: Sequence[str]) -> PathCounts:
    if fit.abstraction is None:
        raise UsageError("this fit was made from counts: it does not know which state a step belongs to")
    if fit.policy == "drop":
        traces = [trace for trace in traces if trace.outcome is not Outcome.CENSORED]
    runs = fit.abstraction.encode_runs(traces)
    outcomes = runs.outcomes.astype(np.int64)
    if fit.policy == "failure":
        outcomes[outcomes == CENSORED] = FAILURE
    names = fit.abstraction.space.names
    codes = fit.abstraction.paths(runs)
    sample = None
    if covariates:
        words = [names[code] for code in codes.tolist()]
        paths = [words[a:b] for a, b in zip(runs.offsets[:-1].tolist(), runs.offsets[1:].tolist(), strict=True)]
        sample = sample_runs(traces, paths, outcomes.tolist(), covariates)
    return PathCounts.of_paths(names, codes, runs.offsets, outcomes, sample)
