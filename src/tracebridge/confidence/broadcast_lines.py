"""Lines of a `broadcast-trace/0.1` file: read exactly, with all that is wrong, and written so that they read back."""

from __future__ import annotations

import difflib
from itertools import islice
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import msgspec

from tracebridge.confidence.broadcast import BroadcastTrace, Part
from tracebridge.confidence.broadcast_rules import broken_rules
from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.problems import counted, escaped, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PROBLEMS_PER_TRACE = 20
_decode = msgspec.json.Decoder(BroadcastTrace).decode
_encode = msgspec.json.Encoder().encode


def read_line(line: bytes, place: Location, unknown_keys: dict[str, int]) -> BroadcastTrace | list[Problem]:
    """A line's trace, or all that is wrong with the line (the first 20 problems).

    Args:
        line: JSON text.
        place: where the line stands.
        unknown_keys: how often each key that the format does not name was met; is added to.
    """
    try:
        trace = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _examined(line, place, unknown_keys)
        if not isinstance(found, BroadcastTrace):
            return found
        trace = found
    return rule_problems(trace, place) or trace


def rule_problems(trace: BroadcastTrace, place: Location) -> list[Problem]:
    """The rules that a trace breaks, as problems at a place (the first 20)."""
    return [
        Problem(location=_field(place, flaw.field, trace.trace_id), message=flaw.message, hint=flaw.hint)
        for flaw in islice(broken_rules(trace), MAX_PROBLEMS_PER_TRACE)
    ]


def write_line(trace: BroadcastTrace) -> bytes:
    """The trace as its JSON line, without the line end.

    Raises:
        TraceError: reading the line back would not give this trace.
    """
    place = Location(path=trace.source, record=escaped(trace.trace_id))
    try:
        line = _encode(trace)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise TraceError(f"the trace cannot be written as JSON: {error}", location=place) from error
    found = read_line(line, place, {})
    if not isinstance(found, BroadcastTrace):
        raise TraceError(found)
    if found != trace:
        message = "a value would change when written as JSON: numbers must be finite, extra must hold plain JSON values"
        raise TraceError(message, location=place)
    return line


def _examined(line: bytes, place: Location, unknown_keys: dict[str, int]) -> BroadcastTrace | list[Problem]:
    try:
        record = decode_strictly(line)
    except JsonTextError as error:
        at = Location(path=place.path, line=place.line, column=error.column, record=place.record)
        hint = None if line.endswith(b"\n") else "was the file written to its end?"
        return [Problem(location=at, message=str(error), hint=hint)]
    if not isinstance(record, dict):
        return [Problem(location=place, message=f"a trace is a JSON object, this is {shown(record)}")]
    name = record.get("trace_id")
    examination = _Examination(place, escaped(name) if isinstance(name, str) else None, unknown_keys)
    problems = list(islice(examination.flaws(record, BroadcastTrace, ""), MAX_PROBLEMS_PER_TRACE))
    return problems or msgspec.convert(record, BroadcastTrace)


class _Examination:
    """Looks at every field of a trace, and moves keys without a field into ``extra``."""

    def __init__(self, place: Location, record: str | None, unknown_keys: dict[str, int]) -> None:
        self._place = place
        self._record = record
        self._unknown_keys = unknown_keys

    def flaws(self, values: dict[str, Any], part: type[Part], where: str) -> Iterator[Problem]:
        fields = {field.name: field for field in msgspec.structs.fields(part)}
        yield from self._set_apart(values, fields, where)
        for name, field in fields.items():
            if name not in values:
                if field.required:
                    yield self._flaw(f"{where}{name}", "the field is missing")
            elif (nested := _part_within(field.type)) is not None and values[name] is not None:
                yield from self._nested_flaws(values[name], field.type, nested, f"{where}{name}")
            else:
                yield from self._value_flaws(values[name], field.type, f"{where}{name}")

    def _set_apart(self, values: dict[str, Any], fields: dict[str, Any], where: str) -> Iterator[Problem]:
        unknown = [key for key in values if key not in fields]
        if not unknown:
            return
        extra = values.setdefault("extra", {})
        if not isinstance(extra, dict):
            return  # the field itself is refused
        for key in unknown:
            self._unknown_keys[key] = self._unknown_keys.get(key, 0) + 1
            if key in extra:
                yield self._flaw(f"{where}{escaped(key)}", "the key stands here and under extra")
            extra[key] = values.pop(key)

    def _nested_flaws(self, value: Any, expected: Any, nested: type[Part], where: str) -> Iterator[Problem]:
        if get_origin(_without_null(expected)) is tuple:
            if not isinstance(value, list):
                yield self._flaw(where, f"an array was expected, got {shown(value)}")
                return
            items = [(item, f"{where}[{index}]") for index, item in enumerate(value)]
        else:
            items = [(value, where)]
        for item, place in items:
            if isinstance(item, dict):
                yield from self.flaws(item, nested, f"{place}.")
            else:
                yield self._flaw(place, f"an object was expected, got {shown(item)}")

    def _value_flaws(self, value: Any, expected: Any, where: str) -> Iterator[Problem]:
        try:
            msgspec.convert(value, expected)
        except msgspec.ValidationError as error:
            hint = None
            if where.endswith("score_raw") and isinstance(value, str):
                hint = "write null and parse_ok false for a score that could not be read"
            yield self._flaw(where, f"{error}, got {shown(value)}", hint)

    def _flaw(self, field: str, message: str, hint: str | None = None) -> Problem:
        return Problem(location=_field(self._place, field, self._record), message=message, hint=hint)


def unknown_key_notes(unknown_keys: dict[str, int]) -> Iterator[Problem]:
    """A note for each of the first 20 keys that the format does not name."""
    known = {field.name for part in Part.__subclasses__() for field in msgspec.structs.fields(part)}
    for key in sorted(unknown_keys)[:MAX_PROBLEMS_PER_TRACE]:
        close = difflib.get_close_matches(key[:100], sorted(known), n=1)
        hint = f"did you mean {close[0]}?" if close else None
        message = f"the format has no such key: kept under extra, {counted(unknown_keys[key], 'time')}"
        yield Problem(location=Location(field=escaped(key)), message=message, hint=hint)


def _field(place: Location, field: str, record: str | None) -> Location:
    return Location(path=place.path, line=place.line, record=record or place.record, field=field)


def _without_null(expected: Any) -> Any:
    """``X`` of ``X | None``, without annotations."""
    if get_origin(expected) is Annotated:
        expected = get_args(expected)[0]
    if get_origin(expected) in (Union, UnionType):
        others = [option for option in get_args(expected) if option is not type(None)]
        return others[0] if len(others) == 1 else expected
    return expected


def _part_within(expected: Any) -> type[Part] | None:
    """The struct that a field holds, or an array of which it holds."""
    expected = _without_null(expected)
    if get_origin(expected) is tuple:
        expected = get_args(expected)[0]
    return expected if isinstance(expected, type) and issubclass(expected, Part) else None
