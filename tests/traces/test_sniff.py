from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.traces.sniff import shape

keys = st.text(st.characters(codec="utf-8"), max_size=6)
values = st.recursive(
    st.none() | st.integers() | keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@given(record=st.dictionaries(keys, values, max_size=5), indent=st.sampled_from([None, 2]), is_ascii=st.booleans())
def test_keys_of_an_object_and_of_the_first_element(
    record: dict[str, object], indent: int | None, is_ascii: bool
) -> None:
    text = json.dumps(record, indent=indent, ensure_ascii=is_ascii).encode()
    assert (shape(text).kind, shape(text).keys) == ("object", record.keys())
    assert shape(text + b"\n" + b'{"other": 1}').keys == record.keys()
    array = b" [" + text + b', {"other": 1}]'
    assert (shape(array).kind, shape(array).keys) == ("array", record.keys())


@given(record=st.dictionaries(keys, values, max_size=5), data=st.data())
def test_a_cut_off_head_shows_some_of_the_keys_and_no_others(record: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(record).encode()
    cut = text[: data.draw(st.integers(1, len(text)))]
    assert shape(cut).keys <= record.keys()


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"run_id,state\n", "text"),
        (b"PK\x03\x04rest", "zip"),
        ("a,b".encode("utf-16"), "utf-16"),
        (b"a\x00b", "binary"),
        (b"\xff\x00", "binary"),
        (b"[1, 2]", "array"),
        (b"[[{]", "array"),
    ],
)
def test_other_contents(head: bytes, kind: str) -> None:
    assert shape(head).kind == kind
    assert str(shape(head))


@pytest.mark.parametrize("junk", [b'\\"', b'"', b"{", b"[", b"\\", b'":'])
def test_hostile_heads_take_linear_time(junk: bytes) -> None:
    head = b'{"a": "' + junk * ((1 << 18) // len(junk))
    start = time.perf_counter()
    shape(head)
    assert time.perf_counter() - start < 60
