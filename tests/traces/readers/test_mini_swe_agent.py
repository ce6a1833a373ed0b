from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.traces import Outcome, Step, Trace, read_traces
from tracebridge.traces.readers.verdict import UNFINISHED


def say(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text} | fields


def answer(code: int, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": f"<returncode>{code}</returncode>\n<output></output>"}]}


def block(command: str, language: str = "bash") -> str:
    return f"THOUGHT: so\n\n```{language}\n{command}\n```"


def read(tmp_path: Path, document: Any) -> Trace:
    path = tmp_path / "repo-1.traj.json"
    path.write_text(json.dumps(document))
    (trace,) = read_traces(path)
    return trace


@pytest.mark.parametrize("is_bare", [False, True])
def test_commands_and_return_codes(tmp_path: Path, is_bare: bool) -> None:
    messages = [
        {"role": "system", "content": "use ```bash\n```"},
        {"role": "user", "content": "task"},
        say(block("ls -l")),
        answer(0),
        say("no command"),
        {"role": "user", "content": "give one"},
        say(block("make test", "mswea_bash_command")),
        answer(2),
        say("x", extra={"actions": [{"command": "cat a"}, {"command": "rm b"}]}),
        answer(0, "tool"),
        answer(1, "tool"),
        say("x", tool_calls=[{"function": {"name": "bash", "arguments": '{"command": "echo done"}'}}]),
        {"role": "exit", "content": ""},
    ]
    info = {"exit_status": "LimitsExceeded", "config": {"model": {"model_name": "m"}}, "mini_version": "2"}
    document = {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}
    trace = read(tmp_path, messages if is_bare else document)
    assert [(step.name, step.kind, step.error) for step in trace.steps] == [
        ("ls", "tool", False),
        ("respond", "message", False),
        ("make", "tool", True),
        ("cat", "tool", False),
        ("rm", "tool", True),
        ("echo", "tool", False),
    ]
    assert trace.steps[0] == Step(name="ls", kind="tool", text="ls -l")
    assert (trace.trace_id, trace.task_id, trace.outcome) == ("repo-1", "repo-1", Outcome.CENSORED)
    ending = (trace.termination, trace.model, trace.attributes)
    assert ending == (("no_outcome", None, {}) if is_bare else ("LimitsExceeded", "m", {UNFINISHED: True}))


@pytest.mark.parametrize("status", ["Submitted", "RateLimitError", None])
def test_exit_statuses(tmp_path: Path, status: str | None) -> None:
    trace = read(tmp_path, {"info": {"exit_status": status}, "messages": [], "trajectory_format": "mini-swe-agent-1"})
    assert (trace.outcome, trace.termination) == (Outcome.CENSORED, status or "no_outcome")
    assert trace.attributes == ({} if status == "Submitted" else {UNFINISHED: True})


@pytest.mark.shared_data
def test_real_trajectories(shared_data: Path) -> None:
    folder = shared_data / "traces"
    corpus = read_traces([folder / "mini_swe_agent", folder / "atif" / "mini-swe-agent-trajectory.json"])
    for trace in corpus:
        assert trace.outcome is Outcome.CENSORED
    found = {trace.trace_id: (trace.termination, [step.name for step in trace.steps]) for trace in corpus}
    assert found["local"] == ("no_outcome", ["echo", "echo"])
    assert found["mini-swe-agent-trajectory"] == ("Submitted", ["echo", "cat", "echo"])
    raw = json.loads((folder / "mini_swe_agent" / "github_issue.traj.json").read_text())
    assert len(found["github_issue"][1]) == sum(message["role"] == "assistant" for message in raw)
    assert [note.location.path for note in corpus.notes] == ["results.json"]  # predictions, no run


def test_a_run_began_with_its_first_stamp(tmp_path: Path) -> None:
    messages = [say("a", extra={"timestamp": "?"}), say("b", extra={"timestamp": 1_800_000_001.7})]
    trace = read(tmp_path, {"info": {}, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"})
    assert trace.attributes["started"] == "2027-01-15T08:00:01Z"  # date -u -d @1800000001
