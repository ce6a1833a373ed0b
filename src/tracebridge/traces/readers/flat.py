"""Flat traces: one row a step, in CSV (any usual delimiter), TSV, JSON Lines or Parquet."""

from __future__ import annotations

import difflib
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.files import MAX_DOCUMENT_BYTES
from tracebridge.traces.model import Count, Outcome, Probability, Seconds, Step, Trace
from tracebridge.traces.problems import ProblemLog, counted, escaped, shown
from tracebridge.traces.readers.columns import (
    ATTRIBUTE_PREFIX,
    COLUMNS,
    NO_COLUMN,
    absent_columns,
    find_columns,
    split_header,
)
from tracebridge.traces.readers.flat_rows import (
    ABSORBERS,
    INTEGER,
    MAX_HELD_ROWS,
    RowSurvey,
    can_be_read_twice,
    rows_by_run,
)
from tracebridge.traces.readers.parquet_table import ParquetTable
from tracebridge.traces.readers.table import Row, Table, listing
from tracebridge.traces.sniff import plain_name, shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
_NUMBER_TYPES: Mapping[str, Any] = {"confidence": Probability, "tokens": Count, "duration": Seconds}
_STEP_FIELDS = frozenset({"kind", "text", "error", *_NUMBER_TYPES})
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

    Runs may interleave, so that rows are held in memory until their run is complete. For that a large file is read
    twice; what can be read once only is held whole. At most 4,194,304 rows are held. Parquet is read by the extra
    ``arrow``, only the columns of fields; a row's number then stands where others have the line.
    """

    name = "flat"
    description = "flat rows run_id, step, state, outcome, ... in CSV, TSV, JSON Lines, Parquet (other names: --map)"

    def detect(self, file: InputFile) -> bool:
        """A header or a JSON row that names the run and its state or step; a JSON row of a trace_id, the state.

        Any Parquet file: if it has other columns, it is told which of them are missing.
        """
        seen = shape(file.head)
        if seen.kind == "parquet":
            return True
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
        survey = RowSurvey(file.label, log.limit)
        rows: Iterable[Row]
        if can_be_read_twice(file):
            rows = _table_of(file, max_bytes=None)
            with file.again() as counted_file:
                table = _table_of(counted_file, max_bytes=None)
                for row in table:
                    survey.add(row)
        else:
            table, rows = _table_of(file, max_bytes=MAX_DOCUMENT_BYTES), []
            for row in table:
                survey.add(row)
                rows.append(row)
                if len(rows) > MAX_HELD_ROWS:
                    hint = "write them to a file, which can be read twice"
                    raise TraceError(Problem(location=place, message=f"more than {MAX_HELD_ROWS:,} rows", hint=hint))
        _check_columns(table, file)
        if not survey.n_rows and survey.nameless.problems:
            raise TraceError(_first(survey.nameless.problems, survey.nameless.n_problems, "in this file"))
        log.update(survey.nameless)
        if "state" not in table.fields and not survey.names_states:
            raise TraceError(Problem(location=place, message="no column names the states", hint="--map state=COLUMN"))
        state_field = "state" if "state" in table.fields else "step"
        is_silent = "outcome" not in table.fields and state_field not in survey.named_absorbers
        if is_silent and file.mapping.get("outcome") != NO_COLUMN:
            raise TraceError(_no_outcome_column(table, place))
        if table.ignored:
            log.note(_ignored_columns(table, place))
        prefix = ""
        if any(run_id in file.taken_ids for run_id in survey.n_rows):
            prefix = f"{file.stem}/"
            message = f"run ids of an earlier file stand here again; the runs here are called {escaped(prefix)}<run_id>"
            log.note(Problem(location=place, message=message, hint="a run that goes on in a second file is not joined"))
        n_known = 0
        for run_id, of_run in rows_by_run(rows, survey.n_rows, file.label):
            reading = _RunReading(file.label, run_id, of_run, state_field)
            trace = reading.trace(prefix)
            n_known += reading.has_outcome
            if reading.problems:
                log.refuse(_first(reading.problems, len(reading.problems), "in this run"))
            else:
                yield trace
        if survey.n_rows and not n_known:
            message = f"no run has an outcome: {counted(len(survey.n_rows), 'run')} censored"
            log.note(Problem(location=Location(path=file.label, field="outcome"), message=message))


def _table_of(file: InputFile, *, max_bytes: int | None) -> Table | ParquetTable:
    kind = shape(file.head).kind
    if kind == "parquet":
        return ParquetTable(file, max_bytes=max_bytes)
    return Table(file, is_json=kind == "object", max_bytes=max_bytes)


def _first(problems: Sequence[Problem], number: int, where: str) -> list[Problem]:
    """The first few of a number of problems, and how many more there are."""
    first = list(problems[:_MAX_PROBLEMS_PER_RUN])
    if beyond := number - len(first):
        place = Location(path=first[0].location.path, record=first[0].location.record)
        first.append(Problem(location=place, message=f"and {counted(beyond, 'more problem')} {where}"))
    return first


def _check_columns(table: Table | ParquetTable, file: InputFile) -> None:
    if absent := absent_columns(table.fields, file.mapping):
        message = f"no row has the column {', '.join(map(shown, absent))} that was mapped"
        message += f"; there are {listing(sorted(table.columns))}"
        raise TraceError(message, location=Location(path=file.label))


def _no_outcome_column(table: Table | ParquetTable, place: Location) -> Problem:
    message = "no column says how the runs ended, so that every run would be censored"
    if table.ignored:
        message += f"; columns that are not read: {listing(sorted(table.ignored))}"
    hint = "--map outcome=COLUMN names it, --map outcome=- says that no outcome is known"
    return Problem(location=place, message=message, hint=hint)


def _ignored_columns(table: Table | ParquetTable, place: Location) -> Problem:
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
        return row.values[self.state_field].lower() in ABSORBERS

    def _sorted(self, rows: list[Row]) -> list[Row]:
        numbered = []
        for row in rows:
            text = self._number(row)
            if INTEGER.fullmatch(text):
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
        for row in self._first_with_each("outcome"):
            word = _plain(row.values["outcome"])
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

    def _first_with_each(self, field: str) -> Iterable[Row]:
        """For each value that rows have for a field of the run, the first row that has it; mostly one."""
        first: dict[str | None, Row] = {}
        for row in self.rows:
            first.setdefault(row.values.get(field), row)
        first.pop(None, None)
        return first.values()

    def _constant(self, field: str) -> str | None:
        """A field of the run: the one value that its rows have."""
        constant = None
        for row in self._first_with_each(field):
            value = row.values[field]
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
        for name, text in values.items():
            if not text or name not in _STEP_FIELDS:
                continue
            try:
                value = _step_value(name, text)
            except msgspec.ValidationError as error:
                self._problem(row.line, name, str(error))
            else:
                if value is not None:
                    fields[name] = value
        return Step(**fields)


@lru_cache(maxsize=1 << 14)
def _step_value(name: str, text: str) -> Any:
    """The value of a field of a step; None where the text stands for none. Raises ValidationError for no such value."""
    if name in ("kind", "text"):
        return text
    plain = _plain(text)
    if plain in _BLANK_WORDS:
        return None
    if name == "error":
        if plain not in _ERROR_WORDS:
            raise msgspec.ValidationError(f"true or false was expected, got {shown(text)}")
        return _ERROR_WORDS[plain]
    try:
        return msgspec.convert(plain, _NUMBER_TYPES[name], strict=False)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"{error}, got {shown(plain)}") from error


def _plain(text: str) -> str:
    """Lower case, and integers as integers: tables with gaps often hold 1.0 for 1."""
    return text.lower().removesuffix(".0")
