"""What a user can do about a chain that is not accepted: which part of a model, which feature, how many runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tracebridge.inference.expanded.certificate import ModelCertificate
from tracebridge.inference.expanded.certification import TRANSITIONS_PER_PARAMETER
from tracebridge.inference.expanded.ladder import SCOPES

if TYPE_CHECKING:
    from tracebridge.inference.expanded.certificate import ModelStatistic
    from tracebridge.inference.expanded.scope import Scope

# What to look at for each statistic: what it means, and the part of a model that is about it.
_MEANING = {
    "first passage": ("ends come at other times than the chain says", "clock, or phases:4"),
    "previous state": ("what follows a step depends on the step before", "order2"),
    "step time": ("what follows a step changes with its number in the run", "clock, or phases:4"),
    "dwell": ("what follows a step depends on how long its stay has lasted", "dwell4"),
}

# Numbers of runs beyond this are no plan.
_MOST_RUNS = 1_000_000


def advice(certificate: ModelCertificate, covariates: Mapping[str, float] | None = None) -> tuple[str, ...]:
    """What to do, one sentence each; empty for a chain that is accepted in both scopes.

    Args:
        certificate: of the chain. covariates: adjusted p-values of those that runs were tested for differing by.
    """
    lines: list[str] = []
    for scope in SCOPES:
        lines += _about(certificate, scope)
    if any(certificate.verdict(scope) == "reject" for scope in SCOPES):
        for name, p in (covariates or {}).items():
            if p <= certificate.level:
                lines.append(f"runs differ by {name} (p = {p:.2g}): {_apart(name)}")
    return tuple(dict.fromkeys(lines))


def _apart(covariate: str) -> str:
    if covariate == "task_id":
        return "classes:2 lets tasks differ in how their runs end; or fit kinds of tasks apart"
    return f"give each value rows of its own with group:{covariate}, or fit them apart"


def _about(certificate: ModelCertificate, scope: Scope) -> Iterator[str]:
    verdict = certificate.verdict(scope)
    statistics = certificate[scope].statistics
    if verdict == "reject":
        for statistic in sorted(statistics, key=lambda each: -each.z):
            if statistic.p <= certificate.level:
                yield _departure(certificate, statistic)
    if verdict == "refused" and certificate.n_parameters > 0:
        factor = TRANSITIONS_PER_PARAMETER * certificate.n_parameters / max(certificate.n_transitions, 1)
        yield f"{scope}: about {factor:.2g} times the runs would do for a verdict on {certificate.form}"
    if verdict == "inconclusive":
        runs = _needed(certificate, statistics)
        if runs is not None:
            times = runs / sum(certificate.runs.values())
            yield f"{scope}: about {times:.2g} times as many runs would show departures of the stated size"


def _departure(certificate: ModelCertificate, statistic: ModelStatistic) -> str:
    meaning, part = _MEANING[statistic.name]
    unit = "in probability" if statistic.unit == "gap" else "nats a step"
    states = [share.state for share in certificate.shares if share.statistic == statistic.name][:3]
    where = f", most of all in {', '.join(states)}" if states else ""
    if statistic.unit == "gap":
        where = f", most of all {certificate.curve.outcome} within {certificate.curve.step} steps"
    knows = [
        name for name in part.replace(",", "").replace("or ", "").split() if name.split(":")[0] in certificate.form
    ]
    remedy = f"try a model with {part}"
    if knows:
        remedy = f"{' and '.join(knows)} does not mend it"
    if states:
        remedy += "; or log what tells such steps apart (an argument, a kind of error) and name it in a state map"
    return f"{meaning} ({statistic.name}: {statistic.effect:.2g} {unit}{where}): {remedy}"


def _needed(certificate: ModelCertificate, statistics: tuple[ModelStatistic, ...]) -> int | None:
    """Runs at which every statistic would show an effect of the stated size; None where no number would."""
    runs = sum(certificate.runs.values())
    factors = [1.0]
    for statistic in statistics:
        wanted = getattr(certificate.effects, statistic.unit)
        if statistic.resolution is not None:
            # A gap is seen from about 1 / sqrt(n) on, information from about 1 / n.
            factors.append((statistic.resolution / wanted) ** (2 if statistic.unit == "gap" else 1))
    needed = runs * max(factors)
    if not math.isfinite(needed) or needed > _MOST_RUNS:
        return None
    digits = 10 ** max(0, len(str(int(needed))) - 2)
    return int(math.ceil(needed / digits) * digits)
