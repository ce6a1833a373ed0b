from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.errors import TraceError
from tracebridge.traces import Outcome, Step, TraceSet, read_traces
from tracebridge.traces.readers.verdict import UNFINISHED


def action(number: int, kind: str, source: str = "agent", **args: Any) -> dict[str, Any]:
    return {"id": number, "timestamp": "2025", "source": source, "action": kind, "args": args}


def observation(number: int, cause: int | None, name: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": number,
        "timestamp": "2025",
        "source": "agent",
        "cause": cause,
        "observation": name,
        "content": "",
    } | fields


HISTORY = [
    action(0, "system", content="prompt"),
    action(1, "message", "user", content="task"),
    action(2, "recall", "user"),
    observation(3, 2, "recall"),
    action(4, "run", command="ls", thought="so"),
    observation(5, 4, "run", extras={"metadata": {"exit_code": 0}}, success=True),
    action(6, "run", command="make"),
    observation(7, 6, "run", extras={"metadata": {"exit_code": 2}}),
    action(8, "edit"),
    observation(9, 8, "error"),
    action(10, "call_tool_mcp", name="search"),
    observation(11, 10, "mcp", success=False),
    action(12, "message", content="which one?"),
    action(13, "finish"),
]
STEPS = (
    Step(name="run", kind="tool", text="ls"),
    Step(name="run", kind="tool", text="make", error=True),
    Step(name="edit", kind="tool", error=True),
    Step(name="search", kind="tool", error=True),
    Step(name="respond", kind="message", text="which one?"),
    Step(name="finish", kind="tool"),
)


def row(**fields: Any) -> dict[str, Any]:
    base = {
        "instance_id": "repo-1",
        "instruction": "task",
        "metadata": {"llm_config": {"model": "m"}},
        "history": HISTORY,
        "test_result": {"git_patch": "diff"},
        "error": None,
    }
    return base | fields


def read(tmp_path: Path, *rows: dict[str, Any]) -> TraceSet:
    path = tmp_path / "output.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return read_traces(path)


def test_actions_of_the_agent_are_steps(tmp_path: Path) -> None:
    (trace,) = read(tmp_path, row())
    assert trace.steps == STEPS
    assert (trace.trace_id, trace.task_id, trace.model) == ("output/repo-1", "repo-1", "m")


def test_older_files_pair_actions_and_observations(tmp_path: Path) -> None:
    # ids and causes were not there
    events = [{key: value for key, value in event.items() if key not in ("id", "cause")} for event in HISTORY[4:12]]
    pairs = [[events[i], events[i + 1]] for i in range(0, len(events), 2)]
    (trace,) = read(tmp_path, row(history=pairs))
    assert trace.steps == STEPS[:4]


@pytest.mark.parametrize("as_lines", [False, True])
def test_a_list_of_events_is_one_run(tmp_path: Path, as_lines: bool) -> None:
    path = tmp_path / "events.json"
    path.write_text("\n".join(map(json.dumps, HISTORY)) if as_lines else json.dumps(HISTORY))
    (trace,) = read_traces(path)
    assert (trace.trace_id, trace.steps, trace.termination) == ("events", STEPS, "no_outcome")


CAP = "RuntimeError: Agent reached maximum iteration in headless mode. Current iteration: 50, max iteration: 50"
STUCK = "AgentStuckInLoopError: Agent got stuck in a loop"


@pytest.mark.parametrize(
    ("fields", "outcome", "termination", "is_cut"),
    [
        ({}, Outcome.CENSORED, "no_outcome", False),  # that there is a patch says nothing
        ({"report": {"resolved": True}}, Outcome.SUCCESS, None, False),
        ({"test_result": {"report": {"resolved": False}}}, Outcome.FAILURE, None, False),
        ({"error": CAP}, Outcome.CENSORED, "max_iterations", True),
        ({"error": CAP, "report": {"resolved": False}}, Outcome.CENSORED, "max_iterations", True),
        ({"error": CAP, "report": {"resolved": True}}, Outcome.SUCCESS, "max_iterations", False),
        ({"error": STUCK, "report": {"resolved": False}}, Outcome.FAILURE, "stuck_in_loop", False),
        ({"error": "APIError: 503", "report": {"resolved": False}}, Outcome.CENSORED, "error", True),
    ],
)
def test_outcomes(
    tmp_path: Path, fields: dict[str, Any], outcome: Outcome, termination: str | None, is_cut: bool
) -> None:
    (trace,) = read(tmp_path, row(**fields))
    assert (trace.outcome, trace.termination) == (outcome, termination)
    assert trace.attributes.get(UNFINISHED, False) == is_cut


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="the reports contradict each other"):
        read(tmp_path, row(report={"resolved": True}, test_result={"report": {"resolved": False}}))
    with pytest.raises(TraceError, match="the row has no history, so its steps are unknown"):
        read(tmp_path, row(history=None))


@pytest.mark.shared_data
def test_real_files(shared_data: Path) -> None:
    corpus = read_traces(shared_data / "traces" / "openhands" / "output.jsonl")
    rows = [json.loads(line) for line in (shared_data / "traces/openhands/output.jsonl").read_text().splitlines()]
    for trace, raw in zip(corpus, rows, strict=True):
        actions = [event["action"] for event in raw["history"] if event.get("action") and event["source"] == "agent"]
        assert [step.name for step in trace.steps] == [name for name in actions if name != "system"]
    assert [trace.termination for trace in corpus] == ["no_outcome", "no_outcome", "max_iterations"]
    (capped,) = read_traces(shared_data / "malformed/24_openhands_max_iteration_error_with_patch_TRIMMED.jsonl")
    assert (capped.outcome, capped.termination) == (Outcome.CENSORED, "max_iterations")
    events = read_traces(
        [shared_data / "traces/openhands/basic.json", shared_data / "traces/atif/openhands_trajectory.json"]
    )
    assert [[step.name for step in trace.steps] for trace in events] == [["edit", "finish"], ["run", "finish"]]


@pytest.mark.parametrize("are_pairs", [False, True])
def test_a_run_began_with_its_first_stamp(tmp_path: Path, are_pairs: bool) -> None:
    events = [action(1, "run"), observation(2, 1, "run"), action(3, "run"), observation(4, 3, "run")]
    events[2] |= {"timestamp": "2025-04-30T16:32:54.707474"}
    events[3] |= {"timestamp": "2025-04-30T16:33:00"}
    history = [events[:2], events[2:]] if are_pairs else events
    (trace,) = read(tmp_path, row(history=history))
    assert trace.attributes == {"started": "2025-04-30T16:32:54Z"}
