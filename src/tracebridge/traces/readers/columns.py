"""Tables of flat traces: which column is which field, and the rows of CSV, TSV and JSON Lines files."""

from __future__ import annotations

import csv
import difflib
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tracebridge.errors import Location, Problem, TraceError, UsageError
from tracebridge.traces.files import MAX_DOCUMENT_BYTES, MAX_LINE_BYTES, InputFile
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.problems import escaped, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

COLUMNS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "run_id": ("run_id", "trace_id"),
        "step": ("step",),
        "state": ("state",),
        "outcome": ("outcome",),
        "termination": ("termination",),
        "task": ("task", "task_id"),
        "trial": ("trial",),
        "model": ("model",),
        "kind": ("kind",),
        "text": ("text",),
        "error": ("error",),
        "confidence": ("confidence",),
        "tokens": ("tokens",),
        "duration": ("duration",),
    }
)
"""The fields of a row, and the column names that stand for them when no mapping names another."""

_DELIMITERS = ",;\t|"


class Row(NamedTuple):
    """One row: its line in the file and the text of each field that has a column; blank where there is no value."""

    line: int
    values: dict[str, str]


class Table:
    """The rows of a flat file, read as they come.

    A row that cannot be read makes the file unusable: nobody could say which run lost a step with it.

    Attributes:
        fields: the fields that have a column, of the rows read so far.
        ignored: the columns that are no field, of the rows read so far.

    Raises:
        TraceError: while iterating; with the line, and the column where it is known.
    """

    def __init__(self, file: InputFile, *, is_json: bool) -> None:
        self._file = file
        self._mapping = file.mapping
        self._is_json = is_json
        self.fields: set[str] = set()
        self.ignored: set[str] = set()

    def __iter__(self) -> Iterator[Row]:
        return self._json_rows() if self._is_json else self._delimited_rows()

    def _json_rows(self) -> Iterator[Row]:
        known_keys: tuple[str, ...] | None = None
        columns: dict[str, str] = {}
        for number, line in self._lines():
            if line.isspace():
                continue
            try:
                record = decode_strictly(line)
            except JsonTextError as error:
                raise self._error(str(error), line=number, column=error.column) from error
            if not isinstance(record, dict):
                raise self._error(f"a row is a JSON object, this is {shown(record)}", line=number)
            if tuple(record) != known_keys:
                known_keys = tuple(record)
                columns = self._columns(known_keys)
            values = {name: self._text(record[column], number, column) for name, column in columns.items()}
            yield Row(number, values)

    def _text(self, value: Any, line: int, column: str) -> str:
        """A JSON value as the text that a CSV cell would hold."""
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str | int | float):
            return str(value).strip()
        raise self._error(f"one value was expected, got {shown(value)}", line=line, field=column)

    def _delimited_rows(self) -> Iterator[Row]:
        lines = self._text_lines()
        header_line = next((line for line in lines if not line.isspace()), "")
        header, delimiter = split_header(header_line, self._mapping)
        for name, count in Counter(header).items():
            if count > 1:
                raise self._error(f"the column {shown(name)} stands twice in the header")
        places = {name: header.index(column) for name, column in self._columns(header).items()}
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                if not any(cells):
                    continue
                if len(cells) != len(header):
                    message = f"the row has {len(cells)} cells, the header {len(header)}"
                    hint = "put cells that hold the delimiter in quotes"
                    raise self._error(message, line=self._line, hint=hint)
                yield Row(self._line, {name: cells[place].strip() for name, place in places.items()})
        except csv.Error as error:
            raise self._error(f"the row cannot be split into cells: {error}", line=self._line) from error

    def _text_lines(self) -> Iterator[str]:
        for number, line in self._lines():
            self._line = number
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                message = f"byte 0x{line[error.start]:02x} is not valid UTF-8"
                raise self._error(message, line=number, column=error.start + 1) from error

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        total = 0
        for number, line in enumerate(self._file.lines(MAX_LINE_BYTES), 1):
            total += len(line)
            if len(line) > MAX_LINE_BYTES:
                raise self._error(f"the line is longer than {MAX_LINE_BYTES >> 20} MiB", line=number)
            if total > MAX_DOCUMENT_BYTES:
                hint = "flat rows are held in memory: convert the file to native JSON Lines in parts"
                raise self._error(f"more than {MAX_DOCUMENT_BYTES >> 20} MiB of rows", line=number, hint=hint)
            yield number, line

    def _columns(self, names: Sequence[str]) -> dict[str, str]:
        columns = find_columns(names, self._mapping)
        there = ", ".join(escaped(name) for name in names[:30])
        absent = [column for column in self._mapping.values() if column not in names]
        # JSON rows may leave out what they do not have, a header may not
        if absent and not self._is_json:
            raise self._error(f"there is no column {', '.join(map(shown, absent))}; there are {there}")
        if "run_id" not in columns:
            raise self._error(f"no column names the run; there are {there}", hint="--map run_id=COLUMN")
        self.fields |= columns.keys()
        self.ignored |= set(names) - set(columns.values())
        return columns

    def _error(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> TraceError:
        location = Location(path=self._file.label, line=line, column=column, field=field)
        return TraceError(Problem(location=location, message=message, hint=hint))


def find_columns(names: Iterable[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """The column of each field that has one; a column that the mapping names serves no other field."""
    present = set(names)
    taken = set(mapping.values())
    columns: dict[str, str] = {}
    for name, usual in COLUMNS.items():
        candidates = [mapping[name]] if name in mapping else [column for column in usual if column not in taken]
        column = next((column for column in candidates if column in present), None)
        if column is not None:
            columns[name] = column
    return columns


def split_header(line: str, mapping: Mapping[str, str]) -> tuple[list[str], str]:
    """The column names in a header line, and the delimiter: the one that makes the most of them known fields."""
    splits = []
    for delimiter in _DELIMITERS:
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
        except csv.Error:
            cells = []
        splits.append((len(find_columns(cells, mapping)), len(cells), cells, delimiter))
    best = max(splits, key=lambda split: split[:2])
    return best[2], best[3]


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Refuse a mapping of fields to columns that names an unknown field, or one column twice.

    Raises:
        UsageError: with the field that was probably meant, or all of them.
    """
    for name in mapping:
        if name not in COLUMNS:
            close = difflib.get_close_matches(name, COLUMNS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the fields are {', '.join(COLUMNS)}"
            raise UsageError(f"{name!r} is no field of a flat trace; {hint}")
    for column, count in Counter(mapping.values()).items():
        if count > 1:
            raise UsageError(f"the column {column!r} is mapped to {count} fields")
