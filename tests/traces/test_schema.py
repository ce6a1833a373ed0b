from __future__ import annotations

import json
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.traces import Outcome, Step, Trace, trace_schema
from tracebridge.traces.jsonl import examine_line

SCHEMA = trace_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

junk: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.floats(-2, 2),
    st.sampled_from([5.0, 1e300, -0.0, 2**80]),
    st.sampled_from(["", "a", "success", "\n", "x\x1f", "x" * 1000, "x" * 1001, "é"]),
    st.lists(st.integers(0, 1), max_size=2),
    st.dictionaries(st.just("k"), st.integers(0, 1), max_size=1),
)


def mixed(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(good, good, good, good, junk)


step_records = st.fixed_dictionaries(
    {"name": mixed(st.sampled_from(["search", "book"]))},
    optional={
        "kind": mixed(st.just("tool")),
        "text": mixed(st.text(st.characters(codec="utf-8"), max_size=4)),
        "error": mixed(st.booleans()),
        "confidence": mixed(st.floats(0, 1)),
        "tokens": mixed(st.integers(0, 9)),
        "duration": mixed(st.floats(0, 9)),
        "attributes": mixed(st.just({})),
    },
)
records = st.fixed_dictionaries(
    {"trace_id": mixed(st.just("a")), "outcome": mixed(st.sampled_from([outcome.value for outcome in Outcome]))},
    optional={
        "steps": mixed(st.lists(mixed(step_records), max_size=3)),
        "termination": mixed(st.just("cap")),
        "task_id": mixed(st.just("7")),
        "trial": mixed(st.just("1")),
        "model": mixed(st.just("m")),
        "source": mixed(st.just("f")),
        "attributes": mixed(st.just({"a": [1, None]})),
    },
)


@st.composite
def damaged_records(draw: st.DrawFn) -> Any:
    record = draw(records)
    if draw(st.integers(0, 4)) == 0 and record:
        del record[draw(st.sampled_from(sorted(record)))]
    if draw(st.integers(0, 4)) == 0:
        record[draw(st.sampled_from(["step", "name", "Outcome", "x"]))] = draw(junk)
    return record


@settings(max_examples=250, deadline=None)
@given(record=damaged_records())
def test_the_reader_and_the_schema_agree(record: dict[str, Any]) -> None:
    is_valid = VALIDATOR.is_valid(record)
    assert isinstance(examine_line(json.dumps(record).encode()), Trace) is is_valid


@settings(max_examples=200, deadline=None)
@given(record=damaged_records())
def test_what_the_fast_decoder_takes_obeys_the_schema_up_to_control_characters(record: dict[str, Any]) -> None:
    try:
        trace = msgspec.json.decode(json.dumps(record).encode(), type=Trace)
    except msgspec.ValidationError:
        return
    names = [trace.trace_id, *(step.name for step in trace.steps)]
    has_control = any(ord(character) < 32 for name in names for character in name)
    assert VALIDATOR.is_valid(record) is not has_control


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(("struct", "properties"), [(Trace, SCHEMA), (Step, SCHEMA["$defs"]["step"])])
def test_the_schema_has_the_fields_of_the_model(struct: type[msgspec.Struct], properties: dict[str, Any]) -> None:
    fields = msgspec.structs.fields(struct)
    assert list(properties["properties"]) == [field.name for field in fields]
    assert properties["required"] == [field.name for field in fields if field.required]
