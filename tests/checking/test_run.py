"""Choosing engines and arithmetic for a run."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tracebridge import MarkovChain, RationalMatrix, RationalVector, RewardStructure, Verdict, check, compare
from tracebridge.errors import NothingToCheckError, PropertyError, UsageError


def fair() -> MarkovChain:
    """A coin that is thrown once: success and failure with one half each."""
    half = Fraction(1, 2)
    return MarkovChain(
        states=("throw", "success", "failure"),
        transitions=RationalMatrix.from_rows([{1: half, 2: half}, {1: Fraction(1)}, {2: Fraction(1)}]),
        initial=RationalVector.from_fractions([1, 0, 0]),
        labels={"absorbed": np.array([False, True, True])},
        rewards={"steps": RewardStructure.from_fractions([1, 0, 0])},
    )


def twice_rewarded() -> MarkovChain:
    """`fair` with a second reward structure."""
    return replace(fair(), rewards={name: RewardStructure.from_fractions([1, 0, 0]) for name in ("steps", "cost")})


def thirds() -> MarkovChain:
    """Success with probability one third after a loop whose doubles are not exact."""
    third = Fraction(1, 3)
    return MarkovChain(
        states=("loop", "success", "failure"),
        transitions=RationalMatrix.from_rows([{0: third, 1: third * 2 / 3, 2: third * 4 / 3}, {1: 1}, {2: 1}]),
        initial=RationalVector.from_fractions([1, 0, 0]),
    )


@pytest.mark.storm
@pytest.mark.parametrize(
    ("bound", "verdict"), [(">=", Verdict.SATISFIED), (">", Verdict.VIOLATED), ("<=", Verdict.SATISFIED)]
)
def test_a_threshold_that_doubles_cannot_decide_is_decided_in_rationals(bound, verdict):
    results = check(thirds(), f'P{bound}1/3 [ F "success" ]')
    assert [result.verdict for result in results] == [verdict, verdict]
    settled = [result for result in results if result.exact]
    assert settled
    assert all("rationals decided" in result.notes[0].text for result in settled)
    (agreement,) = compare(results)
    assert agreement.verdict is verdict


@pytest.mark.storm
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('P=? [ F (P>=1/3 [ F "success" ] & "loop") ]', 1),
        ('P=? [ F (P>1/3 [ F "success" ] & "loop") ]', 0),
        ('P=? [ F (P<=1/3 [ F "success" ] & "loop") ]', 1),
        ('1 - P=? [ F ("loop" & P=? [ F "success" ] >= 1/3) ]', 0),
    ],
)
def test_a_nested_threshold_on_the_value_is_decided_in_rationals(text, value):
    results = check(thirds(), text)
    assert [result.value.value for result in results] == [value, value]
    assert [result.verdict for result in results] == [None, None]


def test_a_nested_threshold_that_nothing_decides_leaves_the_query_undecided():
    chain = thirds()
    floating = MarkovChain(states=chain.states, transitions=chain.transitions, initial=chain.initial)
    (result,) = check(floating, 'P=? [ F (P>=1/3 [ F "success" ] & "loop") ]', engines=["closed-form"])
    assert result.verdict is Verdict.UNDECIDED
    assert "between 0 and 1" in (result.reason or "")
    (agreement,) = compare([result])
    assert agreement.exit_code == 4


def test_an_undefined_value_stays_undecided():
    (result,) = check(fair(), 'P=? [ F "success" ] / P=? [ F "init" & "success" ]', engines=["closed-form"])
    assert result.verdict is Verdict.UNDECIDED
    assert "undefined" in (result.reason or "")


def test_a_value_beyond_doubles_is_not_clipped():
    text = 'pow(2, 100000) * P=? [ F "success" ]'
    (result,) = check(fair(), text, engines=["closed-form"])
    assert result.value is not None
    assert result.value.value == Fraction(2**99999)  # decided in rationals
    assert len(str(result.to_dict()["value"]["value"])) == 30103
    floating = replace(fair(), transitions=fair().transitions, rationals=None, initial_rationals=None)
    (result,) = check(floating, text, engines=["closed-form"])
    assert result.verdict is Verdict.UNDECIDED
    assert "beyond the largest double" in (result.reason or "")


def test_step_bounds_may_be_expressions_of_constants():
    text = 'const int d = 2; P=? [ F<=2*d-3 "success" ]; R{"steps"}=? [ C<=d+1 ]; R{"steps"}=? [ I=d-2 ];'
    values = [result.value.value for result in check(fair(), text, engines=["closed-form"], exact=True)]
    assert values == [Fraction(1, 2), 1, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((fair(), "// nothing"), NothingToCheckError, "no property"),
        ((fair(), 'P=? [ F "sucess" ]'), PropertyError, "did you mean"),
        ((fair(), 'R{"stepz"}=? [ F "success" ]'), PropertyError, "stepz"),
        ((fair(), "my.props"), UsageError, "Path"),
        ((fair(), None), UsageError, "NoneType"),
        (("chain.json", "true"), UsageError, "MarkovChain"),
        ((twice_rewarded(), 'R=? [ F "success" ]'), PropertyError, r'<text>:1:1.*ambiguous.*"cost"'),
    ],
)
def test_wrong_calls_are_told_what_to_do(arguments, error, words):
    with pytest.raises(error, match=words):
        check(*arguments)


def test_an_unknown_engine_is_refused_before_anything_runs():
    with pytest.raises(UsageError, match="closed-form, storm"):
        check(fair(), "true", engines=["prism"])


def test_a_missing_property_file_is_said_with_its_name(tmp_path: Path):
    with pytest.raises(PropertyError, match=r"nowhere\.props"):
        check(fair(), tmp_path / "nowhere.props")
