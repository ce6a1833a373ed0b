"""The rows of a flat file by run: as soon as the run ends, for which a large file is surveyed before it is read."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, deque
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.files import MAX_DOCUMENT_BYTES
from tracebridge.traces.model import Outcome
from tracebridge.traces.problems import ProblemLog, escaped
from tracebridge.traces.readers.row_block import RowBlock, Stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.readers.parquet_table import ParquetTable
    from tracebridge.traces.readers.table import Table

INTEGER = re.compile(r"[+-]?[0-9]{1,18}(?:\.0)?")
ABSORBERS = frozenset(outcome.value for outcome in Outcome)

MAX_AHEAD_ROWS = 1 << 14
MAX_AHEAD_BYTES = 4 << 20
"""So many rows, and so many bytes of them, are read before the first run is told; a file of more is read twice."""

MAX_HELD_ROWS = 1 << 22
MAX_HELD_BYTES = 2 << 30
"""So many rows, and so many characters in them, of runs that are not complete may be held."""


def surveyed(fields: Set[str]) -> set[str]:
    """Those of the fields of a block that a survey looks at."""
    looked_at = {"run_id"}
    if "state" not in fields:
        looked_at.add("step")
    if "outcome" not in fields:
        looked_at.add("state")
    return looked_at & fields


class RowSurvey:
    """What must be known of all rows before the first run can be made of them.

    Attributes:
        n_rows: by run, in the order of their first rows.
        nameless: the rows that name no run; a run may have lost a step by each.
        names_states: whether a step is no integer; of rows without a state column.
        named_absorbers: the fields (``state``, ``step``) in which a row without an outcome column names an absorber.
    """

    def __init__(self, label: str, limit: int) -> None:
        self.n_rows: dict[str, int] = {}
        self.nameless = ProblemLog(limit)
        self.names_states = False
        self.named_absorbers: set[str] = set()
        self._label = label

    def add(self, block: RowBlock) -> None:
        """Take notice of the next rows."""
        columns = block.columns
        if "" in columns["run_id"]:
            self._add_nameless(block, columns["run_id"])
            named = [place for place, run_id in enumerate(columns["run_id"]) if run_id]
            columns = {name: [cells[place] for place in named] for name, cells in columns.items()}
        for run_id, n_rows in Counter(columns["run_id"]).items():
            self.n_rows[run_id] = self.n_rows.get(run_id, 0) + n_rows
        if "state" not in columns and not self.names_states:
            self.names_states = any(step and not INTEGER.fullmatch(step) for step in set(columns.get("step", ())))
        field = "state" if "state" in columns else "step"
        if "outcome" not in columns and not ABSORBERS.isdisjoint(map(str.lower, set(columns.get(field, ())))):
            self.named_absorbers.add(field)

    def _add_nameless(self, block: RowBlock, run_ids: Sequence[str]) -> None:
        for place, (line, run_id) in enumerate(zip(block.lines, run_ids, strict=True)):
            if not run_id:
                self.nameless.refuse(_nameless(line, block.flaws.get(place), self._label))


def surveyed_rows(
    file: InputFile, table_of: Callable[..., Table | ParquetTable], limit: int
) -> tuple[RowSurvey, Table | ParquetTable, Iterator[RowBlock]]:
    """All rows of a file, and the survey of them with the table that it was made of.

    The first rows are held. If there are more, and the file can be opened again, the survey is of a reading of its own;
    what can be read once only is held whole.

    Args:
        file: the file.
        table_of: makes the table of a file, of which there are ``max_bytes``, with the columns of ``only``.
        limit: how many problems are kept.

    Raises:
        TraceError: what iterating over the table raises, or more than `MAX_HELD_ROWS` rows that can be read once only.
    """
    is_reread = file.path is not None and file.path.is_file()
    survey, table = RowSurvey(file.label, limit), table_of(file, max_bytes=None if is_reread else MAX_DOCUMENT_BYTES)
    held: deque[RowBlock] = deque()
    blocks, n_rows = iter(table), 0
    for block in blocks:
        survey.add(block)
        held.append(block)
        n_rows += len(block.lines)
        if is_reread and (n_rows > MAX_AHEAD_ROWS or table.n_bytes > MAX_AHEAD_BYTES):
            survey = RowSurvey(file.label, limit)
            with file.again() as reread:
                table = table_of(reread, max_bytes=None, only=surveyed)
                for each in table:
                    survey.add(each)
            break
        if n_rows > MAX_HELD_ROWS and not is_reread:
            hint = "write them to a file, which can be read twice"
            place = Location(path=file.label)
            raise TraceError(Problem(location=place, message=f"more than {MAX_HELD_ROWS:,} rows", hint=hint))
    return survey, table, chain(_drained(held), blocks)


def _drained(held: deque[RowBlock]) -> Iterator[RowBlock]:
    while held:
        yield held.popleft()


def whole_runs(blocks: Iterable[RowBlock], n_rows: Mapping[str, int], label: str) -> Iterator[Stretch]:
    """The runs in the order of their first rows, each as soon as it and all runs before it are complete.

    Args:
        blocks: the rows of the file, in its order. n_rows: how many there are of each run. label: of the file.

    Raises:
        TraceError: more than `MAX_HELD_ROWS` rows or `MAX_HELD_BYTES` characters wait, or the rows are not those that
            were counted.
    """
    held: OrderedDict[str, list[RowBlock]] = OrderedDict()
    n_missing: dict[str, int] = {}
    n_held = n_chars = 0
    for block in blocks:
        for stretch in block.stretches():
            run_id, _, start, end = stretch
            size = end - start
            if not run_id:
                continue
            if not held and size == n_rows.get(run_id):
                yield stretch
                continue
            rows = stretch.rows()
            held.setdefault(run_id, []).append(rows)
            n_missing[run_id] = n_missing.get(run_id, n_rows.get(run_id, 0)) - size
            n_held += size
            n_chars += rows.n_chars()
            while held and not n_missing[first := next(iter(held))]:
                of_run = held.pop(first)
                n_held -= n_rows[first]
                n_chars -= sum(part.n_chars() for part in of_run)
                yield Stretch(first, RowBlock.joined(of_run), 0, n_rows[first])
            if n_held > MAX_HELD_ROWS or n_chars > MAX_HELD_BYTES:
                beyond = max(n_held - MAX_HELD_ROWS - 1, 0)
                incomplete = f"runs that are not complete, such as {escaped(first)}"
                message = f"{n_held - beyond:,} rows of {incomplete}, are too many to hold"
                hint = "sort the rows by run, or convert the file to native JSON Lines in parts"
                place = Location(path=label, line=rows.lines[size - 1 - beyond])
                raise TraceError(Problem(location=place, message=message, hint=hint))
    if held:
        raise TraceError("the file has changed while it was read", location=Location(path=label))


def _nameless(line: int, flaw: Problem | None, label: str) -> Problem:
    """A row that no run can be charged with."""
    lost = "a run may have lost this step"
    if flaw is None:
        return Problem(location=Location(path=label, line=line), message="the row names no run", hint=lost)
    return replace(flaw, hint=f"{flaw.hint}; {lost}" if flaw.hint else lost)
