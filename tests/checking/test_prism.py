"""The PRISM engine against the closed form, through a stand-in that computes by its own code; and PRISM where it is."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.checking.random_chains import random_chain
from tests.checking.storm_chains import operator_of, three_transient_states, truth_on

from tracebridge import MarkovChain, RationalMatrix, RationalVector, Verdict, check, compare
from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.prism import EXACT_STATES, PrismSession
from tracebridge.checking.prism_process import PrismExecutable
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.errors import EngineError, UnsupportedError

F = Fraction


def evaluate(chain: MarkovChain, text: str, executable: PrismExecutable, *, exact: bool = False) -> EnclosureVector:
    session = PrismSession(chain, exact=exact, executable=executable)
    return session.evaluate(operator_of(text), truth_on(chain))


def require_same(chain: MarkovChain, text: str, found: EnclosureVector, *, digits: int = 9) -> None:
    """The closed form's rationals lie within the bounds, and agree to so many digits."""
    exact = ClosedFormSession(chain, exact=True).evaluate(operator_of(text), truth_on(chain)).to_float()
    assert np.array_equal(found.undefined, exact.undefined), text
    known = ~exact.undefined
    assert np.all((found.lower <= exact.upper)[known] & (exact.lower <= found.upper)[known]), (text, found, exact)
    finite = known & np.isfinite(exact.value)
    assert np.allclose(found.value[finite], exact.value[finite], rtol=10.0**-digits, atol=10.0**-digits)
    assert np.all(np.isinf(found.value[known & np.isinf(exact.value)]))


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("exact", [False, True])
def test_values_that_were_derived_by_hand(stand_in, exact):
    chain = three_transient_states()
    reach = evaluate(chain, 'P=? [ F "success" ]', stand_in, exact=exact)
    steps = evaluate(chain, 'R{"steps"}=? [ F "end" ]', stand_in, exact=exact)
    for found, expected in (
        (reach, [F(24, 79), F(36, 79), F(9, 79), 1, 0]),
        (steps, [F(1000, 237), F(710, 237), F(770, 237), 0, 0]),
    ):
        assert found.exact is exact
        if exact:
            assert found.value.tolist() == expected
        else:
            assert np.all(found.lower <= np.array(expected, dtype=float))
            assert np.all(np.array(expected, dtype=float) <= found.upper)
            assert np.max(found.upper[:3] - found.lower[:3]) < 1e-10


#: One with two ends, in which most values are fractions, and one without any, in which all rewards are finite.
CHAINS = random_chain(20, 6), random_chain(53, 6)

PROPERTIES = [
    'P=? [ X "a" ]',
    'P=? [ F "b" ]',
    'P=? [ G "c" ]',
    'P=? [ "c" U "a" ]',
    'P=? [ "c" W "a" ]',
    'P=? [ "a" R "c" ]',
    'P=? [ F<=4 "a" ]',
    'P=? [ F<3 "a" ]',
    'P=? [ G<=3 "c" ]',
    'P=? [ F[2,5] "a" ]',
    'P=? [ "c" U[1,4] "a" ]',
    'P=? [ F=3 "b" ]',
    'P=? [ "c" U>=2 "a" ]',
    'P=? [ G>=3 "c" ]',
    'P=? [ "c" W<=3 "a" ]',
    'P=? [ "a" R[1,3] "c" ]',
    'P=? [ !(F<=3 "a") ]',
    'P=? [ (F "a") & (F "b") ]',
    'P=? [ F ("a" & (X "b")) ]',
    'Pmax=? [ F "a" ]',
    'P=? [ F "b" || F "a" ]',
    'R{"cost"}=? [ F "a" ]',
    'R{2}=? [ F "a" ]',
    "R=? [ C<=4 ]",
    'R{"cost"}=? [ C<4 ]',
    'R{"cost"}=? [ C ]',
    'R{"cost"}=? [ I=3 ]',
    'T=? [ F "a" ]',
    'E [ "c" U "a" ]',
    'E [ G "c" ]',
    'A [ G "c" ]',
    'A [ F "b" ]',
    'A [ X "c" ]',
]


@pytest.mark.parametrize("text", PROPERTIES[::2])  # the others differ in what test_prism_formulation looks at
def test_every_form_of_operator_agrees_with_the_closed_form(stand_in, text):
    chain = CHAINS[text.startswith(("R", "T"))]
    require_same(chain, text, evaluate(chain, text, stand_in))


def test_random_chains_agree_with_the_closed_form_in_every_state(stand_in):
    for seed in (8, 12, 26, 39):
        chain = random_chain(seed, 6)
        for text in ('P=? [ "c" U "a" ]', 'R{"cost"}=? [ F "a" ]'):
            try:
                found = evaluate(chain, text, stand_in)
            except UnsupportedError as error:  # sticky chains leave no digit
                assert "no correct digit" in str(error)  # noqa: PT017
                continue
            require_same(chain, text, found, digits=6)  # 26 takes 10^9 steps, of which doubles know no more


def test_random_chains_are_equal_in_rationals(stand_in):
    for chain in CHAINS:
        for text in ('P=? [ "c" U "a" ]', 'P=? [ "a" W "b" ]', 'R{"cost"}=? [ F "a" ]'):
            found = evaluate(chain, text, stand_in, exact=True)
            truth = ClosedFormSession(chain, exact=True).evaluate(operator_of(text), truth_on(chain))
            assert found.value.tolist() == truth.value.tolist()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("text", ['S=? [ "success" ]', 'R{"steps"}=? [ S ]'])
def test_long_run_averages_where_every_recurrent_class_is_one_state(stand_in, text, exact):
    chain = three_transient_states()
    found = evaluate(chain, text, stand_in, exact=exact)
    truth = ClosedFormSession(chain, exact=True).evaluate(operator_of(text), truth_on(chain))
    if exact:
        assert found.value.tolist() == truth.value.tolist()
    else:
        require_same(chain, text, found)


def test_unreachable_states_have_values_and_states_are_told_by_valuation(stand_in, monkeypatch):
    chain = replace(three_transient_states(), initial=RationalVector.from_fractions([0, 0, 0, 0, 1]))
    monkeypatch.setenv("FAKE_PRISM", "permuted")
    assert np.allclose(evaluate(chain, 'P=? [ F "success" ]', stand_in).value, [24 / 79, 36 / 79, 9 / 79, 1, 0])
    assert evaluate(chain, 'P=? [ F "success" ]', stand_in, exact=True).value[0] == F(24, 79)


def test_a_chain_of_doubles_goes_in_rationals_as_the_chain_it_stands_for(stand_in):
    doubles = three_transient_states()
    doubles = replace(doubles, transitions=doubles.transitions, rationals=None)
    assert doubles.rationals is None
    found = evaluate(doubles, 'P=? [ F "success" ]', stand_in, exact=True)
    truth = ClosedFormSession(doubles, exact=True).evaluate(operator_of('P=? [ F "success" ]'), truth_on(doubles))
    assert found.value.tolist() == truth.value.tolist()


# ---------------------------------------------------------------- accuracy


def sticky(leave: Fraction) -> MarkovChain:
    """A state that is left with a small probability, to one of two ends."""
    return MarkovChain(
        states=("stay", "success", "failure"),
        transitions=RationalMatrix.from_rows([{0: 1 - leave, 1: leave / 3, 2: leave * 2 / 3}, {1: F(1)}, {2: F(1)}]),
        initial=RationalVector.from_fractions([1, 0, 0]),
    )


def test_bounds_widen_with_the_time_that_a_chain_takes(stand_in):
    quick = evaluate(sticky(F(1, 2)), 'P=? [ F "success" ]', stand_in)
    slow = evaluate(sticky(F(1, 10**7)), 'P=? [ F "success" ]', stand_in)
    widths = [float(each.upper[0] - each.lower[0]) for each in (quick, slow)]
    assert widths[0] < 1e-11
    assert 1e-7 < widths[1] < 1e-3
    assert slow.lower[0] <= 1 / 3 <= slow.upper[0]
    with pytest.raises(UnsupportedError, match="no correct digit"):
        evaluate(sticky(F(1, 10**13)), 'P=? [ F "success" ]', stand_in)


@pytest.mark.parametrize(
    ("text", "decided"),
    [
        ('P>=1 [ F "end" ]', [1, 1, 1, 1, 1]),
        ('P>=1 [ F "success" ]', [None, None, None, 1, 0]),
        ('P<=0 [ G "s0" ]', [0, 0, 0, 0, 0]),
        ('P>0 [ "s0" W "s0" ]', [1, 0, 0, 0, 0]),
    ],
)
def test_zero_and_one_are_certain_where_the_graph_decides_them(stand_in, text, decided):
    found = evaluate(three_transient_states(), text, stand_in)
    for value, lower, upper in zip(decided, found.lower, found.upper, strict=True):
        assert (lower == upper == value) if value is not None else lower < upper


def test_without_a_threshold_the_graph_is_not_asked(stand_in):
    found = evaluate(three_transient_states(), 'P=? [ F "end" ]', stand_in)
    assert found.lower[0] < 1 == found.upper[0]


def test_steps_that_underflow_are_not_zero_for_certain(stand_in):
    found = evaluate(sticky(F(1, 10**7)), 'P=? [ G<=100 "success" ]', stand_in)
    assert found.upper[0] > 0


# ---------------------------------------------------------------- what PRISM does not have


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('P=? [ F{"cost"}<=5 "a" ]', "no reward bounds"),
        ('R{"cost"}=? [ C<=5 discount=0.9 ]', "no discount"),
        ('R{"cost"}=? [ F "a" || F "b" ]', "no conditional"),
        ('P=? [ F<=3 ("a" & (X "b")) ]', "step bounds inside LTL"),
        ("P=? [ F<=3000000000 true ]", "no whole number above"),
        ('P=? [ F[5,2] "a" ]', "no step lies"),
        ('R{"cost"}=? [ C<0 ]', "collects nothing"),
        ('E [ G<=3 "a" ]', "no step bounds in A and E"),
        ('E [ (F "a") & (F "b") ]', "one path operator"),
        ('S=? [ "a" ]', "not to any accuracy"),
        ('multi(Pmax=? [ F "a" ], P>=0.5 [ G "b" ])', "for models with choices"),
        ('<<p1>> Pmax=? [ F "b" ]', "for games"),
    ],
)
def test_what_prism_lacks_is_unsupported_with_the_reason(stand_in, text, reason):
    with pytest.raises(UnsupportedError, match=reason):
        evaluate(CHAINS[1], text, stand_in)


def test_a_refusal_that_prism_writes_into_its_results_is_unsupported_with_its_words(stand_in):
    with pytest.raises(UnsupportedError, match="A with U is not yet supported"):
        evaluate(three_transient_states(), 'A [ "s0" U "success" ]', stand_in)


@pytest.mark.parametrize("text", ['P=? [ F<=3 "a" ]', 'P=? [ X "a" ]', "R=? [ C<=3 ]", "R=? [ C ]", 'P=? [ G F "a" ]'])
def test_what_the_exact_engine_lacks_is_not_asked(stand_in, text):
    with pytest.raises(UnsupportedError, match="exact engine does not take"):
        evaluate(CHAINS[0], text, stand_in, exact=True)


def test_the_exact_engine_is_not_asked_about_large_chains(stand_in):
    n = EXACT_STATES + 1
    chain = MarkovChain(
        states=tuple(map(str, range(n))),
        transitions=RationalMatrix.from_rows([{i: F(1)} for i in range(n)]),
        initial=RationalVector(np.eye(1, n, dtype=np.int64)[0], 1),
    )
    with pytest.raises(UnsupportedError, match="one by one"):
        evaluate(chain, 'P=? [ F "1" ]', stand_in, exact=True)


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("message", "ended with status 1; it printed: .*Error: Something about the model is wrong"),
        ("signal", "was killed by SIGSEGV|ended with status 139"),
        ("nothing", "did not write its file results.csv"),
        ("no vector", "did not write its file vector.txt"),
        ("truncated", "ends in the middle of a line"),
        ("nan", r"no number \(NaN\) in 1 of 5 states"),
        ("foreign", "is no number: '0.1 "),
        ("fewer values", "gives 4 values for 5 states"),
        ("fewer states", "lists 4 states of a chain that has 5"),
        ("twice", "does not have every value of s once"),
        ("huge", "larger than"),
        ("impossible", "gives values from .* to 1.5"),
        ("negative", "gives values from -0.25"),
    ],
)
def test_a_run_that_fails_is_an_error_of_the_engine_and_no_number(stand_in, monkeypatch, how, message):
    monkeypatch.setenv("FAKE_PRISM", how)
    (result,) = check(three_transient_states(), 'P=? [ F "success" ]', engines=["prism"], prism=stand_in.path)
    assert result.verdict is Verdict.ERROR
    assert result.value is None
    assert re.search(message, result.reason or "", re.DOTALL)


@pytest.mark.parametrize(
    ("how", "message"),
    [("fewer results", "has 4 of 5 results"), ("other rational", "'about 24/79' for v0, which is no rational")],
)
def test_a_rational_run_that_fails_is_an_error_too(stand_in, monkeypatch, how, message):
    monkeypatch.setenv("FAKE_PRISM", how)
    with pytest.raises(EngineError, match=message):
        evaluate(three_transient_states(), 'P=? [ F "success" ]', stand_in, exact=True)


def test_a_temporary_folder_that_cannot_be_made_is_an_error(stand_in, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(EngineError, match="files for PRISM cannot be written"):
        evaluate(three_transient_states(), 'P=? [ F "success" ]', stand_in)


def test_a_rational_that_is_too_long_for_prism_is_said(stand_in):
    with pytest.raises(UnsupportedError, match="too long for the PRISM language"):
        evaluate(sticky(F(10**5000, 2 * 10**5000 + 1)), 'P=? [ F "success" ]', stand_in, exact=True)


def test_a_run_out_of_time_is_an_error(stand_in, monkeypatch, tmp_path):
    monkeypatch.setenv("FAKE_PRISM", "hang")
    monkeypatch.setenv("FAKE_PRISM_PIDS", str(tmp_path / "pid"))
    (result,) = check(
        three_transient_states(), 'P=? [ F "success" ]', engines=["prism"], prism=stand_in.path, time_limit=1
    )
    assert result.verdict is Verdict.ERROR
    assert result.reason == "PRISM did not answer within 1 s and was stopped"


def test_a_flood_of_output_does_no_harm(stand_in, monkeypatch):
    monkeypatch.setenv("FAKE_PRISM", "flood")
    assert np.isclose(evaluate(three_transient_states(), 'P=? [ F "success" ]', stand_in).value[0], 24 / 79)


# ---------------------------------------------------------------- three engines

PROPERTY_FILE = """
"p": P>=0.3 [ F "success" ];
"always": P>=1 [ F "end" ];
"steps": R{"steps"}=? [ F "end" ];
"within": P=? [ F<=6 "success" ];
"nested": P=? [ F (P>0.4 [ F "success" ] & "s1") ];
"quantile": quantile(min B, P>0.2 [ F<=B "success" ]);
"""


@pytest.mark.storm
@pytest.mark.parametrize("exact", [False, True])
def test_three_engines_agree(stand_in, exact):
    engines = ["closed-form", "storm", "prism"]
    agreements = compare(
        check(three_transient_states(), PROPERTY_FILE, engines=engines, exact=exact, prism=stand_in.path)
    )
    for agreement in agreements:
        assert agreement.agree, agreement.property.name
        assert agreement.exit_code == 0
        assert [result.engine for result in agreement.results] == ["closed form", "Storm", "PRISM"]
        prism = agreement.results[2]
        if agreement.property.name == "quantile":
            assert prism.verdict is Verdict.UNSUPPORTED
            assert agreement.reason == "without PRISM: PRISM has no quantile"
        else:
            assert agreement.reason is None
            assert prism.exact is (exact and agreement.property.name != "within")
    if exact:
        assert "does not take P=? [ F<=6 " in agreements[3].results[2].notes[0].text


def test_a_wrong_number_is_a_disagreement(stand_in, monkeypatch):
    monkeypatch.setenv("FAKE_PRISM", "wrong")
    results = check(
        three_transient_states(), 'P=? [ F "success" ]', engines=["closed-form", "prism"], prism=stand_in.path
    )
    (agreement,) = compare(results)
    assert agreement.agree is False
    assert agreement.exit_code == 6


def test_a_threshold_on_the_value_is_decided_in_rationals(stand_in):
    for bound, verdict in ((">=", Verdict.SATISFIED), (">", Verdict.VIOLATED)):
        (result,) = check(
            three_transient_states(), f'P{bound}24/79 [ F "success" ]', engines=["prism"], prism=stand_in.path
        )
        assert result.verdict is verdict
        assert result.exact


def test_rationals_stand_in_where_doubles_are_worth_nothing(stand_in):
    text = 'P=? [ F "success" ]; P=? [ F<=3 "success" ] + P=? [ F "success" ]'
    lone, mixed = check(sticky(F(1, 10**13)), text, engines=["prism"], prism=stand_in.path)
    assert lone.exact
    assert lone.value.value == F(1, 3)
    assert "no correct digit" in lone.notes[0].text
    assert mixed.verdict is Verdict.UNSUPPORTED  # of the two parts each arithmetic has one
    assert "no correct digit" in mixed.reason


def test_without_an_executable_every_question_says_how_to_get_one(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("TRACEBRIDGE_PRISM", raising=False)
    (result,) = check(three_transient_states(), 'P=? [ F "success" ]', engines=["prism"])
    assert result.verdict is Verdict.ERROR
    assert "www.prismmodelchecker.org" in (result.reason or "")


# ---------------------------------------------------------------- the real one


@pytest.mark.parametrize("text", PROPERTIES)
def test_the_real_prism_agrees_with_the_closed_form(real_prism, text):
    for chain in CHAINS:
        require_same(chain, text, evaluate(chain, text, real_prism))


def test_the_real_prism_equals_the_closed_form_in_rationals(real_prism):
    chain = CHAINS[0]
    for text in ('P=? [ "c" U "a" ]', 'P=? [ "a" W "b" ]', 'R{"cost"}=? [ F "a" ]'):
        truth = ClosedFormSession(chain, exact=True).evaluate(operator_of(text), truth_on(chain))
        assert evaluate(chain, text, real_prism, exact=True).value.tolist() == truth.value.tolist()
