"""JUnit XML: what was checked, in the form in which CI systems show tests.

Four suites: the joint verdict of each property (`verdicts`), what each engine says of the chain as it is (`engines`),
whether the engines agree (`agreement`), and whether the runs are those of such a chain (`certificate`). A case that
neither passes nor fails is skipped and says why; no case of an engine is red where the joint verdict is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from xml.etree import ElementTree as ET

from tracebridge.report.markdown import printable

#: What an undecided or unsupported verdict is: a failure of that type, or a skipped case.
Undecided = Literal["fail", "skip"]

_Outcome = Literal["passed", "failure", "error", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test case.

    Attributes:
        suite, name: where it stands. outcome: what became of it. kind: the type of a failure or error, in one word.
        message: one line; the reason of every case that did not pass. properties: names to values, such as the formula.
            details: more lines.
    """

    suite: str
    name: str
    outcome: _Outcome
    kind: str = ""
    message: str = ""
    details: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


def junit_xml(document: Mapping[str, Any], *, undecided: Undecided = "fail") -> str:
    """The XML of a document of results.

    Args:
        document: what results.json holds (`Evidence.results`), or what `check` writes with ``--json``.
        undecided: what undecided and unsupported verdicts are.

    A property with ``//@ severity advisory`` is skipped, with its verdict, where another would fail.
    """
    return xml_text([*cases(document, undecided=undecided)])


def cases(document: Mapping[str, Any], *, undecided: Undecided = "fail") -> Iterator[Case]:
    """The cases of a document; see `junit_xml`."""
    points = document.get("points", [document])
    for case_of in (_verdict, _engines, _agreement):
        for point in points:
            at = ", ".join(f"{name}={value}" for name, value in point.get("constants", {}).items())
            for position, item in enumerate(point["properties"], start=1):
                name = (item["name"] or f"#{position}") + (f" [{at}]" if at else "")
                yield from case_of(name, item, undecided)
    yield from _certificate(document)


def is_advisory(item: Mapping[str, Any]) -> bool:
    """Whether a property says ``//@ severity advisory``: its verdict is told, and blocks nothing."""
    return bool(item["annotations"].get("severity") == "advisory")


def _verdict(name: str, item: Mapping[str, Any], undecided: Undecided) -> Iterator[Case]:
    verdict = item["verdict"] or "answered"
    outcome: _Outcome = "passed"
    if verdict == "error":
        outcome = "error"
    elif verdict not in ("satisfied", "answered"):
        skipped = is_advisory(item) or (undecided == "skip" and verdict != "violated")
        outcome = "skipped" if skipped else "failure"
    reason = f": {item['reason']}" if item["reason"] else ""
    advisory = "advisory: " if is_advisory(item) else ""
    yield Case(
        suite="verdicts",
        name=name,
        outcome=outcome,
        kind=verdict,
        message=f"{advisory}{verdict}{reason}",
        details=(*map(_engine_line, item["engines"]), *_data_lines(item)),
        properties=_properties(item) | {"verdict": verdict},
    )


def _engines(name: str, item: Mapping[str, Any], _undecided: Undecided) -> Iterator[Case]:
    for found in item["engines"]:
        verdict = found["verdict"] or "answered"
        message = verdict + (f": {found['reason']}" if found["reason"] else "")
        outcome: _Outcome = "passed"
        if verdict == "error":
            outcome = "error"
        elif verdict == "violated" and item["verdict"] == "violated" and not is_advisory(item):
            outcome = "failure"
        elif verdict not in ("satisfied", "answered"):
            outcome = "skipped"
            if verdict == "violated":
                message += f" for the chain as it is; the verdict is {item['verdict']}"
                message += ", and advisory" if is_advisory(item) else ""
        yield Case(
            suite="engines",
            name=f"{name} ({found['engine']})",
            outcome=outcome,
            kind=verdict,
            message=message,
            details=(_engine_line(found),),
            properties=_properties(item) | {"engine": found["engine"], "verdict": verdict},
        )


def _agreement(name: str, item: Mapping[str, Any], _undecided: Undecided) -> Iterator[Case]:
    gap, allowed = item["gap"], item["allowed"]
    agreed = "they agree that the value is undefined" if gap is None else f"gap {gap}, {allowed} is allowed"
    told = {True: agreed, None: "fewer than two engines answered"}
    disagree = f"the engines disagree by {gap}, where {allowed} is allowed"
    outcomes: dict[bool | None, _Outcome] = {True: "passed", False: "failure", None: "skipped"}
    yield Case(
        suite="agreement",
        name=name,
        outcome=outcomes[item["agree"]],
        kind="disagreement",
        message=told.get(item["agree"], disagree),
        details=tuple(map(_engine_line, item["engines"])),
        properties=_properties(item) | ({} if gap is None else {"gap": str(gap)}),
    )


def _certificate(document: Mapping[str, Any]) -> Iterator[Case]:
    """The verdict on each scope; a rejection is a failure where a number of this scope was assessed with it."""
    recorded = document.get("certificate") or {}
    standings = document.get("standings") or recorded.get("standings") or {}
    needed = {"timing", *((each.get("standing") or {}).get("scope") for each in document.get("properties", []))}
    assessed = "standings" in document
    for scope, standing in standings.items():
        verdict = standing["verdict"]
        outcome: _Outcome = "passed" if verdict == "accept" else "skipped"
        if verdict == "reject" and assessed and scope in needed:
            outcome = "failure"
        reasons = tuple(standing["reasons"])
        yield Case(
            suite="certificate",
            name=f"certificate for {scope}",
            outcome=outcome,
            kind=verdict,
            message="; ".join((verdict, *reasons)),
            details=reasons,
            properties={"verdict": verdict},
        )


def _properties(item: Mapping[str, Any]) -> dict[str, str]:
    notes = {key: str(value) for key, value in item["annotations"].items()}
    return {**notes, "formula": item["formula"], **({"marks": ", ".join(item["marks"])} if item.get("marks") else {})}


def _engine_line(found: Mapping[str, Any]) -> str:
    value = found["value"]
    shown = found["verdict"] or "answered"
    if value is not None:
        shown += f", value {value['value']} in [{value['lower']}, {value['upper']}]"
    return f"{found['engine']}{' (exact)' if found['exact'] else ''}: {shown}"


def _data_lines(item: Mapping[str, Any]) -> Iterator[str]:
    found = item["uncertainty"]
    if found is None:
        return
    if (interval := found["interval"]) is not None:
        yield f"{interval['level']:g} interval [{interval['lower']}, {interval['upper']}] ({interval['method']})"
    if found["satisfied"] is not None:
        yield f"P(satisfied | data) {found['satisfied']}"


# ---------------------------------------------------------------- XML


def xml_text(found: Sequence[Case]) -> str:
    """Cases as one ``testsuites`` element, suites in order of first appearance.

    Characters that XML cannot hold, and all other control characters, are written as ``\\u{1b}``.
    """
    totals = _totals(found)
    del totals["skipped"]  # the schema that Jenkins validates by has it for a suite alone
    root = ET.Element("testsuites", {"name": "tracebridge", **totals})
    for suite in dict.fromkeys(case.suite for case in found):
        members = [case for case in found if case.suite == suite]
        element = ET.SubElement(root, "testsuite", {"name": printable(suite), **_totals(members)})
        for case in members:
            _append(element, case)
    ET.indent(root, " ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _append(suite: ET.Element, case: Case) -> None:
    names = {"classname": printable(f"tracebridge.{case.suite}"), "name": printable(case.name)}
    element = ET.SubElement(suite, "testcase", names)
    if case.outcome != "passed":
        told = {"message": printable(case.message)}
        if case.outcome != "skipped":
            told["type"] = printable(case.kind)
        ET.SubElement(element, case.outcome, told)
    notes = (f"{name}: {value}" for name, value in case.properties.items())
    lines = "\n".join(map(printable, (*notes, *case.details)))
    if lines:
        ET.SubElement(element, "system-out").text = lines


def _totals(found: Sequence[Case]) -> dict[str, str]:
    outcomes = [case.outcome for case in found]
    names: dict[str, _Outcome] = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": str(len(found)), **{name: str(outcomes.count(each)) for name, each in names.items()}}
