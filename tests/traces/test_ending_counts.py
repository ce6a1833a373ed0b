from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracebridge.traces import EndingTally, Outcome, Trace, open_traces, read_traces
from tracebridge.traces import ending_counts as module
from tracebridge.traces.readers.verdict import VERDICT

OVER = [("b", "timeout", ["C"]), ("c", "timeout", ["I"]), ("d", "timeout", []), ("e", "context", ["I"])]


def sample(name: str, limit: str | None, scores: list[object]) -> dict[str, object]:
    return {
        "id": name,
        "epoch": 1,
        "messages": [{"role": "assistant", "content": "hi"}],
        "scores": {f"s{i}": {"value": value} for i, value in enumerate(scores)},
        "limit": limit and {"type": limit},
    }


def test_a_reason_says_what_sources_verified_and_what_rules_made_of_it(tmp_path: Path) -> None:
    samples = [sample("a", None, ["C"]), *(sample(*one) for one in OVER)]
    log = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": samples}
    path, rules = tmp_path / "log.json", tmp_path / "rules.toml"
    path.write_text(json.dumps(log))
    rules.write_text('[endings]\ntimeout_limit = "failure"\ncontext_limit = "drop"\n')
    as_read = read_traces(path).to_dict()["endings"]
    assert as_read == {
        "timeout_limit": {
            "n_runs": 3,
            "outcome_by_rule": {"success": 1, "failure": 0, "censored": 2, "dropped": 0},
            "verified": {"success": 1, "failure": 1, "unknown": 1},
        },
        "context_limit": {
            "n_runs": 1,
            "outcome_by_rule": {"success": 0, "failure": 0, "censored": 1, "dropped": 0},
            "verified": {"success": 0, "failure": 1, "unknown": 0},
        },
    }
    ruled = read_traces(path, endings=rules).to_dict()["endings"]
    assert ruled["timeout_limit"]["outcome_by_rule"] == {"success": 1, "failure": 2, "censored": 0, "dropped": 0}
    assert ruled["context_limit"]["outcome_by_rule"] == {"success": 0, "failure": 0, "censored": 0, "dropped": 1}
    assert [count["verified"] for count in ruled.values()] == [count["verified"] for count in as_read.values()]


def test_a_failure_that_an_outcome_file_tells_of_a_cut_run_is_verified(tmp_path: Path) -> None:
    path, report = tmp_path / "one.traj", tmp_path / "report.json"
    info = {"exit_status": "exit_cost"}
    path.write_text(json.dumps({"environment": "e", "trajectory": [{"action": "ls"}], "history": [], "info": info}))
    report.write_text('{"one": false}')
    (count,) = read_traces(path, outcomes=report).endings.values()
    assert (count.outcomes["censored"], count.verified["failure"]) == (1, 1)


def test_tallies_add_and_reading_again_counts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [
        Trace(trace_id=str(i), outcome=Outcome.CENSORED, termination=f"r{i % 5}", attributes={VERDICT: "failure"})
        for i in range(20)
    ]
    whole, first, second = EndingTally(), EndingTally(), EndingTally()
    for i, run in enumerate(runs):
        for tally in (whole, first if i < 7 else second):
            tally.counted(tally.found(run))
    first.add(second)
    assert first.to_dict() == whole.to_dict()
    monkeypatch.setattr(module, "MAX_REASONS", 3)
    bounded = EndingTally()
    for run in runs:
        bounded.counted(bounded.found(run))
    assert {reason: count.n_runs for reason, count in bounded.counts().items()} == {
        "r0": 4,
        "r1": 4,
        "r2": 4,
        module.OTHER_REASONS: 8,
    }
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f'{{"trace_id": "{i}", "outcome": "censored", "termination": "x"}}\n' for i in range(3)))
    stream = open_traces(path)
    for _ in range(2):
        assert len(list(stream)) == stream.endings.counts()["x"].n_runs == 3
