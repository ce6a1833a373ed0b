from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.traces.json_text import JsonTextError, decode_strictly

PIECES = [bytes([piece]) for piece in b'"{}[],:\\\n\x00\x01\x7f\xff 0-+.e'] + [
    *(b'"a"', b'{"a":1}', b'{"a":1,"a":1}', b"null", b"NaN", b"-Infinity", b"1e999", b"-0", b"1E5", b"9" * 30),
    *(b'"\\ud83d\\ude00"', b'"\\ud83d"', b'"\\u003a"', b'"\\u0000"', b"\xef\xbb\xbf", b'"\xc3\xa9"', b"9" * 5000),
]


def expected(data: bytes) -> Any:
    """The value, by the standard library alone; None where the text must be refused."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    def finite(text: str) -> float:
        if not math.isfinite(float(text)):
            raise ValueError(text)
        return float(text)

    def no_constant(text: str) -> float:
        raise ValueError(text)

    try:
        value = json.loads(data.decode(), object_pairs_hook=unique, parse_float=finite, parse_constant=no_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value, repr(value)


@settings(max_examples=500, deadline=None)
@given(data=st.lists(st.sampled_from(PIECES), max_size=7).map(b"".join) | st.binary(max_size=12))
def test_the_value_is_that_of_the_standard_library(data: bytes) -> None:
    try:
        value = decode_strictly(data)
    except JsonTextError:
        found = None
    else:
        found = value, repr(value)
    assert found == expected(data)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b'{"a": {"b": 1, "c": [], "b": 2}}', "the key 'b' stands twice"),
        (b'{"a": "\\u003a", "a": ":"}', "the key 'a' stands twice"),
        (b'{"a:": 1, "a\\u003A": 2}', "the key 'a:' stands twice"),
        (b'[{"x": "::"}, {"k": ":", "k": ""}]', "the key 'k' stands twice"),
    ],
)
def test_a_key_that_stands_twice(data: bytes, what: str) -> None:
    with pytest.raises(JsonTextError, match=what):
        decode_strictly(data)
