"""What the files of a corpus hold, byte by byte: their hashes, and where large ones can be cut into whole lines."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from tracebridge.errors import TraceError
from tracebridge.traces.files import InputFile, LineSpan
from tracebridge.traces.inputs import Source
from tracebridge.traces.readers import known_readers

_BLOCK_BYTES = 1 << 20

#: A file of a corpus, and what messages call it.
ListedFile: TypeAlias = "tuple[Source | None, str]"

#: The native format, whose lines are read each by itself.
NATIVE = "jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A file, or a span of the lines of a large one.

    Attributes:
        path: where the file is; None for standard input. label: what messages call it.
        span: the lines; None for all of the file.
        sha256: of the piece, where it was looked at. n_bytes: its size, 0 where it has none.
    """

    path: Source | None
    label: str
    span: LineSpan | None = None
    sha256: str | None = None
    n_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedFile:
    """A file that was looked at.

    Attributes:
        sha256: of all of it. pieces: at least one; in their order they are the file.
    """

    sha256: str
    pieces: tuple[Piece, ...]


def scan(path: Path, label: str, format_name: str | None, piece_bytes: int) -> ScannedFile | None:
    """Hash a file, and cut it if it is native, plain and large.

    Pieces end with the first line that ends at or behind a multiple of ``piece_bytes``: what is appended later changes
    the last piece alone.

    Returns:
        None for a file that cannot be read, which reading it will tell.
    """
    try:
        is_cut = path.stat().st_size > piece_bytes and _is_native(path, label, format_name)
        whole, part = sha256(), sha256()
        pieces: list[Piece] = []
        start = position = 0
        line = n_lines = 1

        def end_piece() -> None:
            nonlocal part, start, line
            span = LineSpan(start, position, line)
            pieces.append(Piece(path=path, label=label, span=span, sha256=part.hexdigest(), n_bytes=position - start))
            part, start, line = sha256(), position, n_lines

        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                whole.update(block)
                while block:
                    target = max(0, _target(start, piece_bytes) - position - 1)
                    cut = block.find(b"\n", target) + 1 if is_cut and target < len(block) else 0
                    taken = block[:cut] if cut else block
                    block = block[len(taken) :]
                    part.update(taken)
                    position += len(taken)
                    n_lines += taken.count(b"\n")
                    if cut:
                        end_piece()
        if position > start or not pieces:
            end_piece()
    except OSError:
        return None
    if len(pieces) == 1:
        (only,) = pieces
        pieces = [Piece(path=path, label=label, sha256=only.sha256, n_bytes=only.n_bytes)]
    return ScannedFile(sha256=whole.hexdigest(), pieces=tuple(pieces))


def _target(start: int, piece_bytes: int) -> int:
    """Where the piece that begins at ``start`` should end at the earliest."""
    return piece_bytes * (start // piece_bytes + 1)


def _is_native(path: Path, label: str, format_name: str | None) -> bool:
    """Whether the file is taken for plain native lines, and for nothing else."""
    try:
        with InputFile(path, label) as file:
            if file.is_compressed or format_name is not None:
                return not file.is_compressed and format_name == NATIVE
            return [reader.name for reader in known_readers().values() if reader.detect(file)] == [NATIVE]
    except TraceError:
        return False
