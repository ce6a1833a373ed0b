"""How Storm is asked, as text."""

from __future__ import annotations

import pytest
from tests.checking.storm_chains import operator_of

from tracebridge.checking.storm_formulation import formulate, parts_of, storm_formulation
from tracebridge.errors import PropertyError, UnsupportedError


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ('P=? [ F "a" ]', 'P=? [ F ("a") ]'),
        ('P=? [ "a1" U "a0" ]', 'P=? [ ("a1") U ("a0") ]'),
        ('P>=0.5 [ F<3 "a" ]', 'P=? [ F<=2 ("a") ]'),
        ('P=? [ F[2,5] "a" ]', 'P=? [ F[2,5] ("a") ]'),
        ('S=? [ "a" ]', 'S=? [ ("a") ]'),
        ('R{"cost"}=? [ F "a" ]', 'R{"cost"}=? [ F ("a") ]'),
        ("R=? [ C<5 ]", 'R{"r0"}=? [ C<=4 ]'),
        ('P=? [ F (G "a") ]', 'P=? [ F (G ("a")) ]'),
        ('P=? [ ("a" U<=3 "b") & (X "a") ]', 'P=? [ (("a") U<=3 ("b")) & (X ("a")) ]'),
        ('P=? [ F "a" || F "b" ]', 'P=? [ F ("a") || F ("b") ]'),
        ('R{"r"}=? [ F "a" || F "b" ]', 'R{"r"}=? [ F ("a") || F ("b") ]'),
        ('P=? [ F{"cost"}<=5 "a" ]', 'P=? [ F^{rew{"cost"}<=5} ("a") ]'),
        ('R{"r"}=? [ C{"cost"}<=5 ]', 'R{"r"}=? [ C^{rew{"cost"}<=5} ]'),
        ('R{"r"}=? [ C<=5 discount=0.9 ]', 'R{"r"}=? [ C<=5discount=9/10 ]'),
        ('T=? [ F "a" ]', 'T=? [ F ("a") ]'),
    ],
)
def test_what_storm_can_say_is_asked_as_it_is(text: str, asked: str) -> None:
    assert storm_formulation(operator_of(text)) == asked
    assert not formulate(operator_of(text), "r0").rewritten


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ('P=? [ G<=3 "a" ]', '1 - (P=? [ F<=3 !("a") ])'),
        ('P=? [ "a" W "b" ]', '1 - (P=? [ (("a") & !("b")) U (!("a") & !("b")) ])'),
        ('P=? [ "a" R "b" ]', '1 - (P=? [ !("a") U !("b") ])'),
        (
            'P=? [ "a" U>=2 "b" ]',
            'R{v}=? [ I=2 ] with v = P=? [ ("a") U ("b") ], over runs with 2 steps spent where ("a")',
        ),
        ('P=? [ F>3 "a" ]', 'R{v}=? [ I=4 ] with v = P=? [ F ("a") ], over runs with 4 steps'),
        ('P=? [ F[2,1] "a" ]', "P=? [ F<=0 false ]"),
        ('P=? [ (F "a") => (X "b") ]', 'P=? [ (!(F ("a"))) | (X ("b")) ]'),
        ('P=? [ G<=2 (X "a") ]', 'P=? [ !(F<=2 (!(X ("a")))) ]'),
        ('P=? [ F (G>=2 "a") ]', 'P=? [ F (!(X (X (F (!("a")))))) ]'),
        ('P=? [ X ("a" U>=1 "b") ]', 'P=? [ X (("a") & (X (("a") U ("b")))) ]'),
        ('P=? [ X ("a" W "b") ]', 'P=? [ X (!((("a") & (!("b"))) U ((!("a")) & (!("b"))))) ]'),
        ('P=? [ G "a" || X "b" ]', '(P=? [ (G ("a")) & (X ("b")) ]) / (P=? [ X ("b") ])'),
        (
            'P=? [ "a" U{"cost"}<=5 "b" ]',
            'P=? [ F^{rew{"cost"}<=5} ("b") ] on the chain that ends where ("a") does not hold',
        ),
        ('P=? [ G{"cost"}<=5 "a" ]', '1 - (P=? [ F^{rew{"cost"}<=5} !("a") ])'),
        ('P=? [ F^{rew{"cost"}<=5,steps<=4} "a" ]', 'P=? [ F^{rew{"cost"}<=5,steps<=4} ("a") ]'),
        ('P=? [ F{"cost"}[2,5] "a" ]', 'P=? [ F^{rew{"cost"}>=2,rew{"cost"}<=5} ("a") ]'),
        (
            'E [ G<=3 "a" ]',
            'R{v}=? [ I=3 ] with v = P=? [ F<=0 ("a") ], over runs with 3 steps spent where ("a") > 0',
        ),
        ('E [ F "a" ]', 'P=? [ F ("a") ] > 0'),
        ('A [ G<=3 "a" ]', '!(P=? [ F<=3 !("a") ] > 0)'),
        ('R{"r"}=? [ "a" U "b" ]', 'R{"r"}=? [ F ("b") ] where P>=1 [ ("a") U ("b") ], infinity elsewhere'),
        ('A [ X "a" ]', '!(P=? [ X !("a") ] > 0)'),
    ],
)
def test_the_rest_is_rewritten(text: str, asked: str) -> None:
    assert storm_formulation(operator_of(text)) == asked
    operator = operator_of(text)
    assert parts_of(operator) is not None or formulate(operator, "r0").rewritten


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('E [ G "a" ]', "no probability says the same"),
        ('A [ F "a" ]', "no probability says the same"),
        ('A [ F[1,3] "a" ]', "no probability says the same"),
        ('E [ "a" W<=3 "b" ]', "no probability says the same"),
        ('E [ (F "a") & (F "b") ]', "no probability says the same"),
        ('R{"r"}=? [ "a" U<=3 "b" ]', "no rewards until a path formula"),
        ('R{"r"}=? [ F ("a" & (X "b")) ]', "no rewards until a path formula"),
        ('R{"r"}=? [ F "a" || G "b" ]', "both sides are F"),
        ('R{"r"}=? [ C || F "b" ]', "both sides are F"),
        ('R{"r"}=? [ C{"cost"}<=5 discount=0.9 ]', "no discounted reward within"),
        ('P=? [ F (G{"cost"}<=5 "a") ]', "no bounds on rewards inside LTL"),
        ('P=? [ X (F<=101 "a") ]', "not asked for more than 100"),
        (f"P=? [ {' | '.join(f'(F {chr(34)}l{i}{chr(34)})' for i in range(13))} ]", "more than 12 operands"),
        (f"P=? [ {'X (' * 61}X true{')' * 61} ]", "more than 60 operators"),
        ('P=? [ HOA: {"a.hoa", "x" -> "a"} ]', "automata from files"),
        ("multi(Pmax=? [ F true ], Pmax=? [ X true ])", "models with choices"),
        ("<<p1>> Pmax=? [ F true ]", "for games"),
    ],
)
def test_the_rest_is_said_to_be_out_of_reach(text: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        formulate(operator_of(text), "r0")


def test_a_text_that_doubles_with_every_level_is_not_written_out() -> None:
    nested = " W (".join(["X true"] * 30) + ")" * 29
    with pytest.raises(UnsupportedError, match="too long"):
        formulate(operator_of(f"P=? [ {nested} ]"), "r0")


@pytest.mark.parametrize("text", ['R{"r"}=? [ Cdiscount=1 ]', 'R{"r"}=? [ Cdiscount=0 ]', 'R{"r"}=? [ C<0 ]'])
def test_bounds_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(PropertyError):
        formulate(operator_of(text), "r0")
