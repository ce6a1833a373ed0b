from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.errors import NothingToCheckError, TraceError
from tracebridge.traces import Outcome, Trace, read_traces
from tracebridge.traces.problems import ProblemLog
from tracebridge.traces.readers.outcome_files import OutcomeStore, read_outcomes
from tracebridge.traces.readers.verdict import UNFINISHED, VERDICT


def run(task: str, *, trial: str | None = None, trace_id: str | None = None, **fields: Any) -> Trace:
    base: dict[str, Any] = {"outcome": Outcome.CENSORED, "termination": "submitted"}
    return Trace(trace_id=trace_id or f"run-{task}-{trial}", task_id=task, trial=trial, **(base | fields))


def stored(tmp_path: Path, content: Any, name: str = "outcomes.json") -> OutcomeStore:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_outcomes([path])


def outcomes(store: OutcomeStore, *traces: Trace) -> list[str]:
    log = ProblemLog(10)
    found = [trace.outcome.value for trace in store.apply(traces, log)]
    assert log.problems == []
    return found


LAYOUTS: dict[str, Any] = {
    "report of ids": {"resolved_ids": ["a"], "unresolved_ids": ["b"], "error_ids": ["c"], "total_instances": 3},
    "older report": {"resolved": ["a"], "no_generation": ["b"], "applied": ["a"]},
    "HAL": {"config": {}, "results": {"successful_tasks": ["a"], "failed_tasks": ["b"], "accuracy": 0.5}},
    "verdict by id": {"a": True, "b": "failed", "c": None},
    "object by id": {"a": {"resolved": True, "patch": ""}, "b": {"resolved": False}},
    "array": [{"instance_id": "a", "resolved": 1}, {"instance_id": "b", "resolved": 0.0}],
    "lines": '{"task_id": "a", "reward": 1.0}\n{"task_id": "b", "reward": 0}\n',
    "comma": "instance_id,resolved\na,True\nb,False\nc,\n",
    "semicolon": "Task-ID;outcome\r\na;pass\r\nb;fail\r\n",
    "tab": "id\treward\na\t1.0\nb\t0.0\n",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(tmp_path: Path, layout: str) -> None:
    store = stored(tmp_path, LAYOUTS[layout])
    assert outcomes(store, run("a"), run("b"), run("c"), run("d")) == ["success", "failure", "censored", "censored"]


def test_a_folder_of_logs(tmp_path: Path) -> None:
    for name, text in {"a": "Result for a: resolved: True", "b": "{'resolved': False}", "c": "timed out"}.items():
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "run_instance.log").write_text(f"INFO\n{text}\n")
    (tmp_path / "logs" / "d").mkdir()
    (tmp_path / "logs" / "d" / "report.json").write_text('{"d": {"resolved": true}}')
    store = read_outcomes([tmp_path / "logs"])
    assert outcomes(store, *map(run, "abcd")) == ["success", "failure", "censored", "success"]
    assert [file.path for file in store.files] == [
        *(f"logs/{name}/run_instance.log" for name in "abc"),
        "logs/d/report.json",
    ]
    (report,) = (file for file in store.files if file.path == "logs/d/report.json")
    assert report.sha256 == hashlib.sha256(b'{"d": {"resolved": true}}').hexdigest()


def test_two_stores_that_disagree_are_reported_and_the_run_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "evaluation"
    (folder / "logs" / "a").mkdir(parents=True)
    (folder / "logs" / "a" / "run_instance.log").write_text("resolved: True")
    (folder / "results.json").write_text(json.dumps({"unresolved_ids": ["a"], "resolved_ids": ["b"]}))
    log = ProblemLog(10)
    kept = list(read_outcomes([folder]).apply([run("a"), run("b")], log))
    assert [trace.task_id for trace in kept] == ["b"]
    (problem,) = log.problems
    assert "the outcomes of 'a' contradict each other" in problem.message
    assert "evaluation/logs/a/run_instance.log says success" in problem.message
    assert "evaluation/results.json (unresolved_ids) says failure" in problem.message


def test_a_verdict_in_the_trace_and_another_in_the_file(tmp_path: Path) -> None:
    log = ProblemLog(10)
    store = stored(tmp_path, {"a": False, "b": True})
    traces = [run("a", outcome=Outcome.SUCCESS), run("b", outcome=Outcome.SUCCESS, termination=None)]
    assert list(store.apply(traces, log)) == traces[1:]
    assert "the trace itself says success" in str(log.problems[0])


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("verdict", [False, True])
def test_a_run_that_was_cut_fails_by_no_verdict(tmp_path: Path, verdict: bool, is_cut: bool) -> None:
    trace = run("a", termination="exit_cost", attributes={UNFINISHED: True} if is_cut else {})
    (judged,) = stored(tmp_path, {"a": verdict}).apply([trace], ProblemLog(10))
    expected = Outcome.SUCCESS if verdict else Outcome.CENSORED if is_cut else Outcome.FAILURE
    assert (judged.outcome, judged.termination) == (expected, "exit_cost")
    marks = {UNFINISHED: True, VERDICT: "failure"}
    assert judged.attributes == (marks if expected is Outcome.CENSORED else {})


def test_trials_of_one_task(tmp_path: Path) -> None:
    trials = [run("a", trial="0"), run("a", trial="1")]
    store = stored(tmp_path, [{"task_id": "a", "trial": 0, "reward": 1}, {"task_id": "a", "trial": 1, "reward": 0}])
    assert outcomes(store, *trials) == ["success", "failure"]
    by_run = stored(tmp_path, {"run-a-0": False, "run-a-1": True})
    assert outcomes(by_run, *trials) == ["failure", "success"]
    log = ProblemLog(10)
    assert len(list(stored(tmp_path, {"a": True}).apply(trials, log))) == 1
    assert "the outcome of 'a' was taken by the run 'run-a-0' already" in str(log.problems[0])


def test_the_word_for_no_outcome_goes_with_it(tmp_path: Path) -> None:
    (judged,) = stored(tmp_path, {"a": True}).apply([run("a", termination="no_outcome")], ProblemLog(10))
    assert judged.termination is None


def test_outcomes_of_runs_that_are_not_there(tmp_path: Path) -> None:
    log = ProblemLog(10)
    list(stored(tmp_path, {"z": True, "a": True, "b": False}).apply([run("a")], log))
    assert str(log.notes[0]) == "outcomes.json: of 2 outcomes there is no run: 'z', 'b'"
    list(stored(tmp_path, {"z": True}).apply([run("a")], log))
    assert str(log.problems[0]).startswith("outcomes.json: no run has any of these outcomes: 'z' (outcomes are found")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"a": {"model_patch": "diff", "instance_id": "a"}}, "has none of resolved.*predictions, which nobody"),
        ({"a": 0.5}, "field a: the reward 0.5 is neither 0 nor 1"),
        ([{"resolved": True}], "row 1 has none of trace_id"),
        ([1], "row 1 is 1, where an object"),
        ([], "there is no row"),
        ({}, "there is no outcome"),
        ('{"a": true, "a": false}', "the key 'a' stands twice"),
        ("instance_id,resolved\na,maybe\n", r"outcomes.json, field row 1.resolved: 'maybe' does not say"),
        ("hello\n", "there is no row"),
        ("id,resolved\n" + 'a,"True\n', "unexpected end of data"),
    ],
)
def test_files_without_outcomes(tmp_path: Path, content: Any, what: str) -> None:
    with pytest.raises(TraceError, match=what):
        stored(tmp_path, content)


def test_a_folder_without_outcomes(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no outcome in this folder"):
        read_outcomes([tmp_path])
    with pytest.raises(TraceError, match="cannot be opened"):
        read_outcomes([tmp_path / "gone.json"])


def test_a_report_among_the_traces_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(LAYOUTS["report of ids"]))
    with pytest.raises(NothingToCheckError):
        read_traces(tmp_path)


@pytest.mark.shared_data
def test_real_trajectories_with_outcomes(shared_data: Path, tmp_path: Path) -> None:
    store = stored(
        tmp_path, "instance_id,resolved\npydicom__pydicom-1458,True\nswe-agent__test-repo-i1,False\n", "o.csv"
    )
    corpus = read_traces(sorted((shared_data / "traces" / "swe_agent").glob("*.traj")))
    assert outcomes(store, *corpus) == ["censored", "censored", "success", "failure"]
    with pytest.raises(TraceError, match="predictions, which nobody has judged"):
        read_outcomes([shared_data / "traces" / "mini_swe_agent" / "results.json"])
