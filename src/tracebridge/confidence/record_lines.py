"""The JSON records of a file: one a line, or the elements of one array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.errors import Location, TraceError
from tracebridge.traces.files import MAX_LINE_BYTES
from tracebridge.traces.readers.records import array_records
from tracebridge.traces.sniff import shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.traces.files import InputFile


def record_lines(file: InputFile) -> Iterator[tuple[Location, bytes]]:
    """Each record's place and text.

    Lines are read one at a time; an array is held in memory as a whole.

    Raises:
        TraceError: the array does not decode or has more than 2 GiB, a line has more than 64 MiB.
    """
    if shape(file.head).kind == "array":
        for record in array_records(file):
            yield Location(path=file.label, record=f"[{record.number}]"), bytes(record.data)
        return
    for number, line in enumerate(file.lines(MAX_LINE_BYTES), 1):
        place = Location(path=file.label, line=number)
        if len(line) > MAX_LINE_BYTES:
            raise TraceError(f"the line is longer than {MAX_LINE_BYTES >> 20} MiB", location=place)
        if not line.isspace():
            yield place, line
