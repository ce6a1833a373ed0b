"""``summary.md``: what a run found, for a person in a hurry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.checking.result import Verdict
from tracebridge.inference.expanded.certificate import ModelCertificate
from tracebridge.pctl import explain
from tracebridge.report.certificate import certificate_markdown
from tracebridge.report.ending_choices import ending_choices_markdown
from tracebridge.report.figure_tables import curve_notes, curve_table, figure_table
from tracebridge.report.guarantee import (
    COLUMNS,
    guarantee_heading,
    guarantee_rows,
    has_guarantees,
    missing_guarantees,
)
from tracebridge.report.markdown import bullets, code, escape, table
from tracebridge.report.model_certificate import ladder_markdown, model_certificate_markdown
from tracebridge.report.repeated_trials import repeated_trials_markdown
from tracebridge.report.results import POLICIES, assumption_notes, prior_text
from tracebridge.report.table import (
    listing_lines,
    property_name,
    verdict_columns,
    verdict_rows,
    verdict_text,
)
from tracebridge.report.uncertainty import basis_lines, contrary_opinions, opinion_text, plan_text
from tracebridge.states.model_form import FIRST_ORDER
from tracebridge.traces.problems import counted
from tracebridge.traces.run_dates import dates_text

if TYPE_CHECKING:
    from tracebridge.chain.counts import CensoringPolicy, TransitionCounts
    from tracebridge.report.findings import Findings, PropertyFinding

_POLICY_MEANING = {
    "censored": "completed runs only",
    "failure": "censored runs count as failures",
    "drop": "censored runs are left out",
}


_ROUNDING = 1e-12
_LONGEST_FRACTION = 20  # those of weights may have hundreds of digits


def summary_markdown(findings: Findings) -> str:
    """The summary as GitHub-flavoured Markdown; names from the input are escaped."""
    sections = [
        ["# Summary", *_headline(findings)],
        ["## Properties", *_properties(findings)],
        ["## Certificate", _certificate(findings)],
        ["## Traces", *_corpus(findings)],
        ["## Chain", *_chain(findings)],
        ["## What these numbers rest on", bullets(map(escape, assumption_notes(findings))), *_limits(findings)],
    ]
    return "\n\n".join(part for section in sections for part in section if part) + "\n"


def _headline(findings: Findings) -> Iterator[str]:
    counts: dict[str, int] = {}
    for each in findings.properties:
        word = verdict_text(each.agreement)
        word = "on which the engines DISAGREE" if word == "DISAGREE" else word
        counts[word] = counts.get(word, 0) + 1
    parts = ", ".join(f"{count} {word}" for word, count in counts.items())
    yield f"{len(findings.properties)} {'property' if len(findings.properties) == 1 else 'properties'}: {parts}."
    certificate = findings.certificate
    if isinstance(certificate, ModelCertificate):
        yield from _standings(findings)
    elif isinstance(certificate, str):
        yield f"Certificate: none, because {escape(certificate)}. Whether such a chain describes the runs is open."
    elif findings.mark is None:
        yield "Certificate: accept. The runs are compatible with the chain."
    else:
        yield (
            f"Certificate: **{certificate.verdict}** ({escape('; '.join(certificate.reasons))}). Every number of the "
            f"chain below is marked *{findings.mark}*."
        )


def _standings(findings: Findings) -> Iterator[str]:
    """What stands behind the numbers of a richer chain, by scope."""
    form = findings.fit.form if isinstance(findings.fit, ExpandedFit) else FIRST_ORDER
    found = "" if findings.ladder is None else ", found by the ladder below"
    yield f"Model: {code(str(form))}{found}."
    lines = []
    for scope, standing in findings.standings.items():
        mark = "" if standing.mark is None else f" Marked *{standing.mark}*."
        lines.append(f"Certificate for {scope}: **{standing.verdict}** ({escape('; '.join(standing.reasons))}).{mark}")
    yield bullets(lines)


def _properties(findings: Findings) -> Iterator[str]:
    agreements = [each.agreement for each in findings.properties]
    marks = [each.marks for each in findings.properties]
    yield table(verdict_columns(agreements), verdict_rows(agreements, marks=marks))
    arithmetic = "in doubles with bounds that must meet"
    if findings.exact:
        arithmetic = "in rationals, where engines must be equal"
    yield (
        f"Engines ({', '.join(f'{name} {number}' for name, number in findings.engines.items())}) worked {arithmetic}. "
        "A value is the mean over the start. The gap is the largest difference between engines over all operators and "
        "states, relative to the value where that is above one."
    )
    if methods := _methods(findings):
        yield methods
    if has_guarantees(findings.properties):
        yield f"{guarantee_heading(findings.properties)}."
        yield table(COLUMNS, guarantee_rows(findings.properties))
        missing = missing_guarantees(findings.properties)
        yield bullets(f"**{escape(name)}**: {escape(reason)}" for name, reason in missing)
    yield bullets(
        line
        for position, each in enumerate(findings.properties, start=1)
        for line in _remarks(each, property_name(each.agreement, position))
    )
    opinions = [
        [property_name(each.agreement, position), opinion_text(each.opinion)]
        for position, each in enumerate(findings.properties, start=1)
        if each.opinion is not None and opinion_text(each.opinion)
    ]
    if opinions:
        yield "Second opinions, by methods that owe nothing to a prior:"
        yield table(["property", "intervals and shares by method"], opinions)
    yield bullets(map(escape, findings.notes))


def _methods(findings: Findings) -> str:
    """How the intervals came about."""
    found = [each.agreement.uncertainty for each in findings.properties if each.agreement.uncertainty is not None]
    if not found:
        return ""
    draws = sorted(
        {each.to_dict()["draws"] for each in found if each.interval is not None or each.satisfied is not None}
    )
    if not draws:
        return ""
    number = counted(draws[0], "draw") if len(draws) == 1 else f"{' or '.join(map(str, draws))} draws"
    methods = sorted({each.to_dict()["interval"]["method"] for each in found if each.interval is not None})
    how = methods[0] if len(methods) == 1 else f"posterior of the {findings.fit.prior} prior, equal-tailed"
    return (
        f"Intervals: {escape(how)}, {number}, if the chain's "
        "assumptions hold. P(sat.): the share of these draws in which the property holds. A property with `credible L` "
        "is satisfied (violated) if it holds (fails) for the fitted chain and in at least the share L of the draws; "
        "any other has the verdict of the fitted chain."
    )


def _remarks(finding: PropertyFinding, name: str) -> Iterator[str]:
    agreement = finding.agreement
    requirement = agreement.property.annotation("requirement")
    text = f"**{escape(name)}**" + (f" ({escape(requirement)})" if requirement else "")
    meaning = escape(explain(agreement.property.formula))
    yield f"{text}: {code(agreement.property.text)} - {meaning}"
    notes = [note.text for result in agreement.results for note in result.notes]
    reasons = [agreement.reason] if agreement.reason else []
    contrary = contrary_opinions(finding.to_dict())
    if agreement.uncertainty is not None:
        notes += agreement.uncertainty.notes
        if agreement.uncertainty.verdict is Verdict.UNSUPPORTED:
            notes.append(f"no interval: {agreement.uncertainty.reason}")
    for reason in dict.fromkeys([*reasons, *contrary, *notes]):
        yield f"{text}: {escape(reason)}"
    if listed := listing_lines(agreement, name):
        yield f"{text} lists: {escape('; '.join(line.strip() for line in listed))}"
    if finding.plan is not None:
        yield f"{text}: {escape(plan_text(finding.plan))}"
    for line in basis_lines(finding.basis):
        yield f"{text}: {escape(line)}"


def _certificate(findings: Findings) -> str:
    if isinstance(findings.certificate, str):
        return f"None, because {escape(findings.certificate)}."
    if not isinstance(findings.certificate, ModelCertificate):
        return certificate_markdown(findings.certificate)
    parts = [model_certificate_markdown(findings.certificate)]
    if findings.advice:
        parts += ["What can be done:", bullets(map(escape, findings.advice))]
    if findings.ladder is not None:
        parts = [ladder_markdown(findings.ladder), f"The last certificate of {escape(findings.ladder.form)}:", *parts]
    return "\n\n".join(parts)


def _corpus(findings: Findings) -> Iterator[str]:
    corpus, fit = findings.corpus, findings.fit
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in corpus["outcomes"].items())
    runs, steps = counted(corpus["n_runs"], "run"), counted(corpus["n_steps"], "step")
    yield f"{runs} ({outcomes}), {steps}; {counted(corpus['n_skipped'], 'record')} skipped."
    yield f"When the runs began: {dates_text(corpus['dates'], corpus['n_runs'])}."
    yield table(
        ["file", "format", "runs", "SHA-256"],
        [[file["path"], file["format"], str(file["n_records"]), file["sha256"]] for file in corpus["files"]],
    )
    if endings := corpus.get("endings"):
        yield "How runs ended, what their source says of them, and what they count as (under the rules for endings):"
        yield table(
            ["termination", "runs", "verified", "counted as"],
            [
                [reason, str(each["n_runs"]), _told(each["verified"]), _told(each["outcome_by_rule"])]
                for reason, each in endings.items()
            ],
        )
    elif corpus["terminations"]:
        reasons = [[reason, str(runs)] for reason, runs in corpus["terminations"].items()]
        yield table(["termination", "runs"], reasons)
    rates = []
    for policy in POLICIES:
        chosen = " (chosen)" if policy == fit.policy else ""
        row = [f"{policy}{chosen}", _POLICY_MEANING[policy], _rate(fit.counts, policy)]
        rates.append(row if fit.weighted is None else [*row, _rate(fit.weighted.weighted, policy)])
    columns = ["--censored", "the pass rate is over", "pass rate"]
    yield table(columns if fit.weighted is None else [*columns, "weighted pass rate"], rates)
    if findings.ending_choices is not None:
        names = [property_name(each.agreement, i) for i, each in enumerate(findings.properties, start=1)]
        yield from ending_choices_markdown(findings.ending_choices, names)
    if dropped := sum(each["outcome_by_rule"]["dropped"] for each in corpus.get("endings", {}).values()):
        yield f"{counted(dropped, 'run')} left out by a rule for endings; what they would change takes another rule."
    if corpus["problems"]:
        yield bullets(f"skipped: {escape(problem)}" for problem in corpus["problems"])
    if corpus["notes"]:
        yield bullets(escape(note) for note in corpus["notes"])


def _told(runs: Mapping[str, int]) -> str:
    """Numbers of runs by a word, without those that are none."""
    return ", ".join(f"{n} {word}" for word, n in runs.items() if n)


def _rate(counts: TransitionCounts, policy: CensoringPolicy) -> str:
    rate = counts.pass_rate(policy)
    if rate is None:
        return "no run"
    exact = str(rate)
    return f"{exact} = {float(rate):.4f}" if len(exact) <= _LONGEST_FRACTION else f"{float(rate):.4f}"


def _chain(findings: Findings) -> Iterator[str]:
    fit, figures = findings.fit, findings.figures
    absorbers = fit.chain.absorbing.sum()
    yield (
        f"{counted(fit.chain.n_states, 'state')} ({absorbers} absorbing), "
        f"{counted(fit.chain.transitions.nnz, 'transition')}; {prior_text(str(fit.prior), fit.support)}; censored "
        f"runs as `{fit.policy}`."
    )
    rows = fit.counts.visits
    start = {name: float(fit.chain.initial[fit.chain.label(name)].sum()) for name in fit.counts.states}
    visits = sorted(zip(fit.counts.states, rows.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
    yield table(
        ["state", "steps", "start"], [[name, str(count), f"{start.get(name, 0):.4g}"] for name, count in visits]
    )
    if fit.notes:
        yield bullets(escape(note) for note in fit.notes)
    if isinstance(figures, str):
        yield f"Reliability figures: undefined, because {escape(figures)}."
    elif findings.mark is not None:
        yield f"**The figures below are those of a chain that no certificate accepts ({findings.mark}).**"
    if findings.bounds is not None:
        yield f"**{escape(str(findings.bounds))}.**"
    if isinstance(figures, str):
        return
    yield figure_table(findings, figures)
    yield from repeated_trials_markdown(findings.fit)
    yield curve_table(findings, figures)
    yield from curve_notes(findings)


def _limits(findings: Findings) -> Iterator[str]:
    fit, figures = findings.fit, findings.figures
    counts = fit.counts if fit.weighted is None else fit.weighted.weighted
    rate = counts.pass_rate(fit.policy)
    if isinstance(figures, str) or rate is None:
        return
    difference = figures.reliability - float(rate)
    difference = 0.0 if abs(difference) < _ROUNDING else difference
    weighted = "" if fit.weighted is None else "weighted "
    causes = "the prior, what states have in common," if isinstance(fit, ExpandedFit) else "the prior"
    first = f"R_inf equals the {weighted}pass rate of the runs that ended."
    if difference:
        first = f"R_inf differs from the {weighted}pass rate of the runs that ended by {difference:+.4g}: that is "
        first += f"{causes} and the censoring, not evidence."
    if not isinstance(fit.start, str):
        first = "The chain starts where it was told to: R_inf is not the pass rate of these runs."
    yield (
        f"{first} R_inf and MTTA of an unsmoothed fit to runs that all ended equal the pass rate and the mean length "
        "by construction, for any data: they validate nothing. Intervals are about the sampling error only, and hold "
        "only as far as the assumptions do."
    )
