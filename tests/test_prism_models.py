"""The reference models: every answer they state in comments is Storm's answer too, in rationals and in doubles.

A stated answer is a comment ``// expect: PROPERTY = VALUE`` about the initial state, or ``// expect at s=1: ...`` about
another one. VALUE is a fraction, an integer, ``infinity``, ``true`` or ``false``; ``(exact only)`` behind it marks a
threshold that doubles cannot decide. ``// accuracy of doubles: 1e-4`` widens the relative error of doubles.
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

ROOT = Path(__file__).resolve().parent.parent
MODELS = sorted((ROOT / "prism_models").glob("*.prism"))
STORM = Path(__file__).parent / "export" / "storm_reference.py"

_EXPECT = re.compile(r"// expect(?: at (?P<state>\S+))?: (?P<property>.+) = (?P<value>\S+)(?P<exact> \(exact only\))?")
_ACCURACY = re.compile(r"// accuracy of doubles: (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One stated answer; ``state`` is None for the initial state, infinity is None among the values."""

    property: str
    state: str | None
    value: Fraction | bool | None
    exact_only: bool


def expectations(text: str) -> list[Expectation]:
    """The stated answers of a model, in order; a line that looks like one and is none fails."""
    found = []
    for line in text.splitlines():
        if not line.startswith("// expect"):
            continue
        match = _EXPECT.fullmatch(line)
        assert match, f"not an expectation: {line}"
        words: dict[str, bool | None] = {"true": True, "false": False, "infinity": None}
        value = words[match["value"]] if match["value"] in words else Fraction(match["value"])
        found.append(
            Expectation(
                property=match["property"], state=match["state"], value=value, exact_only=match["exact"] is not None
            )
        )
    return found


def double_accuracy(text: str) -> float:
    """The relative error that doubles may have on a model."""
    match = _ACCURACY.search(text)
    return float(match[1]) if match else 1e-11


def ask_storm(*, exact: bool) -> dict[str, dict[str, Any]]:
    requests = []
    for path in MODELS:
        text = path.read_text(encoding="utf-8")
        formulas = [expectation.property for expectation in expectations(text)]
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
    names = [",".join(f"{variable}={value}" for variable, value in state.items()) for state in answer["states"]]
    return names.index(expectation.state)


def test_there_are_enough_models_and_answers() -> None:
    assert len(MODELS) >= 8
    assert all(len(expectations(path.read_text(encoding="utf-8"))) >= 3 for path in MODELS)


@pytest.mark.storm
@pytest.mark.parametrize("name", [path.name for path in MODELS])
def test_storm_in_rationals_gives_every_stated_answer(name: str, exact_answers: dict[str, dict[str, Any]]) -> None:
    text = (ROOT / "prism_models" / name).read_text()
    answer = exact_answers[name]
    assert "error" not in answer
    for expectation, values in zip(expectations(text), answer["values"], strict=True):
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
    for expectation, values in zip(expectations(text), answer["values"], strict=True):
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
def test_both_engines_give_every_stated_answer_through_the_front_door(name: str) -> None:
    path = ROOT / "prism_models" / name
    stated = expectations(path.read_text(encoding="utf-8"))
    chain = read_model(path).chain
    for state in dict.fromkeys(expectation.state for expectation in stated):
        here = [expectation for expectation in stated if expectation.state == state]
        properties = "".join(f"{expectation.property};\n" for expectation in here)
        agreements = compare(check(started_at(chain, state), properties, exact=True))
        for expectation, agreement in zip(here, agreements, strict=True):
            assert agreement.agree is True, expectation
            assert agreement.gap == 0.0, expectation
            for result in agreement.results:
                assert result.exact, f"{result.engine} fell back to doubles: {expectation}"
                if isinstance(expectation.value, bool):
                    assert result.truth is expectation.value, (result.engine, expectation)
                else:
                    assert result.value is not None
                    stated_value = float("inf") if expectation.value is None else expectation.value
                    assert result.value.value == stated_value, (result.engine, expectation)


def started_at(chain: MarkovChain, state: str | None) -> MarkovChain:
    """The chain with all its initial mass in the state; None leaves it."""
    if state is None:
        return chain
    start = RationalVector.from_fractions([Fraction(name == state) for name in chain.states])
    return replace(chain, initial=start)
