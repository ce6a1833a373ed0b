"""The reference models: the answers that they state in comments are those of every engine, in rationals and in doubles.

A stated answer is a comment ``// expect: PROPERTY = VALUE`` about the initial state, or ``// expect at s=1: ...`` about
another one. VALUE is a fraction, an integer, ``infinity``, ``true`` or ``false``. Storm is asked in its own process and
language, and both engines through the front door, unless it says behind the value:

- ``(exact only)``: a threshold that doubles cannot decide.
- ``(not in Storm's language)``: Storm cannot read it; both engines must answer all the same.
- ``(closed form only)``: Storm cannot compute it.

``// accuracy of doubles: 1e-4`` widens the relative error of doubles.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tracebridge import MarkovChain, RationalVector, check, compare, read_model
from tracebridge.chain.decision import DecisionProcess

ROOT = Path(__file__).resolve().parent.parent
MODELS = sorted((ROOT / "prism_models").glob("*.prism"))
STORM = Path(__file__).parent / "export" / "storm_reference.py"

_EXPECT = re.compile(r"// expect(?: at (?P<state>\S+))?: (?P<property>.+) = (?P<value>\S+)(?: \((?P<remark>.+)\))?")
_REMARKS = (None, "exact only", "not in Storm's language", "closed form only")
_ACCURACY = re.compile(r"// accuracy of doubles: (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One stated answer; ``state`` is None for the initial state, infinity is None among the values."""

    property: str
    state: str | None
    value: Fraction | bool | None
    remark: str | None

    @property
    def exact_only(self) -> bool:
        return self.remark == "exact only"

    @property
    def for_storm_itself(self) -> bool:
        return self.remark in {None, "exact only"}


def expectations(text: str) -> list[Expectation]:
    """The stated answers of a model, in order; a line that looks like one and is none fails."""
    found = []
    for line in text.splitlines():
        if not re.match(r"// expect\b", line):
            continue
        match = _EXPECT.fullmatch(line)
        assert match, f"not an expectation: {line}"
        assert match["remark"] in _REMARKS, line
        words: dict[str, bool | None] = {"true": True, "false": False, "infinity": None}
        value = words[match["value"]] if match["value"] in words else Fraction(match["value"])
        found.append(Expectation(property=match["property"], state=match["state"], value=value, remark=match["remark"]))
    return found


def stated_for_storm(text: str) -> list[Expectation]:
    """The stated answers to questions that Storm reads and computes."""
    return [expectation for expectation in expectations(text) if expectation.for_storm_itself]


def double_accuracy(text: str) -> float:
    """The relative error that doubles may have on a model."""
    match = _ACCURACY.search(text)
    return float(match[1]) if match else 1e-11


def ask_storm(*, exact: bool) -> dict[str, dict[str, Any]]:
    requests = []
    for path in MODELS:
        text = path.read_text(encoding="utf-8")
        formulas = [expectation.property for expectation in stated_for_storm(text)]
        requests.append({"program": text, "exact": exact, "formulas": formulas})
    command = [sys.executable, str(STORM)]
    done = subprocess.run(command, input=json.dumps(requests), capture_output=True, text=True, timeout=120, check=True)
    return dict(zip([path.name for path in MODELS], json.loads(done.stdout), strict=True))


@pytest.fixture(scope="module")
def exact_answers() -> dict[str, dict[str, Any]]:
    pytest.importorskip("stormpy")
    return ask_storm(exact=True)


@pytest.fixture(scope="module")
def double_answers() -> dict[str, dict[str, Any]]:
    pytest.importorskip("stormpy")
    return ask_storm(exact=False)


def state_of(expectation: Expectation, answer: dict[str, Any]) -> int:
    if expectation.state is None:
        return int(answer["start"])
    values = dict(part.split("=") for part in expectation.state.split(","))
    found = [{name: str(value).lower() for name, value in state.items()} for state in answer["states"]]
    return found.index(values)


def test_there_are_enough_models_and_answers() -> None:
    counts = {path.name: len(expectations(path.read_text(encoding="utf-8"))) for path in MODELS}
    assert len(counts) >= 25
    assert min(counts.values()) >= 3
    assert sum(counts.values()) >= 300


@pytest.mark.storm
@pytest.mark.parametrize("name", [path.name for path in MODELS])
def test_storm_in_rationals_gives_every_stated_answer(name: str, exact_answers: dict[str, dict[str, Any]]) -> None:
    text = (ROOT / "prism_models" / name).read_text()
    answer = exact_answers[name]
    assert "error" not in answer
    for expectation, values in zip(stated_for_storm(text), answer["values"], strict=True):
        value = values[state_of(expectation, answer)]
        if expectation.value is None:
            assert value == "inf", expectation
        elif isinstance(expectation.value, bool):
            assert value is expectation.value, expectation
        else:
            assert Fraction(value) == expectation.value, expectation


@pytest.mark.storm
@pytest.mark.parametrize("name", [path.name for path in MODELS])
def test_storm_in_doubles_is_as_close_as_the_model_says(name: str, double_answers: dict[str, dict[str, Any]]) -> None:
    text = (ROOT / "prism_models" / name).read_text()
    answer = double_answers[name]
    assert "error" not in answer
    for expectation, values in zip(stated_for_storm(text), answer["values"], strict=True):
        value = values[state_of(expectation, answer)]
        if expectation.exact_only:
            continue
        if isinstance(expectation.value, bool):
            assert value is expectation.value, expectation
        else:
            expected = float("inf") if expectation.value is None else float(expectation.value)
            assert float(value) == pytest.approx(expected, rel=double_accuracy(text), abs=1e-15), expectation


@pytest.mark.storm
@pytest.mark.parametrize("name", [path.name for path in MODELS])
def test_models_have_no_deadlock_and_say_where_runs_end(name: str, exact_answers: dict[str, dict[str, Any]]) -> None:
    answer = exact_answers[name]
    assert answer["labels"]["deadlock"] == []
    for label, members in answer["labels"].items():
        if label == "absorbed":
            alone = [i for i, row in enumerate(answer["rows"]) if [target for target, _ in row] == [i]]
            assert members == alone


@pytest.mark.storm
@pytest.mark.parametrize("name", [path.name for path in MODELS])
def test_the_engines_give_every_stated_answer_through_the_front_door(name: str) -> None:
    path = ROOT / "prism_models" / name
    stated = expectations(path.read_text(encoding="utf-8"))
    chain = read_model(path).described
    for state, alone in dict.fromkeys((here.state, here.remark == "closed form only") for here in stated):
        here = [it for it in stated if it.state == state and (it.remark == "closed form only") == alone]
        properties = "".join(f"{expectation.property};\n" for expectation in here)
        engines = ["closed-form"] if alone else ["closed-form", "storm"]
        agreements = compare(check(started_at(chain, state), properties, engines=engines, exact=True))
        for expectation, agreement in zip(here, agreements, strict=True):
            if not alone:
                assert agreement.agree is True, expectation
                assert agreement.gap == 0.0, expectation
            assert len(agreement.results) == len(engines)
            for result in agreement.results:
                assert result.exact, f"{result.engine} fell back to doubles: {expectation}"
                if isinstance(expectation.value, bool):
                    assert result.truth is expectation.value, (result.engine, expectation)
                else:
                    assert result.value is not None, (result.engine, expectation)
                    stated_value = float("inf") if expectation.value is None else expectation.value
                    assert result.value.value == stated_value, (result.engine, expectation)


@pytest.mark.storm
@pytest.mark.parametrize("name", [path.name for path in MODELS])
def test_doubles_are_bounded_and_close_through_the_front_door(name: str) -> None:
    """The bounds of the closed form contain what is stated, and Storm's doubles are as close as the model says."""
    path = ROOT / "prism_models" / name
    text = path.read_text(encoding="utf-8")
    chain = read_model(path).described
    stated = [expectation for expectation in expectations(text) if not expectation.exact_only]
    for state in dict.fromkeys(expectation.state for expectation in stated):
        here = [expectation for expectation in stated if expectation.state == state]
        properties = "".join(f"{expectation.property};\n" for expectation in here)
        results = check(started_at(chain, state), properties, engines=["closed-form", "storm"])
        for expectation, ours, storms in zip(here, results[::2], results[1::2], strict=True):
            answered = [ours] if expectation.remark == "closed form only" else [ours, storms]
            if isinstance(expectation.value, bool):
                assert all(result.truth is expectation.value for result in answered), expectation
                continue
            assert ours.value is not None, (expectation, ours.reason)
            if expectation.value is None:
                assert ours.value.value == float("inf"), expectation
            else:
                assert Fraction(ours.value.lower) <= expectation.value <= Fraction(ours.value.upper), expectation
            expected = float("inf") if expectation.value is None else float(expectation.value)
            for result in answered:
                assert result.value is not None, (expectation, result.reason)
                found = float(result.value.value)
                assert found == pytest.approx(expected, rel=double_accuracy(text), abs=1e-15), expectation


def started_at(chain: MarkovChain | DecisionProcess, state: str | None) -> MarkovChain | DecisionProcess:
    """The chain with all its initial mass in the state; None leaves it."""
    if state is None:
        return chain
    start = RationalVector.from_fractions([Fraction(name == state) for name in chain.states])
    return replace(chain, initial=start)
