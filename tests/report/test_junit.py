"""JUnit XML: its structure, what each verdict becomes, and text that would break it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.report.github_summary import github_summary
from tracebridge.report.junit import Case, junit_xml, xml_text


def engine(name="closed form", verdict=None, reason=None, value=0.5):
    ends = {"value": value, "lower": value, "upper": value}
    return {"engine": name, "exact": False, "verdict": verdict, "value": ends, "truth": None, "reason": reason}


def entry(name="p", verdict=None, *, agree=True, engines=None, annotations=None, reason=None, scope="timing"):
    return {
        "name": name,
        "formula": 'P>=0.5 [ F "success" ]',
        "annotations": annotations or {},
        "verdict": verdict,
        "agree": agree,
        "gap": None if agree is None else 0.0 if agree else 0.25,
        "allowed": None if agree is None else 1e-9,
        "reason": reason,
        "uncertainty": None,
        "engines": engines or [engine(verdict=verdict), engine("Storm", verdict)],
        "marks": [],
        "standing": {"scope": scope, "verdict": "accept", "reasons": [], "mark": None},
    }


def document(*entries, timing="accept", path="accept"):
    standings = {
        scope: {"scope": scope, "verdict": verdict, "reasons": ["why"], "mark": None}
        for scope, verdict in (("timing", timing), ("path", path))
    }
    return {"kind": "tracebridge-results", "properties": list(entries), "standings": standings, "exit_code": 0}


def outcomes(text: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Suite and case to outcome and type; the structure is that of the strictest reader (Jenkins, junit-10.xsd)."""
    root = ET.fromstring(text.encode())  # noqa: S314 - our own text
    assert root.tag == "testsuites"
    found = {}
    for level in (root, *root):
        cases = list(level.iter("testcase"))
        tags = {"failures": "failure", "errors": "error"} | ({"skipped": "skipped"} if level is not root else {})
        assert set(level.attrib) == {"name", "tests", *tags}
        assert int(level.attrib["tests"]) == len(cases)
        for total, tag in tags.items():
            assert int(level.attrib[total]) == sum(case.find(tag) is not None for case in cases)
    for suite in root:
        assert suite.tag == "testsuite"
        for case in suite:
            assert case.attrib["classname"] == f"tracebridge.{suite.attrib['name']}"
            told = [part for part in case if part.tag in ("failure", "error", "skipped")]
            assert len(told) <= 1
            assert {part.tag for part in case} <= {"failure", "error", "skipped", "system-out"}
            assert set(case.attrib) == {"name", "classname"}
            assert all(part.attrib["message"] and set(part.attrib) <= {"message", "type"} for part in told)
            outcome = (told[0].tag, told[0].attrib.get("type", "")) if told else ("passed", "")
            assert (suite.attrib["name"], case.attrib["name"]) not in found
            found[suite.attrib["name"], case.attrib["name"]] = outcome
    return found


@pytest.mark.parametrize(
    ("verdict", "expected", "skipping"),
    [
        (None, "passed", "passed"),
        ("satisfied", "passed", "passed"),
        ("violated", "failure", "failure"),
        ("undecided", "failure", "skipped"),
        ("unsupported", "failure", "skipped"),
        ("error", "error", "error"),
    ],
)
def test_every_verdict_has_its_outcome(verdict, expected, skipping):
    shown = document(entry(verdict=verdict, reason="r"))
    assert outcomes(junit_xml(shown))["verdicts", "p"] == (expected, verdict if expected != "passed" else "")
    assert outcomes(junit_xml(shown, undecided="skip"))["verdicts", "p"][0] == skipping


def test_a_case_for_each_engine_each_agreement_and_the_certificate():
    found = outcomes(junit_xml(document(entry("a"), entry("b", "violated"), entry(None), path="inconclusive")))
    names = [name for suite, name in found if suite == "engines"]
    assert names == [f"{name} ({engine})" for name in ("a", "b", "#3") for engine in ("closed form", "Storm")]
    assert [name for suite, name in found if suite == "agreement"] == ["a", "b", "#3"]
    assert found["engines", "b (Storm)"] == ("failure", "violated")
    assert found["certificate", "certificate for timing"][0] == "passed"
    assert found["certificate", "certificate for path"][0] == "skipped"


def test_engines_that_disagree_fail_and_a_lone_engine_is_skipped():
    alone = entry(
        "alone", "satisfied", agree=None, engines=[engine(verdict="satisfied"), engine("Storm", "unsupported")]
    )
    found = outcomes(junit_xml(document(entry("apart", "error", agree=False), alone)))
    assert found["agreement", "apart"] == ("failure", "disagreement")
    assert found["agreement", "alone"][0] == "skipped"
    assert found["engines", "alone (Storm)"][0] == "skipped"


def test_no_engine_is_red_where_the_verdict_is_not():
    open_ = entry("open", "undecided", engines=[engine(verdict="violated")])  # credible: the data leave it open
    found = outcomes(junit_xml(document(open_), undecided="skip"))
    assert found["engines", "open (closed form)"][0] == "skipped"
    advisory = entry("told", "violated", annotations={"severity": "advisory"})
    found = outcomes(junit_xml(document(advisory)))
    assert {outcome for outcome, _ in found.values()} == {"skipped", "passed"}


def test_a_rejected_chain_fails_for_the_scopes_that_were_asked_for():
    found = outcomes(junit_xml(document(entry(), timing="reject", path="reject")))
    assert found["certificate", "certificate for timing"] == ("failure", "reject")
    assert found["certificate", "certificate for path"][0] == "skipped"
    found = outcomes(junit_xml(document(entry(scope="path"), path="reject")))
    assert found["certificate", "certificate for path"] == ("failure", "reject")


def test_an_experiment_has_a_case_for_each_point():
    points = [{"constants": {"d": d}, "properties": [entry("a")], "exit_code": 0} for d in (1, 2)]
    found = outcomes(junit_xml({"kind": "tracebridge-experiment", "points": points, "certificate": None}))
    assert [name for suite, name in found if suite == "verdicts"] == ["a [d=1]", "a [d=2]"]


HOSTILE = st.text(st.characters(exclude_categories=[]) | st.sampled_from("\x00\x1b\x7f\x9b]]>&<'\"\ufffe\u2028\n|"))


@given(HOSTILE, HOSTILE)
def test_any_text_gives_xml_that_reads_back(name, reason):
    case = Case(suite="s", name=name, outcome="failure", kind=reason, message=reason, details=(name, reason))
    element = ET.fromstring(xml_text([case]).encode())[0][0]  # noqa: S314 - our own text
    assert all(char.isprintable() for char in element.attrib["name"])
    if name.isprintable():
        assert element.attrib["name"] == name
    assert all(char.isprintable() or char == "\n" for part in element for char in part.text or "")


@given(HOSTILE)
def test_any_text_stays_in_its_cell_of_the_summary(text):
    shown = document(entry(text, "violated", annotations={"requirement": text}, reason=text))
    summary = github_summary(shown)
    lines = summary.splitlines()
    (row,) = [line for line in lines if line.startswith("| ") and "violated" in line]
    assert row.replace("\\|", "").count("|") == 6
    assert all(char.isprintable() or char == "\n" for char in summary)


def test_the_summary_tells_the_worst_first_and_all_of_many():
    shown = document(*(entry(f"p{i}", "satisfied") for i in range(60)), entry("last", "violated", agree=False))
    summary = github_summary(shown)
    assert "1 violated, 60 satisfied" in summary
    assert "THE ENGINES DISAGREE on 1" in summary
    assert summary.index("last") < summary.index("| p0 ")
    assert "11 more properties" in summary
