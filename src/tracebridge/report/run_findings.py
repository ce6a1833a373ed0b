"""What the runs of a fit say themselves, beside the counts of their transitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracebridge.errors import NothingToCheckError, UsageError
from tracebridge.inference.certification import certify
from tracebridge.inference.ending_choices import UnsuccessfulRuns
from tracebridge.inference.expanded.advice import advice
from tracebridge.inference.expanded.certificate import ModelCertificate
from tracebridge.inference.expanded.modelling import NO_REPLICATES
from tracebridge.inference.homogeneity import differing_covariates
from tracebridge.inference.run_evidence import STANDARD_COVARIATES, count_runs, varying_covariates

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.chain.survival import LengthCounts
    from tracebridge.inference.certificate import Certificate
    from tracebridge.inference.corpus_counts import PathCounts
    from tracebridge.inference.expanded.ladder import Ladder
    from tracebridge.inference.expanded.modelling import FittedModel
    from tracebridge.inference.resampling_units import ResamplingUnits
    from tracebridge.traces.model import Trace

#: Fewer replicates could not reject at the level of the certificate.
LEAST_REPLICATES = 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is drawn, and from which seed; see `tracebridge.pipeline.assess`.

    Raises:
        UsageError: for a negative number, or too few replicates.
    """

    seed: int
    draws: int
    resamples: int
    replicates: int
    futures: int
    covariates: Sequence[str] | None
    robust: float | None

    def __post_init__(self) -> None:
        if min(self.seed, self.draws, self.resamples, self.replicates, self.futures) < 0:
            raise UsageError("a seed and numbers of draws, resamples, replicates and futures are not negative")
        if 0 < self.replicates < LEAST_REPLICATES:
            raise UsageError(
                f"a certificate takes at least {LEAST_REPLICATES} replicates, or 0 for none, not {self.replicates}"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunFindings:
    """What only the runs themselves can tell, beside the counts of their transitions.

    Attributes:
        certificate: whether the runs are those of such a chain, or why that was not tested. ladder: how the form of the
            chain was found; None for one that was named. advice: what can be done about one that is not accepted.
        lengths: when runs ended and how; None where that is not at hand. runs: for the bootstrap; None for none.
        endings: those that did not succeed, by their reason; None where that is not at hand.
    """

    certificate: Certificate | ModelCertificate | str
    ladder: Ladder | None = None
    advice: tuple[str, ...] = ()
    lengths: LengthCounts | None = None
    runs: ResamplingUnits | None = None
    endings: UnsuccessfulRuns | None = None


def find_in_runs(
    base: ChainFit,
    traces: Iterable[Trace],
    richer: FittedModel | None,
    effort: Effort,
    *,
    progress: Callable[[str], None] = lambda message: None,
) -> RunFindings:
    """The certificate of the runs, their lengths, and what is drawn again from them.

    Args:
        base: the first-order fit. traces: its runs. richer: the chain that was fitted to them beyond it, if any.

    Raises:
        FitError: the runs are not those of the fit. UsageError: no run has a covariate that was asked for.
    """
    progress("counting runs")
    endings = UnsuccessfulRuns(base)
    passing = endings.passing(traces)
    counted = count_runs(base, passing, effort.covariates or STANDARD_COVARIATES)
    paths, lengths = counted.paths, counted.lengths
    _require_covariates(paths, effort.covariates or ())
    drawn = counted.units if effort.resamples and base.weighted is None else None
    if richer is None:
        progress(f"certificate: {effort.replicates} replicates")
        certificate = _certificate(base, paths, effort)
        return RunFindings(certificate=certificate, lengths=lengths, runs=drawn, endings=endings)
    covariates: Mapping[str, float] = {}
    if effort.replicates:
        progress("do runs differ by a covariate?")
        asked = effort.covariates or varying_covariates(paths)
        covariates = differing_covariates(paths, asked, replicates=effort.replicates, seed=effort.seed)
    advised = advice(richer.certificate, covariates) if isinstance(richer.certificate, ModelCertificate) else ()
    return RunFindings(
        certificate=richer.certificate,
        ladder=richer.ladder,
        advice=advised,
        lengths=lengths,
        runs=drawn,
        endings=endings,
    )


def _require_covariates(paths: PathCounts, asked: Sequence[str]) -> None:
    if paths.sample is None:
        return
    for position, name in enumerate(paths.sample.covariates):
        if name in asked and not any(run.values[position] for run in paths.sample.runs):
            raise UsageError(f"no run has the covariate {name!r}: it is task, trial, model or an attribute of runs")


def _certificate(fit: ChainFit, paths: PathCounts, effort: Effort) -> Certificate | str:
    """Whether the runs are those of a first-order chain, or why that is not tested."""
    if not effort.replicates:
        return NO_REPLICATES
    tested = effort.covariates or varying_covariates(paths)
    try:
        return certify(fit, paths, covariates=tested, replicates=effort.replicates, seed=effort.seed)
    except NothingToCheckError as error:
        return str(error)
