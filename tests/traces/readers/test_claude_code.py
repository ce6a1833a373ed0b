from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.errors import NothingToCheckError
from tracebridge.traces import Outcome, Step, TraceSet, read_traces
from tracebridge.traces.readers.verdict import UNFINISHED


def line(kind: str, name: str, parent: str | None, content: Any = "x", **fields: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content} | ({"id": f"m-{name}", "model": "c"} if kind == "assistant" else {})
    base = {"type": kind, "uuid": name, "parentUuid": parent, "sessionId": "s", "message": message}
    return base | fields


def use(name: str, call: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": {}}


def result(call: str, *, is_error: bool = False) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call, "is_error": is_error, "content": "out"}]


def read(tmp_path: Path, *lines: dict[str, Any]) -> TraceSet:
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return read_traces(path)


def test_steps_and_results(tmp_path: Path) -> None:
    text = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "look"}]
    (trace,) = read(
        tmp_path,
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "s"},
        line("user", "1", None),
        line("assistant", "2", "1", [*text, use("Read", "a"), use("Bash", "b")]),
        line("user", "3", "2", result("a")),
        line("user", "4", "3", result("b", is_error=True)),
        line("assistant", "5", "4", [{"type": "text", "text": "done"}]),
    )
    assert trace.steps == (
        Step(name="Read", kind="tool", text="look"),
        Step(name="Bash", kind="tool", error=True),
        Step(name="respond", kind="message", text="done"),
    )
    assert (trace.trace_id, trace.model) == ("session", "c")
    assert (trace.outcome, trace.termination) == (Outcome.CENSORED, "no_outcome")


def names(corpus: TraceSet) -> list[list[str]]:
    return [[step.name for step in trace.steps] for trace in corpus]


def test_a_message_over_several_lines_and_a_result_before_its_call(tmp_path: Path) -> None:
    first = line("assistant", "2", "1", [{"type": "text", "text": "look"}])
    second = line("assistant", "4", "3", [use("Bash", "a")])
    second["message"]["id"] = first["message"]["id"]
    (trace,) = read(
        tmp_path, line("user", "1", None), first, line("user", "3", "2", result("a", is_error=True)), second
    )
    assert trace.steps == (Step(name="Bash", kind="tool", text="look", error=True),)


def test_parallel_calls_whose_results_hang_beside_the_branch(tmp_path: Path) -> None:
    corpus = read(
        tmp_path,
        line("user", "1", None),
        line("assistant", "2", "1", [use("A", "a")]),
        line("assistant", "3", "2", [use("B", "b")]),
        line("user", "4", "2", result("a", is_error=True)),
        line("user", "5", "3", result("b")),
        line("assistant", "6", "5", [use("C", "c")]),
    )
    assert [(step.name, step.error) for step in corpus.traces[0].steps] == [("A", True), ("B", False), ("C", False)]
    assert corpus.notes == ()


def test_an_edited_prompt_leaves_its_branch(tmp_path: Path) -> None:
    corpus = read(
        tmp_path,
        line("user", "1", None),
        line("assistant", "2", "1", [use("Old", "a")]),
        line("user", "3", None),
        line("user", "4", "1"),
        line("assistant", "5", "4", [use("New", "b")]),
    )
    assert names(corpus) == [["New"]]
    assert "abandoned: 1 line" in str(corpus.notes[0])


def test_ids_and_lines_that_repeat(tmp_path: Path) -> None:
    lines = [
        line("user", "1", None),
        line("assistant", "2", "1", [use("A", "same")]),
        line("user", "3", "2", result("same")),
        line("assistant", "4", "3", [use("B", "same")]),
        line("user", "5", "4", result("same", is_error=True)),
    ]
    corpus = read(tmp_path, *lines, lines[1])
    assert [(step.name, step.error) for step in corpus.traces[0].steps] == [("A", False), ("B", True)]
    assert "as first written: 1 line" in str(corpus.notes[0])


@pytest.mark.parametrize("parent", [None, "4"])
def test_clearing_begins_a_run_and_compaction_does_not(tmp_path: Path, parent: str | None) -> None:
    corpus = read(
        tmp_path,
        line("user", "1", None),
        line("assistant", "2", "1", [use("A", "a")]),
        {"type": "system", "subtype": "compact_boundary", "uuid": "3", "parentUuid": None, "logicalParentUuid": "2"},
        line("assistant", "4", "3", [use("B", "b")]),
        line("user", "5", parent, "<command-name>/clear</command-name>\n"),
        line("user", "6", "5"),
        line("assistant", "7", "6", [use("C", "c")]),
    )
    assert names(corpus) == [["A", "B"], ["C"]]
    assert [trace.trace_id for trace in corpus] == ["session", "session/2"]


def test_subagents_are_no_runs(tmp_path: Path) -> None:
    side = line("assistant", "9", "1", [use("Sub", "z")], isSidechain=True)
    corpus = read(tmp_path, line("user", "1", None), line("assistant", "2", "1", [use("Task", "a")]), side)
    assert names(corpus) == [["Task"]]
    with pytest.raises(NothingToCheckError):
        read(tmp_path, side)


@pytest.mark.parametrize("is_last", [False, True])
def test_a_run_that_an_api_error_ends(tmp_path: Path, is_last: bool) -> None:
    lines = [
        line("user", "1", None),
        line("assistant", "2", "1", "sorry", isApiErrorMessage=True),
        line("assistant", "3", "2", [use("A", "a")]),
    ]
    (trace,) = read(tmp_path, *(lines[:2] if is_last else lines))
    assert len(trace.steps) == (0 if is_last else 1)
    assert trace.termination == ("api_error" if is_last else "no_outcome")
    assert trace.attributes == ({UNFINISHED: True} if is_last else {})


def test_parents_in_a_circle_end(tmp_path: Path) -> None:
    circle = [line("assistant", str(i), str((i + 1) % 4), [use("A", "a")]) for i in range(4)]
    corpus = read(tmp_path, *circle, line("assistant", "x", "x", [use("B", "b")]))
    assert names(corpus) == [["A"] * 4, ["B"]]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("agent_session", [["Task", "respond"]]),
        ("clear_split_session", [["respond"], ["respond"]]),
        ("compaction_session", [["respond", "respond"]]),
        ("slug_clear_session", [["respond"], ["respond"]]),
        ("synthetic_api_error", [["respond"]]),
        ("synthetic_compaction", [["respond", "respond"]]),
        ("synthetic_duplicates", [["Bash", "Bash"]]),
        ("synthetic_early_result", [["Bash"]]),
        ("synthetic_edit_branch", [["respond"]]),
        ("synthetic_subagents", [["Agent", "Agent", "Workflow", "Agent"]]),
        ("synthetic_unpaired", [["Bash"]]),
        ("tool_call_conversation", [["Read", "respond"]]),
    ],
)
def test_sessions_as_written(shared_data: Path, name: str, expected: list[list[str]]) -> None:
    corpus = read_traces(shared_data / "traces" / "claude_code" / f"{name}.jsonl")
    assert names(corpus) == expected
    assert {trace.outcome for trace in corpus} == {Outcome.CENSORED}


def test_each_conversation_began_with_its_first_stamp(tmp_path: Path) -> None:
    first, second = read(
        tmp_path,
        line("user", "1", None),
        line("assistant", "2", "1", timestamp="2026-01-31T12:00:01.999Z"),
        line("assistant", "3", "2", timestamp="2026-01-31T12:00:07.000Z"),
        line("user", "4", None, "<command-name>/clear</command-name>"),
        line("assistant", "5", "4", timestamp=7),
    )
    assert first.attributes == {"started": "2026-01-31T12:00:01Z"}
    assert second.attributes == {}
