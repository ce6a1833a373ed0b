"""Native trace files: JSON Lines, one trace a line, plain or compressed (.gz, .zst).

Reading is one call of msgspec's decoder per line; a line that fails is decoded again, slowly, to say exactly what is
wrong. Two things the decoder does not see. A control character in a name is looked for where the line has an escape at
all. A key that stands twice in an object is found by writing the trace again, which costs a quarter of reading it.
"""

from __future__ import annotations

import difflib
import gzip
import re
import sys
from contextlib import contextmanager
from functools import cache
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.atomic_file import replacing
from tracebridge.traces.files import MAX_LINE_BYTES, InputFile
from tracebridge.traces.json_text import JsonTextError, decode_strictly, keeps_all_keys
from tracebridge.traces.model import Outcome, Step, Trace
from tracebridge.traces.problems import ProblemLog, escaped, shown
from tracebridge.traces.sniff import plain_name, shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STDOUT = "-"
_CONTROL_CHARACTER = re.compile("[\x00-\x1f]")
_MAX_PROBLEMS_PER_LINE = 20
_name_of = attrgetter("name")
_decode_trace = msgspec.json.Decoder(Trace).decode
_decode_anything = msgspec.json.Decoder().decode
_encode_trace = msgspec.json.Encoder().encode


class JsonlReader:
    """Native JSON Lines.

    ============  ===============================================================================
    run           a line
    step          an element of ``steps``: exactly what the field says
    error         ``steps[].error``
    outcome       ``outcome``: ``success``, ``failure`` or ``censored``
    censoring     ``outcome: censored``; the reason is ``termination``
    task, trial   ``task_id``, ``trial``
    model         ``model``
    started       ``attributes.started``, if it is an ISO 8601 instant; without an offset it is taken as UTC
    source        ``source`` where the line has one, else ``<file>:<line>``
    ============  ===============================================================================

    Memory is bounded by the longest line, which may have 64 MiB. Blank lines are skipped. A line in which a key stands
    twice in one object is refused.
    """

    name = "jsonl"
    description = "native JSON Lines: one trace a line (tracebridge schema trace)"

    def detect(self, file: InputFile) -> bool:
        """A JSON object that has a trace_id and an outcome or steps, and is no flat row: it has no state."""
        seen = shape(file.head)
        is_trace = "trace_id" in seen.keys and not seen.keys.isdisjoint({"outcome", "steps"})
        if seen.kind != "object" or not is_trace:
            return False
        return plain_name(file.mapping.get("state", "state")) not in map(plain_name, seen.keys)

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The good lines as traces; the bad ones go to the log."""
        decode, set_field, has_single_keys = _decode_trace, msgspec.structs.force_setattr, _SingleKeys()
        for number, line in enumerate(file.lines(MAX_LINE_BYTES), file.first_line):
            try:
                trace = decode(line)
                doubtful = (b"\\" in line and not _names_are_clean(trace)) or not has_single_keys(line, trace)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError):
                doubtful = True
            if doubtful:
                if line.isspace():
                    continue
                if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                    file.skip_line()
                found = examine_line(line, path=file.label, number=number)
                if not isinstance(found, Trace):
                    log.refuse(found)
                    continue
                trace = found
            if trace.source is None:
                # the object is new and nobody else has seen it yet
                set_field(trace, "source", f"{file.label}:{number}")
            yield trace


class _CleanNames:
    """Whether the names of a trace are free of control characters; remembers the step names it has seen to be."""

    _MAX_REMEMBERED = 10_000

    def __init__(self) -> None:
        self._clean: set[str] = set()

    def __call__(self, trace: Trace) -> bool:
        if _CONTROL_CHARACTER.search(trace.trace_id):
            return False
        if self._clean.issuperset(map(_name_of, trace.steps)):
            return True
        names = set(map(_name_of, trace.steps))
        if any(map(_CONTROL_CHARACTER.search, names)):
            return False
        if len(self._clean) < self._MAX_REMEMBERED:
            self._clean |= names
        return True


_names_are_clean = _CleanNames()


class _SingleKeys:
    """Whether no key stands twice in an object of a line; false also where a second, slower look must tell.

    A trace, written again, lacks the fields that have their default values, which lines of one file give or do not: if
    they do, all that stands in the line is decoded once more.
    """

    def __init__(self) -> None:
        self._defaults_are_given = False

    def __call__(self, line: bytes, trace: Trace) -> bool:
        if not self._defaults_are_given and keeps_all_keys(line, trace):
            return True
        self._defaults_are_given = keeps_all_keys(line, _decode_anything(line))
        return self._defaults_are_given


def examine_line(line: bytes, *, path: str | None = None, number: int | None = None) -> Trace | list[Problem]:
    """A line's trace, or all that is wrong with the line (the first 20 problems)."""

    def problem(message: str, *, column: int | None = None, hint: str | None = None) -> Problem:
        return Problem(location=Location(path=path, line=number, column=column), message=message, hint=hint)

    if len(line) > MAX_LINE_BYTES:
        return [problem(f"the line is longer than {MAX_LINE_BYTES >> 20} MiB", hint="split the run")]
    try:
        record = decode_strictly(line)
    except JsonTextError as error:
        hint = None if line.endswith(b"\n") else "this is the last line: was the file written to its end?"
        return [problem(str(error), column=error.column, hint=hint)]
    if not isinstance(record, dict):
        return [problem(f"a trace is a JSON object, this is {shown(record)}")]
    name = record.get("trace_id")
    location = Location(path=path, line=number, record=escaped(name) if isinstance(name, str) else None)
    found = list(islice(_flaws(record, location), _MAX_PROBLEMS_PER_LINE))
    return found or msgspec.convert(record, Trace)


def _flaws(record: dict[str, Any], location: Location) -> Iterator[Problem]:
    yield from _struct_flaws(record, Trace, location, prefix="", nested="steps")
    steps = record.get("steps", [])
    if not isinstance(steps, list):
        yield _flaw(location, "steps", f"an array of steps was expected, got {shown(steps)}")
        return
    for index, step in enumerate(steps):
        if isinstance(step, dict):
            yield from _struct_flaws(step, Step, location, prefix=f"steps[{index}].")
        else:
            yield _flaw(location, f"steps[{index}]", f"a step is a JSON object, this is {shown(step)}")


def _struct_flaws(
    values: dict[str, Any], struct: type[msgspec.Struct], location: Location, *, prefix: str, nested: str = ""
) -> Iterator[Problem]:
    """What is wrong with the fields of one object; integral floats become the integers they are, as in JSON Schema."""
    fields = _fields_of(struct)
    for key in [key for key in values if key not in fields]:
        close = difflib.get_close_matches(key[:100], fields, n=1)
        hint = f"did you mean {close[0]}?" if close else "put what has no field of its own under attributes"
        yield _flaw(location, f"{prefix}{escaped(key)}", "there is no such field", hint=hint)
    for name, field in fields.items():
        if name == nested:
            continue
        if name not in values:
            if field.required:
                yield _flaw(location, f"{prefix}{name}", "the field is missing")
            continue
        value = values[name]
        if name == "tokens" and isinstance(value, float) and value.is_integer():
            values[name] = value = int(value)
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            yield _flaw(location, f"{prefix}{name}", f"{error}, got {shown(value)}", hint=_outcome_hint(name))
            continue
        if name in ("trace_id", "name") and (control := _CONTROL_CHARACTER.search(value)):
            yield _flaw(location, f"{prefix}{name}", f"control character U+{ord(control[0]):04X} in {shown(value)}")


@cache
def _fields_of(struct: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """The fields by name; msgspec evaluates the annotations anew each time, which takes a millisecond."""
    return {field.name: field for field in msgspec.structs.fields(struct)}


def _outcome_hint(name: str) -> str | None:
    return f"one of {', '.join(Outcome)}" if name == "outcome" else None


def _flaw(location: Location, field: str, message: str, *, hint: str | None = None) -> Problem:
    place = Location(path=location.path, line=location.line, record=location.record, field=field)
    return Problem(location=place, message=message, hint=hint)


def encode_checked(trace: Trace) -> bytes:
    """The trace as its JSON line, without the line end.

    Raises:
        TraceError: reading the line back would not give this trace: a value outside its range, or one that JSON does
            not have (NaN, a tuple among the attributes).
    """
    try:
        line = _encode_trace(trace)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise TraceError(f"the trace cannot be written as JSON: {error}", location=_location_of(trace)) from error
    found = _decoded(line)
    if b"\\" in line and isinstance(found, Trace) and not _names_are_clean(found):
        found = examine_line(line)
    if not isinstance(found, Trace):
        record = _location_of(trace).record
        raise TraceError(
            Problem(
                location=Location(path=trace.source, record=record, field=problem.location.field),
                message=problem.message,
                hint=problem.hint,
            )
            for problem in found
        )
    if found != trace:
        message = "a value would change when written as JSON: numbers must be finite, attributes plain JSON values"
        raise TraceError(message, location=_location_of(trace))
    return line


def _location_of(trace: Trace) -> Location:
    name = trace.trace_id
    return Location(path=trace.source, record=escaped(name) if isinstance(name, str) else None)


def _decoded(line: bytes) -> Trace | list[Problem]:
    try:
        return _decode_trace(line)
    except (msgspec.MsgspecError, RecursionError):
        return examine_line(line)


def write_traces(traces: Iterable[Trace], path: str | Path) -> int:
    """Write native JSON Lines, compressed if the name ends in ``.gz`` or ``.zst``; return the number of traces.

    The file appears under its name only when it is complete, and the same traces give the same bytes. ``-`` is standard
    output, to which the lines go as they come.

    Raises:
        TraceError: a trace that would not read back as it is, or a trace_id used twice; nothing is written then.
    """
    seen: set[str] = set()
    with _storing(path) as stored, _compressing(stored, Path(path).suffix) as stream:
        for trace in traces:
            stream.write(encode_checked(trace) + b"\n")
            if trace.trace_id in seen:
                raise TraceError(f"the trace_id {shown(trace.trace_id)} is used twice")
            seen.add(trace.trace_id)
    return len(seen)


@contextmanager
def _storing(path: str | Path) -> Iterator[BinaryIO]:
    if str(path) == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacing(path) as stream:
        yield stream


@contextmanager
def _compressing(stored: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=stored, mtime=0) as stream:
            yield stream  # type: ignore[misc]  # GzipFile is a writable binary stream in all but name
    elif suffix == ".zst":
        import zstandard

        compressor = zstandard.ZstdCompressor(write_checksum=True)
        with compressor.stream_writer(stored, closefd=False) as stream:
            yield stream
    else:
        yield stored
