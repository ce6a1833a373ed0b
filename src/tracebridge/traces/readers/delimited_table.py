"""The rows of a flat trace file whose cells are delimited: CSV, TSV."""

from __future__ import annotations

import csv
import io
import threading
from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING

from tracebridge.errors import Problem, TraceError
from tracebridge.traces.files import MAX_LINE_BYTES
from tracebridge.traces.problems import counted, escaped, shown
from tracebridge.traces.readers.columns import absent_columns, split_cells, split_header
from tracebridge.traces.readers.row_block import Row, RowBlock, SharedFlaw
from tracebridge.traces.readers.table import Table, lines_of, listing, stripped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_SPACES = " \t\x0b\x0c\x1c\x1d\x1e\x1f"  # of ASCII, without line ends
_ONE_LINE_FIELDS = ("run_id", "step", "state", "outcome", "error", "confidence", "tokens", "duration")
_limit_lock = threading.Lock()


class DelimitedTable(Table):
    """Rows below a header, with any usual delimiter."""

    def __iter__(self) -> Iterator[RowBlock]:
        lines = _Lines(self._pieces(lambda: lines.number))
        header_line = next((line for line in lines if not line.isspace()), "")
        if lines.bad_byte is not None:
            raise TraceError(self._not_utf8(lines.bad_byte))
        header, delimiter = split_header(header_line, self._mapping)
        places = {name: header.index(column) for name, column in self._header_columns(header).items()}
        needed = self._needed(places)
        while piece := lines.take():
            block = _block(piece, lines.number + 1, delimiter, len(header), needed)
            if block is not None:
                lines.number += len(block.lines)
            else:
                last = lines.put_back(piece)
                block = RowBlock.of(list(self._rows(lines, last, delimiter, len(header), places)))
            if block.lines:
                yield block

    def _rows(self, lines: _Lines, last: int, delimiter: str, width: int, places: dict[str, int]) -> Iterator[Row]:
        """Each row by itself, with what is wrong with it: those that start in the lines up to the last one."""
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while lines.number < last:
            first = lines.start_row()
            flaw = None
            try:
                with _large_cells():
                    cells = next(reader)
            except csv.Error as error:
                flaw = self._unsplittable(error, first, lines)
            else:
                if not any(map(str.strip, cells)):
                    continue
                if len(cells) != width:
                    message = f"the row has {len(cells)} cells, the header {width}"
                    flaw = self._problem(message, line=first, hint="put cells that hold the delimiter in quotes")
                elif lines.number > first:
                    flaw = self._broken_cell({name: cells[place] for name, place in places.items()}, first)
            if flaw is not None:
                yield from self._lost_rows(flaw, first, lines.row, delimiter, places["run_id"], width)
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
        if "field larger" in str(error):
            message = f"a cell has more than {MAX_LINE_BYTES:,} characters"
            return self._problem(message, line=first, hint="is a quote opened and not closed?")
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
        """A row that cannot be used and, of each run that it swallows rows of, as far as they name one, the first."""
        named: dict[int, str] = {}
        with _large_cells():
            for number, text in enumerate(texts, first):
                cells = split_cells(text, delimiter)
                run_id = cells[run_place] if run_place < len(cells) else ""
                if run_id and _is_utf8(run_id) and (number == first or len(cells) == width):
                    named[number] = run_id
        own = named.pop(first, "")
        swallowed: dict[str, int] = {}
        for number, run_id in named.items():
            swallowed.setdefault(run_id, number)
        if swallowed:
            lost = f"{counted(len(named), 'row')} of {counted(len(swallowed), 'run')} went with it"
            flaw = SharedFlaw(
                location=replace(flaw.location, record=escaped(own) if own else None),
                message=f"{flaw.message}; {lost}: {listing(swallowed)}",
                hint=flaw.hint,
            )
        yield Row(first, {"run_id": own} if own else {}, flaw)
        for run_id, number in swallowed.items():
            yield Row(number, {"run_id": run_id}, flaw)

    def _not_utf8(self, bad_byte: tuple[int, int, int]) -> Problem:
        line, column, byte = bad_byte
        hint = "a file of another encoding is converted so: iconv -f LATIN1 -t UTF-8 FILE > NEW"
        return self._problem(f"byte 0x{byte:02x} is not valid UTF-8", line=line, column=column, hint=hint)


class _Lines:
    """The lines by the piece, or one by one as text for the CSV splitter, which takes as many as a row needs.

    Attributes:
        row: the lines of the row so far.
        number: the line last read.
        bad_byte: line, column and value of the first byte of the row that is no UTF-8; in the text it is a surrogate.
        ended: no line is left.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._ahead: deque[bytes] = deque()
        self.row: list[str] = []
        self.number = 0
        self.bad_byte: tuple[int, int, int] | None = None
        self.ended = False

    def take(self) -> bytes:
        """The next lines, which are not counted as read; none at the end."""
        piece = b"".join(self._ahead) or next(self._pieces, b"")
        self._ahead.clear()
        return piece

    def put_back(self, piece: bytes) -> int:
        """Read the lines that were last taken one by one; return the number of the last of them."""
        self._ahead.extend(lines_of(piece))
        return self.number + len(self._ahead)

    def start_row(self) -> int:
        """Forget the last row; return the line at which the next one starts."""
        self.row = []
        self.bad_byte = None
        return self.number + 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if not self._ahead:
            self._ahead.extend(lines_of(next(self._pieces, b"")))
        if not self._ahead:
            self.ended = True
            raise StopIteration
        line = self._ahead.popleft()
        self.number += 1
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            text = line.decode(errors="surrogateescape")
            self.bad_byte = self.bad_byte or (self.number, error.start + 1, line[error.start])
        self.row.append(text)
        return text


def _block(piece: bytes, first: int, delimiter: str, width: int, places: Mapping[str, int]) -> RowBlock | None:
    """The rows of lines each of which is a row of the right width that names its run; else None."""
    try:
        text = piece.decode()
        columns = (_quoted if '"' in text else _unquoted)(text, delimiter, width, places.values())
    except (csv.Error, ValueError):  # cells that cannot be told, rows of other widths, bytes that are no UTF-8
        return None
    cells = dict(zip(places, columns, strict=True))
    if "" in cells["run_id"]:
        return None
    return RowBlock(range(first, first + len(cells["run_id"])), cells, {})


def _quoted(text: str, delimiter: str, width: int, places: Collection[int]) -> Sequence[Sequence[str]]:
    """The stripped cells of some columns, where each line is a row; cells may be quoted.

    Raises:
        csv.Error, ValueError: not each line is a row of so many cells.
    """
    rows = list(csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, strict=True))
    if len(rows) != text.count("\n") + (not text.endswith("\n")) or set(map(len, rows)) != {width}:
        raise ValueError("not a row a line")
    return [stripped(list(map(itemgetter(place), rows))) for place in places]


def _unquoted(text: str, delimiter: str, width: int, places: Collection[int]) -> Sequence[Sequence[str]]:
    """As `_quoted`, where no cell is quoted: cells are what stands between delimiters and line ends."""
    end = "\r\n" if "\r" in text else "\n"
    lines = text.removesuffix(end).split(end)
    joined = delimiter.join(lines)
    if "\n" in joined or "\r" in joined or set(map(str.count, lines, repeat(delimiter))) != {width - 1}:
        raise ValueError("not a row a line")
    first, *others = places
    columns: Sequence[Sequence[str]]
    if not others and first < width // 2:
        columns = [[line.split(delimiter, first + 1)[first] for line in lines]]
    else:
        cells = joined.split(delimiter)
        columns = [cells[place::width] for place in places]
    is_tight = text.isascii() and not any(map(text.__contains__, _SPACES.replace(delimiter, "")))
    return columns if is_tight else list(map(stripped, columns))


@contextmanager
def _large_cells() -> Iterator[None]:
    """Lets csv split cells as long as a line may be; its bound is the process's, which is put back at once."""
    with _limit_lock:
        before = csv.field_size_limit()
        csv.field_size_limit(max(before, MAX_LINE_BYTES))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _is_utf8(text: str) -> bool:
    return not any("\udc80" <= char <= "\udcff" for char in text)
