"""``tracebridge gate``: may this agent go on?"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Literal

import click
from click.core import ParameterSource

from tracebridge.cli.console import clean, emit, print_table, progress_line, say, write
from tracebridge.cli.gate_files import gate_files, write_gate_files
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, common
from tracebridge.cli.values import parse_pairs
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from tracebridge.report.direction import Worse
    from tracebridge.report.gate import GateReport

_COLUMNS, _MOST_LINES = 110, 3  # of what is said of a check

_STYLES = {
    "regression": "red",
    "violated": "red",
    "reject": "red",
    "error": "red",
    "altered": "red",
    "inconclusive": "yellow",
    "one engine": "yellow",
    "none": "yellow",
    "refused": "yellow",
    "undecided": "yellow",
    "passed": "green",
    "satisfied": "green",
    "accept": "green",
}


@click.command(
    cls=Verb,
    epilog="\b\nExamples: by the verdicts of an assessment; and against that of the agent in use\n"
    "  tracebridge gate out/evidence.json --junit gate.xml\n"
    "  tracebridge gate out/evidence.json --against baseline/evidence.json",
)
@click.argument("evidence", type=PATH)
@click.option(
    "--against",
    "baseline",
    type=PATH,
    metavar="BASELINE",
    help="The evidence.json of a baseline: fail on properties that got worse, as far as the runs of both can tell, "
    "whatever the verdicts are.",
)
@click.option(
    "--level",
    type=click.FloatRange(0.5, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Against a baseline: one minus the chance of any false alarm (Holm's procedure over all properties).",
)
@click.option(
    "--margin",
    type=click.FloatRange(min=0),
    default=0.05,
    show_default=True,
    help="Against a baseline: a worsening that matters, of a probability; of any other number relative to it.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="What is left open does not pass (exit code 4): numbers of one engine alone; without a baseline, a chain that "
    "no certificate accepts; against one, a worsening by the margin that is neither seen nor excluded.",
)
@click.option(
    "--worse",
    "worse",
    multiple=True,
    metavar="PROPERTY=lower|higher",
    help="Which way a property gets worse whose formula does not tell, such as mean_steps=higher.",
)
@gate_files
@common
def gate(
    evidence: str,
    baseline: str | None,
    level: float,
    margin: float,
    strict: bool,
    worse: tuple[str, ...],
    junit: str | None,
    undecided: Literal["fail", "skip"],
    summary: str | None,
    as_json: bool,
    seed: int,  # noqa: ARG001
) -> int:
    """Pass or stop an agent by EVIDENCE, the evidence.json of an assessment.

    Alone, it passes if every property is satisfied or answered, the engines agree, and the certificate does not reject
    the chain. With --against it passes unless a property got worse: a regression that the statistics support has exit
    code 1, noise passes, and for what is inconclusive it tells how many more runs would decide. What it passes but
    leaves open is named: numbers of one engine alone, a chain that no certificate accepts. A property with
    `//@ severity advisory` is told and blocks nothing.
    """
    from tracebridge.report.evidence_reading import read_evidence
    from tracebridge.report.gate import gate as judge

    if as_json and summary == "-":
        raise click.UsageError("with --json standard output carries that document alone; give --summary a file")
    if baseline is None:
        stated = click.get_current_context().get_parameter_source
        given = [name for name in ("level", "margin", "worse") if stated(name) is ParameterSource.COMMANDLINE]
        if given:
            raise click.UsageError(f"--{given[0]} is for a comparison: give --against, too")
    found = read_evidence(evidence)
    reference = None if baseline is None else read_evidence(baseline)
    with progress_line() as progress:
        progress("comparing")
        report = judge(found, reference, level=level, margin=margin, strict=strict, worse=_sides(worse))
    write_gate_files(found.results, junit=junit, undecided=undecided, summary=summary, gate=report)
    if as_json:
        emit(report.to_dict())
    else:
        _show(report)
    return report.exit_code


def _sides(texts: tuple[str, ...]) -> dict[str, Worse]:
    sides: dict[str, Worse] = {}
    for name, side in parse_pairs(texts, "--worse").items():
        if side not in ("lower", "higher"):
            raise UsageError(f"--worse {name}={side}: a side is lower or higher")
        sides[name] = "lower" if side == "lower" else "higher"
    return sides


def _show(report: GateReport) -> None:
    from tracebridge.report.gate import COLUMNS, rows

    judged = [check for check in report.checks if check.judgement is not None]
    others = [check for check in report.checks if check.judgement is None]
    if judged:
        print_table(COLUMNS, rows(judged), styles=_STYLES)
    if others:
        print_table(["check", "status"], [[check.name, check.status] for check in others], styles=_STYLES)
    names: dict[str, list[str]] = {}
    for check in report.checks:
        if check.message:
            names.setdefault(f"{check.status}: {check.message}", []).append(check.name)
    cut = [_say_wrapped(f"{', '.join(of)}: {message}") for message, of in names.items()]
    cut += [_say_wrapped(f"note: {note}") for note in report.notes]
    if any(cut):
        say("... is what was cut; --json and --junit have all of it")
    write(report.sentence)


def _say_wrapped(text: str) -> bool:
    """In a few lines; whether that cut it."""
    lines = wrap(clean(text), _COLUMNS, subsequent_indent="  ", break_on_hyphens=False)
    cut = len(lines) > _MOST_LINES
    if cut:
        lines = [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1]} ..."]
    for line in lines:
        say(line)
    return cut
