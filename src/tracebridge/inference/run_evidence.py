"""One pass over the runs of a fit, for all that is asked of them beside their transitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracebridge.chain.survival import LengthCounts
from tracebridge.inference.corpus_counts import PathCounts
from tracebridge.inference.counting import path_counts
from tracebridge.inference.resampling_units import ResamplingUnits
from tracebridge.inference.run_counts import RunCounts, require_counts_of

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.traces.model import Trace

#: What runs may differ by, as far as it is known of them.
STANDARD_COVARIATES = ("task_id", "trial", "model")

_BATCH_STEPS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunEvidence:
    """What the runs of a fit say, in memory that does not grow with their number.

    Attributes:
        paths: for the certificate. units: for the bootstrap. lengths: when runs ended, and how.
    """

    paths: PathCounts
    units: ResamplingUnits
    lengths: LengthCounts


def count_runs(fit: ChainFit, traces: Iterable[Trace], covariates: Sequence[str]) -> RunEvidence:
    """Count the runs of a fit, in one pass.

    Args:
        fit: the fit. traces: the runs that it was made from. covariates: what the certificate may test.

    Raises:
        FitError: the files have changed since the chain was fitted.
    """
    paths = PathCounts.empty(covariates)
    lengths = LengthCounts.empty()

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

    def counted() -> Iterator[RunCounts]:
        nonlocal lengths
        for part in RunCounts.batches(fit, passing()):
            lengths += LengthCounts.from_lengths(part.lengths, part.outcomes)
            yield part

    units = ResamplingUnits.of(counted())
    require_counts_of(fit, units.states, units.runs.table)
    return RunEvidence(paths=paths, units=units, lengths=lengths)


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
