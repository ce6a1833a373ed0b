"""What stands beside numbers that rest on less than they seem to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracebridge import check, compare
from tracebridge.chain import CensoringPolicy, ChainFit, TransitionCounts, fit_counts
from tracebridge.cli import run
from tracebridge.inference.identification import NO_END_REASON
from tracebridge.pipeline import assess, replay
from tracebridge.report.findings import OF_RUNS_THAT_GO_ON, PropertyFinding, end_was_seen, without_an_end

PROPERTIES = """
label "done" = "success" | "failure";
"rate": P=? [ F "success" ];
"ends": P>=0.5 [ F "done" ];
"by_reference": "rate" > 0.2;
"next": P>=0.4 [ X "search" ];
"all_steps": R{"steps"}=? [ C ];
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
        "all_steps": "undecided",
    }
    assert [str(each.agreement.at_estimate) for each in found] == [*["undecided"] * 3, "satisfied", "undecided"]
    assert {each.marks for each in found} == {("before", "no end was seen")}
    assert {each.agreement.gap for each in found if not each.agreement.ok} == {None}
    reasons = [each.agreement.reason for each in found]
    assert reasons == [*[NO_END_REASON] * 3, OF_RUNS_THAT_GO_ON, NO_END_REASON]
    answers = [each.agreement.results[0] for each in found]
    assert [each.value is not None and each.value.undefined for each in answers] == [*[True] * 3, False, True]
    assert [(str(each.verdict), each.truth, each.reason) for each in answers[:3]] == [
        ("undecided", None, NO_END_REASON)
    ] * 3
    assert answers[3] is agreements[3].results[0]


def test_an_end_is_one_that_the_policy_counts() -> None:
    assert end_was_seen(fitted("censored", "success"))
    assert end_was_seen(fitted("censored", "failure"))
    assert end_was_seen(fitted("censored", "censored", policy="failure"))
    instantly = [([], "success"), (["plan"], "censored")]
    assert end_was_seen(fit_counts(TransitionCounts.from_paths(instantly), prior="none"))


def numbers_in(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number in JSON values, with its place; NaN, infinities and rationals are texts there."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers_in(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from numbers_in(item, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


@pytest.mark.parametrize(("outcome", "code"), [("censored", 4), ("failure", 1)])
def test_an_assessment_says_so_everywhere(tmp_path: Path, outcome: str, code: int) -> None:
    """Of runs that were all cut nothing about ends is a number, whatever the chain makes of them."""
    (tmp_path / "my.props").write_text('"done": P>=0.5 [ F "success" ]; "time": R{"steps"}=? [ F "absorbed" ];')
    (tmp_path / "runs.csv").write_text(f"run_id,step,state,outcome\na,0,plan,\na,1,do,{outcome}\nb,0,plan,{outcome}\n")
    effort = {"draws": 20, "resamples": 20, "replicates": 19, "futures": 0, "engines": ["closed-form"], "prior": "none"}
    found = assess([tmp_path / "runs.csv"], tmp_path / "my.props", output=tmp_path / "out", **effort)
    assert found.exit_code == code
    marked = outcome == "censored"
    assert ("no end was seen" in (found.findings.mark or "")) is marked
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert (f"Reliability figures: undefined, because {NO_END_REASON}" in summary) is marked
    assert summary.count("(chain not certified, no end was seen)") >= 2 * marked
    results = found.document
    assert (results["figures"].get("missing") == NO_END_REASON) is marked
    statistics = [each["name"] for each in results["certificate"]["statistics"]]
    assert ("first passage" in statistics) is not marked
    assert any("first passage: no run was seen to end" in each for each in results["certificate"]["reasons"]) is marked
    assert (results["ending_choices"] or {"present": {"missing": None}})["present"]["missing"] == (
        NO_END_REASON if marked else None
    )
    if marked:
        of_ends = {"figures": results["figures"], "present": results["ending_choices"]["present"]}
        of_ends |= {"fit": results["certificate"]["figures"], "curve": results["certificate"]["curve"]}
        of_ends |= {"paper": results["certificate"]["paper"]["gap"]}
        of_ends |= {each["name"]: each["engines"] for each in results["properties"]}
        assert [*numbers_in(of_ends)] == []
        assert {each["engines"][0]["value"]["value"] for each in results["properties"]} == {"NaN"}
    again = replay(tmp_path / "out" / "evidence.json", [tmp_path / "runs.csv"])
    assert again.differences == ()
    assert again.equal > 100


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
