"""Certificate: whether a first-order chain with fixed probabilities describes a corpus; numbers with their meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol

import msgspec

from tracebridge.html_table import html_paragraph, html_table
from tracebridge.inference.certificate_document import read_certificate
from tracebridge.inference.localisation import Departure, StateShare
from tracebridge.inference.published_rule import PaperProfile
from tracebridge.inference.resolution import POWER
from tracebridge.traces.problems import counted

KIND = "certificate"
SCHEMA_VERSION = 1

#: What stands beside numbers of a chain that was not tested, or not well enough.
NOT_CERTIFIED = "chain not certified"

#: What a certificate of runs none of which was seen to end says of first passage.
UNTESTED_ENDS = "first passage: no run was seen to end, so that when runs end and how is not tested"

#: ``accept``: not rejected, and effects of the size that was asked for would have been seen. ``inconclusive``: not
#: rejected, but they could have been missed.
CertificateVerdict = Literal["accept", "reject", "inconclusive"]

#: Printed with every certificate.
IDENTITY = (
    "The probability of success and the mean time to absorption of a chain fitted without a prior equal the pass rate "
    "and the mean length of the runs by construction, whatever the runs are: their agreement validates nothing."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceEffects:
    """Effects that a corpus must be able to show before its chain is accepted.

    Attributes:
        gap: between the chain's and the true probability to have succeeded, or failed, within some number of steps.
        nats: information about the next step that a context adds to the state, per step: a remembered previous state
            that decides one step in six among five others is about 0.05.
    """

    gap: float = 0.1
    nats: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticResult:
    """One statistic of the certificate.

    Attributes:
        name: ``first passage``, ``previous state``, ``step time``, ``dwell``, or ``between halves``. There is no first
            passage where no run was seen to end: all that the chain says of ends is then its prior.
        value: a gap of probabilities for ``first passage``, a standardised deviance for the others.
        p: bootstrap p-value of this statistic alone.
        z: value, standardised by its mean and deviation over the replicates.
        effect: ``gap``: the value itself; ``nats``: information per step that the context adds, bias removed.
        unit: ``gap`` or ``nats``.
        resolution: the smallest effect that this corpus would show, in the joint test, with a probability of 0.8; None
            where the statistic cannot vary.
        g2: likelihood ratio; None for ``first passage``. g2_expected: its mean given the margins.
        n_events: steps that it rests on; runs with a known end for ``first passage``.
    """

    name: str
    value: float
    p: float
    z: float
    effect: float
    unit: Literal["gap", "nats"]
    resolution: float | None
    g2: float | None
    g2_expected: float | None
    n_events: int


class Resolved(Protocol):
    """A statistic as `judged_by_resolution` sees it."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def unit(self) -> Literal["gap", "nats"]:
        """Of its effects."""

    @property
    def resolution(self) -> float | None:
        """The smallest effect that would be seen; None where it cannot vary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CovariateResult:
    """Whether runs differ by a covariate, by permutation; holds whatever the chain is.

    Attributes:
        covariate: its name. n_runs: runs that have a value. n_values: distinct values.
        over: what was permuted: runs, whole tasks, or runs within each task.
        p: of the larger of both statistics; None where nothing can differ. p_holm: adjusted for all covariates.
        p_path, p_outcome: of what follows a state, and of the outcome, each alone.
        nats_path: information per step about what follows. nats_outcome: per completed run about the outcome.
    """

    covariate: str
    n_runs: int
    n_values: int
    over: str
    p: float | None
    p_holm: float | None
    p_path: float | None
    p_outcome: float | None
    nats_path: float
    nats_outcome: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveDeparture:
    """The largest gap between observed and fitted curves.

    Attributes:
        outcome: ``success`` or ``failure``. step: d. observed: estimate of the probability to have ended so within d
            steps, by Aalen and Johansen. fitted: the same by the refitted chain.
    """

    outcome: str
    step: int
    observed: float
    fitted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFigures:
    """The chain that is used downstream, beside the corpus; no test.

    Attributes:
        pass_rate: successes among completed runs that the chain was fitted to, by their weights; None without any.
        mean_length: steps of these runs.
        reliability: R_inf of the fitted chain; None where runs need not end. mean_time: its MTTA.
        gap: largest difference of the fitted chain's curves to the observed ones. What it has beyond the gap of the
            statistic ``first passage`` is the fit's own prior, support and censoring policy.

    The last three are None where no run was seen to end.
    """

    pass_rate: float | None
    mean_length: float | None
    reliability: float | None
    mean_time: float | None
    gap: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The audit of a fitted chain.

    The null hypothesis: runs are independent draws from one first-order chain with fixed probabilities over these
    states, cut as the corpus was. It is tested by parametric bootstrap: the corpus is drawn anew from the chain with a
    prior of mass one a row, which is refitted to each replicate. ``p`` is that of the largest standardised statistic.

    Attributes:
        p: joint p-value. level: what p is compared with; also the p-values of covariates after Holm's adjustment, which
            keep apart from ``p``, so that asking for more covariates cannot turn a rejection into an acceptance. The
            chance of a false rejection is at most ``level`` for the chain and as much again for all covariates.
        replicates, seed: of bootstrap and permutations.
        held_out: the chain was fitted to one half of the tasks, and judged on the other.
        runs: by outcome, of the corpus that is judged. n_states: transient states. n_events: steps of which it was seen
            what followed.
        effects: what must be resolved for an acceptance.
        statistics, covariates: see there. curve: the largest gap; None where no run was seen to end.
        shares, departures: where the corpus departs most.
        figures: the chain that is used downstream. paper: the published rule beside it.
        notes: what the reader must know, one sentence each.
    """

    p: float
    level: float
    replicates: int
    seed: int
    held_out: bool
    runs: dict[str, int]
    n_states: int
    n_events: int
    effects: ReferenceEffects
    statistics: tuple[StatisticResult, ...]
    covariates: tuple[CovariateResult, ...]
    curve: CurveDeparture | None
    shares: tuple[StateShare, ...]
    departures: tuple[Departure, ...]
    figures: FitFigures
    paper: PaperProfile
    notes: tuple[str, ...]

    @property
    def verdict(self) -> CertificateVerdict:
        """Follows from the numbers."""
        return _judge(self)[0]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why, one sentence each."""
        return _judge(self)[1]

    def __getitem__(self, name: str) -> StatisticResult:
        for statistic in self.statistics:
            if statistic.name == name:
                return statistic
        raise KeyError(name)

    @property
    def mark(self) -> str | None:
        """A few words to stand beside every number of a chain that is not accepted; None for one that is."""
        if self.verdict == "accept":
            return None
        return "chain rejected" if self.verdict == "reject" else NOT_CERTIFIED

    def to_records(self) -> list[dict[str, Any]]:
        """One record a statistic; see `StatisticResult`."""
        return [{name.name: getattr(each, name.name) for name in fields(each)} for each in self.statistics]

    def _repr_html_(self) -> str:
        heads = ("statistic", "effect", "unit", "smallest effect that would be seen", "p")
        rows = [(each.name, each.effect, each.unit, each.resolution, each.p) for each in self.statistics]
        return html_paragraph(repr(self)[1:-1], self.reasons) + html_table(heads, rows, noun="statistics")

    def to_dict(self) -> dict[str, Any]:
        """The JSON document ``certificate``."""
        body = msgspec.json.decode(msgspec.json.encode(self))
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "identity": IDENTITY,
            **body,
        }

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> Certificate:
        """Read `to_dict`'s document. Raises ModelError, naming the field, for anything else."""
        return read_certificate(cls, data, kind=KIND, version=SCHEMA_VERSION, path=path)

    def __repr__(self) -> str:
        runs = counted(sum(self.runs.values()), "run")
        return f"<Certificate: {self.verdict}, p {p_text(self.p, self.replicates)}, {runs}>"


def p_text(p: float, replicates: int, *, least: float | None = None) -> str:
    """``= 0.2``, or ``<= 0.005`` for a p-value as small as so many replicates allow: it is known to be at most that.

    Args:
        p: the p-value. replicates: of its test. least: what is compared with the smallest possible one instead of p, as
            for one that is adjusted for several tests.
    """
    is_least = (p if least is None else least) <= (1 + 1e-9) / (replicates + 1)
    return f"{'<=' if is_least else '='} {p:.3g}"


def _judge(certificate: Certificate) -> tuple[CertificateVerdict, tuple[str, ...]]:
    level, replicates = certificate.level, certificate.replicates
    joint = p_text(certificate.p, replicates)
    rejections = []
    if certificate.p <= level:
        worst = [s.name for s in certificate.statistics if s.p <= level]
        named = f": {', '.join(worst)}" if worst else ""
        rejections.append(f"the runs are not those of a first-order chain (p {joint}{named})")
    rejections += [
        f"runs differ by {result.covariate} (adjusted p {p_text(result.p_holm, replicates, least=result.p)})"
        for result in certificate.covariates
        if result.p_holm is not None and result.p_holm <= level
    ]
    if rejections:
        return "reject", tuple(rejections)
    verdict, reasons = judged_by_resolution("a first-order chain", joint, certificate.statistics, certificate.effects)
    if certificate.curve is None:
        return "inconclusive", (*reasons, UNTESTED_ENDS)
    return verdict, reasons


def judged_by_resolution(
    chain: str, joint: str, statistics: Sequence[Resolved], effects: ReferenceEffects
) -> tuple[Literal["accept", "inconclusive"], tuple[str, ...]]:
    """The verdict on a chain that is not rejected: by what these runs would have shown.

    Args:
        chain: its name, with an article. joint: the joint p-value, as `p_text` writes it.
        statistics: of the test. effects: what must be resolved for an acceptance.
    """
    able = [(s, s.resolution) for s in statistics if s.resolution is not None]
    if not able:
        return "inconclusive", (f"there is nothing in these runs that could contradict {chain}",)
    missed = []
    for statistic, resolution in able:
        wanted = getattr(effects, statistic.unit)
        if resolution > wanted:
            seen = "no effect of whatever size" if math.isinf(resolution) else f"{resolution:.2g}"
            missed.append(
                f"{statistic.name}: an effect of {wanted:g} {_UNITS[statistic.unit]} would be missed in more than "
                f"{1 - POWER:.0%} of such corpora; {seen} would be seen"
            )
    if missed:
        return "inconclusive", (f"nothing contradicts {chain} (p {joint})", *missed)
    seen = ", ".join(f"{resolution:.2g} {_UNITS[s.unit]} ({s.name})" for s, resolution in able)
    reason = (
        f"nothing contradicts {chain} (p {joint}), and in at least {POWER:.0%} of such corpora these effects would: "
        f"{seen}"
    )
    return "accept", (reason,)


_UNITS = {"gap": "in probability", "nats": "nats a step"}
