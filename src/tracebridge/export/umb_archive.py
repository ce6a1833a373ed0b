"""The container of the unified Markov binary format (UMB): a tar archive, plain or compressed by gzip or xz.

An archive from elsewhere is hostile until read: it is walked as a stream, every member's size is held against what is
left of a budget before one byte of its content is decompressed, and nothing ever touches the file system.

Source: the UMB specification, https://pmc-tools.github.io/umb/spec; POSIX.1-1988 (ustar), POSIX.1-2001 (pax headers).
"""

from __future__ import annotations

import gzip
import lzma
import re
import tarfile
import zlib
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, BinaryIO, Final, Literal, NoReturn, cast

from tracebridge.errors import Location, ModelError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Compression = Literal["gzip", "xz"]

#: The content of an archive, decompressed, may be this large unless a caller says otherwise.
MAX_BYTES: Final = 2**30

INDEX = "index.json"

_BLOCK = 512
_CHUNK = 2**20
_MAX_MEMBERS = 200_000
_MAX_NAME_BYTES = 2**16  # of a header that holds a long name
_XZ_MEMORY = 2**27  # xz -9 needs half of it
_GZIP, _XZ = b"\x1f\x8b\x08", b"\xfd7zXZ\x00"
_MAGIC = slice(257, 262)
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(/[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*)*")
_DIRECTORY, _PAX, _PAX_GLOBAL, _LONG_NAME = b"5", b"x", b"g", b"L"
_DECOMPRESSION_ERRORS = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def is_umb(first_bytes: bytes) -> bool:
    """Whether a file that begins with these bytes is a UMB archive; 4,096 bytes are enough.

    That the first member is ``index.json`` (or a ``.bin`` file) tells it from other archives, compressed or not.
    """
    try:
        if first_bytes.startswith(_GZIP):
            first_bytes = zlib.decompressobj(wbits=31).decompress(first_bytes, _BLOCK)
        elif first_bytes.startswith(_XZ):
            first_bytes = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY).decompress(first_bytes, _BLOCK)
    except (zlib.error, lzma.LZMAError):
        return False
    name = first_bytes[:100].rstrip(b"\0").removeprefix(b"./")
    return first_bytes[_MAGIC] == b"ustar" and (name == INDEX.encode() or name.endswith(b".bin"))


# ---------------------------------------------------------------- writing


def write_archive(
    file: BinaryIO, members: Iterable[tuple[str, bytes | memoryview]], compression: Compression | None = None
) -> None:
    """Write the members in this order; the same members give the same bytes."""
    if compression == "gzip":
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=1, mtime=0) as packed:
            _write_members(cast("IO[bytes]", packed), members)
    elif compression == "xz":
        with lzma.LZMAFile(file, "wb") as packed_xz:
            _write_members(packed_xz, members)
    else:
        _write_members(file, members)


def _write_members(file: IO[bytes], members: Iterable[tuple[str, bytes | memoryview]]) -> None:
    for name, data in members:
        header = tarfile.TarInfo(name)
        header.size = len(data)
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
        file.write(data)
        file.write(b"\0" * (-len(data) % _BLOCK))
    file.write(b"\0" * (2 * _BLOCK))


# ---------------------------------------------------------------- reading


def read_archive(file: BinaryIO, *, path: str | None = None, max_bytes: int = MAX_BYTES) -> dict[str, bytes]:
    """The members of an archive by their names.

    Args:
        file: a binary file at its start; it is read forward only. path: for messages. max_bytes: the most that all
            members may hold together, with 512 bytes for the header of each.

    Raises:
        ModelError: with the member: no tar archive, a broken or cut off one, one of other things than plain files and
            folders, a name that leads out of the archive or stands twice, or contents larger than ``max_bytes``.
    """
    return _Walk(file, path, max_bytes).members()


class _Walk:
    """One pass over an archive."""

    def __init__(self, file: BinaryIO, path: str | None, max_bytes: int) -> None:
        magic = file.read(len(_XZ))
        source = _Rejoined(magic, file)
        self._stream: _Rejoined | gzip.GzipFile | _XzStream = source
        if magic.startswith(_GZIP):
            self._stream = gzip.GzipFile(fileobj=cast("BinaryIO", source), mode="rb")
        elif magic.startswith(_XZ):
            self._stream = _XzStream(source)
        self._path = path
        self._budget = self._max_bytes = max_bytes
        self._member: str | None = None

    def members(self) -> dict[str, bytes]:
        members: dict[str, bytes] = {}
        long_name: str | None = None
        while True:
            self._member = None
            header = self._read(_BLOCK)
            if not any(header):
                return members
            name, size, kind = self._parse(header)
            if kind in {_PAX, _PAX_GLOBAL, _LONG_NAME}:
                found = self._long_name(kind, size)
                long_name = found or long_name
                continue
            name, long_name = (name if long_name is None else long_name), None
            self._member = name = name.removeprefix("./")
            data = self._content(size)
            if kind == _DIRECTORY:
                continue
            if kind not in {b"0", b"\0"}:
                self._refuse("this member is a link or a device, not a plain file")
            if not _NAME.fullmatch(name):
                self._refuse(
                    "this is no name for a member", "names are relative, of letters, digits, '-', '_', '.' and '/'"
                )
            if name in members:
                self._refuse("this member stands in the archive twice")
            if len(members) == _MAX_MEMBERS:
                self._refuse(f"the archive has more than {_MAX_MEMBERS} members")
            members[name] = data

    def _parse(self, header: bytes) -> tuple[str, int, bytes]:
        """Name, size and type; the checksum tells a header from anything else."""
        if header[_MAGIC] != b"ustar":
            self._refuse("this is no UMB file: no tar archive, plain or compressed by gzip or xz")
        blanked = sum(header) - sum(header[148:156]) + 8 * ord(" ")
        if self._octal(header[148:156], "checksum") != blanked:
            self._refuse("the header of a member is damaged: its checksum is wrong")
        raw = header[:100].split(b"\0", 1)[0]
        if header[262:263] == b"\0" and (prefix := header[345:500].split(b"\0", 1)[0]):  # POSIX, not GNU
            raw = prefix + b"/" + raw
        name = raw.decode("utf-8", "backslashreplace")
        self._member = name
        return name, self._octal(header[124:136], "size"), header[156:157]

    def _octal(self, field: bytes, what: str) -> int:
        digits = field.strip(b" \0")
        if not re.fullmatch(rb"[0-7]*", digits):
            self._refuse(f"the {what} in the header of a member is no octal number")
        return int(digits or b"0", 8)

    def _long_name(self, kind: bytes, size: int) -> str | None:
        """The path of the next member, where the header is about one."""
        if size > _MAX_NAME_BYTES:
            self._refuse(f"an extended header of {size} bytes is larger than {_MAX_NAME_BYTES}")
        data = self._content(size)
        if kind == _LONG_NAME:
            return data.rstrip(b"\0").decode("utf-8", "backslashreplace")
        found = None
        while data:
            length, _, _ = data.partition(b" ")
            if not re.fullmatch(rb"[1-9][0-9]{0,5}", length) or int(length) > len(data):
                self._refuse("an extended header is damaged")
            key, _, value = data[len(length) + 1 : int(length) - 1].partition(b"=")
            if key == b"size" or key.startswith(b"GNU.sparse") or (key == b"path" and kind == _PAX_GLOBAL):
                self._refuse(f"extended headers that set {key.decode('ascii', 'replace')!r} are not read")
            if key == b"path":
                found = value.decode("utf-8", "backslashreplace")
            data = data[int(length) :]
        return found

    def _content(self, size: int) -> bytes:
        if size + _BLOCK > self._budget:
            self._refuse(
                f"this member of {size} bytes makes the archive larger than {self._max_bytes}", "raise max_bytes"
            )
        self._budget -= size + _BLOCK  # with its header, so that many empty members end, too
        data = self._read(size)
        self._read(-size % _BLOCK)
        return data

    def _read(self, size: int) -> bytes:
        """Exactly so many bytes; memory grows only as they arrive."""
        chunks = []
        left = size
        while left:
            try:
                chunk = self._stream.read(min(left, _CHUNK))
            except _DECOMPRESSION_ERRORS as error:
                self._refuse(f"the compressed data is damaged or cut off: {error}")
            except OSError as error:
                self._refuse(f"cannot be read: {error.strerror}")
            if not chunk:
                self._refuse(f"the archive is cut off: {left} of {size} bytes are missing")
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks)

    def _refuse(self, message: str, hint: str | None = None) -> NoReturn:
        place = Location(path=self._path, field=None if self._member is None else self._member[:200])
        raise ModelError(Problem(location=place, message=message, hint=hint))


class _Rejoined:
    """A stream of which the first bytes were read already."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first, self._rest = first, rest

    def read(self, size: int = -1) -> bytes:
        if self._first:
            taken = self._first if size < 0 else self._first[:size]
            self._first = self._first[len(taken) :]
            return taken
        return self._rest.read(size)


class _XzStream:
    """What an xz file holds, with a limit to the memory that it can ask for."""

    def __init__(self, source: _Rejoined) -> None:
        self._source = source
        self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)

    def read(self, size: int) -> bytes:
        while not self._decompressor.eof:
            packed = self._source.read(_CHUNK) if self._decompressor.needs_input else b""
            if self._decompressor.needs_input and not packed:
                raise EOFError("the xz stream has no end")
            if data := self._decompressor.decompress(packed, size):
                return data
        return b""


# ---------------------------------------------------------------- problems of members


@contextmanager
def at_member(member: str) -> Iterator[None]:
    """ModelErrors raised here are about this member, unless they say about which."""
    try:
        yield
    except ModelError as error:
        raise ModelError(
            replace(problem, location=replace(problem.location, field=problem.location.field or member))
            for problem in error.problems
        ) from error


def refuse(message: str, member: str, hint: str | None = None) -> NoReturn:
    """Raise ModelError about a member."""
    raise ModelError(Problem(location=Location(field=member[:200]), message=message, hint=hint))
