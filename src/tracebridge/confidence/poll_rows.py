"""The rows of a flat file of polls, one a poll: CSV with any usual delimiter, TSV, JSON Lines or a JSON array."""

from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tracebridge.confidence.poll_columns import find_poll_columns, split_poll_header
from tracebridge.confidence.record_lines import record_lines
from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.files import MAX_DOCUMENT_BYTES, MAX_LINE_BYTES
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.problems import shown
from tracebridge.traces.readers.columns import absent_columns
from tracebridge.traces.readers.table import listing
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog

REQUIRED = ("item", "agent", "candidate", "confidence")


class PollRow(NamedTuple):
    """One row.

    Attributes:
        place: where it stands.
        values: the value of each field that has a column: text, or the JSON value.
        flaw: why the row cannot be used; ``values`` then has the item at most.
    """

    place: Location
    values: dict[str, Any]
    flaw: Problem | None = None


def poll_rows(file: InputFile, log: ProblemLog) -> Iterator[PollRow]:
    """The rows; those that cannot be read come with their flaw.

    Raises:
        TraceError: a header or a file as a whole that cannot be read, a required or a mapped column that is not there.
    """
    is_json = shape(file.head).kind in ("object", "array")
    return _json_rows(file, log) if is_json else _delimited_rows(file, log)


def require_columns(found: Collection[str], names: Collection[str], file: InputFile, place: Location) -> None:
    """Refuse columns among which a required field or one that the mapping names is not found.

    Raises:
        TraceError: with the columns that are there.
    """
    if absent := absent_columns(found, file.mapping):
        message = f"there is no column {', '.join(map(shown, absent))}; there are {listing(names)}"
        raise TraceError(Problem(location=place, message=message))
    for field in REQUIRED:
        if field not in found:
            message = f"no column is the {field}; there are {listing(names)}"
            raise TraceError(Problem(location=place, message=message, hint=f"--map {field}=COLUMN"))


def note_ignored(ignored: Collection[str], file: InputFile, log: ProblemLog) -> None:
    """Say which columns are no field."""
    if ignored:
        message = f"columns that are not read: {listing(sorted(ignored))}"
        log.note(Problem(location=Location(path=file.label), message=message, hint="--map FIELD=COLUMN reads one"))


def _json_rows(file: InputFile, log: ProblemLog) -> Iterator[PollRow]:
    fields: set[str] = set()
    names: set[str] = set()
    used: set[str] = set()
    known: tuple[str, ...] | None = None
    columns: dict[str, str] = {}
    for place, line in record_lines(file):
        try:
            record = decode_strictly(line)
        except JsonTextError as error:
            at = Location(path=place.path, line=place.line, column=error.column, record=place.record)
            yield PollRow(place, {}, Problem(location=at, message=str(error)))
            continue
        if not isinstance(record, dict):
            message = f"a poll is a JSON object, this is {shown(record)}"
            yield PollRow(place, {}, Problem(location=place, message=message))
            continue
        if tuple(record) != known:
            known = tuple(record)
            columns = find_poll_columns(known, file.mapping)
            fields |= columns.keys()
            names |= set(known)
            used |= set(columns.values())
        yield PollRow(place, {field: record[column] for field, column in columns.items()})
    if names:
        require_columns(fields, names, file, Location(path=file.label))
    note_ignored(names - used, file, log)


def _delimited_rows(file: InputFile, log: ProblemLog) -> Iterator[PollRow]:
    lines = _TextLines(file)
    header_line = next((line for line in lines if not line.isspace()), "")
    header, delimiter = split_poll_header(header_line, file.mapping)
    place = Location(path=file.label, line=lines.number)
    if repeated := [name for name, count in Counter(header).items() if count > 1]:
        message = f"the column {shown(repeated[0])} stands twice in the header"
        raise TraceError(Problem(location=place, message=message))
    columns = find_poll_columns(header, file.mapping)
    require_columns(columns, header, file, place)
    note_ignored(set(header) - set(columns.values()), file, log)
    places = {field: header.index(column) for field, column in columns.items()}
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        first = Location(path=file.label, line=lines.number + 1)
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            message = f"the row cannot be split into cells: {error}"
            raise TraceError(
                Problem(location=first, message=message, hint="is a quote opened and not closed?")
            ) from error
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            message = f"the row has {len(cells)} cells, the header {len(header)}"
            flaw = Problem(location=first, message=message, hint="put cells that hold the delimiter in quotes")
            # a delimiter too many shifts what comes after it, not what comes first
            yield PollRow(first, {"item": cells[0].strip()} if places["item"] == 0 else {}, flaw)
            continue
        yield PollRow(first, {field: cells[at].strip() for field, at in places.items()})


class _TextLines:
    """The lines as text for the CSV splitter; ``number`` is the line last read."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._lines = file.lines(MAX_LINE_BYTES)
        self._total = 0
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        self._total += len(line)
        place = Location(path=self._file.label, line=self.number)
        if len(line) > MAX_LINE_BYTES:
            raise TraceError(f"the line is longer than {MAX_LINE_BYTES >> 20} MiB", location=place)
        if self._total > MAX_DOCUMENT_BYTES:
            raise TraceError(f"more than {MAX_DOCUMENT_BYTES >> 20} MiB of rows", location=place)
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            message = f"byte 0x{line[error.start]:02x} is not valid UTF-8"
            at = Location(path=self._file.label, line=self.number, column=error.start + 1)
            raise TraceError(message, location=at) from error
