"""``summary.md``: what a run found, for a person in a hurry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isinf
from typing import TYPE_CHECKING, Any

from tracebridge.agreement import Agreement
from tracebridge.pctl import explain
from tracebridge.report.results import ASSUMPTIONS, POLICIES
from tracebridge.report.table import listing_lines, property_name, verdict_columns, verdict_rows
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.report.figures import KeyFigures

_POLICY_MEANING = {
    "censored": "completed runs only",
    "failure": "censored runs count as failures",
    "drop": "censored runs are left out",
}


def summary_markdown(
    *,
    corpus: Mapping[str, Any],
    fit: ChainFit,
    figures: KeyFigures | str,
    agreements: Sequence[Agreement],
    engines: Mapping[str, str],
    exact: bool,
) -> str:
    """The summary as GitHub-flavoured Markdown; names from the input are escaped. See `results_document`."""
    sections = [
        ["# Summary", _headline(agreements)],
        ["## Properties", *_properties(agreements, engines, exact=exact)],
        ["## Traces", *_corpus(corpus, fit)],
        ["## Chain", *_chain(fit, figures)],
        ["## What these numbers rest on", _list(ASSUMPTIONS), *_limits(fit, figures)],
    ]
    return "\n\n".join(part for section in sections for part in section if part) + "\n"


def _headline(agreements: Sequence[Agreement]) -> str:
    counts: dict[str, int] = {}
    for agreement in agreements:
        if agreement.agree is False:
            word = "on which the engines DISAGREE"
        else:
            word = "answered" if agreement.verdict is None else str(agreement.verdict)
        counts[word] = counts.get(word, 0) + 1
    parts = ", ".join(f"{count} {word}" for word, count in counts.items())
    return f"{len(agreements)} properties: {parts}."


def _properties(agreements: Sequence[Agreement], engines: Mapping[str, str], *, exact: bool) -> Iterable[str]:
    yield table(verdict_columns(agreements), verdict_rows(agreements))
    arithmetic = "in rationals, where engines must be equal" if exact else "in doubles with bounds that must meet"
    yield (
        f"Engines ({', '.join(f'{name} {number}' for name, number in engines.items())}) worked {arithmetic}. A value "
        "is the mean over the start. The gap is the largest difference between engines over all operators and states, "
        "relative to the value where that is above one."
    )
    remarks = []
    for position, agreement in enumerate(agreements, start=1):
        name = property_name(agreement, position)
        requirement = agreement.property.annotation("requirement")
        text = f"**{escape(name)}**" + (f" ({escape(requirement)})" if requirement else "")
        meaning = escape(explain(agreement.property.formula))
        remarks.append(f"{text}: `{agreement.property.text.replace('`', chr(39))}` - {meaning}")
        notes = [note.text for result in agreement.results for note in result.notes]
        for reason in dict.fromkeys([*([agreement.reason] if agreement.reason else []), *notes]):
            remarks.append(f"{text}: {escape(reason)}")
        if listed := listing_lines(agreement, name):
            remarks.append(f"{text} lists: {escape('; '.join(line.strip() for line in listed))}")
    yield _list(remarks)


def _corpus(corpus: Mapping[str, Any], fit: ChainFit) -> Iterable[str]:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in corpus["outcomes"].items())
    runs, steps = counted(corpus["n_runs"], "run"), counted(corpus["n_steps"], "step")
    yield f"{runs} ({outcomes}), {steps}; {counted(corpus['n_skipped'], 'record')} skipped."
    yield table(
        ["file", "format", "runs", "SHA-256"],
        [[file["path"], file["format"], str(file["n_records"]), file["sha256"]] for file in corpus["files"]],
    )
    if corpus["terminations"]:
        reasons = [[reason, str(runs)] for reason, runs in corpus["terminations"].items()]
        yield table(["termination", "runs"], reasons)
    rates = []
    for policy in POLICIES:
        rate = fit.counts.pass_rate(policy)
        chosen = " (chosen)" if policy == fit.policy else ""
        shown = "no run" if rate is None else f"{rate} = {float(rate):.4f}"
        rates.append([f"{policy}{chosen}", _POLICY_MEANING[policy], shown])
    yield table(["--censored", "the pass rate is over", "pass rate"], rates)
    if corpus["problems"]:
        yield _list(f"skipped: {escape(problem)}" for problem in corpus["problems"])
    if corpus["notes"]:
        yield _list(escape(note) for note in corpus["notes"])


def _chain(fit: ChainFit, figures: KeyFigures | str) -> Iterable[str]:
    absorbers = fit.chain.absorbing.sum()
    yield (
        f"{fit.chain.n_states} states ({absorbers} absorbing), {fit.chain.transitions.nnz} transitions; prior "
        f"{fit.prior}, {fit.support} support, censored runs as `{fit.policy}`."
    )
    rows = fit.counts.visits
    start = dict(zip(fit.chain.states, fit.chain.initial.tolist(), strict=True))
    visits = sorted(zip(fit.counts.states, rows.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
    yield table(
        ["state", "steps", "start"], [[name, str(count), f"{start.get(name, 0):.4g}"] for name, count in visits]
    )
    if fit.notes:
        yield _list(escape(note) for note in fit.notes)
    if isinstance(figures, str):
        yield f"Reliability figures: none, because {escape(figures)}."
        return
    yield table(
        ["figure", "value"],
        [
            ["R_inf, long-run probability of success", f"{figures.reliability:.6g}"],
            ["MTTA, mean steps until a run ends", f"{figures.mean_time:.6g} (sd {figures.standard_deviation:.4g})"],
            ["horizon: smallest d with R_inf - R(d) <= 0.01", _steps(figures.horizon)],
            ["median steps of a success", _steps(figures.median_success)],
            ["steps per run that does not succeed", f"{figures.steps_per_failure:.6g}"],
        ],
    )
    yield table(["d", "R(d)"], [[str(d), f"{value:.6g}"] for d, value in figures.curve.items()])


def _limits(fit: ChainFit, figures: KeyFigures | str) -> Iterable[str]:
    rate = fit.counts.pass_rate(fit.policy)
    if isinstance(figures, str) or rate is None:
        return
    difference = figures.reliability - float(rate)
    yield (
        f"R_inf differs from the pass rate by {difference:+.4g}: that is the prior and the censoring, not evidence. "
        "Without them R_inf and MTTA equal the pass rate and the mean length for any data, so neither speaks for the "
        "chain. No interval for the sampling error is given: the numbers are point estimates from "
        f"{fit.counts.n_runs} runs."
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with escaped cells."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(escape(cell) if cell != "---" else cell for cell in line) + " |" for line in lines
    )


def escape(text: str) -> str:
    """Text from the input as Markdown shows it literally, on one line."""
    visible = "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in text)
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", visible)


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _steps(d: float) -> str:
    return "none" if isinf(d) or d != d else f"{d:g} steps"  # noqa: PLR0124 - NaN
