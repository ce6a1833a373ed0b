"""Whatever stands in a file, reading it gives traces or one of our errors, and never another."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracebridge.errors import NothingToCheckError, TraceError
from tracebridge.traces import FORMATS, Trace, read_traces

TAU = {
    "task_id": 1,
    "trial": 0,
    "reward": 1.0,
    "info": {"reward_info": {"reward": 1.0}, "error": None},
    "traj": [
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]},
        {"role": "tool", "content": "Error: x"},
    ],
}
TAU2 = {
    "id": "u",
    "task_id": "t",
    "trial": 0,
    "termination_reason": "user_stop",
    "reward_info": {"reward": 1.0, "info": {"note": "n"}},
    "messages": [
        {"role": "assistant", "tool_calls": [{"name": "f"}], "errors": []},
        {"role": "tool", "error": True, "requestor": "assistant"},
    ],
    "ticks": [{"agent_chunk": {"content": "x"}, "agent_tool_calls": [{"name": "f"}]}],
}
SAMPLES = [
    '{"trace_id": "a", "outcome": "success", "steps": [{"name": "x", "confidence": 0.5, "attributes": {"k": [1]}}]}\n',
    'run_id,step,state,outcome,confidence\na,0,"x",ok,0.5\na,1,y,ok,\n',
    '{"run_id": "a", "step": 0, "state": "x", "outcome": true}\n{"run_id": "a", "step": 1, "state": "y"}\n',
    json.dumps([TAU, TAU | {"task_id": 2}]),
    json.dumps(TAU) + "\n" + json.dumps(TAU | {"task_id": 2}),
    json.dumps([TAU2, TAU2 | {"id": "v"}]),
    json.dumps({"info": {"agent_info": {"llm": "m"}}, "tasks": [], "simulations": [TAU2], "simulation_index": None}),
]
PIECES = [bytes([piece]) for piece in b'"{}[],:;0\\\n\r\t\x00\xff'] + [
    *(b"null", b"true", b"NaN", b"-1", b"1e999", b"9" * 5000, b"{}", b"[]", b'""', b'"a"', b"\\ud800"),
    *(b"[" * 3000, b'{"a":' * 3000, b"\xef\xbb\xbf", b"\x1f\x8b", "é".encode()),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from(SAMPLES)).encode()
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 12)))
        data = data[:start] + draw(st.sampled_from(PIECES) | st.binary(max_size=3)) + data[end:]
    return data


def read_or_refuse(path: Path, **options: Any) -> tuple[Trace, ...]:
    """The traces, or none where the file is refused in the way that it should be."""
    try:
        return read_traces(path, **options).traces
    except NothingToCheckError:
        return ()
    except TraceError as error:
        if not error.problems or any("file.json" not in str(problem) for problem in error.problems):
            raise
        return ()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(data=damaged(), name=st.sampled_from([None, *FORMATS]), skip_bad=st.booleans())
def test_damaged_files(tmp_path: Path, data: bytes, name: str | None, skip_bad: bool) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(data)
    traces = read_or_refuse(path, format=name, skip_bad=skip_bad)
    assert len({trace.trace_id for trace in traces}) == len(traces)


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_undamaged_samples_are_read(tmp_path: Path, sample: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(sample)
    assert len(read_or_refuse(path)) >= 1


DEEP = "[" * 20_000
WIDE = "9" * 6000


@pytest.mark.parametrize("field", ["task_id", "trial", "reward", "info", "traj"])
@pytest.mark.parametrize("value", [DEEP, WIDE, "-" + WIDE, "1e999", "{}", "[[]]", '"' + "x" * 5000 + '"', "true"])
def test_hostile_values_in_a_foreign_record(tmp_path: Path, field: str, value: str) -> None:
    record = json.dumps(TAU | {field: "PLACE"}).replace('"PLACE"', value)
    path = tmp_path / "file.json"
    for text in (f"[{record}, {record}]", f"{record}\n{record}"):
        path.write_text(text)
        traces = read_or_refuse(path, format="tau-bench", skip_bad=True)
        assert all(len(trace.trace_id) <= 1000 for trace in traces)


@pytest.mark.parametrize("row", ['x","', 'a,"x', '"', "a,b,c,d", 'a,"x""'])
def test_tables_of_bad_rows_take_linear_time(tmp_path: Path, row: str) -> None:
    path = tmp_path / "file.json"
    path.write_text("run_id,state,outcome\n" + f"{row}\n" * 30_000)
    start = time.perf_counter()
    assert read_or_refuse(path, skip_bad=True) == ()
    assert time.perf_counter() - start < 60
