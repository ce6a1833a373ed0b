"""PRISM over decision processes, through a stand-in that tries every policy by its own code; and PRISM where it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.chain.test_decision import router
from tests.closedform.decision.random_processes import random_process

from tracebridge.agreement import compare
from tracebridge.chain.decision import DecisionProcess
from tracebridge.checking import Verdict, check
from tracebridge.checking.decision import DecisionClosedFormSession
from tracebridge.checking.decision_prism import DecisionPrismSession
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.models import write_model
from tracebridge.checking.prism_process import PrismExecutable
from tracebridge.cli import run
from tracebridge.pctl import parse_properties

EXACT = [
    'P{}=? [ F "a" ]',
    'P{}=? [ "b" U "a" ]',
    'P{}=? [ G "c" ]',
    'P{}=? [ "c" W "a" ]',
    'P{}=? [ "a" R "c" ]',
    'R{{"cost"}}{}=? [ F "a" ]',
    'T{}=? [ F "b" ]',
]
STEPS = [
    'P{}=? [ X "a" ]',
    'P{}=? [ F<=4 "a" ]',
    'P{}=? [ "c" U[2,5] "a" ]',
    'P{}=? [ G<=2 "c" ]',
    'R{{"cost"}}{}=? [ C<=4 ]',
    'R{{"cost"}}{}=? [ I=3 ]',
]
NEITHER = ['P{}=? [ F>=3 "a" ]', 'R{{"cost"}}{}=? [ C ]', 'P{}=? [ G F "a" ]', 'P{}=? [ F "a" || F "b" ]']


def values_of(process: DecisionProcess, text: str, stand_in: PrismExecutable, *, exact: bool) -> None:
    """What the closed form says in rationals is what PRISM says, or between its bounds, in every state."""
    (property_,) = parse_properties(text).properties
    sessions = [
        DecisionClosedFormSession(process, exact=True),
        DecisionPrismSession(process, exact=exact, executable=stand_in),
    ]
    results = [PropertyChecker(process.frame, session).check(property_) for session in sessions]
    assert all(result.answered for result in results), (text, results[1].reason)
    truth, found = (result.operators[0].states for result in results)
    if exact:
        assert found.value.tolist() == truth.value.tolist(), text
        return
    rounded = truth.to_float()
    assert np.all((found.lower <= rounded.upper) & (rounded.lower <= found.upper)), text
    finite = np.isfinite(rounded.value)
    assert np.allclose(found.value[finite], rounded.value[finite], rtol=1e-12, atol=1e-12), text
    assert np.all(found.upper[finite] - found.lower[finite] <= 1e-11 * np.maximum(1, rounded.value[finite])), text


@pytest.mark.parametrize("number", range(len(EXACT)))
def test_optima_without_bounds_are_equal_in_rationals(stand_in: PrismExecutable, number: int) -> None:
    for seed in (number, number + 20):
        process = random_process(seed, 4)
        for optimum in ("min", "max"):
            values_of(process, EXACT[number].format(optimum), stand_in, exact=True)


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_steps_lie_between_the_bounds_of_their_rounding(stand_in: PrismExecutable, number: int) -> None:
    process = random_process(number + 40, 8)
    for optimum in ("min", "max"):
        values_of(process, STEPS[number].format(optimum), stand_in, exact=False)


def test_doubles_are_asked_about_in_rationals_too(stand_in: PrismExecutable) -> None:
    process = random_process(3, 4)
    rows = replace(process, transitions=process.transitions, rationals=None)
    values_of(rows, 'Pmax=? [ "b" U "a" ]', stand_in, exact=False)


def test_rows_that_are_off_by_more_than_rounding_widen_the_bounds(stand_in: PrismExecutable) -> None:
    off = 1 - 9e-13  # such a row denotes the distribution proportional to it
    rows = np.array([[0.5 * off, 0.5 * off], [0.25 * off, 0.75 * off], [0, 1]])
    process = router(transitions=rows, rewards={})
    for text in ('Pmin=? [ F<=50 "success" ]', 'Pmin=? [ G<=5 !"success" ]'):
        (property_,) = parse_properties(text).properties
        session = DecisionPrismSession(process, exact=False, executable=stand_in)
        found = PropertyChecker(process.frame, session).check(property_).operators[0].states
        truth = DecisionClosedFormSession(process, exact=True)
        exact = PropertyChecker(process.frame, truth).check(property_).operators[0].states.to_float()
        assert np.all((found.lower <= exact.upper) & (exact.lower <= found.upper)), text


@pytest.mark.parametrize("text", NEITHER)
def test_what_would_be_iterated_without_a_bound_is_not_asked(text: str) -> None:
    process = random_process(5, 4)
    (property_,) = parse_properties(text.format("max")).properties
    for exact in (True, False):
        session = DecisionPrismSession(process, exact=exact, executable=None)
        result = PropertyChecker(process.frame, session).check(property_)
        assert result.verdict is Verdict.UNSUPPORTED
        assert any(word in (result.reason or "") for word in ("no bound on the error", "under a condition"))


def test_too_many_choices_are_not_asked_about(stand_in: PrismExecutable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracebridge.checking.decision_prism.MAX_CHOICES", 2)
    session = DecisionPrismSession(router(), exact=False, executable=stand_in)
    (property_,) = parse_properties('Pmax=? [ X "success" ]').properties
    result = PropertyChecker(router().frame, session).check(property_)
    assert "more than 2 choices" in (result.reason or "")


def test_a_process_of_one_state(stand_in: PrismExecutable) -> None:
    process = DecisionProcess(
        states=("on",), actions=(("a", "b"),), transitions=np.ones((2, 1)), initial=np.ones(1), labels={"a": np.ones(1)}
    )
    for text, expected in (('Pmax=? [ F "a" ]', 1), ('Pmin=? [ G<=3 "a" ]', 1), ('E [ G !"a" ]', 0)):
        results = check(process, text, engines=("prism",), prism=stand_in.path)
        assert results[0].operators[0].states.value.tolist() == [expected], text


PROPERTIES = """"reach": Pmin=? [ F "success" ]; "cost": R{"cost"}max=? [ F "success" ];
"soon": P>=0.5 [ F<=2 "success" ];
"strong": Pmax>=0.7 [ X "success" ]; "path": E [ G !"success" ]; "often": Pmax=? [ G F "success" ];"""


def test_three_columns_side_by_side(
    stand_in: PrismExecutable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("stormpy")
    write_model(router(), tmp_path / "router.umb")
    (tmp_path / "router.props").write_text(PROPERTIES)
    files = [str(tmp_path / "router.umb"), str(tmp_path / "router.props")]
    assert run(["check", *files, "--prism", str(stand_in.path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    by_engine = [[engine["engine"] for engine in each["engines"]] for each in document["properties"]]
    assert by_engine == [["closed form", "Storm", "PRISM"]] * 6
    answers = [each["engines"][2] for each in document["properties"]]
    assert [float(answer["value"]["value"]) for answer in answers[:2]] == [1, pytest.approx(8 / 3)]
    assert [answer["verdict"] for answer in answers[2:5]] == ["satisfied"] * 3
    assert answers[5]["verdict"] == "unsupported"
    told = [[note["text"] for note in answer["notes"]] for answer in answers[:3]]
    assert ["in rationals" in told[0][0], "2 steps in doubles" in told[2][0]] == [True, True]


# ---------------------------------------------------------------- PRISM itself


def test_prism_itself(real_prism: PrismExecutable) -> None:
    for seed in range(3):
        process = random_process(seed, 5)
        for exact, texts in ((True, EXACT), (False, EXACT + STEPS)):
            properties = ";".join(text.format(optimum) for text in texts for optimum in ("min", "max"))
            results = check(process, properties, engines=("closed-form", "prism"), exact=exact, prism=real_prism.path)
            for agreement in compare(results):
                assert agreement.agree, agreement
                assert not exact or agreement.gap == 0
