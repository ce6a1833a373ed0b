"""A certificate for people: the same content as lines for a terminal and as Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracebridge.inference.certificate import IDENTITY, p_text
from tracebridge.inference.published_rule import KS_LEVEL
from tracebridge.report.columns import aligned
from tracebridge.report.markdown import bullets, escape, printable, table
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.inference.certificate import Certificate, StatisticResult
    from tracebridge.inference.expanded.certificate import ModelStatistic

_VERDICTS = {
    "accept": "ACCEPT: nothing contradicts the chain, and departures of the stated size would have been seen",
    "reject": "REJECT: the chain does not describe these runs",
    "inconclusive": "INCONCLUSIVE: nothing contradicts the chain, but a departure could have been missed",
}

#: What each statistic looks for.
WHAT_IS_TESTED = {
    "first passage": "when runs succeed or fail",
    "previous state": "memory of the state before",
    "step time": "change with the number of the step",
    "dwell": "change with the time spent in a state",
    "between halves": "the half that was fitted against the other",
}

_UNITS = {"gap": "in probability", "nats": "nats a step"}

_CELLS_ON_TERMINAL = 3

_STATISTICS = ("statistic", "what it looks for", "p", "departure", "seen from", "rests on")
_COVARIATES = ("covariate", "runs", "values", "p", "p (Holm)", "permuted")


def certificate_lines(certificate: Certificate) -> list[str]:
    """The certificate as lines of plain text, without a line end; control characters from the input are visible."""
    lines = [f"certificate: {_VERDICTS[certificate.verdict]}"]
    lines += [f"  {reason}" for reason in certificate.reasons]
    lines += ["", "tested:", *(f"  {part}" for part in _tested(certificate))]
    lines += [f"  {_joint(certificate)}"]
    lines += ["", *aligned(_STATISTICS, _statistic_rows(certificate))]
    if certificate.covariates:
        lines += ["", "do runs differ by a covariate?", *aligned(_COVARIATES, _covariate_rows(certificate))]
    if found := list(_where(certificate, cells=_CELLS_ON_TERMINAL)):
        lines += ["", "where the runs depart from the chain:", *(f"  {line}" for line in found)]
    lines += ["", f"published rule beside it: {_published(certificate)}"]
    lines += ["", *(f"note: {note}" for note in certificate.notes), f"note: {IDENTITY}", f"  {_figures(certificate)}"]
    return [printable(line) for line in lines]


def certificate_markdown(certificate: Certificate) -> str:
    """The certificate as Markdown without a heading of its own; names from the input are escaped."""
    parts = [
        f"**{_VERDICTS[certificate.verdict]}.**",
        bullets(escape(reason) for reason in certificate.reasons),
        f"Tested: {escape('; '.join(_tested(certificate)))}. " + escape(_joint(certificate)),
        table(_STATISTICS, _statistic_rows(certificate)),
    ]
    if certificate.covariates:
        parts += ["Whether runs differ by a covariate:", table(_COVARIATES, _covariate_rows(certificate))]
    if found := list(_where(certificate)):
        parts += ["Where the runs depart from the chain:", bullets(escape(line) for line in found)]
    parts.append(f"Published rule beside it: {escape(_published(certificate))}.")
    parts.append(bullets(escape(note) for note in certificate.notes))
    parts.append(f"{escape(IDENTITY)} {escape(_figures(certificate))}.")
    return "\n\n".join(part for part in parts if part)


def _tested(certificate: Certificate) -> list[str]:
    runs = ", ".join(f"{count} {outcome}" for outcome, count in certificate.runs.items())
    parts = [
        "that runs are independent draws from one first-order chain with fixed probabilities",
        f"{runs}; {counted(certificate.n_states, 'state')}, {counted(certificate.n_events, 'transition')}",
        f"parametric bootstrap, {certificate.replicates} replicates, seed {certificate.seed}",
        f"joint p {p_text(certificate.p, certificate.replicates)} at level {certificate.level:g}",
    ]
    if certificate.held_out:
        parts.insert(2, "fitted to one half of the tasks, judged on the other")
    return parts


def _joint(certificate: Certificate) -> str:
    number = certificate.replicates
    return (
        f"The joint p is the share, among the runs and {number} corpora drawn from the chain, of those whose largest "
        "statistic, standardised, is at least as large as that of the runs; the smallest that it can be is "
        f"1/({number} + 1) = {1 / (number + 1):.3g}."
    )


def bare_p(p: float, replicates: int, *, least: float | None = None) -> str:
    """A p-value in a table."""
    return p_text(p, replicates, least=least).removeprefix("= ")


def _statistic_rows(certificate: Certificate) -> list[list[str]]:
    return [
        [
            each.name,
            WHAT_IS_TESTED.get(each.name, ""),
            bare_p(each.p, certificate.replicates),
            departure_text(each),
            _seen_from(each, certificate),
            counted(each.n_events, "ended run" if each.unit == "gap" else "step"),
        ]
        for each in certificate.statistics
    ]


def departure_text(statistic: StatisticResult | ModelStatistic) -> str:
    """The effect; the mean of chance is taken out of one in nats, which can leave less than nothing."""
    size = f"{statistic.effect:.3g} {_UNITS[statistic.unit]}"
    return f"none ({size}: less than chance brings)" if statistic.effect < 0 else size


def _seen_from(statistic: StatisticResult, certificate: Certificate) -> str:
    if statistic.resolution is None:
        return "nothing: it cannot vary"
    size = "no size" if math.isinf(statistic.resolution) else f"{statistic.resolution:.2g}"
    return size + _too_coarse(statistic, certificate)


def _too_coarse(statistic: StatisticResult, certificate: Certificate) -> str:
    wanted: float = getattr(certificate.effects, statistic.unit)
    coarse = statistic.resolution is not None and statistic.resolution > wanted
    return f" ({wanted:g} could not have been detected)" if coarse else ""


def _covariate_rows(certificate: Certificate) -> list[list[str]]:
    return [
        [
            each.covariate,
            str(each.n_runs),
            str(each.n_values),
            "no test" if each.p is None else bare_p(each.p, certificate.replicates),
            "-" if each.p_holm is None else bare_p(each.p_holm, certificate.replicates, least=each.p),
            each.over,
        ]
        for each in certificate.covariates
    ]


def _where(certificate: Certificate, *, cells: int | None = None) -> Iterator[str]:
    """Curves, states and cells, so many of the last for each statistic."""
    curve = certificate.curve
    if certificate.p <= certificate.level and curve is not None:
        yield (
            f"largest gap of the curves: {curve.outcome} within {counted(curve.step, 'step')}, {curve.observed:.3g} "
            f"observed (Aalen-Johansen) against {curve.fitted:.3g} by the chain"
        )
    for name in dict.fromkeys(share.statistic for share in certificate.shares):
        mine = [share for share in certificate.shares if share.statistic == name]
        shown = ", ".join(f"{share.state} {share.share:.0%} (z {share.z:.1f})" for share in mine)
        yield f"{name}, share of each state: {shown}"
    shown_of: Counter[str] = Counter()
    for each in certificate.departures:
        shown_of[each.statistic] += 1
        if cells is not None and shown_of[each.statistic] > cells:
            continue
        yield (
            f"{each.statistic} {each.context}: {each.state} -> {each.following} {counted(each.observed, 'time')}, "
            f"{each.expected:.1f} expected ({each.residual:+.1f} standard deviations)"
        )


def _published(certificate: Certificate) -> str:
    """What it says, by which of its two conditions, and what it is shown for."""
    paper = certificate.paper
    order = f"AIC of the second order minus that of the first {paper.delta_aic:+.4g}"
    prefers = "prefers the first" if paper.delta_aic > 0 else "does not prefer the first"
    vacuous = ", which could not have come out otherwise" if paper.aic_is_vacuous else ""
    order += f", which {prefers}{vacuous}"
    if paper.ks_distance is None or paper.ks_p is None:
        verdict, times = "has no answer, for no run succeeded", ""
    else:
        verdict = "accepts" if paper.accepted else "rejects"
        told = "not told apart" if paper.ks_p > KS_LEVEL else "told apart"
        times = (
            f"; times to success of the runs and of the chain {told} by a Kolmogorov-Smirnov distance of "
            f"{paper.ks_distance:.3g}, p = {paper.ks_p:.3g} of {counted(paper.n_success, 'run')}"
        )
    gap = "" if paper.gap is None else f"; largest gap of R(d) {paper.gap:.3g}"
    return (
        f"{verdict}. It accepts where the AIC prefers the first order and the times to success are not told apart "
        f"(arXiv:2604.24579, algorithm 2). Here: {order}{times}{gap}. It stands here "
        "for comparison; the certificate does not use it"
    )


def _figures(certificate: Certificate) -> str:
    figures = certificate.figures
    return (
        f"Here R_inf {_or_none(figures.reliability)}, pass rate {_or_none(figures.pass_rate)}; MTTA "
        f"{_or_none(figures.mean_time)}, mean length {_or_none(figures.mean_length)}; pass rate and mean length are of "
        "the runs of the fit that were seen to end, with their weights if they have some, and what sets them apart "
        "from the chain is the prior, the censoring, and the start if it was given"
    )


def _or_none(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
