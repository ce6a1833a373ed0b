"""The verdict table on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from tracebridge.agreement import Agreement, Uncertain
from tracebridge.checking.result import Verdict
from tracebridge.cli.console import print_table, say, write
from tracebridge.report.findings import PropertyFinding
from tracebridge.report.table import listing_lines, property_name, value_text, verdict_columns, verdict_rows
from tracebridge.report.uncertainty import basis_lines, contrary_opinions, plan_text

_STYLES = {
    "satisfied": "green",
    "violated": "red",
    "undecided": "yellow",
    "DISAGREE": "bold white on red",
    "error": "red",
}


def print_findings(findings: Sequence[PropertyFinding]) -> None:
    """The table and the lists of values on standard output, and what they cannot hold on standard error."""
    agreements = [each.agreement for each in findings]
    marks = [each.marks for each in findings]
    has_data = any(agreement.uncertainty is not None for agreement in agreements)
    columns = verdict_columns(agreements, engines=not has_data)
    rows = verdict_rows(agreements, engines=not has_data, marks=marks)
    print_table(columns, rows, styles=_styles(rows, columns.index("verdict")))
    if has_data:
        for line in engine_lines(agreements):
            write(line)
    for position, agreement in enumerate(agreements, start=1):
        for line in listing_lines(agreement, property_name(agreement, position)):
            write(line)
    _say_remarks(_remarks(agreements))
    _say_remarks(finding_remarks(findings))


def finding_remarks(findings: Sequence[PropertyFinding]) -> Iterator[tuple[str, str]]:
    """The name of a property with who else would not decide it, what would, and the unseen transitions it rests on."""
    for position, each in enumerate(findings, start=1):
        name = property_name(each.agreement, position)
        if each.opinion is not None:
            yield from ((name, line) for line in contrary_opinions(each.to_dict()))
        if each.plan is not None:
            yield name, plan_text(each.plan)
        for line in basis_lines(each.basis):
            yield name, line


def _styles(rows: Sequence[Sequence[str]], verdict: int) -> dict[str, str]:
    """A colour for each verdict, with its marks or without."""
    return {row[verdict]: _STYLES.get(row[verdict].partition(" (")[0], "") for row in rows}


def engine_lines(agreements: Sequence[Agreement]) -> Iterator[str]:
    """Below a table without a column for each engine: who computed it, and how the intervals came about."""
    names = dict.fromkeys(_answering(agreements))
    yield _agreement_line(names, [(each.agree, each.gap) for each in agreements])
    yield from _method_lines(agreements)


def _answering(agreements: Sequence[Agreement]) -> Iterator[str]:
    """The engines that answered something, in their order."""
    for name in dict.fromkeys(result.engine for each in agreements for result in each.results):
        found = [result.verdict for each in agreements for result in each.results if result.engine == name]
        if any(verdict not in {Verdict.ERROR, Verdict.UNSUPPORTED} for verdict in found):
            yield name


def _agreement_line(names: Iterable[str], compared: Sequence[tuple[bool | None, float | None]]) -> str:
    """On how many properties that have a value the engines agree, and how far they are apart."""
    if not names:
        return "no engine answered"
    *others, last = names
    who = f"{', '.join(others)} and {last}" if others else last
    valued = [(agree, gap) for agree, gap in compared if agree is not True or gap is not None]
    if compared and not valued:
        return f"{who} agree that no property has a value"
    apart = [gap for _, gap in valued if gap is not None]
    if not apart:
        return f"{who}: no value has a second engine beside it"
    same = sum(agree is True for agree, _ in valued)
    whole = "every property" if same == len(valued) else f"{same} of {len(valued)} properties"
    if len(valued) < len(compared):
        whole += " that has a value" if same == len(valued) else " that have a value"
    return f"{who} agree on {whole}, {f'at most {max(apart):.2g} apart' if max(apart) else 'to the last digit'}"


def _method_lines(agreements: Sequence[Agreement]) -> Iterator[str]:
    found = [each.uncertainty for each in agreements if each.uncertainty is not None]
    yield from dict.fromkeys(_method(each) for each in found if each.interval is not None or each.satisfied is not None)


def _method(found: Uncertain) -> str:
    document = found.to_dict()
    method = "posterior" if document["interval"] is None else document["interval"]["method"]
    return f"intervals and P(sat.): {method}; {document['draws']} draws, seed {document['seed']}"


class ExperimentTable:
    """The table of an experiment: one row a point and property."""

    def __init__(self, varying: Sequence[str]) -> None:
        """For values of these constants, which get a column each."""
        self._varying = varying
        self._columns: list[str] = []
        self._has_data = False
        self._rows: list[list[str]] = []
        self._lines: dict[str, None] = {}
        self._names: dict[str, None] = {}
        self._compared: list[tuple[bool | None, float | None]] = []
        self._remarks: list[tuple[str, str]] = []
        self.exit_codes: list[int] = []

    def add(self, point: Mapping[str, Fraction | bool], findings: Sequence[PropertyFinding]) -> None:
        """What was found at one point; nothing of it is kept but its text."""
        agreements = [each.agreement for each in findings]
        marks = [each.marks for each in findings]
        engines = all(agreement.uncertainty is None for agreement in agreements)
        self._columns = [*self._varying, *verdict_columns(agreements, engines=engines)]
        values = [str(point[name]).lower() for name in self._varying]
        self._rows += [[*values, *row] for row in verdict_rows(agreements, engines=engines, marks=marks)]
        self._lines |= dict.fromkeys(_method_lines(agreements))
        self._names |= dict.fromkeys(_answering(agreements))
        self._compared += [(each.agree, each.gap) for each in agreements]
        self._has_data |= not engines
        self._remarks += [*_remarks(agreements), *finding_remarks(findings)]
        self.exit_codes += [agreement.exit_code for agreement in agreements]

    def print(self) -> None:
        """Write it to standard output, and what it cannot hold to standard error."""
        print_table(self._columns, self._rows, styles=_styles(self._rows, self._columns.index("verdict")))
        if self._has_data:
            write(_agreement_line(self._names, self._compared))
            for line in self._lines:
                write(line)
        _say_remarks(self._remarks)


def _remarks(agreements: Sequence[Agreement]) -> Iterator[tuple[str, str]]:
    """What a reader must know beside the table: the name of a property and a remark."""
    for position, agreement in enumerate(agreements, start=1):
        name = property_name(agreement, position)
        if agreement.agree is False:
            values = ", ".join(f"{result.engine} {value_text(result, digits=10)}" for result in agreement.results)
            yield name, f"THE ENGINES DISAGREE by {agreement.gap}, where {agreement.allowed} is allowed: {values}"
        elif agreement.reason:
            yield name, agreement.reason
        warnings = (note.text for result in agreement.results for note in result.notes if note.kind == "warning")
        for warning in dict.fromkeys(warnings):
            yield name, warning
        found = agreement.uncertainty
        if found is not None and found.verdict is Verdict.UNSUPPORTED:
            yield name, f"no interval: {found.reason}"
        for note in found.notes if found is not None else ():
            yield name, note


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
