"""Documents that a user gives as one text, such as a state map, a chain or an evidence file: decoding, and JSON."""

from __future__ import annotations

import json
from math import isinf
from typing import Any, NoReturn

from tracebridge.errors import InputError, Location, ModelError

#: What Python says of a whole number with more digits than it reads.
_TOO_MANY_DIGITS = "set_int_max_str_digits"


def decoded(data: bytes, path: str) -> str:
    """UTF-8 text, without the byte order mark that some editors put before it.

    Raises:
        ModelError: naming the first byte that is none.
    """
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte {error.start} is {data[error.start]:#04x}"
        raise ModelError(message, location=Location(path=path)) from error


def parse_document(text: str, path: str | None = None) -> Any:
    """Parse JSON text.

    Raises:
        ModelError: with line and column if it is not JSON; also for a key given twice, NaN, infinities, whole numbers
            of thousands of digits, and nesting beyond what can be parsed.
    """
    place = Location(path=path)
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        place = Location(path=path, line=error.lineno, column=error.colno)
        raise ModelError(f"not JSON: {error.msg}", location=place) from error
    except RecursionError as error:
        raise ModelError("nested too deeply", location=place) from error
    except InputError:
        raise
    except ValueError as error:  # a repeated key, a constant, an integer of thousands of digits
        raise ModelError(unreadable_number(error), location=place) from error


def unreadable_number(error: ValueError) -> str:
    """What a parser complains of, without Python's advice on numbers that are too long for it."""
    told = str(error)[:200]
    return "a whole number in it has too many digits" if _TOO_MANY_DIGITS in told else told


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:80]!r} is given twice in one object")
            seen.add(key)
    return result


def _finite(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise ValueError(f"{text[:40]} is beyond the largest double")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
