"""The verdict table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from tracebridge.agreement import Agreement
from tracebridge.cli.console import print_table, say
from tracebridge.report.table import property_name, verdict_columns, verdict_rows

_STYLES = {
    "satisfied": "green",
    "violated": "red",
    "undecided": "yellow",
    "DISAGREE": "bold white on red",
    "error": "red",
}


def print_verdicts(agreements: Sequence[Agreement]) -> None:
    """The table on standard output, and what it cannot hold on standard error."""
    print_table(verdict_columns(agreements), verdict_rows(agreements), styles=_STYLES)
    for position, agreement in enumerate(agreements, start=1):
        name = property_name(agreement, position)
        if agreement.agree is False:
            say(f"{name}: THE ENGINES DISAGREE by {agreement.gap}, where {agreement.allowed} is allowed")
        elif agreement.reason:
            say(f"{name}: {agreement.reason}")
        warnings = (note.text for result in agreement.results for note in result.notes if note.kind == "warning")
        for warning in dict.fromkeys(warnings):
            say(f"{name}: {warning}")
