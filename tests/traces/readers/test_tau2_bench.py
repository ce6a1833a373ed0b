from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.errors import NothingToCheckError, TraceError
from tracebridge.traces import Outcome, Step, TraceSet, read_traces, summarize
from tracebridge.traces.readers.tau2_bench import REWARD_IS_VERDICT

INFO = {
    "agent_info": {"llm": "model-a"},
    "environment_info": {"domain_name": "telecom", "policy": "..."},
    "num_trials": 1,
}


def call(*names: str, requestor: str = "assistant") -> dict[str, Any]:
    calls = [{"id": "same", "name": name, "arguments": {}, "requestor": requestor} for name in names]
    return {"role": requestor, "content": None, "tool_calls": calls}


def result(*, error: bool = False, requestor: str = "assistant") -> dict[str, Any]:
    return {"role": "tool", "id": "same", "content": "Error: only text", "error": error, "requestor": requestor}


SAY = {"role": "assistant", "content": "hi", "tool_calls": None, "errors": None}
USER = {"role": "user", "content": "hello"}


def simulation(**fields: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "id": "u1",
        "task_id": "t",
        "trial": 0,
        "termination_reason": "user_stop",
        "reward_info": {"reward": 1.0, "info": None},
        "messages": [SAY, USER],
    }
    return base | fields


def read(tmp_path: Path, document: Any, **options: Any) -> TraceSet:
    path = tmp_path / "results.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return read_traces(path, **options)


def results(*simulations: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2025", "info": INFO, "tasks": [], "simulations": list(simulations)}


def test_steps_of_the_agent_only(tmp_path: Path) -> None:
    violation = SAY | {"content": None, "errors": ["Invalid message format"]}
    messages = [
        SAY,
        USER,
        call("look", "find"),
        result(error=True),
        result(),
        call("toggle", requestor="user"),
        result(error=True, requestor="user"),
        violation,
        call("pay"),
        result(),
    ]
    (trace,) = read(tmp_path, results(simulation(messages=messages)))
    assert trace.steps == (
        Step(name="respond", kind="message", text="hi"),
        Step(name="look", kind="tool", error=True),
        Step(name="find", kind="tool"),
        Step(name="respond", kind="message", error=True),
        Step(name="pay", kind="tool"),
    )
    assert (trace.trace_id, trace.task_id, trace.trial, trace.model) == ("u1", "telecom/t", "0", "model-a")
    assert (trace.source, trace.attributes) == ("results.json[0]", {"reward": 1.0})


@pytest.mark.parametrize(("reason", "is_verdict"), REWARD_IS_VERDICT.items())
@pytest.mark.parametrize("reward", [0.0, 1.0, None])
def test_termination_reasons(tmp_path: Path, reason: str, is_verdict: bool, reward: float | None) -> None:
    (trace,) = read(tmp_path, results(simulation(termination_reason=reason, reward_info={"reward": reward})))
    verdict = {0.0: Outcome.FAILURE, 1.0: Outcome.SUCCESS, None: Outcome.CENSORED}[reward]
    assert trace.outcome is (verdict if is_verdict else Outcome.CENSORED)
    assert trace.termination == reason


def test_the_documented_endings_are_all_in_the_table() -> None:
    judged = {"user_stop", "agent_stop", "agent_error", "too_many_errors", "context_window_exceeded"}
    cut = {"max_steps", "timeout", "user_error", "infrastructure_error", "unexpected_error"}
    assert {reason for reason, is_verdict in REWARD_IS_VERDICT.items() if is_verdict} == judged
    assert REWARD_IS_VERDICT.keys() == judged | cut


@pytest.mark.parametrize(
    ("reward_info", "outcome", "termination"),
    [
        ({"reward": 0.0}, Outcome.FAILURE, None),
        ({"reward": 1.0}, Outcome.SUCCESS, None),
        ({"reward": None}, Outcome.CENSORED, "no_reward"),
        (None, Outcome.CENSORED, "no_reward"),
        ({"reward": 0.0, "info": {"note": "Simulation terminated prematurely."}}, Outcome.CENSORED, "premature"),
    ],
)
@pytest.mark.parametrize("as_lines", [False, True])
def test_simulations_without_task_trial_and_termination(
    tmp_path: Path, reward_info: Any, outcome: Outcome, termination: str | None, as_lines: bool
) -> None:
    bare = [{"id": name, "messages": [SAY], "reward_info": reward_info} for name in ("a", "b")]
    corpus = read(tmp_path, "\n".join(map(json.dumps, bare)) if as_lines else bare)
    for trace in corpus:
        assert (trace.outcome, trace.termination) == (outcome, termination)
        assert (trace.task_id, trace.trial, trace.model) == (None, None, None)
    assert [trace.trace_id for trace in corpus] == ["a", "b"]
    assert corpus.traces[1].source == ("results.json:2" if as_lines else "results.json[1]")


def test_ids_that_are_missing_or_numbers(tmp_path: Path) -> None:
    corpus = read(tmp_path, [simulation(id=None, task_id=7), simulation(id=None, task_id=8, trial=None)])
    assert [trace.trace_id for trace in corpus] == ["results/7/0", "results/8"]
    assert [trace.task_id for trace in corpus] == ["7", "8"]


def test_results_without_a_simulation(tmp_path: Path) -> None:
    with pytest.raises(NothingToCheckError, match=r"no run in results\.json"):
        read(tmp_path, results())


def test_messages_null_and_no_step(tmp_path: Path) -> None:
    (trace,) = read(
        tmp_path, results(simulation(messages=None, termination_reason="infrastructure_error", reward_info=None))
    )
    assert trace.steps == ()


def test_full_duplex_ticks(tmp_path: Path) -> None:
    speech = {"agent_chunk": {"role": "assistant", "content": "he", "contains_speech": True}}
    silence = {"agent_chunk": {"role": "assistant", "content": "", "contains_speech": False}}
    tool = {
        "agent_tool_calls": [{"id": "1", "name": "look", "arguments": {}}],
        "agent_tool_results": [result(error=True)],
    }
    user = {"user_tool_calls": [{"id": "2", "name": "toggle"}], "user_tool_results": [result(requestor="user")]}
    ticks = [silence, speech, speech, silence, user, speech, tool, speech]
    (trace,) = read(tmp_path, results(simulation(messages=None, ticks=ticks)))
    assert [(step.name, step.error) for step in trace.steps] == [
        ("respond", False),
        ("respond", False),
        ("look", True),
        ("respond", False),
    ]


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (simulation(id="x", termination_reason="max_step"), "'max_step' is unknown.*did you mean max_steps"),
        (simulation(id="x", reward_info={"reward": 0.4}), "field reward_info.reward: the reward 0.4 is neither"),
        (simulation(id="x", messages=[result()]), "no tool call waits for"),
        (simulation(id="x", messages={}), "Expected `array | null`"),
    ],
)
def test_bad_simulations_are_named_and_the_others_survive(tmp_path: Path, bad: dict[str, Any], what: str) -> None:
    document = results(simulation(), bad, simulation(id="u2"))
    with pytest.raises(TraceError, match=what):
        read(tmp_path, document)
    assert [trace.trace_id for trace in read(tmp_path, document, skip_bad=True)] == ["u1", "u2"]


def folder_layout(tmp_path: Path, ids: list[str], *, listed: list[str]) -> Path:
    folder = tmp_path / "run-1"
    (folder / "simulations").mkdir(parents=True)
    index = [{"id": name, "task_id": "t", "trial": 0} for name in listed]
    (folder / "results.json").write_text(json.dumps({"info": INFO, "tasks": [], "simulation_index": index}))
    for name in ids:
        (folder / "simulations" / f"{name}.json").write_text(json.dumps(simulation(id=name)))
    return folder


def test_the_folder_layout_is_one_corpus_however_it_is_named(tmp_path: Path) -> None:
    folder = folder_layout(tmp_path, ["b", "a"], listed=["a", "b"])
    by_folder, by_file = read_traces(folder), read_traces(folder / "results.json")
    by_both = read_traces([folder / "simulations", folder / "results.json"])
    for corpus in (by_folder, by_file, by_both):
        assert [trace.trace_id for trace in corpus] == ["a", "b"]
        assert {trace.model for trace in corpus} == {"model-a"}
        assert {trace.task_id for trace in corpus} == {"telecom/t"}
    assert [file.path for file in by_folder.files] == ["results.json", "simulations/a.json", "simulations/b.json"]
    assert by_file.files == by_folder.files


def test_a_listed_simulation_that_is_not_there(tmp_path: Path) -> None:
    folder = folder_layout(tmp_path, ["a"], listed=["a", "b"])
    with pytest.raises(TraceError, match=r"record b, field simulation_index.*simulations/b.json is not there"):
        read_traces(folder)


@pytest.mark.shared_data
def test_real_results(shared_data: Path) -> None:
    folder = shared_data / "traces" / "tau2_bench"
    # counted from reward_info.reward with a JSON tool, independently of the reader
    assert read_traces(folder / "gpt-4.1_airline.json").outcomes() == {"success": 10, "failure": 10, "censored": 0}
    assert read_traces(folder / "gpt-4.1_retail.json").outcomes() == {"success": 34, "failure": 6, "censored": 0}
    six = read_traces(folder / "tau2_each_termination.json")
    assert [(trace.termination, trace.outcome.value) for trace in six] == [
        ("agent_error", "failure"),
        ("user_stop", "success"),
        ("user_stop", "failure"),
        ("too_many_errors", "failure"),
        ("max_steps", "censored"),
        ("infrastructure_error", "censored"),
    ]


@pytest.mark.shared_data
def test_real_steps_are_the_calls_and_the_messages_without_one(shared_data: Path) -> None:
    path = shared_data / "traces" / "tau2_bench" / "gpt-4.1_retail.json"
    corpus = read_traces(path)
    for trace, raw in zip(corpus, json.loads(path.read_text())["simulations"], strict=True):
        assistant = [message for message in raw["messages"] if message["role"] == "assistant"]
        assert len(trace.steps) == sum(len(message["tool_calls"] or [1]) for message in assistant)
        failed = [message for message in raw["messages"] if message["role"] == "tool" and message["error"]]
        protocol = [message for message in assistant if message.get("errors")]
        assert len(failed) <= sum(step.error for step in trace.steps) <= len(failed) + len(protocol)


@pytest.mark.shared_data
def test_real_results_without_a_simulation(shared_data: Path) -> None:
    with pytest.raises(NothingToCheckError):
        read_traces(shared_data / "malformed" / "07_tau2_tasks_but_empty_simulations.json")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"start_time": "2025-08-01T16:20:44.321269", "timestamp": "2025-08-01T16:21:03"}, "2025-08-01T16:20:44Z"),
        ({"start_time": 5, "timestamp": "2025-08-01T16:21:03"}, None),
    ],
)
def test_a_run_began_at_its_start_time(tmp_path: Path, fields: dict[str, Any], expected: str | None) -> None:
    (trace,) = read(tmp_path, results(simulation(**fields)))
    assert trace.attributes.get("started") == expected


@pytest.mark.shared_data
def test_the_dates_of_real_results(shared_data: Path) -> None:
    path = shared_data / "traces" / "tau2_bench" / "gpt-4.1_retail.json"
    began = sorted(run["start_time"][:19] + "Z" for run in json.loads(path.read_text())["simulations"])
    dates = summarize(read_traces(path)).dates
    assert (dates.n_runs, dates.first, dates.last) == (len(began), began[0], began[-1])
