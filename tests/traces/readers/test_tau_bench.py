from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.errors import TraceError
from tracebridge.traces import Outcome, Step, TraceSet, read_traces


def call(*names: str, text: str | None = None) -> dict[str, Any]:
    # real files use one id for many calls: results must be paired by position
    calls = [{"id": "same", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "same", "name": "whatever", "content": content}


SYSTEM = {"role": "system", "content": "policy"}
USER = {"role": "user", "content": "hello"}
SAY = {"role": "assistant", "content": "hi"}


def run(**fields: Any) -> dict[str, Any]:
    base = {
        "task_id": 3,
        "trial": 1,
        "reward": 1.0,
        "info": {"reward_info": {"reward": 1.0}},
        "traj": [SYSTEM, USER, SAY],
    }
    return base | fields


def read(tmp_path: Path, *runs: dict[str, Any], lines: bool = False, **options: Any) -> TraceSet:
    path = tmp_path / "model-a.json"
    path.write_text("\n".join(map(json.dumps, runs)) if lines else json.dumps(runs))
    return read_traces(path, **options)


@pytest.mark.parametrize("lines", [False, True])
def test_steps_and_results_by_position(tmp_path: Path, lines: bool) -> None:
    traj = [
        SYSTEM,
        USER,
        SAY,
        USER,
        call("find", text="let me look"),
        result("ok"),
        call("book"),
        result("Error: full"),
        call("pay", "mail"),
        result("fine"),
        result("Error: no"),
        call("last"),
    ]
    (trace,) = read(tmp_path, run(traj=traj), run(task_id="x"), lines=lines).traces[:1]
    assert trace.steps == (
        Step(name="respond", kind="message", text="hi"),
        Step(name="find", kind="tool", text="let me look"),
        Step(name="book", kind="tool", error=True),
        Step(name="pay", kind="tool"),
        Step(name="mail", kind="tool", error=True),
        Step(name="last", kind="tool"),
    )
    assert (trace.trace_id, trace.task_id, trace.trial, trace.model) == ("model-a/3/1", "3", "1", None)
    assert trace.source == ("model-a.json:1" if lines else "model-a.json[0]")


@pytest.mark.parametrize(
    ("fields", "outcome", "termination"),
    [
        ({"reward": 1.0}, Outcome.SUCCESS, None),
        ({"reward": 1}, Outcome.SUCCESS, None),
        ({"reward": 1 - 9e-7}, Outcome.SUCCESS, None),
        ({"reward": 0.0}, Outcome.FAILURE, None),
        ({"reward": 0.0, "info": {}}, Outcome.FAILURE, None),
        ({"reward": 0.0, "info": None}, Outcome.FAILURE, None),
        ({"reward": 0.0, "info": {"reward_info": None}}, Outcome.CENSORED, "step_cap"),
        ({"reward": 0.0, "traj": [], "info": {"error": "boom", "traceback": "..."}}, Outcome.CENSORED, "harness_crash"),
        ({"reward": None}, Outcome.CENSORED, "no_reward"),
    ],
)
def test_outcomes(tmp_path: Path, fields: dict[str, Any], outcome: Outcome, termination: str | None) -> None:
    (trace,) = read(tmp_path, run(**fields))
    assert (trace.outcome, trace.termination) == (outcome, termination)


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (run(task_id=9, reward=0.5), "record 1, field reward: the reward 0.5 is neither 0 nor 1"),
        (run(task_id=9, reward=1 + 2e-6), "neither 0 nor 1"),
        (run(task_id=9, reward="1.0"), r"record 1, field reward: Expected `float \| null`, got `str`: '1.0'"),
        (run(task_id=9, traj=[result("stray")]), "no tool call waits for"),
        (run(task_id=9, traj=[call("")]), "without a name"),
        (run(), "trace_id.*was used by an earlier run"),
    ],
)
def test_bad_runs_are_named_and_the_others_survive(tmp_path: Path, bad: dict[str, Any], what: str) -> None:
    with pytest.raises(TraceError, match=what) as caught:
        read(tmp_path, run(), bad, run(task_id=4))
    assert len(caught.value.problems) == 1
    kept = read(tmp_path, run(), bad, run(task_id=4), skip_bad=True)
    assert [trace.task_id for trace in kept] == ["3", "4"]


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text("[" + json.dumps(run())[:-1] + ', "reward": 0.0}]')
    with pytest.raises(TraceError, match="record 0: the key 'reward' stands twice"):
        read_traces(path)


def test_a_file_that_breaks_off_says_where(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([run(), run(task_id=4)], indent=1)[:-20])
    with pytest.raises(TraceError, match=r"runs.json:\d+:\d+: the JSON text breaks off"):
        read_traces(path)


def test_a_trial_that_repeats_the_task_is_no_replicate(tmp_path: Path) -> None:
    corpus = read(tmp_path, run(task_id=4, trial=4), run(task_id=5, trial=5))
    assert [trace.trial for trace in corpus] == [None, None]
    assert "repeats task_id" in str(corpus.notes[0])
    corpus = read(tmp_path, run(task_id=0, trial=0), run(task_id=1, trial=0))
    assert [trace.trial for trace in corpus] == ["0", "0"]
    assert corpus.notes == ()


def test_messages_in_parts(tmp_path: Path) -> None:
    said = {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "image"}, "b"]}
    assert read(tmp_path, run(traj=[said])).traces[0].steps[0].text == "ab"


@pytest.mark.shared_data
def test_the_real_runs_equal_an_independent_extraction(shared_data: Path) -> None:
    folder = shared_data / "traces" / "tau_bench"
    corpus = read_traces(folder / "gpt-4o-airline.json")
    assert corpus.outcomes() == {"success": 84, "failure": 111, "censored": 5}
    rows = [json.loads(line) for line in (folder / "steps_only.jsonl").read_text().splitlines()]
    expected = {
        (row["task_id"], row["trial_id"]): (row["outcome"], [(step["s"], step["err"]) for step in row["steps"]])
        for row in rows
    }
    found = {
        (trace.task_id, trace.trial): (trace.outcome.value, [(step.name, step.error) for step in trace.steps])
        for trace in corpus
    }
    assert len(rows) == len(corpus) == 200
    assert found == expected
    assert {trace.termination for trace in corpus if trace.outcome is Outcome.CENSORED} == {"step_cap"}


@pytest.mark.shared_data
def test_the_real_file_whose_trial_is_the_task(shared_data: Path) -> None:
    corpus = read_traces(shared_data / "malformed" / "19_tau_trial_field_holds_task_index.json")
    assert [trace.trial for trace in corpus] == [None] * 4
    assert len(corpus.notes) == 1
