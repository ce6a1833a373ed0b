"""The rows of a flat trace file, whatever its notation: CSV, TSV or JSON Lines."""

from __future__ import annotations

import csv
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.files import MAX_DOCUMENT_BYTES, MAX_LINE_BYTES, InputFile
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.problems import escaped, shown
from tracebridge.traces.readers.columns import absent_columns, find_columns, split_cells, split_header

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_MAX_LISTED = 30
_ONE_LINE_FIELDS = ("run_id", "step", "state", "outcome", "error", "confidence", "tokens", "duration")


class Row(NamedTuple):
    """One row.

    Attributes:
        line: where it starts in the file.
        values: the text of each field that has a column; blank where there is no value.
        flaw: why the row cannot be used; ``values`` then has the run at most.
    """

    line: int
    values: dict[str, str]
    flaw: Problem | None = None


class Table:
    """The rows of a flat file, read as they come; those that cannot be read come with their flaw.

    Attributes:
        fields: the fields that have a column, of the rows read so far.
        columns: the columns of the rows read so far.
        ignored: those of them that are no field.

    Raises:
        TraceError: while iterating, for what makes all rows doubtful: a header without a column for the run or for
            what was mapped, a line or a file that is too long, damaged compression.
    """

    def __init__(self, file: InputFile, *, is_json: bool, max_bytes: int | None = MAX_DOCUMENT_BYTES) -> None:
        """Of a file whose rows are objects or lines of cells; more than ``max_bytes`` of them are refused."""
        self._file = file
        self._max_bytes = max_bytes
        self._mapping = file.mapping
        self._is_json = is_json
        self.fields: set[str] = set()
        self.columns: set[str] = set()
        self.ignored: set[str] = set()

    def __iter__(self) -> Iterator[Row]:
        return self._json_rows() if self._is_json else self._delimited_rows()

    # ---------------------------------------------------------------- JSON Lines

    def _json_rows(self) -> Iterator[Row]:
        known_keys: tuple[str, ...] | None = None
        columns: dict[str, str] = {}
        for number, line in self._lines():
            if line.isspace():
                continue
            try:
                record = decode_strictly(line)
            except JsonTextError as error:
                yield Row(number, self._salvaged(line), self._problem(str(error), line=number, column=error.column))
                continue
            if not isinstance(record, dict):
                yield Row(number, {}, self._problem(f"a row is a JSON object, this is {shown(record)}", line=number))
                continue
            if tuple(record) != known_keys:
                known_keys = tuple(record)
                columns = self._found(known_keys)
            values, flaw = {}, None
            if "run_id" not in columns:
                flaw = self._no_run_column(known_keys, number)
            for name, column in columns.items():
                value = record[column]
                text = value.strip() if isinstance(value, str) else _text(value)
                if text is not None:
                    values[name] = text
                elif flaw is None:
                    message = f"one value was expected, got {shown(record[column])}"
                    flaw = self._problem(message, line=number, field=escaped(column))
            yield Row(number, values, flaw)

    def _salvaged(self, line: bytes) -> dict[str, str]:
        """The run that a damaged JSON row names, if that much can be told."""
        try:
            record = json.loads(line.decode(errors="replace"), object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            return {}
        if not isinstance(record, _Pairs):
            return {}
        column = find_columns([key for key, _ in record], self._mapping).get("run_id")
        texts = [_text(value) for key, value in record if key == column]
        text = texts[0] if len(texts) == 1 else None
        return {"run_id": text} if text and "\N{REPLACEMENT CHARACTER}" not in text else {}

    # ---------------------------------------------------------------- CSV, TSV

    def _delimited_rows(self) -> Iterator[Row]:
        lines = _Lines(self._lines())
        header_line = next((line for line in lines if not line.isspace()), "")
        if lines.bad_byte is not None:
            raise TraceError(self._not_utf8(lines.bad_byte))
        header, delimiter = split_header(header_line, self._mapping)
        places = {name: header.index(column) for name, column in self._header_columns(header).items()}
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            first = lines.start_row()
            flaw = None
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                flaw = self._unsplittable(error, first, lines)
            else:
                if not any(cells) or not any(cell.strip() for cell in cells):
                    continue
                if len(cells) != len(header):
                    message = f"the row has {len(cells)} cells, the header {len(header)}"
                    flaw = self._problem(message, line=first, hint="put cells that hold the delimiter in quotes")
                elif lines.number > first:
                    flaw = self._broken_cell({name: cells[place] for name, place in places.items()}, first)
            if flaw is not None:
                yield from self._lost_rows(flaw, first, lines.row, delimiter, places["run_id"], len(header))
            elif lines.bad_byte is not None:
                run_id = cells[places["run_id"]].strip()
                yield Row(first, {"run_id": run_id} if _is_utf8(run_id) else {}, self._not_utf8(lines.bad_byte))
            else:
                yield Row(first, {name: cells[place].strip() for name, place in places.items()})

    def _header_columns(self, header: list[str]) -> dict[str, str]:
        for name, count in Counter(header).items():
            if count > 1:
                raise TraceError(self._problem(f"the column {shown(name)} stands twice in the header"))
        columns = self._found(header)
        # JSON rows may leave out what they do not have, a header may not
        if absent := absent_columns(columns, self._mapping):
            listed = ", ".join(map(shown, absent))
            raise TraceError(self._problem(f"there is no column {listed}; there are {listing(header)}"))
        if "run_id" not in columns:
            raise TraceError(self._no_run_column(header))
        return columns

    def _unsplittable(self, error: csv.Error, first: int, lines: _Lines) -> Problem:
        if lines.ended:
            message = f"the quote that opens in this row is never closed: nothing was read from line {first} on"
            return self._problem(message, line=first, hint="close it, or double a quote that is meant literally")
        message = f"the row cannot be split into cells: {error}"
        if lines.number > first:
            message += f"; lines {first} to {lines.number} were not read"
        return self._problem(message, line=first, hint="is a quote opened and not closed?")

    def _broken_cell(self, values: dict[str, str], first: int) -> Problem | None:
        """A row over several lines is well-formed, and yet no row, if what should be one word is many lines."""
        for name in _ONE_LINE_FIELDS:
            if "\n" in (value := values.get(name, "").strip()):
                message = f"a line break in {shown(value)}"
                hint = "is a quote opened and not closed?"
                return self._problem(message, line=first, field=name, hint=hint)
        return None

    def _lost_rows(
        self, flaw: Problem, first: int, texts: Sequence[str], delimiter: str, run_place: int, width: int
    ) -> Iterator[Row]:
        """A row that cannot be used, and those that it swallowed, as far as each by itself names a run."""
        for number, text in enumerate(texts, first):
            cells = split_cells(text, delimiter)
            run_id = cells[run_place] if run_place < len(cells) else ""
            values = {"run_id": run_id} if _is_utf8(run_id) else {}
            if number == first:
                yield Row(first, values, flaw)
            elif len(cells) == width and any(values.values()):
                message = f"the row was not read, as line {first} swallows it"
                yield Row(number, values, self._problem(message, line=number))

    # ---------------------------------------------------------------- both

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        total = 0
        for number, line in enumerate(self._file.lines(MAX_LINE_BYTES), 1):
            total += len(line)
            if len(line) > MAX_LINE_BYTES:
                message = f"the line is longer than {MAX_LINE_BYTES >> 20} MiB"
                raise TraceError(self._problem(message, line=number))
            if self._max_bytes is not None and total > self._max_bytes:
                message = f"more than {self._max_bytes >> 20} MiB of rows"
                hint = "they must be held in memory: write them to a file, which can be read twice"
                raise TraceError(self._problem(message, line=number, hint=hint))
            yield number, line

    def _found(self, names: Sequence[str]) -> dict[str, str]:
        columns = find_columns(names, self._mapping)
        self.fields |= columns.keys()
        self.columns |= set(names)
        self.ignored |= set(names) - set(columns.values())
        return columns

    def _no_run_column(self, names: Collection[str], line: int | None = None) -> Problem:
        message = f"no column names the run; there are {listing(names)}"
        return self._problem(message, line=line, hint="--map run_id=COLUMN")

    def _not_utf8(self, bad_byte: tuple[int, int, int]) -> Problem:
        line, column, byte = bad_byte
        return self._problem(f"byte 0x{byte:02x} is not valid UTF-8", line=line, column=column)

    def _problem(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> Problem:
        location = Location(path=self._file.label, line=line, column=column, field=field)
        return Problem(location=location, message=message, hint=hint)


class _Lines:
    """The lines as text, for the CSV splitter, which takes as many as a row needs; remembers those of the row.

    Attributes:
        row: the lines of the row so far.
        number: the line last read.
        bad_byte: line, column and value of the first byte of the row that is no UTF-8; in the text it is a surrogate.
        ended: no line is left.
    """

    def __init__(self, lines: Iterator[tuple[int, bytes]]) -> None:
        self._lines = lines
        self.row: list[str] = []
        self.number = 0
        self.bad_byte: tuple[int, int, int] | None = None
        self.ended = False

    def start_row(self) -> int:
        """Forget the last row; return the line at which the next one starts."""
        self.row = []
        self.bad_byte = None
        return self.number + 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            self.number, line = next(self._lines)
        except StopIteration:
            self.ended = True
            raise
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            text = line.decode(errors="surrogateescape")
            self.bad_byte = self.bad_byte or (self.number, error.start + 1, line[error.start])
        self.row.append(text)
        return text


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its keys, those that stand twice too."""


def listing(names: Collection[str]) -> str:
    """Column names for a message: the first few."""
    shown_names = ", ".join(escaped(name) for name in list(names)[:_MAX_LISTED])
    return f"{shown_names}, …" if len(names) > _MAX_LISTED else shown_names or "none"


def _text(value: Any) -> str | None:
    """A JSON value as the text that a CSV cell would hold; None for a container."""
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int | float) else None


def _is_utf8(text: str) -> bool:
    return not any("\udc80" <= char <= "\udcff" for char in text)
