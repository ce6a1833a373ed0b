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


def found(data: bytes) -> Any:
    """The value as it is decoded; None where the text is refused."""
    try:
        value = decode_strictly(data)
    except JsonTextError:
        return None
    return value, repr(value)


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
    assert found(data) == expected(data)


class Pairs(tuple[tuple[str, Any], ...]):
    """The keys and values of a JSON object as they are written; a key may stand there twice."""


TEXTS = st.text(alphabet=':"\\ é\n{', max_size=2)
TREES: st.SearchStrategy[Any] = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none() | st.just(1.5),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(TEXTS, inner), max_size=4).map(Pairs),
    max_leaves=12,
)


def written(tree: Any, *, ascii_only: bool, colon: str, comma: str, escape: bool) -> str:
    """A JSON text in one of the ways that writers have."""

    def text_of(value: Any) -> str:
        if isinstance(value, Pairs):
            return "{" + comma.join(f"{text_of(key)}{colon}{text_of(each)}" for key, each in value) + "}"
        if isinstance(value, list):
            return "[" + comma.join(map(text_of, value)) + "]"
        text = json.dumps(value, ensure_ascii=ascii_only)
        return text.replace(":", "\\u003a") if escape and isinstance(value, str) else text

    return text_of(tree)


@settings(max_examples=300, deadline=None)
@given(
    tree=TREES,
    ascii_only=st.booleans(),
    colon=st.sampled_from([":", ": ", " : ", "\n:"]),
    comma=st.sampled_from([",", ", ", " ,\t"]),
    escape=st.booleans(),
    end=st.sampled_from(["", "\n", " \r\n"]),
)
def test_a_key_that_stands_twice_is_found_however_the_text_is_written(
    tree: Any, ascii_only: bool, colon: str, comma: str, escape: bool, end: str
) -> None:
    data = (written(tree, ascii_only=ascii_only, colon=colon, comma=comma, escape=escape) + end).encode()
    assert found(data) == expected(data)


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
