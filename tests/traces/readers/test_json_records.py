from __future__ import annotations

import json
import tracemalloc

import pytest

from tracebridge.errors import TraceError
from tracebridge.traces import open_traces, read_traces
from tracebridge.traces.readers import records


def run(number: int, text: str = "x") -> dict[str, object]:
    call = {"id": "c", "type": "function", "function": {"name": f"tool{number % 3}", "arguments": "{}"}}
    messages = [{"role": "assistant", "content": text, "tool_calls": [call]}]
    return {"id": f"run{number}", "messages": messages, "reward": number % 2}


RUNS = [run(number) for number in range(5)]
AS_LINES = "\n".join(map(json.dumps, RUNS))


@pytest.mark.parametrize(
    "text",
    [
        AS_LINES,
        AS_LINES + "\n",
        "\n\n" + AS_LINES.replace("\n", "\n\n  \n") + "\n\n",
        AS_LINES.replace("\n", "\r\n"),
        "\ufeff" + AS_LINES,
        json.dumps(RUNS),
        json.dumps(RUNS, indent=2),
        " \n" + json.dumps(RUNS),
    ],
    ids=["lines", "last line ended", "blank lines", "CRLF", "byte order mark", "array", "indented", "late array"],
)
def test_a_file_has_the_same_runs_in_every_layout(tmp_path, text):
    path = tmp_path / "runs.json"
    path.write_text(text, encoding="utf-8", newline="")
    read = list(open_traces(path))
    assert [trace.trace_id for trace in read] == [f"run{number}" for number in range(5)]
    assert [trace.steps[0].name for trace in read] == [f"tool{number % 3}" for number in range(5)]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_file_may_be_one_run(tmp_path, indent):
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(RUNS[1], indent=indent) + "\n\n")
    assert [(trace.trace_id, trace.source) for trace in open_traces(path)] == [("run1", "runs.json")]


def test_places_are_lines_of_the_file(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text(f"\n{json.dumps(RUNS[0])}\n\n{json.dumps(RUNS[1])}\n" + '{"id": 3, "messages": 4, "reward": 1}\n')
    stream = read_traces(path, skip_bad=True)
    assert [trace.source for trace in stream] == ["runs.jsonl:2", "runs.jsonl:4"]
    (problem,) = stream.problems
    assert problem.location.record == "5"


def test_lines_are_read_one_at_a_time(tmp_path):
    path = tmp_path / "runs.jsonl"
    with path.open("w") as file:
        file.writelines(json.dumps(run(number, "text " * 4_000)) + "\n" for number in range(600))
    size = path.stat().st_size
    assert size > 12_000_000
    tracemalloc.start()
    n_read = sum(1 for _ in open_traces(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_read == 600
    assert peak < size / 4


@pytest.mark.parametrize("place", [1, 3])
def test_a_line_beyond_the_limit_is_told_and_the_others_are_read(tmp_path, monkeypatch, place):
    monkeypatch.setattr(records, "MAX_LINE_BYTES", 2_000)
    path = tmp_path / "runs.jsonl"
    lines = [json.dumps(each) for each in RUNS]
    lines[place] = json.dumps(run(place, "y" * 5_000))
    path.write_text("\n".join(lines))
    stream = read_traces(path, skip_bad=True)
    assert [trace.trace_id for trace in stream] == [f"run{number}" for number in range(5) if number != place]
    (problem,) = stream.problems
    assert (problem.location.record, "longer than" in problem.message) == (str(place + 1), True)
    with pytest.raises(TraceError, match="longer than"):
        list(open_traces(path))
