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
    remarks: dict[str, list[str]] = {}  # the same remark on several properties is made once
    for position, agreement in enumerate(agreements, start=1):
        name = property_name(agreement, position)
        if agreement.agree is False:
            say(f"{name}: THE ENGINES DISAGREE by {agreement.gap}, where {agreement.allowed} is allowed")
        elif agreement.reason:
            remarks.setdefault(agreement.reason, []).append(name)
        warnings = (note.text for result in agreement.results for note in result.notes if note.kind == "warning")
        for warning in dict.fromkeys(warnings):
            remarks.setdefault(warning, []).append(name)
    for remark, names in remarks.items():
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        say(f"{shown}: {remark}")
