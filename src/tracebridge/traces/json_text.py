"""JSON of which nothing is lost: the fast decoder where it is exact, a slow one that tells what is wrong elsewhere."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

import msgspec

from tracebridge.traces.problems import shown

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_find_escaped_colon = re.compile(rb"\\u003[aA]").search
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonTextError(ValueError):
    """JSON text that cannot be accepted: the message says why, ``line`` and ``column`` (from 1) where, if known."""

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def decode_strictly(data: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        JsonTextError: bytes that are no UTF-8, a NUL byte, a syntax error, a number that is not finite, a key twice in
            one object, half a surrogate pair, or nesting too deep to follow.
    """
    try:
        value = _decode(data)
        if keeps_all_keys(data, value):
            return value
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
        pass  # told below, and exactly
    return _decode_slowly(data)


def keeps_all_keys(data: bytes, value: object) -> bool:
    """Whether the value that a text was decoded into surely has all of its keys; if not, a slower look must tell.

    Of a key that stands twice in an object decoders keep the last. No key was dropped if the text is the value, written
    again; or if it has as many colons as that, none of them as an escape.
    """
    again = _encode(value)
    if data.startswith(again):
        return True
    return again.count(b":") == data.count(b":") and not has_escaped_colon(data)


def has_escaped_colon(data: bytes) -> bool:
    """Whether a text may write a colon as an escape."""
    return _find_escaped_colon(data) is not None


def _decode_slowly(data: bytes) -> Any:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        is_utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        message = "the text is UTF-16" if is_utf16 else f"byte 0x{data[error.start]:02x} is not valid UTF-8"
        raise _at(message, data, error.start) from error
    if "\0" in text:
        raise _at("there is a NUL byte in the text", data, data.index(b"\0"))
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_number, parse_float=_finite)
        if _SURROGATE_ESCAPE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        breaks_off = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        message = "the JSON text breaks off" if breaks_off else f"this is not JSON: {error.msg}"
        raise JsonTextError(message, line=error.lineno, column=error.colno) from error
    except RecursionError as error:
        raise JsonTextError("the JSON text is nested too deeply") from error
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise JsonTextError(f"the escape {half} is half of a surrogate pair and stands alone") from error
    except JsonTextError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise JsonTextError(f"this JSON cannot be decoded: {error}") from error
    return value


def _at(message: str, data: bytes, offset: int) -> JsonTextError:
    line_start = data.rfind(b"\n", 0, offset) + 1
    return JsonTextError(message, line=data.count(b"\n", 0, offset) + 1, column=offset - line_start + 1)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keyed = dict(pairs)
    if len(keyed) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonTextError(f"the key {shown(key)} stands twice in one object")
            seen.add(key)
    return keyed


def _refuse_number(text: str) -> NoReturn:
    raise JsonTextError(f"{shown(text)} is not a JSON number; leave the field out or write null")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_number(text)
