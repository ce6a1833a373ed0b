from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.errors import TraceError
from tracebridge.traces import Outcome, Step, TraceSet, read_traces

USER = {"role": "user", "content": "hello"}
SAY = {"role": "assistant", "content": "hi"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "find"}}]}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "Error: none"}


def read(tmp_path: Path, content: Any, *, lines: bool = False, **options: Any) -> TraceSet:
    path = tmp_path / "runs.json"
    path.write_text("\n".join(map(json.dumps, content)) if lines else json.dumps(content))
    return read_traces(path, **options)


@pytest.mark.parametrize("lines", [False, True])
def test_runs_with_a_verdict(tmp_path: Path, lines: bool) -> None:
    runs = [
        {"messages": [USER, CALL, RESULT, SAY], "reward": 1, "task_id": "t", "trial": 0, "model": "m"},
        {"messages": [SAY], "reward": 0, "id": "named", "termination": "gave up"},
    ]
    first, second = read(tmp_path, runs, lines=lines)
    assert first.steps == (
        Step(name="find", kind="tool", error=True),
        Step(name="respond", kind="message", text="hi"),
    )
    assert (first.trace_id, first.task_id, first.trial, first.model) == ("runs/t/0", "t", "0", "m")
    assert (first.outcome, first.attributes) == (Outcome.SUCCESS, {"reward": 1.0})
    assert (second.trace_id, second.outcome, second.termination) == ("named", Outcome.FAILURE, "gave up")


@pytest.mark.parametrize(
    ("fields", "outcome", "termination"),
    [
        ({"success": True}, Outcome.SUCCESS, None),
        ({"passed": "no"}, Outcome.FAILURE, None),
        ({"resolved": 1, "reward": 1.0}, Outcome.SUCCESS, None),
        ({"reward": None}, Outcome.CENSORED, "no_outcome"),
        ({"outcome": "timeout"}, Outcome.CENSORED, "timeout"),
    ],
)
def test_verdicts(tmp_path: Path, fields: dict[str, Any], outcome: Outcome, termination: str | None) -> None:
    (trace,) = read(tmp_path, {"messages": [SAY], **fields})
    assert (trace.outcome, trace.termination, trace.trace_id) == (outcome, termination, "runs")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"reward": 0.5}, "field reward: the reward 0.5 is neither 0 nor 1"),
        ({"success": True, "reward": 0}, "contradict each other: 'reward' failure, 'success' success"),
        ({"outcome": "done"}, "'done' does not say whether the run succeeded"),
        ({"reward": 1, "messages": [RESULT]}, "no tool call waits for"),
        ({"messages": [SAY | {"role": "asistant"}], "reward": 1}, "the role 'asistant' is unknown"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, fields: dict[str, Any], what: str) -> None:
    with pytest.raises(TraceError, match=what):
        read(tmp_path, {"messages": [SAY], **fields})


@pytest.mark.parametrize("lines", [False, True])
def test_a_bare_conversation_is_one_run_without_an_outcome(tmp_path: Path, lines: bool) -> None:
    (trace,) = read(tmp_path, [USER, CALL, RESULT, SAY], lines=lines)
    assert [step.name for step in trace.steps] == ["find", "respond"]
    assert (trace.trace_id, trace.outcome, trace.termination) == ("runs", Outcome.CENSORED, "no_outcome")


def test_messages_with_no_known_verdict_are_read_only_when_asked(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="not recognised"):
        read(tmp_path, {"messages": [SAY], "grade": 7})
    (trace,) = read(tmp_path, {"messages": [SAY], "grade": 7}, format="messages")
    assert trace.outcome is Outcome.CENSORED
