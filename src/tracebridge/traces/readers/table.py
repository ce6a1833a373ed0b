"""The rows of a flat trace file that is a text, by the block: what CSV, TSV and JSON Lines have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.files import MAX_DOCUMENT_BYTES, MAX_LINE_BYTES, InputFile
from tracebridge.traces.problems import escaped
from tracebridge.traces.readers.columns import find_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set

    from tracebridge.traces.readers.row_block import RowBlock

T = TypeVar("T")

_MAX_LISTED = 30
_BLOCK_BYTES = 1 << 16  # few enough for the cells to stay in the cache of the processor


class Table(ABC):
    """The rows of a flat file, read as they come; those that cannot be read come with their flaw.

    Lines are split by the block; one in which anything but plain rows stands is gone through again row by row, which
    gives the same and tells what is wrong.

    Attributes:
        fields: the fields that have a column, of the rows read so far.
        columns: the columns of the rows read so far.
        ignored: those of them that are no field.
        n_bytes: how many bytes were read so far.

    Raises:
        TraceError: while iterating, for what makes all rows doubtful: a header without a column for the run or for
            what was mapped, a line or a file that is too long, damaged compression.
    """

    def __init__(
        self,
        file: InputFile,
        *,
        max_bytes: int | None = MAX_DOCUMENT_BYTES,
        only: Callable[[Set[str]], Collection[str]] | None = None,
    ) -> None:
        """Of a file; more than ``max_bytes`` of rows are refused.

        Of the fields of plain rows, blocks have those that ``only`` names, ``run_id`` among them.
        """
        self._file = file
        self._only = only
        self._max_bytes = max_bytes
        self._mapping = file.mapping
        self.fields: set[str] = set()
        self.columns: set[str] = set()
        self.ignored: set[str] = set()
        self.n_bytes = 0

    @abstractmethod
    def __iter__(self) -> Iterator[RowBlock]:
        """The rows in the order of the file."""

    def _pieces(self, n_lines: Callable[[], int]) -> Iterator[bytes]:
        """The file in pieces of whole lines; ``n_lines`` tells how many lines came before the next one."""
        for piece in self._file.pieces(_BLOCK_BYTES):
            n_bytes = self.n_bytes + len(piece)
            if len(piece) > MAX_LINE_BYTES or (self._max_bytes is not None and n_bytes > self._max_bytes):
                self._require_bounds(lines_of(piece), n_lines())
            self.n_bytes = n_bytes
            yield piece

    def _require_bounds(self, lines: Sequence[bytes], n_lines: int) -> None:
        """Refuse a line that is too long, or with which there are more bytes than may be, after others."""
        n_bytes = self.n_bytes
        for number, line in enumerate(lines, n_lines + 1):
            n_bytes += len(line)
            if len(line) > MAX_LINE_BYTES:
                message = f"the line is longer than {MAX_LINE_BYTES >> 20} MiB"
                raise TraceError(self._problem(message, line=number))
            if self._max_bytes is not None and n_bytes > self._max_bytes:
                message = f"more than {self._max_bytes >> 20} MiB of rows"
                hint = "they must be held in memory: write them to a file, which can be read twice"
                raise TraceError(self._problem(message, line=number, hint=hint))

    def _needed(self, columns: Mapping[str, T]) -> dict[str, T]:
        names = columns if self._only is None else self._only(columns.keys())
        return {name: column for name, column in columns.items() if name in names}

    def _found(self, names: Sequence[str]) -> dict[str, str]:
        columns = find_columns(names, self._mapping)
        self.fields |= columns.keys()
        self.columns |= set(names)
        self.ignored |= set(names) - set(columns.values())
        return columns

    def _no_run_column(self, names: Collection[str], line: int | None = None) -> Problem:
        message = f"no column names the run; there are {listing(names)}"
        return self._problem(message, line=line, hint="--map run_id=COLUMN")

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


def lines_of(piece: bytes) -> list[bytes]:
    """The lines of a text with their ends, which only the last may lack."""
    lines = piece.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + [last] * bool(last)


def listing(names: Collection[str]) -> str:
    """Column names for a message: the first few."""
    shown_names = ", ".join(escaped(name) for name in list(names)[:_MAX_LISTED])
    return f"{shown_names}, …" if len(names) > _MAX_LISTED else shown_names or "none"


def stripped(texts: Sequence[str]) -> Sequence[str]:
    """Texts without the space around them."""
    joined = "".join(texts)
    return texts if joined.split(maxsplit=1) == [joined] else list(map(str.strip, texts))
