"""Flat traces: one row a step, in CSV (any usual delimiter), TSV or JSON Lines."""

from __future__ import annotations

import difflib
import re
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.model import Outcome, Step, Trace
from tracebridge.traces.problems import ProblemLog, counted, escaped, shown
from tracebridge.traces.readers.columns import (
    ATTRIBUTE_PREFIX,
    COLUMNS,
    NO_COLUMN,
    absent_columns,
    find_columns,
    split_header,
)
from tracebridge.traces.readers.table import Row, Table, listing
from tracebridge.traces.sniff import plain_name, shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracebridge.traces.files import InputFile

OUTCOME_WORDS: Mapping[str, Outcome] = MappingProxyType(
    {
        word: outcome
        for outcome, words in (
            (Outcome.SUCCESS, "success succeeded successful pass passed ok true yes 1 solved resolved correct"),
            (Outcome.FAILURE, "failure failed fail false no 0 unsolved unresolved incorrect wrong"),
            (Outcome.CENSORED, "censored capped step_cap max_steps timeout timed_out truncated interrupted unknown"),
        )
        for word in words.split()
    }
)
"""How an outcome may be written, in any case. Words that leave it open (done, finished, error, halted) are refused."""

_BLANK_WORDS = frozenset({"", "nan", "none", "null", "na", "n/a"})
_ERROR_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}(?:\.0)?")
_MAX_PROBLEMS_PER_RUN = 5
_MAX_LISTED = 20


class FlatReader:
    """Flat rows ``run_id, step, state, outcome`` and, where there are such columns, the other fields of ``COLUMNS``.

    ============  ===============================================================================
    columns       by name, in any case, with spaces or ``-`` for ``_``; ``mapping`` takes others for a field, e.g.
                  ``{"outcome": "passed", "state": "action"}``, and ``-`` says that a field has no column
    run           the rows of one ``run_id``, contiguous or not
    step          a row with a state: the ``state`` column or, where there is none, a ``step`` column of names
    order         the integers of ``step``, going up by one from any start; without them, the order of the file
    error         ``error``: true, yes, 1, or false, no, 0, blank
    outcome       ``outcome`` on any or all of a run's rows, in the words of ``OUTCOME_WORDS``
    censoring     a word for it, which is then the termination too; ``no_outcome`` where no row has an outcome
    task, trial   ``task``, ``trial``; the same on all rows of a run that have them
    model         ``model``
    attributes    a column that ``mapping`` gives to ``attributes.NAME`` is the attribute NAME of its run, a text; the
                  same on all rows of a run that have it
    trace_id      ``run_id``; ``<file>/<run_id>`` for all runs of a file in which an id of an earlier file stands again
    ============  ===============================================================================

    A last row whose state is ``success``, ``failure`` or ``censored`` names the absorber: it is no step, and gives the
    outcome. A row without state and step only carries fields of its run; a run without a step has just that. Two
    outcomes or tasks in one run, a step number that is missing or used twice, and values that cannot be read make the
    run unusable. Columns that are no field are left out, with a note.

    A file that has no outcome column, and no run that ends in an absorber, is refused: all of its runs would be
    censored, most likely for a column that goes by another name. ``{"outcome": "-"}`` says that this is meant.

    A row that cannot be read makes its run unusable, and so does a row that another one swallows by a quote that is not
    closed. A row whose run cannot be told is refused by itself; the run that lost it is then noticed only where steps
    are numbered.

    The rows are held in memory until the file ends (at most 2 GiB of it), because runs may interleave.
    """

    name = "flat"
    description = "flat rows run_id, step, state, outcome, ... in CSV, TSV or JSON Lines (other column names: --map)"

    def detect(self, file: InputFile) -> bool:
        """A header or a JSON row that names the run and its state or step; a JSON row of a trace_id, the state."""
        seen = shape(file.head)
        if seen.kind == "text":
            columns = find_columns(split_header(seen.first_line, file.mapping)[0], file.mapping)
        elif seen.kind == "object" and "steps" not in seen.keys:
            columns = find_columns(sorted(seen.keys), file.mapping)
            if plain_name(columns.get("run_id", "")) == "trace_id" and "state" not in columns:
                return False
        else:
            return False
        return "run_id" in columns and ("state" in columns or "step" in columns)

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The runs in the order of their first rows."""
        place = Location(path=file.label)
        table = Table(file, is_json=shape(file.head).kind == "object")
        runs: dict[str, list[Row]] = {}
        nameless: list[Problem] = []
        for row in table:
            if run_id := row.values.get("run_id"):
                runs.setdefault(run_id, []).append(row)
            else:
                nameless.append(_nameless(row, file.label))
        _check_columns(table, file)
        if not runs and nameless:
            raise TraceError(_first(nameless, "in this file"))
        for problem in nameless:
            log.refuse(problem)
        if "state" not in table.fields and not _names_states(runs):
            raise TraceError(Problem(location=place, message="no column names the states", hint="--map state=COLUMN"))
        state_field = "state" if "state" in table.fields else "step"
        if not _may_know_outcomes(table, file, runs, state_field):
            raise TraceError(_no_outcome_column(table, place))
        if table.ignored:
            log.note(_ignored_columns(table, place))
        prefix = ""
        if any(run_id in file.taken_ids for run_id in runs):
            prefix = f"{file.stem}/"
            message = f"run ids of an earlier file stand here again; the runs here are called {escaped(prefix)}<run_id>"
            log.note(Problem(location=place, message=message, hint="a run that goes on in a second file is not joined"))
        n_known = 0
        for run_id, rows in runs.items():
            reading = _RunReading(file.label, run_id, rows, state_field)
            trace = reading.trace(prefix)
            n_known += reading.has_outcome
            if reading.problems:
                log.refuse(_first(reading.problems, "in this run"))
            else:
                yield trace
        if runs and not n_known:
            message = f"no run has an outcome: {counted(len(runs), 'run')} censored"
            log.note(Problem(location=Location(path=file.label, field="outcome"), message=message))


def _first(problems: Sequence[Problem], where: str) -> list[Problem]:
    """The first few problems, and how many more there are."""
    first = list(problems[:_MAX_PROBLEMS_PER_RUN])
    if beyond := len(problems) - len(first):
        place = Location(path=first[0].location.path, record=first[0].location.record)
        first.append(Problem(location=place, message=f"and {counted(beyond, 'more problem')} {where}"))
    return first


def _nameless(row: Row, label: str) -> Problem:
    """A row that no run can be charged with."""
    lost = "a run may have lost this step"
    if row.flaw is None:
        return Problem(location=Location(path=label, line=row.line), message="the row names no run", hint=lost)
    hint = f"{row.flaw.hint}; {lost}" if row.flaw.hint else lost
    return Problem(location=row.flaw.location, message=row.flaw.message, hint=hint)


def _check_columns(table: Table, file: InputFile) -> None:
    if absent := absent_columns(table.fields, file.mapping):
        message = f"no row has the column {', '.join(map(shown, absent))} that was mapped"
        message += f"; there are {listing(sorted(table.columns))}"
        raise TraceError(message, location=Location(path=file.label))


def _may_know_outcomes(table: Table, file: InputFile, runs: Mapping[str, list[Row]], state_field: str) -> bool:
    """Whether there is an outcome column or a row that may name an absorber, or the user knows that there is none."""
    if "outcome" in table.fields or file.mapping.get("outcome") == NO_COLUMN:
        return True
    absorbers = set(Outcome)
    return any(row.values.get(state_field, "").lower() in absorbers for rows in runs.values() for row in rows)


def _no_outcome_column(table: Table, place: Location) -> Problem:
    message = "no column says how the runs ended, so that every run would be censored"
    if table.ignored:
        message += f"; columns that are not read: {listing(sorted(table.ignored))}"
    hint = "--map outcome=COLUMN names it, --map outcome=- says that no outcome is known"
    return Problem(location=place, message=message, hint=hint)


def _ignored_columns(table: Table, place: Location) -> Problem:
    free = [name for name in COLUMNS if name not in table.fields]
    guesses = []
    for column in sorted(table.ignored)[:_MAX_LISTED]:
        if close := difflib.get_close_matches(plain_name(column)[:100], free, n=1, cutoff=0.75):
            guesses.append(f"{close[0]}={escaped(column)}")
    hint = (
        f"did you mean --map {','.join(guesses)}?"
        if guesses
        else "to read one, --map FIELD=COLUMN or attributes.NAME=COLUMN"
    )
    message = f"columns that are not read: {listing(sorted(table.ignored))}"
    return Problem(location=place, message=message, hint=hint)


def _names_states(runs: Mapping[str, list[Row]]) -> bool:
    """Whether the ``step`` column holds names: any value that is no integer."""
    steps = (row.values.get("step", "") for rows in runs.values() for row in rows)
    return any(step and not _INTEGER.fullmatch(step) for step in steps)


class _RunReading:
    """Makes a trace of the rows of one run, and collects what is wrong with them."""

    def __init__(self, label: str, run_id: str, rows: list[Row], state_field: str) -> None:
        self.label = label
        self.run_id = run_id
        self.rows = [row for row in rows if row.flaw is None]
        self.first_line = rows[0].line
        self.state_field = state_field
        self.problems = [self._named(row.flaw) for row in rows if row.flaw is not None]
        self.is_whole = not self.problems
        self.has_outcome = True

    def trace(self, prefix: str = "") -> Trace:
        """The run as it stands in the file; only where there is no problem is it one that may be used."""
        rows, absorber = self._ordered_steps()
        outcome, termination = self._ending(absorber)
        return Trace(
            trace_id=prefix + self.run_id,
            outcome=outcome,
            steps=tuple(self._step(row) for row in rows),
            termination=self._constant("termination") or termination,
            task_id=self._constant("task"),
            trial=self._constant("trial"),
            model=self._constant("model"),
            source=f"{self.label}:{self.first_line}",
            attributes=self._attributes(),
        )

    def _named(self, flaw: Problem) -> Problem:
        at = flaw.location
        place = Location(path=at.path, line=at.line, column=at.column, record=escaped(self.run_id), field=at.field)
        return Problem(location=place, message=flaw.message, hint=flaw.hint)

    def _problem(self, line: int, field: str, message: str, hint: str | None = None) -> None:
        location = Location(path=self.label, line=line, record=escaped(self.run_id), field=field)
        self.problems.append(Problem(location=location, message=message, hint=hint))

    def _ordered_steps(self) -> tuple[list[Row], Row | None]:
        """The rows that are steps, in order, and the row that names the absorber if there is one."""
        rows = []
        for row in self.rows:
            if row.values.get(self.state_field):
                rows.append(row)
            elif row.values.get("step"):
                self._problem(row.line, self.state_field, f"step {shown(row.values['step'])} has no state")
        absorber = None
        if rows and self._names_absorber(rows[-1]) and not self._number(rows[-1]):
            absorber = rows.pop()
        if self.state_field == "state" and any(self._number(row) for row in rows):
            rows = self._sorted(rows)
        if rows and absorber is None and self._names_absorber(rows[-1]):
            absorber = rows.pop()
        return rows, absorber

    def _number(self, row: Row) -> str:
        return row.values.get("step", "") if self.state_field == "state" else ""

    def _names_absorber(self, row: Row) -> bool:
        return row.values[self.state_field].lower() in set(Outcome)

    def _sorted(self, rows: list[Row]) -> list[Row]:
        numbered = []
        for row in rows:
            text = self._number(row)
            if _INTEGER.fullmatch(text):
                numbered.append((int(text.removesuffix(".0")), row))
            else:
                message = f"an integer was expected, got {shown(text)}" if text else "the row has no step number"
                self._problem(row.line, "step", message, "steps are numbered 0, 1, 2, ... or not at all")
        numbered.sort(key=lambda pair: pair[0])
        for (before, _), (number, row) in pairwise(numbered):
            if number == before:
                self._problem(row.line, "step", f"step {number} stands twice in the run")
            elif number > before + 1 and self.is_whole:
                self._problem(row.line, "step", f"step {number} follows step {before}: rows are missing")
        return [row for _, row in numbered]

    def _ending(self, absorber: Row | None) -> tuple[Outcome, str | None]:
        found: dict[Outcome, str] = {}
        for row in self.rows:
            word = _plain(row.values.get("outcome", ""))
            if word in _BLANK_WORDS:
                continue
            outcome = OUTCOME_WORDS.get(word)
            if outcome is None:
                hint = "a success, a failure or censored? `tracebridge traces formats` lists the words"
                self._problem(row.line, "outcome", f"{shown(row.values['outcome'])} does not say the outcome", hint)
                continue
            found.setdefault(outcome, word)
            if len(found) > 1:
                self._problem(row.line, "outcome", f"{word!r} contradicts {next(iter(found.values()))!r} above")
                break
        if absorber is not None:
            state = Outcome(absorber.values[self.state_field].lower())
            if found and state not in found:
                stated = next(iter(found.values()))
                self._problem(absorber.line, self.state_field, f"the run ends in {state} but its outcome is {stated!r}")
            found.setdefault(state, state)
        if not found:
            self.has_outcome = False
            return Outcome.CENSORED, "no_outcome"
        outcome, word = next(iter(found.items()))
        return outcome, word if outcome is Outcome.CENSORED and word != "censored" else None

    def _constant(self, field: str) -> str | None:
        """A field of the run: the one value that its rows have."""
        constant = None
        for row in self.rows:
            value = row.values.get(field, "")
            if value.lower() in _BLANK_WORDS or value == constant:
                continue
            if constant is not None:
                self._problem(row.line, field, f"{shown(value)} contradicts {shown(constant)} above")
                break
            constant = value
        return constant

    def _attributes(self) -> dict[str, Any]:
        """The attributes that were mapped, in the order of their names, where the run has a value."""
        names = sorted({name for row in self.rows for name in row.values if name.startswith(ATTRIBUTE_PREFIX)})
        found = {name.removeprefix(ATTRIBUTE_PREFIX): self._constant(name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def _step(self, row: Row) -> Step:
        values = row.values
        fields: dict[str, Any] = {"name": values[self.state_field]}
        for name in ("kind", "text"):
            if values.get(name):
                fields[name] = values[name]
        error = _plain(values.get("error", ""))
        if error not in _BLANK_WORDS:
            if error in _ERROR_WORDS:
                fields["error"] = _ERROR_WORDS[error]
            else:
                self._problem(row.line, "error", f"true or false was expected, got {shown(values['error'])}")
        for name in ("confidence", "tokens", "duration"):
            text = _plain(values.get(name, ""))
            if text not in _BLANK_WORDS:
                self._add_number(fields, name, text, row.line)
        return Step(**fields)

    def _add_number(self, fields: dict[str, Any], name: str, text: str, line: int) -> None:
        field_type = next(field.type for field in msgspec.structs.fields(Step) if field.name == name)
        try:
            fields[name] = msgspec.convert(text, field_type, strict=False)
        except msgspec.ValidationError as error:
            self._problem(line, name, f"{error}, got {shown(text)}")


def _plain(text: str) -> str:
    """Lower case, and integers as integers: tables with gaps often hold 1.0 for 1."""
    return text.lower().removesuffix(".0")
