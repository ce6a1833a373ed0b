"""The recorded syntax table: whatever PRISM or Storm computed, our engines answer within that tool's own accuracy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.models import read_model
from tracebridge.checking.result import CheckResult, Verdict
from tracebridge.checking.run import require_fit, resolve_for
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import StormWorker
from tracebridge.errors import PropertyError
from tracebridge.pctl import fold_steps, parse_properties
from tracebridge.pctl.ast import Property

pytestmark = [pytest.mark.storm, pytest.mark.shared_data]

#: Relative where the value is above one: PRISM iterates to 1e-6, which left up to 2e-5, and calls what it steps through
#: exact; Storm iterates to 1e-6.
PRISM_ACCURACY, PRISM_STEPPING_ACCURACY, STORM_ACCURACY = 3e-5, 1e-12, 1e-6

#: Not what PRISM says it is: "exact floating point", of a lower bound that it iterates for.
ITERATED = ("G>=2", "F>=3", "U>=2", '"init" => ', "? 1 : 0")

#: Answers of Storm that are none, and why.
NO_ANSWER = {
    'P=? [ F^{rew{"steps"}<=5,steps<=4} "success" ]': "not a number: Storm reads memory that it did not write",
    'R{"steps"}=? [ F ("a" & X "b") ]': "None",
    'R{"steps"}=? [ F<=10 "done" ]': "None",
    'quantile(max B, P>0.3 [ F{"steps"}<=B "success" ])': "None, as it was asked for all states",
    'filter(argmax, P=? [ F "success" ], true)': "the value of the operand: Storm does not apply filters",
    'filter(forall, P>=0.3 [ F "success" ], s<2)': "the truth of the operand in all states",
}

#: What Storm itself cannot answer, in whatever form.
NOT_FOR_STORM = {
    'R{"steps"}=? [ F ("a" & X "b") ]',
    'R{"steps"}=? [ F<=10 "done" ]',
    'A [ F "done" ]',
    'E [ G !"done" ]',
}


class Table:
    """The rows of the table, and two engines with its model loaded."""

    def __init__(self, shared_data: Path, folder: Path, worker: StormWorker) -> None:
        recorded = json.loads((shared_data / "property_syntax.json").read_text())
        self.rows: dict[str, dict[str, Any]] = {row["property"]: row for row in recorded["rows"]}
        model = folder / "recorded.prism"
        model.write_text(recorded["model"])
        chain = read_model(model).chain
        in_order = {name: chain.rewards[name] for name in ("steps", "cost")}  # R and R{1} mean the first of the program
        self.chain = replace(chain, rewards=in_order)
        sessions = ClosedFormSession(self.chain), StormSession(self.chain, exact=False, worker=worker)
        self.checkers = [PropertyChecker(self.chain, session) for session in sessions]

    def properties(self, text: str) -> list[Property]:
        """The properties of a text, ready to be checked; PropertyError where they do not fit the model."""
        file = resolve_for(self.chain, parse_properties(text), {})
        require_fit(self.chain, file)
        return [Property(formula=fold_steps(item.formula), text=item.text) for item in file.properties]

    def check(self, text: str) -> list[list[CheckResult]]:
        return [[checker.check(item) for checker in self.checkers] for item in self.properties(text)]


@pytest.fixture(scope="module")
def table(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    with StormWorker() as worker:
        yield Table(shared_data, tmp_path_factory.mktemp("recorded"), worker)


def answers(row: dict[str, Any], tool: str) -> list[Any]:
    """What a tool computed, one answer a property; nothing if it did not."""
    if row[tool]["status"] != "ok" or (tool == "storm" and row["property"] in NO_ANSWER):
        return []
    value = row[tool]["value"]
    return value if isinstance(value, list) else [value]


def test_what_a_tool_computed_is_answered_and_what_none_can_is_refused(table: Table) -> None:
    assert len(table.rows) == 108
    refused = []
    for text, row in table.rows.items():
        try:
            results = table.check(text)
        except PropertyError:
            refused.append(text)
            assert not answers(row, "prism"), text
            assert not answers(row, "storm"), text
            continue
        for closed, storm in results:
            decision_process = text.startswith(("multilex", "[[p1]]"))
            assert closed.answered is not (decision_process or "HOA" in text), f"{text}: {closed.reason}"
            assert storm.answered is (closed.answered and text not in NOT_FOR_STORM), f"{text}: {storm.reason}"
            assert storm.answered or storm.verdict is Verdict.UNSUPPORTED, f"{text}: {storm.reason}"
    assert len(refused) == 12  # 9 that do not parse, a constant without a value, two labels that are not there


def test_values_of_prism(table: Table) -> None:
    compared = 0
    for text, row in table.rows.items():
        recorded = answers(row, "prism")
        if not recorded:
            continue
        for results, answer in zip(table.check(text), recorded, strict=True):
            stepped = "exact floating point" in answer and not any(part in text for part in ITERATED)
            accuracy = PRISM_STEPPING_ACCURACY if stepped else PRISM_ACCURACY
            for result in results:
                if result.answered:
                    assert_same(result, answer.split()[0], accuracy, text)
                    compared += 1
    assert compared >= 150


def test_values_of_storm(table: Table) -> None:
    compared = 0
    for text, row in table.rows.items():
        recorded = answers(row, "storm")
        if not recorded:
            continue
        for results, answer in zip(table.check(text), recorded, strict=True):
            for result in results:
                if isinstance(answer, str):
                    assert truths_in_states(table, text, result.engine) == answer, text
                else:
                    assert_same(result, answer, STORM_ACCURACY, text)
                compared += 1
    assert compared >= 100


def test_every_exception_is_needed(table: Table) -> None:
    for text, reason in NO_ANSWER.items():
        row = table.rows[text]["storm"]
        assert row["status"] == "ok"
        ((closed, _),) = table.check(text)
        value = row["value"]
        useless = isinstance(value, float) and isnan(value)
        assert useless or value in (None, "None") or closed.value is None, reason


def truths_in_states(table: Table, text: str, engine: str) -> str:
    """``{true, false}``: which truth values a formula has in the states."""
    found = []
    for value, formula in (("true", text), ("false", f"!({text})")):
        ((closed, storm),) = table.check(f"filter(exists, {formula})")
        result = closed if engine == closed.engine else storm
        found += [value] if result.truth else []
    return f"{{{', '.join(found)}}}"


def assert_same(result: CheckResult, answer: str | float, accuracy: float, text: str) -> None:
    if answer in ("true", "false"):
        assert result.truth is (answer == "true"), f"{result.engine} on {text}"
        return
    assert result.value is not None, f"{result.engine} on {text}: {result.reason}"
    expected = float(answer)
    allowed = accuracy * max(1.0, abs(expected))
    assert abs(float(result.value.value) - expected) <= allowed, f"{result.engine} on {text}: {result.value}"
