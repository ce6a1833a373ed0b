"""All formats together: every sample is recognised by one reader, and damage gives traces or one of our errors."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracebridge.errors import NothingToCheckError, TraceError
from tracebridge.traces import FORMATS, Trace, read_traces
from tracebridge.traces.files import InputFile

SAY = {"role": "assistant", "content": "hi"}
EVENTS = [
    {"id": 1, "timestamp": "t", "source": "agent", "action": "run", "args": {"command": "ls"}},
    {"id": 2, "timestamp": "t", "source": "agent", "cause": 1, "observation": "run", "extras": {"exit_code": 1}},
]
SPAN = {
    "traceId": "t",
    "spanId": "s",
    "startTimeUnixNano": "1",
    "endTimeUnixNano": "2",
    "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}],
    "events": [{"name": "gen_ai.evaluation.result", "attributes": []}],
    "status": {"code": 2},
}
LINES = [
    {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "content": "x"}},
    {
        "type": "assistant",
        "uuid": "2",
        "parentUuid": "1",
        "message": {"id": "m", "content": [{"type": "tool_use", "id": "c", "name": "Bash"}]},
    },
]
SAMPLES: dict[str, list[Any]] = {
    "jsonl": [{"trace_id": "a", "outcome": "success", "messages": []}],
    "flat": [{"run_id": "a", "state": "x", "outcome": "ok"}],
    "messages": [{"messages": [SAY], "reward": 1}, [SAY], {"messages": [SAY], "success": True, "task_id": 1}],
    "tau-bench": [{"task_id": 1, "trial": 0, "reward": 1.0, "info": {"reward_info": {}}, "traj": [SAY]}],
    "tau2-bench": [{"id": "u", "reward_info": {"reward": 1.0}, "messages": [SAY]}],
    "swe-agent": [
        {"environment": "e", "trajectory": [{"action": "ls"}], "history": [], "info": {"exit_status": "submitted"}},
        {"history": [SAY]},
    ],
    "mini-swe-agent": [
        {"info": {"mini_version": "1"}, "messages": [SAY], "trajectory_format": "mini-swe-agent-1"},
        [{"role": "user", "content": "<returncode>0</returncode>"}],
    ],
    "atif": [
        {
            "schema_version": "ATIF-v1.5",
            "session_id": "s",
            "agent": {"name": "a"},
            "steps": [{"source": "agent", "tool_calls": [{"function_name": "f"}], "metrics": {"prompt_tokens": 1}}],
        }
    ],
    "harbor-trial": [{"id": "x", "task_name": "t", "trial_name": "u", "exception_info": {"exception_type": "X"}}],
    "inspect": [
        {
            "version": 2,
            "status": "success",
            "eval": {"task": "t"},
            "samples": [{"id": 1, "epoch": 1, "messages": [SAY], "scores": {"s": {"value": "C"}}}],
        }
    ],
    "otlp": [{"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}],
    "openhands": [{"instance_id": "i", "history": EVENTS, "report": {"resolved": True}}, EVENTS],
    "claude-code": ["\n".join(map(json.dumps, LINES))],
    "ag2": [{"instance_id": "i", "trajectory": [{"name": "a", "content": ["x"]}], "other_data": {"correct": True}}],
    "who-and-when": [{"is_correct": "False", "history": [SAY], "mistake_agent": "a"}],
    "outcomes": [{"resolved_ids": ["a"], "unresolved_ids": []}],
}
TEXTS = [
    (name, sample if isinstance(sample, str) else json.dumps(sample))
    for name, samples in SAMPLES.items()
    for sample in samples
]
PIECES = [bytes([piece]) for piece in b'"{}[],:;0\\\n\x00\xff'] + [
    *(b"null", b"true", b"NaN", b"-1", b"1e999", b"9" * 5000, b"{}", b"[]", b'""', b'"a"', b"\\ud800"),
    *(b"[" * 3000, b'{"a":' * 3000, b"PK\x03\x04header.json"),
]


@pytest.mark.parametrize(("name", "text"), TEXTS)
def test_every_sample_is_of_one_format(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with InputFile(path, "file.json") as file:
        assert [reader.name for reader in FORMATS.values() if reader.detect(file)] == [name]


def test_there_is_a_sample_of_every_format() -> None:
    asked_for_by_name = {"inspect-ai"}
    assert list(SAMPLES) == [name for name in FORMATS if name not in asked_for_by_name]


@pytest.mark.parametrize("name", FORMATS)
def test_every_reader_documents_what_it_takes(name: str) -> None:
    table = inspect.getdoc(type(FORMATS[name])) or ""
    rows = re.findall(r"^(\w[\w, ]*?) {2,}\S", table, re.MULTILINE)
    assert {"run", "step", "error", "outcome", "censoring", "task, trial", "model"} <= set(rows)


def read_or_refuse(path: Path, **options: Any) -> tuple[Trace, ...]:
    try:
        return read_traces(path, **options).traces
    except NothingToCheckError:
        return ()
    except TraceError as error:
        if not error.problems or any("file.json" not in str(problem) for problem in error.problems):
            raise
        return ()


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    name, text = draw(st.sampled_from(TEXTS))
    data = text.encode()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 12)))
        data = data[:start] + draw(st.sampled_from(PIECES) | st.binary(max_size=3)) + data[end:]
    return name, data


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(case=damaged(), is_named=st.booleans(), skip_bad=st.booleans())
def test_damaged_files(tmp_path: Path, case: tuple[str, bytes], is_named: bool, skip_bad: bool) -> None:
    name, data = case
    path = tmp_path / "file.json"
    path.write_bytes(data)
    traces = read_or_refuse(path, format=name if is_named else None, skip_bad=skip_bad)
    assert len({trace.trace_id for trace in traces}) == len(traces)


@pytest.mark.parametrize("name", FORMATS)
def test_every_reader_on_every_sample(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file.json"
    for _, text in TEXTS:
        path.write_text(text)
        read_or_refuse(path, format=name)
