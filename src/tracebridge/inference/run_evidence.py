"""One pass over the runs of a fit, for all that is asked of them beside their transitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tracebridge.inference.corpus_counts import PathCounts
from tracebridge.inference.counting import path_counts
from tracebridge.inference.run_counts import RunCounts

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.traces.model import Trace

#: What runs may differ by, as far as it is known of them.
STANDARD_COVARIATES = ("task_id", "trial", "model")

_BATCH_STEPS = 65_536


def count_runs(fit: ChainFit, traces: Iterable[Trace], covariates: Sequence[str]) -> tuple[RunCounts, PathCounts]:
    """Count the runs of a fit for the bootstrap and for the certificate.

    Args:
        fit: the fit. traces: the runs that it was made from. covariates: what the certificate may test.

    Raises:
        FitError: the files have changed since the chain was fitted.
    """
    paths = PathCounts.empty(covariates)

    def passing() -> Iterator[Trace]:
        nonlocal paths
        batch: list[Trace] = []
        steps = 0
        for trace in traces:
            batch.append(trace)
            steps += len(trace.steps) + 1
            if steps >= _BATCH_STEPS:
                paths += path_counts(fit, batch, covariates=covariates)
                batch, steps = [], 0
            yield trace
        paths += path_counts(fit, batch, covariates=covariates)

    runs = RunCounts.of_traces(fit, passing())
    return runs, paths


def varying_covariates(paths: PathCounts) -> tuple[str, ...]:
    """The covariates of which runs have several values, and some value several runs."""
    if paths.sample is None:
        return ()
    found = []
    for position, name in enumerate(paths.sample.covariates):
        values = [run.values[position] for run in paths.sample.runs if run.values[position]]
        if 1 < len(set(values)) < len(values):
            found.append(name)
    return tuple(found)
