"""The rows of a flat file by run: held until the file ends; of a large file, which is read twice, until the run is."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.model import Outcome
from tracebridge.traces.problems import ProblemLog, escaped
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.readers.table import Row

INTEGER = re.compile(r"[+-]?[0-9]{1,18}(?:\.0)?")
ABSORBERS = frozenset(outcome.value for outcome in Outcome)

LARGE_BYTES = 4 << 20
"""A file of more bytes, or a compressed one, is read twice if it can be."""

MAX_HELD_ROWS = 1 << 22
MAX_HELD_BYTES = 2 << 30
"""So many rows, and so many characters in them, of runs that are not complete may be held."""


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

    def add(self, row: Row) -> None:
        """Take notice of the next row."""
        run_id = row.values.get("run_id")
        if not run_id:
            self.nameless.refuse(_nameless(row, self._label))
            return
        self.n_rows[run_id] = self.n_rows.get(run_id, 0) + 1
        if "state" not in row.values and (step := row.values.get("step")) and not self.names_states:
            self.names_states = INTEGER.fullmatch(step) is None
        for field in () if "outcome" in row.values else ("state", "step"):
            if field not in self.named_absorbers and row.values.get(field, "").lower() in ABSORBERS:
                self.named_absorbers.add(field)


def can_be_read_twice(file: InputFile) -> bool:
    """Whether a file is large, or may be once it is decompressed, and can be read from its start again."""
    if file.path is None or not file.path.is_file():
        return False
    is_packed = file.is_compressed or shape(file.head).kind == "parquet"
    return is_packed or file.path.stat().st_size > LARGE_BYTES


def rows_by_run(rows: Iterable[Row], n_rows: Mapping[str, int], label: str) -> Iterator[tuple[str, list[Row]]]:
    """The runs in the order of their first rows, each as soon as it and all runs before it are complete.

    Args:
        rows: of the file, in its order. n_rows: how many there are of each run. label: of the file.

    Raises:
        TraceError: more than `MAX_HELD_ROWS` rows or `MAX_HELD_BYTES` characters wait, or the rows are not those that
            were counted.
    """
    held: OrderedDict[str, list[Row]] = OrderedDict()
    n_held = n_chars = 0
    for row in rows:
        run_id = row.values.get("run_id")
        if not run_id:
            continue
        held.setdefault(run_id, []).append(row)
        n_held += 1
        n_chars += _size(row)
        while held and len(held[first := next(iter(held))]) == n_rows.get(first):
            n_held -= n_rows[first]
            n_chars -= sum(map(_size, held[first]))
            yield first, held.pop(first)
        if n_held > MAX_HELD_ROWS or n_chars > MAX_HELD_BYTES:
            message = f"{n_held:,} rows of runs that are not complete, such as {escaped(first)}, are too many to hold"
            hint = "sort the rows by run, or convert the file to native JSON Lines in parts"
            raise TraceError(Problem(location=Location(path=label, line=row.line), message=message, hint=hint))
    if held:
        raise TraceError("the file has changed while it was read", location=Location(path=label))


def _size(row: Row) -> int:
    return sum(map(len, row.values.values()))


def _nameless(row: Row, label: str) -> Problem:
    """A row that no run can be charged with."""
    lost = "a run may have lost this step"
    if row.flaw is None:
        return Problem(location=Location(path=label, line=row.line), message="the row names no run", hint=lost)
    hint = f"{row.flaw.hint}; {lost}" if row.flaw.hint else lost
    return Problem(location=row.flaw.location, message=row.flaw.message, hint=hint)
