"""The gate on real evidence: alone and against a baseline, as report, test cases and command."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tracebridge import assess
from tracebridge.cli import run
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_document import digest_of
from tracebridge.report.evidence_reading import read_evidence
from tracebridge.report.gate import gate
from tracebridge.report.github_summary import github_summary
from tracebridge.report.junit import cases

PROPS = """const double required = 0.7;
//@ requirement REL-1
"reached": P>=required [ F "success" ];
"failure_rate": P=? [ F "failure" ];
"mean_steps": R{"steps"}=? [ F "absorbed" ];
//@ severity advisory
"pair": pow(P=? [ F<=4 "success" ], 2);
"both": P>=0.1 [ F "success" ] & P<=0.95 [ F "failure" ];
"""
LIGHT = {"engines": ["closed-form"], "draws": 1_000, "resamples": 0, "replicates": 0, "futures": 0}


def corpus(folder: Path, name: str, n: int, rate: float, seed: int) -> Path:
    """Runs of two or three steps that succeed at this rate, each of its own task."""
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        steps = ["plan", "search"] + ["search"] * (rng.random() < 0.3)
        outcome = "success" if rng.random() < rate else "failure"
        rows.append(
            {"trace_id": f"r{i}", "task_id": f"t{i}", "outcome": outcome, "steps": [{"name": s} for s in steps]}
        )
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, Evidence]:
    """Evidence of a baseline, of the same agent again, and of one that is worse; in folders of these names."""
    folder = tmp_path_factory.mktemp("gate")
    (folder / "my.props").write_text(PROPS)
    cases = {"baseline": (400, 0.85, 1), "same": (400, 0.85, 2), "worse": (400, 0.65, 3)}
    return {
        name: assess([corpus(folder, name, *case)], folder / "my.props", output=folder / name, **LIGHT).evidence
        for name, case in cases.items()
    } | {"folder": folder}


def changed(evidence: Evidence, edit, *, sealed: bool = True) -> Evidence:
    document = copy.deepcopy(dict(evidence.document))
    edit(document)
    return Evidence(document={**document, "digest": digest_of(document)} if sealed else document)


@pytest.fixture
def unquestioned(monkeypatch):
    """Documents are edited by hand here, in one place of the several that say the same; gates mind that elsewhere."""
    monkeypatch.setattr("tracebridge.report.gate.unsoundness", lambda evidence: ())


def status(report) -> dict[str, tuple[str, int]]:
    return {check.name: (check.status, check.exit_code) for check in report.checks}


def test_alone_the_gate_has_the_exit_code_of_the_assessment(made):
    for name in ("baseline", "same", "worse"):
        assert gate(made[name]).exit_code == made[name].exit_code
    assert status(gate(made["worse"]))["reached"] == ("violated", 1)
    assert made["baseline"].exit_code == 0


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [("verdict", "undecided", 4), ("verdict", "error", 4), ("verdict", "unsupported", 4), ("agree", False, 6)],
)
def test_alone_whatever_is_not_answered_stops(made, field, value, code, unquestioned):
    def edit(document):
        document["results"]["properties"][1][field] = value

    assert gate(changed(made["baseline"], edit)).exit_code == code


def test_a_verdict_that_contradicts_its_numbers_stops_even_if_sealed(made):
    def edit(document):
        document["results"]["properties"][0]["verdict"] = "satisfied"
        document["results"]["exit_code"] = 0

    for sealed in (False, True):
        report = gate(changed(made["worse"], edit, sealed=sealed))
        assert report.exit_code == 6
        assert status(report)["evidence"] == ("altered", 6)
        assert "contradicts itself" in report.checks[0].message
        assert ("digest" in report.checks[0].message) is not sealed


def test_test_cases_are_red_where_the_exit_code_is_not_zero(made, unquestioned):
    def failed(evidence) -> bool:
        return any(case.outcome in ("failure", "error") for case in cases(evidence.results))

    edits = [("verdict", "undecided"), ("verdict", "error"), ("agree", False), ("verdict", "satisfied")]
    for name in ("baseline", "worse"):
        assert failed(made[name]) == bool(made[name].exit_code)
        for field, value in edits:
            edited = changed(
                made[name], lambda document, to={field: value}: document["results"]["properties"][1].update(to)
            )
            assert failed(edited) == bool(gate(edited).exit_code)


def test_alone_a_rejected_chain_stops_and_an_advisory_property_does_not(made, unquestioned):
    def rejected(document):
        document["results"]["standings"]["timing"]["verdict"] = "reject"

    assert gate(changed(made["baseline"], rejected)).exit_code == 4

    def advisory(document):
        document["results"]["properties"][0]["annotations"]["severity"] = "advisory"

    report = gate(changed(made["worse"], advisory))
    assert report.exit_code == 0
    assert "blocks nothing" in next(check.message for check in report.checks if check.name == "reached")


def as_if_by_two_engines(document):
    for item in document["results"]["properties"]:
        item["agree"], item["gap"], item["allowed"] = True, 0.0, 1e-9


def test_one_engine_alone_and_no_certificate_are_named_and_stop_a_strict_gate(made, unquestioned):
    report = gate(made["baseline"])
    assert report.exit_code == 0
    found = status(report)
    assert found["cross-check"] == ("one engine", 0)
    assert found["certificate for timing and path"] == ("none", 0)
    told = "the gate passes; left open: cross-check (one engine), certificate for timing and path (none)"
    assert report.sentence == told
    assert told.capitalize() in report.markdown()
    strict = gate(made["baseline"], strict=True)
    assert strict.exit_code == 4
    assert {name for name, (_, code) in status(strict).items() if code} == {
        "cross-check",
        "certificate for timing and path",
    }
    assert gate(made["same"], made["baseline"], margin=0.2, strict=True).exit_code == 4  # by the lone engine

    def sound(document):
        as_if_by_two_engines(document)
        for standing in document["results"]["standings"].values():
            standing["verdict"], standing["reasons"] = "accept", []

    report = gate(changed(made["baseline"], sound), strict=True)
    assert (report.exit_code, report.sentence) == (0, "the gate passes")
    assert "cross-check" not in status(report)


def test_advisory_properties_of_one_engine_do_not_stop_a_strict_gate(made, unquestioned):
    def all_advisory(document):
        for item in document["results"]["properties"]:
            item["annotations"]["severity"] = "advisory"

    assert status(gate(changed(made["baseline"], all_advisory), strict=True))["cross-check"] == ("one engine", 0)


@pytest.mark.parametrize("alike", [True, False])
def test_what_certificates_say_is_told_once_for_scopes_that_are_alike(made, unquestioned, alike):
    def rejected(document):
        timing, path = document["results"]["standings"].values()
        timing["verdict"], timing["reasons"] = "reject", ["it remembers more"]
        path["verdict"], path["reasons"] = "reject", ["it remembers more" if alike else "something else"]

    edited = changed(made["baseline"], rejected)
    report = gate(edited)
    expected = (
        {"certificate for timing and path": 4} if alike else {"certificate for timing": 4, "certificate for path": 0}
    )
    assert {name: code for name, (_, code) in status(report).items() if name.startswith("certificate")} == expected
    for text in (report.markdown(), github_summary(edited.results)):
        assert text.count("it remembers more") == 1
    if not alike:
        assert "could block needs it" in next(c.message for c in report.checks if c.name == "certificate for path")
    notes = gate(edited, made["baseline"]).notes
    assert sum("it remembers more" in note and "of the new evidence: reject" in note for note in notes) == 1
    assert any("of the baseline: none" in note for note in notes)


def test_noise_passes_and_says_what_is_left_open(made):
    report = gate(made["same"], made["baseline"], margin=0.2)
    assert report.exit_code == 0
    assert status(report) == {
        "reached": ("passed", 0),
        "failure_rate": ("passed", 0),
        "mean_steps": ("not gated", 0),
        "pair": ("passed", 0),
        "both": ("not gated", 0),
        "cross-check": ("one engine", 0),
    }
    narrow = gate(made["same"], made["baseline"], margin=0.001)
    assert narrow.exit_code == 0
    assert status(narrow)["reached"] == ("inconclusive", 0)
    assert "left open: reached (inconclusive)" in narrow.sentence
    message = next(check.message for check in narrow.checks if check.name == "reached")
    assert "would decide" in message
    strict = gate(made["same"], made["baseline"], margin=0.001, strict=True)
    assert strict.exit_code == 4
    assert status(strict)["pair"] == ("inconclusive", 0)  # advisory


def test_a_regression_that_the_runs_support_fails(made):
    report = gate(made["worse"], made["baseline"])
    found = status(report)
    assert found["reached"] == found["failure_rate"] == ("regression", 1)
    assert found["pair"] == ("regression", 0)
    assert report.exit_code == 1
    better = gate(made["baseline"], made["worse"])
    assert better.exit_code == 0  # that the baseline violated its properties does not matter here
    assert status(better)["reached"] == ("passed", 0)
    judged = {check.name: check.judgement for check in report.checks}
    assert judged["reached"].worsening == pytest.approx(0.2, abs=0.09)
    assert judged["failure_rate"].worsening == pytest.approx(judged["reached"].worsening, abs=1e-9)
    assert {judged[name].worse for name in ("reached", "failure_rate")} == {"lower", "higher"}


def test_few_runs_are_no_regression(made, tmp_path):
    few = assess([corpus(tmp_path, "few", 15, 0.75, 5)], made["folder"] / "my.props", **LIGHT).evidence
    report = gate(few, made["baseline"])
    assert report.exit_code == 0
    assert status(report)["reached"][0] == "inconclusive"


def test_what_cannot_be_compared_is_no_way_through(made, unquestioned):
    def other_formula(document):
        for part in (document["properties"], document["results"]["properties"][0]):
            for key in ("source", "formula"):
                if key in part:
                    part[key] = part[key].replace('[ F "success" ]', '[ F<=1 "success" ]', 1)

    report = gate(changed(made["same"], other_formula), made["baseline"])
    assert status(report)["reached"] == ("not comparable", 4)

    def left_out(document):
        del document["results"]["properties"][1]
        document["properties"]["source"] = PROPS.replace('"failure_rate": P=? [ F "failure" ];\n', "")

    report = gate(changed(made["same"], left_out), made["baseline"])
    assert status(report)["failure_rate"] == ("not comparable", 4)
    back = gate(made["same"], changed(made["baseline"], left_out))
    assert status(back)["failure_rate"] == ("answered", 0)


def test_what_the_baseline_does_not_have_is_judged_by_its_verdict(made, unquestioned):
    """A requirement that is new, and violated from the start, is no way through; an old one is said to be."""

    def without_the_first(document):
        del document["results"]["properties"][0]
        document["properties"]["source"] = PROPS.replace(
            '//@ requirement REL-1\n"reached": P>=required [ F "success" ];\n', ""
        )

    worse, baseline = made["worse"], changed(made["worse"], without_the_first)
    assert worse.results["properties"][0]["verdict"] == "violated"
    new = gate(worse, baseline)
    assert status(new)["reached"] == ("violated", 1)
    assert "not in the baseline" in next(check.message for check in new.checks if check.name == "reached")
    assert new.exit_code == 1
    old = gate(worse, worse)
    assert old.exit_code == 0
    assert any("reached (violated)" in note and "tracebridge gate EVIDENCE" in note for note in old.notes)


def test_altered_numbers_and_disagreeing_engines_never_pass(made):
    def improved(document):
        document["results"]["properties"][0]["verdict"] = "satisfied"

    altered = changed(made["worse"], improved, sealed=False)
    assert gate(altered).exit_code == 6
    assert gate(made["same"], altered).exit_code == 6

    def apart(document):
        document["results"]["properties"][1]["agree"] = False

    assert gate(changed(made["same"], apart), made["baseline"]).exit_code == 6


def test_another_file_beside_it_stops_and_withholds_the_verdicts(made, tmp_path):
    (tmp_path / "evidence.json").write_text(json.dumps(made["same"].document))
    names = list(made["same"].document["files"])[:2]
    assert gate(read_evidence(tmp_path / "evidence.json")).exit_code == gate(made["same"]).exit_code  # none is here
    (tmp_path / names[1]).write_text("{}")
    report = gate(read_evidence(tmp_path / "evidence.json"))
    assert [(check.name, check.status, check.exit_code) for check in report.checks] == [("evidence", "altered", 6)]
    assert names[1] in report.checks[0].message
    assert names[0] not in report.checks[0].message


def test_what_else_differs_is_told(made):
    def otherwise(document):
        document["command"]["options"]["time_limit"] = 7.5  # nothing else says what it was

    notes = " ".join(gate(changed(made["same"], otherwise), made["baseline"]).notes)
    assert "time_limit" in notes
    assert "7.5" in notes
    assert "no independent samples" in " ".join(gate(made["baseline"], made["baseline"]).notes)
    assert "no independent samples" not in notes


def test_the_command_writes_what_it_found(made, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(made["folder"])
    junit, summary = tmp_path / "gate.xml", tmp_path / "step.md"
    summary.write_text("# before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    paths = ["worse/evidence.json", "--against", "baseline/evidence.json"]
    assert run(["gate", *paths, "--junit", str(junit), "--summary", str(summary), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document == gate(made["worse"], made["baseline"]).to_dict()
    cases = list(ET.fromstring(junit.read_bytes()).iter("testcase"))  # noqa: S314 - our own text
    failed = {case.attrib["name"] for case in cases if case.find("failure") is not None}
    assert failed == {check["name"] for check in document["checks"] if check["exit_code"]}
    assert summary.read_text().startswith("# before\n## Not passed")  # what other steps wrote is kept
    assert run(["gate", "same/evidence.json", "--against", "baseline/evidence.json", "--margin", "0.2"]) == 0
    shown = capsys.readouterr().out
    assert "the gate passes" in shown
    assert "passed" in shown


def test_the_command_by_verdicts_is_that_of_the_assessment(made, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(made["folder"])
    assert run(["gate", "worse/evidence.json", "--junit", str(tmp_path / "g.xml"), "--summary", "-"]) == 1
    assert "| reached" in capsys.readouterr().out.replace("REL-1: ", "")
    suites = {suite.attrib["name"]: suite for suite in ET.fromstring((tmp_path / "g.xml").read_bytes())}  # noqa: S314
    assert {"verdicts", "engines", "agreement", "certificate"} == set(suites)
    assert suites["verdicts"].attrib["failures"] == "1"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.json"], 3, "no such file"),
        (["my.props"], 3, "my.props"),
        (["same/evidence.json", "--junit", "nowhere/g.xml"], 2, "there is no such folder"),
        (["same/evidence.json", "--summary", "-", "--json"], 2, "--summary"),
        (
            ["same/evidence.json", "--against", "baseline/evidence.json", "--worse", "reached=left"],
            2,
            "lower or higher",
        ),
    ],
)
def test_what_cannot_be_done_is_said(made, monkeypatch, capsys, arguments, code, message):
    monkeypatch.chdir(made["folder"])
    assert run(["gate", *arguments]) == code
    assert message in capsys.readouterr().err
