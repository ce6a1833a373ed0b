"""How Storm is asked, as text."""

from __future__ import annotations

import pytest
from tests.checking.storm_chains import operator_of

from tracebridge.checking.storm_formulation import formulate, storm_formulation


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
    ],
)
def test_the_rest_is_rewritten(text: str, asked: str) -> None:
    assert storm_formulation(operator_of(text)) == asked
    assert formulate(operator_of(text), "r0").rewritten
