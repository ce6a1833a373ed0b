"""Choosing engines and arithmetic for a run."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tracebridge import MarkovChain, RationalMatrix, RationalVector, RewardStructure, Verdict, check, compare
from tracebridge.checking import iter_points, storm_process
from tracebridge.checking.storm_process import StormWorker
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


def seven_tenths(*, exact: bool = True) -> MarkovChain:
    """Success with probability exactly 0.7, which no double is."""
    rows = [{0: Fraction(3, 8), 1: Fraction(7, 16), 2: Fraction(3, 16)}, {1: Fraction(1)}, {2: Fraction(1)}]
    chain = MarkovChain(
        states=("loop", "success", "failure"),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector.from_fractions([1, 0, 0]),
    )
    return chain if exact else replace(chain, rationals=None, initial_rationals=None)


STEPS = [
    ('floor(P=? [ F "success" ] * 10)', 7),
    ('ceil(P=? [ F "success" ] * 10)', 7),
    ('round(P=? [ F "success" ] * 5)', 4),
    ('P>0.7 [ F "success" ] ? 1 : 0', 0),
    ('P>=0.7 [ F "success" ] ? 1 : 0', 1),
    ('mod(floor(P=? [ F "success" ] * pow(10, 20)), 7)', 7 * 10**19 % 7),
]


@pytest.mark.storm
def test_steps_that_doubles_cannot_decide_are_decided_in_rationals_by_every_engine():
    results = check(seven_tenths(), "; ".join(text for text, _ in STEPS) + ";")
    values = [value for _, value in STEPS for _ in range(2)]
    assert [result.value.value for result in results if result.value] == values
    assert [result.verdict for result in results] == [None] * len(values)
    for agreement in compare(results):
        assert (agreement.agree, agreement.verdict) == (True, None)
        assert any("rationals decided" in note.text for result in agreement.results for note in result.notes)


def test_steps_that_doubles_cannot_decide_stay_undecided_without_rationals():
    results = check(seven_tenths(exact=False), "; ".join(text for text, _ in STEPS) + ";", engines=["closed-form"])
    assert [result.verdict for result in results] == [Verdict.UNDECIDED] * len(STEPS)
    for result, (_, value) in zip(results, STEPS, strict=True):
        assert result.value is not None
        assert value in result.value
        assert "lies between" in (result.reason or "")


def rarely_done(exit_probability: Fraction) -> MarkovChain:
    """A loop that is left with a small probability: steps are geometric, with the mean one over it."""
    row = {0: 1 - exit_probability, 1: exit_probability}
    return MarkovChain(
        states=("loop", "done"),
        transitions=RationalMatrix.from_rows([row, {1: Fraction(1)}]),
        initial=RationalVector.from_fractions([1, 0]),
        labels={"absorbed": np.array([False, True])},
        rewards={"steps": RewardStructure.from_fractions([1, 0])},
    )


@pytest.mark.storm
@pytest.mark.parametrize("exact", [False, True])
def test_an_expectation_beyond_doubles_is_finite(exact):
    chain = rarely_done(Fraction(1, 10**200))
    texts = [f'{reward} [ F "absorbed" ]' for reward in ("R=?", "R<=1e500", "R>1e199")]
    texts += ['pow(R=? [ F "absorbed" ], 3)', 'R=? [ F "absorbed" ] * pow(10, 200) < 1e500']
    agreements = compare(check(chain, "; ".join(texts) + ";", exact=exact))
    satisfied = Verdict.SATISFIED
    assert [found.verdict for found in agreements] == [None, satisfied, satisfied, None, satisfied]
    assert all(found.agree for found in agreements)
    for result in agreements[3].results:
        assert result.value is not None
        assert result.value.value == Fraction(10**600)


def test_step_bounds_may_be_expressions_of_constants():
    text = 'const int d = 2; P=? [ F<=2*d-3 "success" ]; R{"steps"}=? [ C<=d+1 ]; R{"steps"}=? [ I=d-2 ];'
    values = [result.value.value for result in check(fair(), text, engines=["closed-form"], exact=True)]
    assert values == [Fraction(1, 2), 1, 1]


def test_r_without_a_name_takes_the_first_structure_and_says_so():
    for result in check(twice_rewarded(), "R=? [ C ]", engines=["closed-form"]):
        assert result.value.value == 1
        assert [note.kind for note in result.notes] == ["warning"]
        assert '"steps", and not "cost"' in result.notes[0].text


def test_references_constants_and_variables_are_those_of_the_file_and_the_model():
    model = replace(fair(), constants={"N": Fraction(1), "p": Fraction(1, 2)}, variables={"x": np.array([0, 1, 2])})
    text = """
    const int k = N + 1;
    label "won" = x = k - 1;
    "win": P=? [ F<=N "won" ];
    "twice": pow("win", k);
    "enough": P>=p [ F x=1 ];
    """
    results = check(model, text, engines=["closed-form"], exact=True)
    assert [result.value.value for result in results] == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 2)]
    assert results[2].verdict is Verdict.SATISFIED
    (hidden,) = check(model, 'const int N = 0; P=? [ F<=N "success" ]', engines=["closed-form"])
    assert hidden.value.value == 0  # a constant of the file hides one of the model


@pytest.mark.storm
def test_points_are_checked_with_each_engine_loaded_once(monkeypatch):
    started = []
    start = StormWorker._start
    monkeypatch.setattr(storm_process, "_idle", [])  # none is lent from an earlier test
    monkeypatch.setattr(StormWorker, "_start", lambda worker: (started.append(worker), start(worker)))
    points = [{"d": Fraction(d)} for d in range(4)]
    found = list(iter_points(thirds(), 'const int d; P=? [ F<=d "success" ]; P>=d/10 [ F "success" ]', points))
    assert len(found) == 16
    assert len(started) == 1
    assert [point for point, _ in found] == [point for point in points for _ in range(4)]
    values = [result.value.value for _, result in found[::4]]
    assert values == [0, pytest.approx(2 / 9), pytest.approx(2 / 9 * 4 / 3), pytest.approx(2 / 9 * 13 / 9)]
    verdicts = [result.verdict for _, result in found[2::4]]
    assert verdicts == [Verdict.SATISFIED] * 4
    with pytest.raises(PropertyError, match="has no value"):
        list(iter_points(thirds(), 'const int d; P=? [ F<=d "success" ]', [{}]))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((fair(), "// nothing"), NothingToCheckError, "no property"),
        ((fair(), 'P=? [ F "sucess" ]'), PropertyError, "did you mean"),
        ((fair(), 'R{"stepz"}=? [ F "success" ]'), PropertyError, "stepz"),
        ((fair(), "my.props"), UsageError, "Path"),
        ((fair(), None), UsageError, "NoneType"),
        (("chain.json", "true"), UsageError, "MarkovChain"),
        ((fair(), "P=? [ F x=1 ]"), PropertyError, "unknown name x"),
        ((fair(), '"p": P=? [ F "success" ]; "q": P=? [ F "r" ]'), PropertyError, 'no state has the label "r"'),
    ],
)
def test_wrong_calls_are_told_what_to_do(arguments, error, words):
    with pytest.raises(error, match=words):
        check(*arguments)


def test_an_unknown_engine_is_refused_before_anything_runs():
    with pytest.raises(UsageError, match="closed-form, storm, prism"):
        check(fair(), "true", engines=["prism-4"])


def test_a_missing_property_file_is_said_with_its_name(tmp_path: Path):
    with pytest.raises(PropertyError, match=r"nowhere\.props"):
        check(fair(), tmp_path / "nowhere.props")


def test_what_only_shows_while_checking_has_its_place_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "f.props").write_text('P=? [ F "success" ];\nfilter(state, P=? [ F "success" ], true);\n')
    with pytest.raises(PropertyError) as refused:
        check(fair(), tmp_path / "f.props", engines=["closed-form"])
    location = refused.value.problems[0].location
    assert (location.path, location.line) == (str(tmp_path / "f.props"), 2)
