from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.errors import NothingToCheckError, TraceError
from tracebridge.traces import Outcome, Step, TraceSet, read_traces
from tracebridge.traces.readers.harbor_trial import EXCEPTIONS
from tracebridge.traces.readers.verdict import UNFINISHED


def step(source: str = "agent", *tools: str, **fields: Any) -> dict[str, Any]:
    calls = [{"tool_call_id": name, "function_name": name, "arguments": {}} for name in tools]
    return {"step_id": 1, "source": source, "message": "so", "tool_calls": calls or None} | fields


def trajectory(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    agent = {"name": "a", "version": "1", "model_name": "m"}
    return {"schema_version": "ATIF-v1.5", "session_id": "s", "agent": agent, "steps": list(steps)} | fields


def result(**fields: Any) -> dict[str, Any]:
    base = {
        "task_name": "t",
        "trial_name": "t__x1",
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
    }
    return base | fields


def trial(tmp_path: Path, document: Any | None, *steps: dict[str, Any]) -> Path:
    folder = tmp_path / "job" / "t__x1"
    (folder / "agent").mkdir(parents=True)
    (folder / "agent" / "trajectory.json").write_text(json.dumps(trajectory(*steps or (step(),))))
    if document is not None:
        (folder / "result.json").write_text(json.dumps(document))
    return folder


def test_steps_of_the_agent_without_copied_context(tmp_path: Path) -> None:
    steps = [
        step("system"),
        step("user"),
        step("agent", "old", is_copied_context=True),
        step("agent", "look", "find", metrics={"prompt_tokens": 5, "completion_tokens": 2}),
        step("agent", message=[{"type": "text", "text": "do"}, {"type": "text", "text": "ne"}]),
    ]
    folder = trial(tmp_path, result(), *steps)
    (trace,) = read_traces(folder)
    assert trace.steps == (
        Step(name="look", kind="tool", text="so", tokens=7),
        Step(name="find", kind="tool"),
        Step(name="respond", kind="message", text="done"),
    )
    assert (trace.trace_id, trace.task_id, trace.trial, trace.model) == ("agent/trajectory", "t", "t__x1", "m")
    assert (trace.outcome, trace.attributes) == (Outcome.SUCCESS, {"reward": 1.0})


def rewarded(reward: float | None, exception: str | None = None, *, in_step: bool = False) -> dict[str, Any]:
    info = None if exception is None else {"exception_type": exception, "exception_message": "x"}
    return result(
        verifier_result={"rewards": {"reward": reward}},
        exception_info=None if in_step else info,
        step_results=[{"exception_info": None}, {"exception_info": info}] if in_step else None,
    )


@pytest.mark.parametrize(
    ("document", "outcome", "termination"),
    [
        (rewarded(1), Outcome.SUCCESS, None),
        (rewarded(0), Outcome.FAILURE, None),
        (rewarded(None), Outcome.CENSORED, "no_reward"),
        (result(verifier_result=None), Outcome.CENSORED, "no_reward"),
        (result(verifier_result={"rewards": {"only": 1}}), Outcome.SUCCESS, None),
        (rewarded(1, "AgentTimeoutError"), Outcome.SUCCESS, "AgentTimeoutError"),
        (rewarded(0, "AgentTimeoutError"), Outcome.CENSORED, "AgentTimeoutError"),
        (rewarded(0, "AgentTimeoutError", in_step=True), Outcome.CENSORED, "AgentTimeoutError"),
        (rewarded(0, "NonZeroAgentExitCodeError"), Outcome.FAILURE, "NonZeroAgentExitCodeError"),
        (rewarded(1, "SandboxError"), Outcome.CENSORED, "SandboxError"),
        (None, Outcome.CENSORED, "no_outcome"),
    ],
)
def test_outcomes(tmp_path: Path, document: Any, outcome: Outcome, termination: str | None) -> None:
    folder = trial(tmp_path, document)
    for path in (folder, folder / "agent" / "trajectory.json"):
        (trace,) = read_traces(path)
        assert (trace.outcome, trace.termination) == (outcome, termination)
    is_cut = outcome is Outcome.CENSORED and termination in ("AgentTimeoutError", "SandboxError")
    assert trace.attributes.get(UNFINISHED, False) == is_cut
    if document is not None:
        (by_result,) = read_traces(folder / "result.json")
        assert (by_result.outcome, by_result.steps) == (trace.outcome, trace.steps)


def test_only_a_limit_leaves_a_reward_of_zero_open() -> None:
    assert [name for name, is_verdict in EXCEPTIONS.items() if not is_verdict] == ["AgentTimeoutError"]


@pytest.mark.parametrize(
    ("rewards", "what"),
    [({"a": 1, "b": 0}, "which of the rewards 'a', 'b' is the outcome"), ({"reward": 0.5}, "0.5 is neither 0 nor 1")],
)
def test_rewards_that_decide_nothing(tmp_path: Path, rewards: dict[str, float], what: str) -> None:
    with pytest.raises(TraceError, match=what):
        read_traces(trial(tmp_path, result(verifier_result={"rewards": rewards})))


def test_a_trial_without_a_trajectory(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(rewarded(None, "EnvironmentStartTimeoutError")))
    (trace,) = read_traces(path)
    assert (trace.outcome, trace.termination, trace.steps) == (Outcome.CENSORED, "EnvironmentStartTimeoutError", ())
    path.write_text(json.dumps(rewarded(1)))
    with pytest.raises(TraceError, match=r"has no trajectory.json: nobody can say what steps it took"):
        read_traces(path)


def test_the_summary_of_a_job_is_no_run(tmp_path: Path) -> None:
    trial(tmp_path, result())
    (tmp_path / "job" / "result.json").write_text(json.dumps({"id": "j", "n_total_trials": 1, "stats": {}}))
    corpus = read_traces(tmp_path)
    assert len(corpus) == 1
    assert "the summary of a job holds no run" in str(corpus.notes[0])


def continued(tmp_path: Path, *, reference: str = "trajectory.cont-1.json") -> Path:
    first = trajectory(step("agent", "one"), continued_trajectory_ref=reference)
    (tmp_path / "run.trajectory.json").write_text(json.dumps(first))
    second = trajectory(step("agent", "one", is_copied_context=True), step("agent", "two"))
    (tmp_path / "run.trajectory.cont-1.json").write_text(json.dumps(second))
    (tmp_path / "run.trajectory.summarization-1-summary.json").write_text(json.dumps(trajectory(step("agent", "sub"))))
    return tmp_path / "run.trajectory.json"


def names(corpus: TraceSet) -> list[list[str]]:
    return [[step.name for step in trace.steps] for trace in corpus]


def test_continuations_are_joined_and_parts_are_no_runs(tmp_path: Path) -> None:
    path = continued(tmp_path)
    assert names(read_traces(path)) == names(read_traces(tmp_path)) == [["one", "two"]]
    assert len(read_traces(path).files) == 2
    with pytest.raises(NothingToCheckError):
        read_traces(tmp_path / "run.trajectory.cont-1.json")


@pytest.mark.parametrize(
    ("reference", "what"),
    [
        ("gone.json", "the run goes on in 'gone.json', which is not there"),
        ("../x.json", "which is not there"),
        ("run.trajectory.json", "leads back"),
    ],
)
def test_continuations_that_cannot_be_followed(tmp_path: Path, reference: str, what: str) -> None:
    with pytest.raises(TraceError, match=what):
        read_traces(continued(tmp_path, reference=reference))


@pytest.mark.parametrize("version", ["1.4", "ATIF-v2.0", "ATIF-v1.9", 1.4, None])
def test_versions_that_are_unknown(tmp_path: Path, version: Any) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(trajectory(step(), schema_version=version)))
    with pytest.raises(TraceError, match=r"field schema_version: the schema version .* is not one of"):
        read_traces(path)


@pytest.mark.shared_data
def test_real_trajectories(shared_data: Path) -> None:
    corpus = read_traces(sorted((shared_data / "traces" / "atif").glob("hello-world*.json")))
    # counted in the files: steps of the agent that are not copied, by tool call or one for none
    assert {trace.trace_id.removeprefix("hello-world"): names(corpus)[i] for i, trace in enumerate(corpus)} == {
        "-context-summarization-linear-history.trajectory": ["respond"] * 7,
        "-context-summarization.trajectory": ["bash_command"] * 5 + ["mark_task_complete"] * 2,
        "-invalid-json.trajectory": ["respond", "bash_command"] + ["mark_task_complete"] * 2,
        "-timeout.trajectory": ["bash_command"] * 3,
        ".trajectory": ["str_replace_editor", "finish"],
    }
    assert {(trace.outcome, trace.termination) for trace in corpus} == {(Outcome.CENSORED, "no_outcome")}


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("13_atif_schema_1.4_nonconforming_is_error.json", "the schema version '1.4' is not one of"),
        ("14_atif_observation_content_is_object.json", r"steps\[1\].observation.results\[0\].content: Expected `str"),
        ("15_atif_streamed_jsonl_header_no_footer.jsonl", "being streamed, without its end"),
    ],
)
def test_real_files_that_break_the_format(shared_data: Path, name: str, what: str) -> None:
    with pytest.raises(TraceError, match=what) as caught:
        read_traces(shared_data / "malformed" / name)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ("stamp", "began", "expected"),
    [
        ("2025-10-10T06:59:39.894Z", "2025-10-10T06:50:00Z", "2025-10-10T06:59:39Z"),
        (None, "2025-10-10T06:50:00.1", "2025-10-10T06:50:00Z"),
        ("?", None, None),
    ],
)
def test_a_run_began_with_its_first_stamp(
    tmp_path: Path, stamp: str | None, began: str | None, expected: str | None
) -> None:
    copied = step(timestamp="2020-01-01T00:00:00Z", is_copied_context=True)
    later = step(timestamp="2025-10-10T07:00:00Z") if expected else step()
    steps = [copied, step("user", timestamp=stamp), *([later] if stamp else [])]
    (trace,) = read_traces(trial(tmp_path, result(started_at=began), *steps))
    assert trace.attributes.get("started") == expected


def test_a_trial_without_a_trajectory_began_too(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    broken = {"exception_type": "SandboxBuildError", "exception_message": "x"}
    path.write_text(json.dumps(result(exception_info=broken, started_at="2025-10-10T06:50:00Z")))
    (trace,) = read_traces(path)
    assert trace.attributes == {"started": "2025-10-10T06:50:00Z"}
