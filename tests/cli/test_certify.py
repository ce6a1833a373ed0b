"""``tracebridge certify``: verdicts and exit codes on runs whose law is known, and what stands behind them."""

from __future__ import annotations

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest

from tracebridge import Outcome, Step, Trace, TransitionCounts, fit_chain, fit_counts, read_traces, write_traces
from tracebridge.chain import write_fit
from tracebridge.cli import run
from tracebridge.inference import certify

QUICK = ["--replicates", "39"]


def steps(*names: str) -> tuple[Step, ...]:
    return tuple(Step(name=name) for name in names)


def first_order_runs(n: int, seed: int = 0) -> list[Trace]:
    """Three states that are left to any state or end with equal chances; tasks of four runs, all alike."""
    rng = np.random.default_rng(seed)
    runs = []
    for i in range(n):
        names = ["abc"[rng.integers(3)]]
        while (following := rng.integers(5)) < 3:
            names.append("abc"[following])
        outcome = Outcome.SUCCESS if following == 3 else Outcome.FAILURE
        runs.append(
            Trace(
                trace_id=f"run{i}",
                outcome=outcome,
                steps=steps(*names),
                task_id=f"t{i // 4}",
                trial=str(i % 4),
                attributes={"site": "xy"[i % 2]},
            )
        )
    return runs


def runs_with_memory(n: int) -> list[Trace]:
    """What follows b is decided by what came before it."""
    paths = [(("a", "b", "c"), Outcome.SUCCESS), (("c", "b", "a"), Outcome.FAILURE)]
    return [Trace(trace_id=f"run{i}", outcome=paths[i % 2][1], steps=steps(*paths[i % 2][0])) for i in range(n)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_traces(first_order_runs(240), "good.jsonl")
    write_traces(first_order_runs(12), "few.jsonl")
    write_traces(runs_with_memory(60), "memory.jsonl")
    return tmp_path


def document(capsys: pytest.CaptureFixture[str]) -> dict:
    return json.loads(capsys.readouterr().out)


def test_first_order_runs_are_accepted(here, capsys):
    """240 runs show gaps of .13 and less than .05 nats, so that this is asked for; the default asks for .1."""
    arguments = ["certify", "good.jsonl", *QUICK, "--detect", "gap=0.2,nats=0.1"]
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("certificate: ACCEPT")
    assert "next:" not in shown
    assert run([*arguments, "--json"]) == 0
    found = document(capsys)
    assert (found["exit_code"], found["certificate"]["verdict"]) == (0, "accept")
    assert found["certificate"]["effects"] == {"gap": 0.2, "nats": 0.1}


def test_few_runs_are_inconclusive(here, capsys):
    assert run(["certify", "few.jsonl", *QUICK]) == 4
    shown = capsys.readouterr().out
    assert shown.startswith("certificate: INCONCLUSIVE")
    assert "could not have been detected" in shown
    assert "next: certify more runs" in shown


def test_memory_is_rejected_and_located(here, capsys):
    assert run(["certify", "memory.jsonl", *QUICK]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("certificate: REJECT")
    assert "previous state a: b -> c 30 times, 15.0 expected" in shown
    assert "validates nothing" in shown
    assert "next: make states that tell apart" in shown


def test_the_document_is_the_certificate_of_the_library(here, capsys):
    options = ["--covariate", "task", "--covariate", "site", *QUICK, "--seed", "3", "--json"]
    code = run(["certify", "good.jsonl", *options])
    found = document(capsys)
    assert found["exit_code"] == code == (0 if found["certificate"]["verdict"] == "accept" else 4)
    traces = read_traces("good.jsonl")
    expected = certify(fit_chain(traces), traces, covariates=["task_id", "site"], replicates=39, seed=3)
    assert found["certificate"] == json.loads(json.dumps(expected.to_dict()))
    assert [each["covariate"] for each in found["certificate"]["covariates"]] == ["task_id", "site"]
    assert found["corpus"]["files"][0]["n_records"] == 240
    assert found["is_that_chain"] is None


def test_held_out(here, capsys):
    run(["certify", "good.jsonl", "--held-out", *QUICK, "--json"])
    found = document(capsys)["certificate"]
    assert found["held_out"] is True
    assert 0 < sum(found["runs"].values()) < 240


def test_the_states_of_a_chain(here, capsys):
    """Of the runs that it was fitted to, and of others."""
    assert run(["fit", "good.jsonl", "-o", "chain.json", "--prior", "jeffreys"]) == 0
    capsys.readouterr()
    run(["certify", "good.jsonl", "--chain", "chain.json", *QUICK, "--json"])
    same = document(capsys)
    assert same["is_that_chain"] is True
    run(["certify", "good.jsonl", "--prior", "jeffreys", *QUICK, "--json"])
    assert document(capsys)["certificate"] == same["certificate"]
    run(["certify", "few.jsonl", "--chain", "chain.json", *QUICK])
    assert "note: these are not the runs that chain.json was fitted to" in capsys.readouterr().err
    run(["certify", "few.jsonl", "--chain", "chain.json", *QUICK, "--json"])
    other = document(capsys)
    assert other["is_that_chain"] is False
    assert sum(other["certificate"]["runs"].values()) == 12


def test_standard_input_is_read_once(here, capsys, monkeypatch):
    run(["certify", "few.jsonl", *QUICK, "--json"])
    expected = document(capsys)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(Path("few.jsonl").read_bytes())))
    run(["certify", "-", *QUICK, "--json"])
    assert document(capsys)["certificate"] == expected["certificate"]


def test_a_column_can_be_a_covariate(here, capsys):
    rows = [f"r{i},{i % 2},{state},{('pass', 'fail')[i % 2]}" for i in range(40) for state in ("plan", "act")]
    Path("runs.csv").write_text("\n".join(["run_id,crew,state,outcome", *rows]))
    assert run(["certify", "runs.csv", "--map", "attributes.team=crew", "--covariate", "team", *QUICK, "--json"]) == 1
    (found,) = document(capsys)["certificate"]["covariates"]
    assert found["covariate"] == "team"
    assert found["p_holm"] <= 0.05


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--covariate", "sight"],
            2,
            "no run has the attribute 'sight'; besides task, trial and model there are",
        ),
        (["--detect", "gap=big"], 2, "--detect takes gap=NUMBER,nats=NUMBER"),
        (["--detect", "size=1"], 2, "--detect takes gap=NUMBER,nats=NUMBER"),
        (["--detect", "gap=1"], 2, "a gap of probabilities below 1"),
        (["--covariate", "task", "--covariate", "task_id"], 2, "a covariate is named twice"),
        (["--chain", "chain.json", "--k-max", "3", "--prior", "none"], 2, "leave out --k-max, --prior"),
        (["--chain", "absent.json"], 3, "absent.json"),
        (["--chain", "counts.json"], 3, "fitted to counts"),
        (["--chain", "chain.json"], 3, "no state holds the step"),
        (["--replicates", "5"], 2, "--replicates"),
    ],
)
def test_what_cannot_be_done_is_said(here, capsys, arguments, code, message):
    write_fit("counts.json", fit_counts(TransitionCounts.from_paths([(["a"], "success"), (["a"], "failure")])))
    traces = [Trace(trace_id="z", outcome=Outcome.SUCCESS, steps=steps("z"))]
    write_fit("chain.json", fit_chain(traces))
    assert run(["certify", "good.jsonl", *arguments]) == code
    assert message in capsys.readouterr().err


def test_runs_of_one_step_say_that_no_memory_can_be_seen(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "one.csv").write_text("run_id,step,state,outcome\na,0,x,1\nb,0,x,0\nc,0,y,1\nd,0,y,1\n")
    assert run(["certify", "one.csv"]) == 4
    assert "previous state: an effect of 0.05 nats a step would be missed" in (shown := capsys.readouterr().out)
    assert "no effect of whatever size would be seen" in shown


def test_tasks_that_differ_are_found_without_asking(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty tasks, half of them solved nine times in ten, half once."""
    rng = np.random.default_rng(3)
    runs = [
        Trace(
            trace_id=f"run{i}",
            outcome=Outcome.SUCCESS if rng.random() < (0.9 if i % 20 < 10 else 0.1) else Outcome.FAILURE,
            steps=steps("act"),
            task_id=f"t{i % 20}",
            trial=str(i // 20),
        )
        for i in range(120)
    ]
    write_traces(runs, "tasks.jsonl")
    assert run(["certify", "tasks.jsonl", "--json"]) == 1
    tested = {each["covariate"]: each["p"] for each in json.loads(capsys.readouterr().out)["certificate"]["covariates"]}
    assert tested["task_id"] <= 0.01
    assert set(tested) == {"task_id", "trial"}
