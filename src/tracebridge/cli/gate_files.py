"""``--junit`` and ``--summary``: files for the systems that run checks and show what came of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from tracebridge.cli.console import write
from tracebridge.cli.help_sections import section
from tracebridge.cli.options import PATH, in_a_folder
from tracebridge.errors import InputError, Location

if TYPE_CHECKING:
    from tracebridge.report.gate import GateReport

F = TypeVar("F", bound=Callable[..., Any])

#: The file that a step of a job on GitHub adds its summary to.
_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@section("Files for CI")
def gate_files(command: F) -> F:
    """The options; see `write_gate_files`."""
    options = [
        click.option(
            "--junit",
            callback=in_a_folder,
            metavar="FILE",
            type=PATH,
            help="Also write JUnit XML: a case for each verdict, for each property and engine, for each agreement of "
            "engines, and for the certificate.",
        ),
        click.option(
            "--undecided",
            type=click.Choice(["fail", "skip"]),
            default="fail",
            show_default=True,
            help="What undecided and unsupported verdicts are in JUnit XML. Exit codes do not depend on it.",
        ),
        click.option(
            "--summary",
            callback=in_a_folder,
            metavar="FILE",
            type=PATH,
            help=f"Also write a short Markdown summary; - is standard output, and the file that ${_STEP_SUMMARY} "
            "names is added to.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def write_gate_files(
    document: Mapping[str, Any],
    *,
    junit: str | None,
    undecided: Literal["fail", "skip"],
    summary: str | None,
    gate: GateReport | None = None,
) -> None:
    """Write what was asked for.

    Args:
        document: see `junit_xml`. gate: what a gate made of it; against a baseline its cases take the place of others.

    Raises:
        InputError: a file cannot be written.
    """
    from tracebridge.report.github_summary import github_summary
    from tracebridge.report.junit import junit_xml, xml_text

    if junit is not None:
        if gate is None or gate.baseline is None:
            write_text(junit, junit_xml(document, undecided=undecided))
        else:
            write_text(junit, xml_text([*gate.cases()]))
    if summary is not None:
        text = github_summary(document) if gate is None else gate.markdown() + github_summary(document)
        if summary == "-":
            write(text)
        elif summary == os.environ.get(_STEP_SUMMARY):
            write_text(summary, text, append=True)
        else:
            write_text(summary, text)


def write_text(path: str, text: str, *, append: bool = False) -> None:
    """Write a file, whole or not at all, or add to the end of one.

    Raises:
        InputError: it cannot be written.
    """
    from tracebridge.traces.atomic_file import write_whole

    try:
        if append:
            with Path(path).open("a", encoding="utf-8", newline="\n") as file:
                file.write(text)
        else:
            write_whole(path, text.encode("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=Location(path=path)) from error
