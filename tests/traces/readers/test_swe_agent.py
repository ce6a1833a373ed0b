from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.traces import Outcome, Step, Trace, read_traces
from tracebridge.traces.readers.verdict import UNFINISHED


def turn(action: str, **fields: Any) -> dict[str, Any]:
    return {"action": action, "observation": "", "response": "so", "thought": "so", "state": "{}"} | fields


def read(tmp_path: Path, document: dict[str, Any]) -> Trace:
    folder = tmp_path / "gpt-4__SWE-bench__default"
    folder.mkdir(exist_ok=True)
    path = folder / "repo__1.traj"
    path.write_text(json.dumps(document))
    (trace,) = read_traces(path)
    return trace


def run(status: str | None, **fields: Any) -> dict[str, Any]:
    return {"environment": "main", "trajectory": [turn("ls")], "history": [], "info": {"exit_status": status}} | fields


def test_steps_are_the_first_words_of_actions(tmp_path: Path) -> None:
    turns = [turn('find_file "a.py"\n', execution_time=0.5), turn(" \n"), turn("exit_cost"), turn("\x1b[0mls -l")]
    trace = read(tmp_path, run("submitted", trajectory=turns))
    assert trace.steps == (
        Step(name="find_file", kind="tool", text='find_file "a.py"\n', duration=0.5),
        Step(name="respond", kind="message", text="so"),
        Step(name="exit_cost", kind="tool", text="exit_cost"),
        Step(name="\\x1b[0mls", kind="tool", text="\x1b[0mls -l"),
    )
    assert (trace.trace_id, trace.task_id, trace.trial, trace.model) == ("repo__1", "repo__1", None, "gpt-4")


@pytest.mark.parametrize(
    ("status", "is_own"),
    [
        ("submitted", True),
        ("submitted (exit_cost)", False),
        ("submitted (exit_format)", True),
        ("exit_cost", False),
        ("exit_context", True),
        ("exit_api", False),
        ("early_exit", False),
        ("something new", False),
        (None, False),
    ],
)
def test_no_exit_status_is_an_outcome(tmp_path: Path, status: str | None, is_own: bool) -> None:
    trace = read(tmp_path, run(status))
    assert (trace.outcome, trace.termination) == (Outcome.CENSORED, status or "no_outcome")
    assert trace.attributes == ({} if is_own else {UNFINISHED: True})


@pytest.mark.parametrize("as_text", [False, True])
def test_the_model_of_the_replay_configuration(tmp_path: Path, as_text: bool) -> None:
    replay: Any = {"agent": {"model": {"name": "gpt-4o"}}}
    trace = read(tmp_path, run("submitted", replay_config=json.dumps(replay) if as_text else replay))
    assert trace.model == "gpt-4o"


@pytest.mark.shared_data
def test_real_trajectories(shared_data: Path) -> None:
    corpus = read_traces(sorted((shared_data / "traces" / "swe_agent").glob("*.traj")))
    assert [(len(trace.steps), trace.termination, trace.outcome.value) for trace in corpus] == [
        (5, "submitted", "censored"),
        (5, "no_outcome", "censored"),  # a demonstration: history alone
        (12, "submitted", "censored"),
        (5, "submitted", "censored"),
    ]
    assert [step.name for step in corpus.traces[1].steps] == ["find_file", "open", "edit", "bash", "submit"]
    assert corpus.traces[0].model == "gpt-4o"
