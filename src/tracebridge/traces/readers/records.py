"""The runs of a foreign JSON file: an array of records, or one record a line."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.files import MAX_LINE_BYTES
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.problems import escaped, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.model import Trace
    from tracebridge.traces.problems import ProblemLog

T = TypeVar("T")

_PLACED = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_STEP_OF_PATH = re.compile(r"([^.\[\]]+)|\[([0-9]+)\]")

_split_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_skip_value = msgspec.json.Decoder(msgspec.Raw).decode


class RecordError(ValueError):
    """A record that is well-formed but means nothing: ``field`` says where, ``hint`` what to do."""

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.hint = hint


class Record(msgspec.Struct, gc=False):
    """One run as it stands in the file: its text, and its place (``file[index]`` or ``file:line``)."""

    data: msgspec.Raw | bytes
    source: str
    number: int


def json_records(file: InputFile, log: ProblemLog) -> Iterator[Record]:
    """The elements of a JSON array, the lines of JSON Lines, or the one object that the file is.

    Lines are read one at a time, and one of more than 64 MiB goes to the log; an array or an object over several lines
    is read whole.

    Raises:
        TraceError: the array does not decode as a whole, or is too large for it.
    """
    if re.match(rb"\s*\[", file.head):
        yield from array_records(file)
        return
    lines = ((number, line) for number, line in enumerate(file.lines(MAX_LINE_BYTES), 1) if not line.isspace())
    first = next(lines, (1, b""))
    if not _is_value(first[1]):  # it goes on, or is damaged
        yield from _records_of(file.document(read=first[1]), first[0], file.label)
        return
    second = next(lines, None)
    if second is None:
        yield Record(first[1], file.label, 0)
        return
    label = file.label
    for number, line in chain([first, second], lines):
        if len(line) > MAX_LINE_BYTES:
            file.skip_line()
            message = f"the line is longer than {MAX_LINE_BYTES >> 20} MiB"
            log.refuse(Problem(location=Location(path=file.label, record=str(number)), message=message))
        else:
            yield Record(line, f"{label}:{number}", number)


def _is_value(text: bytes) -> bool:
    try:
        _skip_value(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _records_of(data: bytes, first_number: int, label: str) -> Iterator[Record]:
    """The one value that a text is, or its lines."""
    if _is_value(data):
        yield Record(data, label, 0)
        return
    for number, line in enumerate(data.split(b"\n"), first_number):
        if line and not line.isspace():
            yield Record(line, f"{label}:{number}", number)


def array_records(file: InputFile) -> list[Record]:
    """The elements of the JSON array that a file is.

    Raises:
        TraceError: it does not decode, or is too large to be read whole.
    """
    return number_records(decode_document(_split_array, file.document(), file.label), file.label)


def number_records(parts: Iterable[msgspec.Raw], label: str) -> list[Record]:
    """Elements of a JSON array as records; counting from 0, as in JSON paths."""
    return [Record(part, f"{label}[{index}]", index) for index, part in enumerate(parts)]


def decode_document(decode: Callable[[bytes], T], data: bytes, label: str) -> T:
    """Decode a whole file.

    Raises:
        TraceError: with the line and column of what is wrong.
    """
    try:
        return decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        try:
            document = decode_strictly(data)
        except JsonTextError as exact:
            location, message = Location(path=label, line=exact.line, column=exact.column), str(exact)
        else:
            message, field = explained(error, document)
            location = Location(path=label, field=field)
        raise TraceError(Problem(location=location, message=message)) from error


def explained(error: Exception, document: Any) -> tuple[str, str | None]:
    """The message of msgspec's error and the field that it is about, with the value that stands there."""
    parts = _PLACED.fullmatch(str(error))
    if parts is None:
        return str(error), None
    message, path = parts[1], parts[2].removeprefix(".")
    value = document
    for key, index in _STEP_OF_PATH.findall(path):
        try:
            value = value[int(index)] if index else value[key]
        except (LookupError, TypeError, ValueError):  # the path leads through keys that it does not name
            return message, escaped(path)
    return message if isinstance(value, dict | list) else f"{message}: {shown(value)}", escaped(path)


def convert_records(
    records: Iterable[Record], convert: Callable[[Record, Any], Trace], file: InputFile, log: ProblemLog
) -> Iterator[Trace]:
    """The traces of the records that convert, each with the value of its text; the others go to the log."""
    for record in records:
        document = None
        try:
            document = decode_strictly(bytes(record.data))  # a key that stands twice would be taken silently otherwise
            trace = convert(record, document)
        except (JsonTextError, RecordError, msgspec.MsgspecError, RecursionError) as error:
            message, field = explained(error, document)
            field, hint = getattr(error, "field", field), getattr(error, "hint", None)
            place = record.source.removeprefix(file.label).strip("[]:") or None
            location = Location(path=file.label, record=place, field=field)
            log.refuse(Problem(location=location, message=message, hint=hint))
        else:
            yield trace
