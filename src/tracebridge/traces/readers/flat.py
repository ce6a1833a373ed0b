"""Flat traces: one row a step, in CSV (any usual delimiter), TSV, JSON Lines or Parquet."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.jsonl import encode_checked
from tracebridge.traces.problems import ProblemLog, counted, escaped, shown
from tracebridge.traces.readers.columns import (
    ATTRIBUTE_PREFIX,
    COLUMNS,
    NO_COLUMN,
    absent_columns,
    columns_of_keys,
    find_columns,
    split_header,
)
from tracebridge.traces.readers.delimited_table import DelimitedTable
from tracebridge.traces.readers.flat_rows import surveyed_rows, whole_runs
from tracebridge.traces.readers.flat_run import OUTCOME_WORDS, RunReading
from tracebridge.traces.readers.json_table import JsonTable
from tracebridge.traces.readers.parquet_table import ParquetTable
from tracebridge.traces.readers.plain_runs import PlainRuns
from tracebridge.traces.readers.row_block import SharedFlaw
from tracebridge.traces.readers.step_values import with_values
from tracebridge.traces.readers.table import Table, listing
from tracebridge.traces.sniff import plain_name, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.model import Trace

__all__ = ["OUTCOME_WORDS", "FlatReader"]

_MAX_PROBLEMS_PER_RUN = 5
_MAX_LISTED = 20
_MAX_REMEMBERED = 1 << 10


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

    Runs may interleave, so that rows are held in memory until their run is complete. For that a file of more than
    16,384 rows, or 4 MiB of them, is read twice; what can be read once only is held whole. At most 4,194,304 rows are
    held. Parquet is read by the extra ``arrow``, only the columns of fields; a row's number then stands where others
    have the line.
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
            columns: Mapping[str, str] = find_columns(split_header(seen.first_line, file.mapping)[0], file.mapping)
        elif seen.kind == "object" and "steps" not in seen.keys:
            columns = columns_of_keys(seen.keys, tuple(file.mapping.items()))
            if plain_name(columns.get("run_id", "")) == "trace_id" and "state" not in columns:
                return False
        else:
            return False
        return "run_id" in columns and ("state" in columns or "step" in columns)

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The runs in the order of their first rows."""
        place = Location(path=file.label)
        survey, table, blocks = surveyed_rows(file, _table_of, log.limit)
        _check_columns(table, file)
        if not survey.n_rows and survey.nameless.problems:
            raise TraceError(_first(survey.nameless.problems, "in this file", survey.nameless.n_problems))
        log.update(survey.nameless)
        if "state" not in table.fields and not survey.names_states:
            raise TraceError(Problem(location=place, message="no column names the states", hint="--map state=COLUMN"))
        state_field = "state" if "state" in table.fields else "step"
        is_silent = "outcome" not in table.fields and state_field not in survey.named_absorbers
        if is_silent and file.mapping.get("outcome") != NO_COLUMN:
            raise TraceError(_no_outcome_column(table, place))
        if table.ignored:
            log.note(_ignored_columns(table, file, place))
        prefix = ""
        if any(run_id in file.taken_ids for run_id in survey.n_rows):
            prefix = f"{file.stem}/"
            message = f"run ids of an earlier file stand here again; the runs here are called {escaped(prefix)}<run_id>"
            log.note(Problem(location=place, message=message, hint="a run that goes on in a second file is not joined"))
        attributes = sorted(name for name in table.fields if name.startswith(ATTRIBUTE_PREFIX))
        plain_runs = PlainRuns(file.label, prefix=prefix, state_field=state_field, attributes=attributes)
        told: set[object] = set()
        _not_told(survey.nameless.problems, told)
        n_used = n_known = 0
        for run in whole_runs(map(with_values, blocks), survey.n_rows, file.label):
            found = plain_runs.trace(run)
            if found is None:
                reading = RunReading(file.label, run.run_id, run.rows(), state_field, attributes)
                trace = reading.trace(prefix)
                if reading.problems:
                    log.refuse(_first(_not_told(reading.problems, told), "in this run"))
                    continue
                try:
                    encode_checked(trace)
                except TraceError as error:
                    log.refuse(error.problems)
                    continue
                found = trace, reading.has_outcome
            n_used += 1
            n_known += found[1]
            yield found[0]
        if n_used and not n_known:
            which = "no run" if n_used == len(survey.n_rows) else "no run that can be used"
            message = f"{which} has an outcome: {counted(n_used, 'run')} censored"
            log.note(Problem(location=Location(path=file.label, field="outcome"), message=message))


def _table_of(
    file: InputFile, *, max_bytes: int | None, only: Callable[[Set[str]], Collection[str]] | None = None
) -> Table | ParquetTable:
    kind = shape(file.head).kind
    if kind == "parquet":
        return ParquetTable(file, max_bytes=max_bytes, only=only)
    return (JsonTable if kind == "object" else DelimitedTable)(file, max_bytes=max_bytes, only=only)


def _first(problems: Sequence[Problem], where: str, number: int | None = None) -> list[Problem]:
    """The first few of a number of problems, by default so many, and how many more there are."""
    first = list(problems[:_MAX_PROBLEMS_PER_RUN])
    if beyond := (len(problems) if number is None else number) - len(first):
        place = Location(path=first[0].location.path, record=first[0].location.record)
        first.append(Problem(location=place, message=f"and {counted(beyond, 'more problem')} {where}"))
    return first


def _not_told(problems: Sequence[Problem], told: set[object]) -> list[Problem]:
    """Those of a run's problems that have not been told with another run; the ones that runs share come first."""
    shared = {(problem.location, problem.message): problem for problem in problems if isinstance(problem, SharedFlaw)}
    new = [problem for key, problem in shared.items() if key not in told]
    if len(told) > _MAX_REMEMBERED:
        told.clear()
    told.update(shared)
    return [*new, *(problem for problem in problems if not isinstance(problem, SharedFlaw))]


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


def _ignored_columns(table: Table | ParquetTable, file: InputFile, place: Location) -> Problem:
    free = [name for name in COLUMNS if name not in table.fields and file.mapping.get(name) != NO_COLUMN]
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
