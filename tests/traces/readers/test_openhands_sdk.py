from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.errors import TraceError
from tracebridge.traces import Outcome, Step, read_traces

STAMP = {"timestamp": "2026-05-06T23:40:11", "source": "agent"}


def action(name: str, tool: str, thought: str = "", **fields: Any) -> dict[str, Any]:
    call = {"id": f"call-{name}", "name": tool, "arguments": "{}", "origin": "completion"}
    parts = [{"type": "text", "text": thought}] if thought else []
    event = {"kind": "ActionEvent", "id": name, "thought": parts, "tool_name": tool, "tool_call_id": call["id"]}
    return STAMP | event | {"action": {"kind": "TerminalAction", "command": "ls"}, "tool_call": call} | fields


def answer(name: str, kind: str = "ObservationEvent", **fields: Any) -> dict[str, Any]:
    return STAMP | {"kind": kind, "id": f"o-{name}", "tool_name": "t", "tool_call_id": f"call-{name}", **fields}


def observed(name: str, **observation: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": "out"}]
    return answer(
        name, action_id=name, source="environment", observation={"kind": "X", "content": content} | observation
    )


def message(source: str, text: str) -> dict[str, Any]:
    said = {"role": "user" if source == "user" else "assistant", "content": [{"type": "text", "text": text}]}
    return STAMP | {"kind": "MessageEvent", "id": f"m-{text}", "source": source, "llm_message": said}


EVENTS = [
    STAMP | {"kind": "SystemPromptEvent", "id": "s", "system_prompt": {"type": "text", "text": "You"}, "tools": []},
    message("user", "do it"),
    action("1", "terminal", "look"),
    action("2", "terminal"),
    action("3", "file_editor"),
    action("4", "browser"),
    action("5", "terminal"),
    observed("2", is_error=False, exit_code=2),
    observed("1", is_error=False, exit_code=0),
    answer("3", "AgentErrorEvent", error="no such tool"),
    answer("4", "UserRejectObservation", action_id="4", rejection_reason="no"),
    observed("5", is_error=True, exit_code=None),
    STAMP | {"kind": "ConversationStateUpdateEvent", "id": "c", "key": "x", "value": 1},
    message("agent", "done"),
    action("6", "finish"),
]
STEPS = (
    Step(name="terminal", kind="tool", text="look"),
    Step(name="terminal", kind="tool", error=True),
    Step(name="file_editor", kind="tool", error=True),
    Step(name="browser", kind="tool", error=True),
    Step(name="terminal", kind="tool", error=True),
    Step(name="respond", kind="message", text="done"),
    Step(name="finish", kind="tool"),
)


@pytest.mark.parametrize("is_array", [True, False])
def test_a_list_of_events(tmp_path: Path, is_array: bool) -> None:
    path = tmp_path / "events.json"
    path.write_text(json.dumps(EVENTS) if is_array else "\n".join(map(json.dumps, EVENTS)))
    corpus = read_traces(path)
    assert [file.format for file in corpus.files] == ["openhands"]
    assert corpus.traces[0].steps == STEPS
    assert corpus.traces[0].outcome is Outcome.CENSORED


def test_a_row_of_an_evaluation(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    row = {"instance_id": "i", "history": EVENTS, "test_result": {"git_patch": "x"}, "report": {"resolved": True}}
    path.write_text(json.dumps(row) + "\n")
    (trace,) = read_traces(path)
    assert (trace.outcome, trace.steps, trace.task_id) == (Outcome.SUCCESS, STEPS, "i")


def test_a_file_of_one_event_is_no_run(tmp_path: Path) -> None:
    path = tmp_path / "event-00002.json"
    path.write_text(json.dumps(EVENTS[2], indent=1))
    with pytest.raises(TraceError, match=r"event-00002\.json: this is one event of a run, not the run .join the files"):
        read_traces(path)


def test_an_action_without_a_tool(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    path.write_text(json.dumps({"instance_id": "i", "history": [action("1", "t", tool_name=None)]}) + "\n")
    with pytest.raises(TraceError, match=r"field history\.tool_name: an action without a tool_name"):
        read_traces(path)


def test_a_run_began_with_its_first_stamp(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    path.write_text(json.dumps([EVENTS[0] | {"timestamp": None}, EVENTS[1], *EVENTS[2:]]))
    (trace,) = read_traces(path)
    assert trace.attributes == {"started": "2026-05-06T23:40:11Z"}
