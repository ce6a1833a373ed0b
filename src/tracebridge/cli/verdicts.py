"""The verdict table on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from tracebridge.agreement import Agreement
from tracebridge.cli.console import print_table, say, write
from tracebridge.report.table import listing_lines, property_name, verdict_columns, verdict_rows

_STYLES = {
    "satisfied": "green",
    "violated": "red",
    "undecided": "yellow",
    "DISAGREE": "bold white on red",
    "error": "red",
}


def print_verdicts(agreements: Sequence[Agreement]) -> None:
    """The table and the lists of values on standard output, and what they cannot hold on standard error."""
    print_table(verdict_columns(agreements), verdict_rows(agreements), styles=_STYLES)
    for position, agreement in enumerate(agreements, start=1):
        for line in listing_lines(agreement, property_name(agreement, position)):
            write(line)
    _say_remarks(_remarks(agreements))


class ExperimentTable:
    """The table of an experiment: one row a point and property."""

    def __init__(self, varying: Sequence[str]) -> None:
        """For values of these constants, which get a column each."""
        self._varying = varying
        self._columns: list[str] = []
        self._rows: list[list[str]] = []
        self._remarks: list[tuple[str, str]] = []
        self.exit_codes: list[int] = []

    def add(self, point: Mapping[str, Fraction | bool], agreements: Sequence[Agreement]) -> None:
        """What was found at one point; nothing of it is kept but its text."""
        self._columns = [*self._varying, *verdict_columns(agreements)]
        values = [str(point[name]).lower() for name in self._varying]
        self._rows += [[*values, *row] for row in verdict_rows(agreements)]
        self._remarks += _remarks(agreements)
        self.exit_codes += [agreement.exit_code for agreement in agreements]

    def print(self) -> None:
        """Write it to standard output, and what it cannot hold to standard error."""
        print_table(self._columns, self._rows, styles=_STYLES)
        _say_remarks(self._remarks)


def _remarks(agreements: Sequence[Agreement]) -> Iterator[tuple[str, str]]:
    """What a reader must know beside the table: the name of a property and a remark."""
    for position, agreement in enumerate(agreements, start=1):
        name = property_name(agreement, position)
        if agreement.agree is False:
            yield name, f"THE ENGINES DISAGREE by {agreement.gap}, where {agreement.allowed} is allowed"
        elif agreement.reason:
            yield name, agreement.reason
        warnings = (note.text for result in agreement.results for note in result.notes if note.kind == "warning")
        for warning in dict.fromkeys(warnings):
            yield name, warning


def _say_remarks(remarks: Iterable[tuple[str, str]]) -> None:
    """The same remark on several properties is made once."""
    names_of: dict[str, list[str]] = {}
    for name, remark in remarks:
        names = names_of.setdefault(remark, [])
        if name not in names[-5:]:
            names.append(name)
    for remark, names in names_of.items():
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        say(f"{shown}: {remark}")
