"""What stands beside numbers that rest on less than they seem to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracebridge import check, compare
from tracebridge.chain import CensoringPolicy, ChainFit, TransitionCounts, fit_counts
from tracebridge.cli import run
from tracebridge.pipeline import assess
from tracebridge.report.findings import PropertyFinding, end_was_seen, without_an_end

PROPERTIES = """
label "done" = "success" | "failure";
"rate": P=? [ F "success" ];
"ends": P>=0.5 [ F "done" ];
"by_reference": "rate" > 0.2;
"next": P>=0.4 [ X "search" ];
"""


def fitted(first: str, second: str, policy: CensoringPolicy = "censored") -> ChainFit:
    runs = [(["plan", "search"], first), (["plan"], second)]
    return fit_counts(TransitionCounts.from_paths(runs), prior="none", policy=policy)


def test_how_runs_end_is_undecided_where_no_end_was_seen() -> None:
    fit = fitted("censored", "censored")
    assert not end_was_seen(fit)
    agreements = compare(check(fit, PROPERTIES, engines=["closed-form"]))
    found = [without_an_end(PropertyFinding(agreement=each, marks=("before",))) for each in agreements]
    assert {each.agreement.property.name: str(each.agreement.verdict) for each in found} == {
        "rate": "undecided",
        "ends": "undecided",
        "by_reference": "undecided",
        "next": "satisfied",
    }
    assert [str(each.agreement.at_estimate) for each in found] == ["None", "violated", "violated", "satisfied"]
    assert {each.marks for each in found} == {("before", "no end was seen")}
    assert "rests on no observation (the chain alone has it violated)" in str(found[1].agreement.reason)
    assert found[3].agreement.reason is None


def test_an_end_is_one_that_the_policy_counts() -> None:
    assert end_was_seen(fitted("censored", "success"))
    assert end_was_seen(fitted("censored", "failure"))
    assert end_was_seen(fitted("censored", "censored", policy="failure"))
    instantly = [([], "success"), (["plan"], "censored")]
    assert end_was_seen(fit_counts(TransitionCounts.from_paths(instantly), prior="none"))


@pytest.mark.parametrize(("outcome", "code"), [("censored", 4), ("failure", 1)])
def test_an_assessment_says_so_everywhere(tmp_path: Path, outcome: str, code: int) -> None:
    (tmp_path / "my.props").write_text('"done": P>=0.5 [ F "success" ];')
    (tmp_path / "runs.csv").write_text(f"run_id,step,state,outcome\na,0,plan,{outcome}\nb,0,plan,{outcome}\n")
    effort = {"draws": 20, "resamples": 0, "replicates": 0, "futures": 0, "engines": ["closed-form"], "prior": "none"}
    found = assess([tmp_path / "runs.csv"], tmp_path / "my.props", output=tmp_path / "out", **effort)
    assert found.exit_code == code
    marked = outcome == "censored"
    assert ("no end was seen" in (found.findings.mark or "")) is marked
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert ("no run was seen to end: its value rests on no observation" in summary) is marked
    assert summary.count("(chain not certified, no end was seen)") >= 3 * marked


def test_runs_without_a_step_are_noted(tmp_path: Path, capsys) -> None:
    (tmp_path / "empty.jsonl").write_text('{"trace_id": "a", "outcome": "success", "steps": []}\n')
    assert run(["fit", str(tmp_path / "empty.jsonl"), "-o", str(tmp_path / "chain.json")]) == 0
    assert "no run that counts has a step" in capsys.readouterr().err


def test_both_pass_rates_of_runs_with_weights(tmp_path: Path, capsys) -> None:
    """One success of weight 3 and one failure of weight 1."""
    (tmp_path / "runs.csv").write_text("run_id,step,state,outcome,w\na,0,x,success,3\nb,0,x,failure,1\n")
    options = [
        "--map",
        "attributes.w=w",
        "--weight",
        "w",
        "--draws",
        "0",
        "--bootstrap",
        "0",
        "--engine",
        "closed-form",
    ]
    (tmp_path / "my.props").write_text('"rate": P=? [ F "success" ];')
    found = [
        "assess",
        str(tmp_path / "runs.csv"),
        str(tmp_path / "my.props"),
        *options,
        "--certificate-replicates",
        "0",
    ]
    assert run([*found, "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "unweighted pass rate by treatment of censored runs: 0.5000 censored (chosen)" in printed
    assert "\nweighted pass rate by treatment of censored runs: 0.7500 censored (chosen)" in printed
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert "| pass rate | weighted pass rate |" in summary
    assert "| 1/2 = 0.5000 | 3/4 = 0.7500 |" in summary
