"""A certificate for people: the same content as lines for a terminal and as Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tracebridge.inference.certificate import IDENTITY
from tracebridge.report.markdown import bullets, escape, printable, table

if TYPE_CHECKING:
    from tracebridge.inference.certificate import Certificate, StatisticResult

_VERDICTS = {
    "accept": "ACCEPT: nothing contradicts the chain, and departures of the stated size would have been seen",
    "reject": "REJECT: the chain does not describe these runs",
    "inconclusive": "INCONCLUSIVE: nothing contradicts the chain, but a departure could have been missed",
}

_TESTED = {
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
    lines += ["", *_aligned(_STATISTICS, _statistic_rows(certificate))]
    if certificate.covariates:
        lines += ["", "do runs differ by a covariate?", *_aligned(_COVARIATES, _covariate_rows(certificate))]
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
        f"Tested: {escape('; '.join(_tested(certificate)))}.",
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
        f"{runs}; {certificate.n_states} states, {certificate.n_events} transitions",
        f"parametric bootstrap of the largest statistic, {certificate.replicates} replicates, seed {certificate.seed}",
        f"joint p {_p(certificate.p, certificate.replicates, equals='= ')} at level {certificate.level:g}",
    ]
    if certificate.held_out:
        parts.insert(2, "fitted to one half of the tasks, judged on the other")
    return parts


def _p(p: float, replicates: int, *, equals: str = "") -> str:
    """A p-value; one as small as the replicates allow is only known to be at most that."""
    return f"<= {p:.3g}" if p <= 1 / (replicates + 1) else f"{equals}{p:.3g}"


def _statistic_rows(certificate: Certificate) -> list[list[str]]:
    return [
        [
            each.name,
            _TESTED.get(each.name, ""),
            _p(each.p, certificate.replicates),
            f"{each.effect:.3g} {_UNITS[each.unit]}",
            _seen_from(each, certificate),
            f"{each.n_events} {'ended runs' if each.unit == 'gap' else 'steps'}",
        ]
        for each in certificate.statistics
    ]


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
            "no test" if each.p is None else _p(each.p, certificate.replicates),
            "-" if each.p_holm is None else f"{each.p_holm:.3g}",
            each.over,
        ]
        for each in certificate.covariates
    ]


def _where(certificate: Certificate, *, cells: int | None = None) -> Iterator[str]:
    """Curves, states and cells, so many of the last for each statistic."""
    if certificate.p <= certificate.level:
        curve = certificate.curve
        yield (
            f"largest gap of the curves: {curve.outcome} within {curve.step} steps, {curve.observed:.3g} observed "
            f"(Aalen-Johansen) against {curve.fitted:.3g} by the chain"
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
            f"{each.statistic} {each.context}: {each.state} -> {each.following} {each.observed} times, "
            f"{each.expected:.1f} expected ({each.residual:+.1f} standard deviations)"
        )


def _published(certificate: Certificate) -> str:
    paper = certificate.paper
    verdict = {True: "accepts", False: "rejects", None: "has no answer, for no run succeeded"}[paper.accepted]
    vacuous = ", which could not have come out otherwise" if paper.aic_is_vacuous else ""
    order = f"AIC of the second order minus the first {paper.delta_aic:+.4g}{vacuous}"
    times = ""
    if paper.ks_distance is not None and paper.ks_p is not None:
        times = (
            f"; Kolmogorov-Smirnov distance {paper.ks_distance:.3g}, p = {paper.ks_p:.3g}, {paper.n_success} successes"
        )
    return f"{verdict} (arXiv:2604.24579, algorithm 2: {order}{times}; largest gap of R(d) {paper.gap:.3g})"


def _figures(certificate: Certificate) -> str:
    figures = certificate.figures
    return (
        f"Here: R_inf {_or_none(figures.reliability)}, pass rate {_or_none(figures.pass_rate)}; MTTA "
        f"{_or_none(figures.mean_time)}, mean length {_or_none(figures.mean_length)}; what they differ by is the prior "
        "and the censoring"
    )


def _or_none(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in columns of plain text, indented."""
    shown = [[printable(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        ("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip() for row in shown
    ]
