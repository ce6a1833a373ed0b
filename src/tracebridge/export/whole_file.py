"""Text files of a model: written whole or not at all, and read in blocks of whole lines with bounded memory."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, NoReturn

from tracebridge.errors import Location, ModelError, Problem
from tracebridge.traces.atomic_file import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import TracebackType

#: A file larger than this, in bytes, is refused.
MAX_BYTES = 2**32

_BLOCK = 2**22
_MAX_LINE = 2**22
_MAX_SHOWN = 80


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, each without its end, to a file in ASCII or UTF-8; it appears whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    with replacing(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        text.writelines(f"{line}\n" for line in lines)
        text.detach()  # flushed, and not closed: the file has not appeared yet


class LineFile:
    """A text file that is read from its start: some single lines, then blocks of lines. A context manager.

    Attributes:
        line: how many lines were read so far, which is the number of the last one.
    """

    __slots__ = ("_file", "line", "path")

    def __init__(self, path: Path) -> None:
        """Open a file. Raises ModelError if it cannot be opened or is larger than `MAX_BYTES`."""
        self.path = path
        self.line = 0
        if not path.exists():
            self.refuse("there is no such file", line=None)
        try:
            self._file = path.open("rb")
            size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            self.refuse(f"cannot be read: {error.strerror}", line=None)
        if size > MAX_BYTES:
            self._file.close()
            self.refuse(f"is larger than {MAX_BYTES} bytes", line=None)

    def __enter__(self) -> LineFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def next_line(self) -> bytes | None:
        """The next line without its end and without white space around it; None at the end of the file."""
        text = self._file.readline(_MAX_LINE)
        if not text:
            return None
        self.line += 1
        if len(text) == _MAX_LINE:
            self.refuse(f"the line has more than {_MAX_LINE} bytes")
        return text.removeprefix(b"\xef\xbb\xbf").strip() if self.line == 1 else text.strip()

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        r"""The rest as the number of the first line of a block and its lines, which all end in ``\n``."""
        while block := self._file.read(_BLOCK):
            if not block.endswith(b"\n"):
                block += self._file.readline(_MAX_LINE)
                if not block.endswith(b"\n"):
                    if self._file.read(1):
                        self.line += block.count(b"\n") + 1
                        self.refuse(f"the line has more than {_MAX_LINE} bytes")
                    block += b"\n"
            block = block.replace(b"\r\n", b"\n")
            first = self.line + 1
            self.line += block.count(b"\n")
            yield first, block

    def refuse(self, message: str, hint: str | None = None, *, line: int | None = -1) -> NoReturn:
        """Raise ModelError with the place: the last line that was read unless another, or none, is given."""
        refuse_file(self.path, message, hint, line=self.line if line == -1 else line)


def refuse_file(path: Path, message: str, hint: str | None = None, *, line: int | None = None) -> NoReturn:
    """Raise ModelError for a file, at a line of it if one is given."""
    raise ModelError(Problem(location=Location(path=str(path), line=line), message=message, hint=hint))


def shown(text: bytes) -> str:
    """A piece of a file for a message."""
    decoded = text.decode("utf-8", "replace")
    return repr(decoded if len(decoded) <= _MAX_SHOWN else decoded[:_MAX_SHOWN] + "...")
