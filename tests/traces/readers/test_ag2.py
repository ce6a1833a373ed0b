from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.errors import TraceError
from tracebridge.traces import Outcome, Step, TraceSet, read_traces


def read(tmp_path: Path, document: Any) -> TraceSet:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(document))
    return read_traces(path)


def run(name: str, correct: Any) -> dict[str, Any]:
    trajectory = [
        {"name": "proxy", "role": "assistant", "content": ["Solve", "this"]},
        {"name": "assistant", "role": "user", "content": ["```python", "1/0", "```"]},
        {"name": "proxy", "role": "assistant", "content": ["exitcode: 1 (execution failed)"]},
        {"name": "proxy", "role": "assistant", "content": "exitcode: 0 (execution succeeded)"},
    ]
    return {"instance_id": name, "problem_statement": [], "other_data": {"correct": correct}, "trajectory": trajectory}


def test_the_speaker_is_the_name_and_not_the_role(tmp_path: Path) -> None:
    corpus = read(tmp_path, [run("a", True), run("b", False), run("c", None)])
    assert [trace.outcome for trace in corpus] == [Outcome.SUCCESS, Outcome.FAILURE, Outcome.CENSORED]
    first = corpus.traces[0]
    assert first.steps[0] == Step(name="proxy", kind="message", text="Solve\nthis")
    assert [(step.name, step.error) for step in first.steps] == [
        ("proxy", False),
        ("assistant", False),
        ("proxy", True),
        ("proxy", False),
    ]
    assert (first.trace_id, first.task_id) == ("runs/a", "a")


def test_a_message_without_a_speaker(tmp_path: Path) -> None:
    bad = run("a", True) | {"trajectory": [{"role": "user", "content": "x"}]}
    with pytest.raises(TraceError, match=r"field trajectory.name: a message without the name of its speaker"):
        read(tmp_path, bad)


@pytest.mark.parametrize("correct", ["is_correct", "is_corrected"])
def test_a_corpus_that_is_selected_on_its_outcome_is_refused(tmp_path: Path, correct: str) -> None:
    history = [{"content": "x", "role": "user", "name": "a"}]
    with pytest.raises(TraceError, match="selected because they failed"):
        read(tmp_path, {correct: "False", "question": "?", "history": history, "mistake_agent": "a"})


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name", ["traces/who_when/who_when_alg_1.json", "malformed/16_whowhen_string_bools_nested_escapes.json"]
)
def test_real_who_and_when_logs(shared_data: Path, name: str) -> None:
    with pytest.raises(TraceError, match="selected because they failed") as caught:
        read_traces(shared_data / name)
    assert len(caught.value.problems) == 1
