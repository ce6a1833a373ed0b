"""One input file or stream, read once from front to back: decompressed, hashed, in bounded memory."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Self

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.remote_files import RemoteFile

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from _typeshed import WriteableBuffer

HEAD_BYTES = 1 << 18
MAX_LINE_BYTES = 64 << 20
MAX_DOCUMENT_BYTES = 2 << 30
MAX_RATIO = 200
"""A file that is read whole may not decompress to more than this many times its size (once that is over 256 MiB)."""

_PIECE_BYTES = 1 << 24
_UNSUSPICIOUS_BYTES = 1 << 28

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
UTF8_BOM = b"\xef\xbb\xbf"


class LineSpan(NamedTuple):
    """Whole lines of an uncompressed file: its bytes from ``start`` to ``end``, of which the first is in ``line``."""

    start: int
    end: int
    line: int


class InputFile:
    """A file, or standard input for ``path=None``, that the readers of all formats read from.

    Attributes:
        label: how messages and ``Trace.source`` name the file; never a path of the machine beyond what the user gave.
        path: where it lies on this machine; None for standard input and for a file behind a URL.
        mapping: the column names that the user gave for flat traces, field to column.
        taken_ids: the trace_ids of the files before this one.
        first_line: the number of its first line, 1 unless only a span of its lines is read.
        is_compressed: whether it is compressed as a whole.
        head: up to ``HEAD_BYTES`` from the start, decompressed and without a byte-order mark.

    Raises:
        TraceError: the file cannot be opened or its compressed data are damaged (here or while it is read).
    """

    def __init__(
        self,
        path: Path | RemoteFile | None,
        label: str,
        *,
        mapping: Mapping[str, str] | None = None,
        taken_ids: Container[str] = frozenset(),
        span: LineSpan | None = None,
        is_hashed: bool = True,
    ) -> None:
        self.path = path if isinstance(path, Path) else None
        self._is_stdin = path is None
        self.label = label
        self.mapping: Mapping[str, str] = mapping or {}
        self.taken_ids = taken_ids
        self.first_line = 1 if span is None else span.line
        self._is_part = span is not None and span.start > 0
        self._digest = hashlib.sha256() if is_hashed else None
        try:
            self._file: Any = _open(path)
            source = self._file if span is None else _Part(self._file, span)
        except OSError as error:
            raise self.damaged(f"cannot be opened: {error.strerror or error}") from error
        self._raw = _FullReads(source, self, self._digest)
        self._stored: io.BufferedReader[Any] = io.BufferedReader(self._raw, HEAD_BYTES)
        try:
            self._stream = self._decompressed()
            self.is_compressed = self._stream is not self._stored
            self.head = self._stream.peek(HEAD_BYTES)
            if self.head.startswith(UTF8_BOM) and not self._is_part:
                self._stream.read(len(UTF8_BOM))
                self.head = self.head[len(UTF8_BOM) :]
        except BaseException:
            self.close()
            raise

    def _decompressed(self) -> io.BufferedReader[Any]:
        magic = b"" if self._is_part else self._stored.peek(4)[:4]
        if magic.startswith(GZIP_MAGIC):
            # GzipFile is typed as a buffered file; we only ever call its readinto
            plain: Any = gzip.GzipFile(fileobj=self._stored, mode="rb")
        elif magic == ZSTD_MAGIC:
            plain = _ZstdFile(self._stored)
        else:
            return self._stored
        return io.BufferedReader(_FullReads(plain, self), HEAD_BYTES)

    @property
    def stem(self) -> str:
        """The label without the suffixes of its format and compression."""
        stem = self.label
        for suffix in (".gz", ".zst", ".json", ".jsonl", ".ndjson"):
            stem = stem.removesuffix(suffix)
        return stem or self.label

    def lines(self, limit: int = MAX_LINE_BYTES) -> Iterator[bytes]:
        """The lines with their ends; of one longer than ``limit`` bytes come the first ``limit + 1`` bytes.

        Call :meth:`skip_line` then, or the rest comes as a line of its own.
        """
        return iter(partial(self._stream.readline, limit + 1), b"")

    def pieces(self, size: int, limit: int = MAX_LINE_BYTES) -> Iterator[bytes]:
        """The text in pieces of whole lines: about ``size`` bytes, and what their last line has beyond.

        Of a line that goes on for more than ``limit`` bytes the rest comes as a piece of its own.
        """
        while piece := self._stream.read(size):
            yield piece if piece.endswith(b"\n") else piece + self._stream.readline(limit + 1)

    def skip_line(self) -> None:
        """Pass over the rest of the current line."""
        while (rest := self._stream.readline(HEAD_BYTES)) and not rest.endswith(b"\n"):
            pass

    def document(self, limit: int = MAX_DOCUMENT_BYTES, *, read: bytes = b"") -> bytes:
        """All of the file at once; ``read`` is what was read of it before.

        Raises:
            TraceError: there are more than ``limit`` bytes.
        """
        # by pieces: asked for the limit at once, the stream would set aside that much memory for a file of any size
        pieces = [read]
        size = len(read)
        while size <= limit and (piece := self._stream.read(min(limit + 1 - size, _PIECE_BYTES))):
            pieces.append(piece)
            size += len(piece)
            if size > max(_UNSUSPICIOUS_BYTES, MAX_RATIO * self._raw.n_bytes):
                message = f"{self._raw.n_bytes:,} bytes that decompress to {size:,} and more: these are no logs"
                raise self.damaged(message)
        if size > limit:
            raise self.damaged(
                f"larger than {limit >> 20} MiB once decompressed, and its format must be read whole",
                hint="split it, or convert it to JSON Lines",
            )
        return b"".join(pieces)

    def again(self) -> InputFile:
        """The same file, opened anew at its start, of which no hash is made; only for one that has a path."""
        return InputFile(self.path, self.label, mapping=self.mapping, taken_ids=self.taken_ids, is_hashed=False)

    def sha256(self) -> str:
        """The hash of the stored (compressed) bytes; reads what is left of the file first."""
        if self._digest is None:
            raise ValueError("no hash is made of this reading")
        while self._stored.read(HEAD_BYTES):
            pass
        return self._digest.hexdigest()

    @property
    def n_bytes(self) -> int:
        """How many stored bytes were read; all of them after `sha256`."""
        return self._raw.n_bytes

    def damaged(self, message: str, *, hint: str | None = None) -> TraceError:
        """The error that says the whole file is unusable."""
        return TraceError(Problem(location=Location(path=self.label), message=message, hint=hint))

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if not self._is_stdin:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open(path: Path | RemoteFile | None) -> BinaryIO | io.RawIOBase:
    if path is None:
        return sys.stdin.buffer
    return path.open() if isinstance(path, RemoteFile) else path.open("rb", buffering=0)


class _Part:
    """A span of an open file."""

    def __init__(self, file: Any, span: LineSpan) -> None:
        file.seek(span.start)
        self._file = file
        self._left = span.end - span.start

    def readinto(self, view: memoryview) -> int:
        count: int = self._file.readinto(view[: self._left])
        self._left -= count
        return count


class _FullReads(io.RawIOBase):
    """Raw reads that fill the buffer unless the input ends (a pipe gives what it has), and are hashed and counted."""

    def __init__(self, source: Any, owner: InputFile, digest: Any = None) -> None:
        self._source = source
        self._owner = owner
        self._digest = digest
        self._has_ended = False
        self.n_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        filled = 0
        try:
            while filled < len(view) and not self._has_ended:
                count = self._source.readinto(view[filled:])
                self._has_ended = not count
                filled += count
        except (EOFError, zlib.error, gzip.BadGzipFile, _ZstdDamageError) as error:
            raise self._owner.damaged(f"its compressed data are damaged or cut off: {error}") from error
        except OSError as error:
            raise self._owner.damaged(f"cannot be read: {error.strerror or error}") from error
        if self._digest is not None:
            self._digest.update(view[:filled])
        self.n_bytes += filled
        return filled


class _ZstdDamageError(Exception):
    """A zstandard stream that breaks off or does not decode."""


class _ZstdFile:
    """Decompresses zstandard frames a little at a time.

    A block of a few bytes may stand for 128 KiB, so the input goes in by 2 KiB: at most some 64 MiB come out at once.
    The library's own stream reader is not used because it takes a frame that breaks off for a complete one.
    """

    _SLICE = 2048

    def __init__(self, stored: BinaryIO) -> None:
        import zstandard

        self._stored = stored
        self._error = zstandard.ZstdError
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._input = b""
        self._output = memoryview(b"")

    def readinto(self, buffer: memoryview) -> int:
        while not self._output:
            self._input = self._input or self._stored.read(self._SLICE)
            if not self._input:
                if self._frame is not None:
                    raise _ZstdDamageError("the last zstandard frame is incomplete")
                return 0
            if self._frame is None:
                self._frame = self._new_frame()
            try:
                self._output = memoryview(self._frame.decompress(self._input))
            except self._error as error:
                raise _ZstdDamageError(str(error)) from error
            self._input = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = None
        count = min(len(buffer), len(self._output))
        buffer[:count] = self._output[:count]
        self._output = self._output[count:]
        return count
