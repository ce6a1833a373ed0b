"""`assess --model`: a richer chain through the whole pipeline, with what stands behind each of its numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tracebridge import fit_chain, read_traces
from tracebridge.chain import ChainFit
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.cli import run
from tracebridge.errors import UsageError
from tracebridge.states.model_form import parse_model

FAST = ("--draws", "40", "--bootstrap", "20", "--certificate-replicates", "19", "--futures", "0")

PROPS = """"in_time": P=? [ F<=4 "success" ];
"thinks": P=? [ F "think" ];
"late": P=? [ F (step>=3 & "act") ];
"""


def write_runs(path: Path, number: int, seed: int = 1) -> None:
    """Runs that think or act as they like for three steps, and then end within a few more."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(number):
        steps = ["act" if rng.random() < 0.5 else "think" for _ in range(3)]
        while rng.random() < 0.4:
            steps.append("act" if rng.random() < 0.8 else "think")
        outcome = "success" if rng.random() < 0.6 else "failure"
        rows.append({"trace_id": f"r{i}", "outcome": outcome, "steps": [{"name": name} for name in steps]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.props").write_text(PROPS)
    write_runs(tmp_path / "runs.jsonl", 120)
    return tmp_path


def assessed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    capsys.readouterr()
    code = run(["assess", "runs.jsonl", "my.props", "-o", "out", "--force", "--json", *FAST, *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_a_named_model_is_fitted_certified_and_checked_by_both_engines(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document = assessed(capsys, "--model", "clock:0,2")
    assert document["fit"]["model"] == "clock:0,2"
    scopes = {each["name"]: each["standing"]["scope"] for each in document["properties"]}
    assert scopes == {"in_time": "timing", "thinks": "path", "late": "path"}
    assert {each["verdict"] for each in document["properties"]} == {None}  # questions have no verdict
    assert all(len(each["engines"]) == 2 for each in document["properties"])
    assert document["standings"]["timing"]["verdict"] in ("accept", "inconclusive")
    assert code in (0, 4)
    summary = (here / "out" / "summary.md").read_text()
    assert "Model: `clock:0,2`" in summary
    assert "timing (licenses R(d)" in summary


def test_the_files_of_a_richer_chain_give_the_same_values(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, document = assessed(capsys, "--model", "clock:0,2")
    values = {each["name"]: each["engines"][0]["value"]["value"] for each in document["properties"]}
    out = here / "out"
    for model, props in ((out / "model.prism", out / "properties.props"), (out / "chain.json", here / "my.props")):
        capsys.readouterr()
        assert run(["check", str(model), str(props), "--json"]) in (0, 4)
        again = json.loads(capsys.readouterr().out)
        found = {each["name"]: each["engines"][0]["value"]["value"] for each in again["properties"]}
        assert found == pytest.approx(values, abs=1e-12)


def test_the_ladder_tells_all_that_it_tried(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "my.props").write_text("\n".join(PROPS.splitlines()[:2]))  # what is found may know no time
    run(
        [
            "assess",
            "runs.jsonl",
            "my.props",
            "-o",
            "out",
            "--force",
            *FAST,
            "--model",
            "auto",
            "--certificate-replicates",
            "39",
        ]
    )
    shown = capsys.readouterr().out
    document = json.loads((here / "out" / "results.json").read_text())
    ladder = document["ladder"]
    assert document["fit"]["model"] != "first-order"
    assert ladder["rungs"][0]["name"] == "first-order"
    assert ladder["rungs"][0]["kept"] == []
    timing = [test for test in ladder["tests"] if test["scope"] == "timing"]
    assert 0 < len(timing) <= 9
    assert document["standings"]["timing"]["verdict"] in ("accept", "inconclusive", "reject", "none")
    assert "every certificate that was asked for" in shown
    assert "certificate for timing" in shown


def test_a_model_that_is_none_is_refused_before_anything_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["assess", "missing.jsonl", "-o", "out", "--model", "order3"]) == 2
    assert "order3" in capsys.readouterr().err
    assert run(["assess", "runs.jsonl", "-o", "out", "--model", "auto", "--certificate-replicates", "0"]) == 2
    capsys.readouterr()
    assert run(["assess", "missing.jsonl", "my.props", "-o", "out", "--model", "auto"]) == 3
    said = capsys.readouterr().err
    assert "my.props:3:18: step: model auto may choose a chain whose states do not remember it" in said
    assert "clock" in said


def test_the_same_from_python(here: Path) -> None:
    runs = read_traces(here / "runs.jsonl")
    assert isinstance(fit_chain(runs), ChainFit)
    fit = fit_chain(runs, model="order2")
    assert isinstance(fit, ExpandedFit)
    assert fit.form == parse_model("order2")
    with pytest.raises(UsageError):
        fit_chain(runs, model="auto", replicates=0)


def test_repeated_trials_are_shown_with_the_property_that_asks_for_them(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of the tasks nearly always succeed, half nearly never: pass^4 is near one half, and R_inf^4 near 1/16."""
    rng = np.random.default_rng(2)
    rows = []
    for task in range(40):
        for trial in range(4):
            outcome = "success" if rng.random() < (0.97 if task % 2 else 0.03) else "failure"
            steps = [{"name": name} for name in ["act", "think"][: 1 + int(rng.random() < 0.5)]]
            rows.append({"trace_id": f"r{task}-{trial}", "task_id": f"t{task}", "outcome": outcome, "steps": steps})
    (here / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(["assess", "runs.jsonl", "my.props", "-o", "out", "--force", *FAST, "--model", "classes:2"])
    assert "step: states of model classes:2 do not remember it" in capsys.readouterr().err  # and nothing was fitted
    (here / "my.props").write_text('"ends": P=? [ F "absorbed" ];')
    assert run(["assess", "runs.jsonl", "my.props", "-o", "out", "--force", *FAST, "--model", "classes:2"]) in (0, 4)
    summary = (here / "out" / "summary.md").read_text()
    assert "Classes of tasks" in summary
    (row,) = [line for line in summary.splitlines() if line.startswith("| 4 |")]
    pass_hat, power = row.strip("| ").split(" | ")[1:]
    (text,) = [line.split("`")[1] for line in summary.splitlines() if line.startswith("As a property")]
    assert 0.35 < float(pass_hat) < 0.6
    assert float(power) < 0.12
    (here / "asked.props").write_text(f'"asked": {text};')
    capsys.readouterr()
    assert run(["check", "out/chain.json", "asked.props", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["properties"]
    assert [engine["value"]["value"] for engine in found["engines"]] == pytest.approx([float(pass_hat)] * 2, abs=1e-4)


def test_what_no_run_did_is_bounded_by_their_number(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of eighty runs succeed: a threshold of 0.99 is not decided by that, whatever the chain remembers."""
    lines = [
        {"trace_id": f"r{i}", "outcome": "success", "steps": [{"name": "act"}, {"name": "think"}]} for i in range(80)
    ]
    (here / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (here / "my.props").write_text('//@ credible 0.95\n"sure": P>=0.99 [ F "success" ];')
    for model in ("order2", "phases:2"):
        code, document = assessed(capsys, "--model", model)
        (found,) = document["properties"]
        assert code == 4
        assert found["verdict"] == "undecided", model
        interval = found["uncertainty"]["interval"]
        assert "failure in none of 80 runs" in interval["method"]
        assert interval["lower"] == pytest.approx(0.05 ** (1 / 80), abs=0.03)  # 40 draws
        others = found["second_opinion"]["intervals"]
        assert any(each["method"] == "Wilson score" and each["lower"] < 0.96 for each in others)  # needs no chain


def test_censored_runs_bound_a_richer_chain_by_itself(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in (here / "runs.jsonl").read_text().splitlines()]
    for row in rows[::6]:
        row["outcome"] = "censored"
    (here / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (here / "my.props").write_text('"rate": P=? [ F "success" ];')
    _, document = assessed(capsys, "--model", "clock:0,2")
    bounds = document["observed"]["if_all_censored"]
    curve = document["figures"]["R"]
    inside = 0
    for d, value in curve.items():
        low, high = bounds[f"R({d})"]["fail"], bounds[f"R({d})"]["succeed"]
        assert low - 1e-9 <= value <= high + 1e-9, d
        inside += high - low > 0.01
    assert inside
