"""The members of a zip archive, one at a time in bounded memory; zstandard too, which Python's zipfile cannot."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.errors import TraceError
    from tracebridge.traces.files import InputFile

MAX_MEMBER_BYTES = 1 << 30
MAX_RATIO = 1000
"""An archive may not claim to hold more than this many times its own size (once that is over 1 GiB)."""

_ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_ENCRYPTED = 0x1


class ZipMembers:
    """The members of an archive that was read whole.

    Raises:
        TraceError: it is no zip archive, or claims sizes that only an attack has.
    """

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._data = file.document()
        try:
            with zipfile.ZipFile(io.BytesIO(self._data)) as archive:
                self._members = {info.filename: info for info in archive.infolist() if not info.is_dir()}
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError, struct.error) as error:
            raise file.damaged(f"the zip archive is damaged or cut off: {error}") from error
        stored = sum(info.compress_size for info in self._members.values())
        claimed = sum(info.file_size for info in self._members.values())
        if stored > len(self._data) or claimed > max(MAX_MEMBER_BYTES, MAX_RATIO * len(self._data)):
            message = f"{len(self._data):,} bytes claim to hold {claimed:,}: this is no archive of logs"
            raise file.damaged(message)

    def names(self) -> Iterator[str]:
        """The names, in the order of the archive."""
        yield from self._members

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        """A member, decompressed and checked.

        Raises:
            TraceError: it is damaged, encrypted, compressed in an unknown way or larger than 1 GiB.
        """
        info = self._members[name]
        if info.file_size > MAX_MEMBER_BYTES:
            raise self._damaged(name, f"larger than {MAX_MEMBER_BYTES >> 20} MiB once decompressed")
        if info.flag_bits & _ENCRYPTED:
            raise self._damaged(name, "encrypted")
        try:
            plain = self._decompressed(info)
        except (zlib.error, struct.error) as error:
            raise self._damaged(name, f"damaged: {error}") from error
        if len(plain) != info.file_size or zlib.crc32(plain) != info.CRC:
            raise self._damaged(name, "damaged: its size or checksum is not the recorded one")
        return plain

    def _decompressed(self, info: zipfile.ZipInfo) -> bytes:
        """At most one byte more than the recorded size, so that a lie about it cannot cost memory."""
        magic, name_size, extra_size = _LOCAL_HEADER.unpack_from(self._data, info.header_offset)
        if magic != b"PK\x03\x04":
            raise zlib.error("there is no local header")
        start = info.header_offset + _LOCAL_HEADER.size + name_size + extra_size
        stored = memoryview(self._data)[start : start + info.compress_size]
        limit = info.file_size + 1
        if info.compress_type == zipfile.ZIP_STORED:
            return bytes(stored[:limit])
        if info.compress_type == zipfile.ZIP_DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(stored, limit)
        if info.compress_type == _ZSTANDARD:
            return _zstandard(stored, limit)
        raise zlib.error(f"compression method {info.compress_type} is unknown")

    def _damaged(self, name: str, message: str) -> TraceError:
        return self._file.damaged(f"the member {name[:200]!r} is {message}")


def _zstandard(stored: memoryview, limit: int) -> bytes:
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(stored, read_across_frames=True)
    try:
        return reader.read(limit)
    except zstandard.ZstdError as error:
        raise zlib.error(str(error)) from error
