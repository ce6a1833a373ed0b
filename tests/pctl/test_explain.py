"""Formulas in plain language."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.pctl.strategies import any_formulas, formulas

from tracebridge.pctl import ast, explain, parse_formula, parse_properties

P = "the probability, from the start, that "


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ('P>=0.72 [ F<=8 "success" ]', P + '"success" is reached within 8 steps is at least 0.72'),
        ('P=? [ F "success" ]', P + '"success" is reached'),
        ('P<0.1 [ F<3 "a" ]', P + '"a" is reached in fewer than 3 steps is less than 0.1'),
        ('P=? [ F>=3 "a" ]', P + '"a" is reached at a step from step 3 on'),
        ('P=? [ F>3 "a" ]', P + '"a" is reached at a step after step 3'),
        ('P=? [ F=1 "a" ]', P + 'after exactly 1 step, "a" holds'),
        ('P=? [ F[2,5] "a" ]', P + '"a" is reached at a step from step 2 to step 5'),
        ('P=? [ F ("a" & !"b") ]', P + 'a state is reached in which ("a" holds and "b" does not hold)'),
        ('P=? [ G "a" ]', P + 'at every step, "a" holds'),
        ('P=? [ G<=5 !"failure" ]', P + 'at every step up to step 5, "failure" does not hold'),
        ('P=? [ G[2,4] "a" ]', P + 'at every step from step 2 to step 4, "a" holds'),
        ('P=? [ X "a" ]', P + 'after one step, "a" holds'),
        ('P=? [ "a" U<=4 "b" ]', P + '"b" is reached within 4 steps, and at every step before that, "a" holds'),
        ('P=? [ true U "b" ]', P + '"b" is reached'),
        ('P=? [ "a" W "b" ]', P + 'at every step, "a" holds, until "b" holds or forever'),
        (
            'P=? [ "a" R "b" ]',
            P + 'at every step, "b" holds, up to and including the first step at which "a" holds, or forever',
        ),
        (
            'P>=1 [ G ("a" => P>=0.9 [ F "b" ]) ]',
            P
            + 'at every step, (if "a" holds, then (the probability, from there, that "b" is reached is at least 0.9)) '
            "is at least 1",
        ),
        ('Pmax=? [ F "a" ]', 'the largest probability, from the start, that "a" is reached'),
        (
            'R{"steps"}=? [ F "absorbed" ]',
            'the expected reward "steps", from the start, collected until "absorbed" is reached',
        ),
        (
            'R{"r"}<=3 [ C<=10 ]',
            'the expected reward "r", from the start, collected in the first 10 steps is at most 3',
        ),
        ("R=? [ C ]", "the expected reward, from the start, collected in total"),
        ('R{"r"}=? [ I=4 ]', 'the expected reward "r", from the start, of the state after exactly 4 steps'),
        ('R{"r"}=? [ S ]', 'the long-run average reward "r" of a step, from the start'),
        ('S>0.5 [ "a" ]', 'the long-run fraction of steps, from the start, in which "a" holds is more than 0.5'),
        ('pow(P=? [ F "a" ], k)', f'({P}"a" is reached) to the power k'),
        ('1 - P=? [ F "a" ]', f'1 minus ({P}"a" is reached)'),
        ('P=? [ F "a" ] > 0.3', f'({P}"a" is reached) is more than 0.3'),
        ('"a" | "b" | !"c"', '"a" holds or "b" holds or "c" does not hold'),
        ('!("a" & "b")', 'it is not the case that ("a" holds and "b" holds)'),
        ('"a" <=> true', '"a" holds exactly when it is always so'),
        ('"a" ? 1 : 0.5', 'if "a" holds, then 1, otherwise 0.5'),
        ('P=? [ F G "a" ]', P + 'a step is reached from which (at every step, "a" holds)'),
        (
            'P=? [ (F "a") & !(X "b") ]',
            P + '("a" is reached) and (it is not the case that (after one step, "b" holds))',
        ),
        ('P=? [ (F "a") => (G<=3 "b") ]', P + 'if ("a" is reached), then (at every step up to step 3, "b" holds)'),
        ('P=? [ F "a" || G "b" ]', P + '"a" is reached, given that at every step, "b" holds'),
        ('P=? [ F{"cost"}<=5 "a" ]', P + '"a" is reached with a collected reward "cost" of at most 5'),
        (
            'P=? [ F^{rew{"r"}[2,5],steps<=4} "a" ]',
            P + '"a" is reached within 4 steps with a collected reward "r" of at least 2 and at most 5',
        ),
        (
            'P=? [ HOA: {"a.hoa", "p" -> "x"} ]',
            P + 'the automaton in the file "a.hoa" accepts the run, where "p" means "x" holds',
        ),
        ('A [ G "a" ]', 'on every run, from the start, at every step, "a" holds'),
        ('E [ F "a" ]', 'on some run, from the start, "a" is reached'),
        ('T=? [ F "a" ]', 'the expected number of steps, from the start, until "a" is reached'),
        ("R{2}=? [ C ]", "the expected reward number 2, from the start, collected in total"),
        (
            'R{"r"}=? [ "a" U "b" ]',
            (
                'the expected reward "r", from the start, collected until it is settled that '
                '("b" is reached, and at every step before that, "a" holds)'
            ),
        ),
        (
            'R{"r"}=? [ C<=5 discount=0.9 ]',
            (
                'the expected reward "r", from the start, collected in the first 5 steps, '
                "each step counting 0.9 times as much as the one before"
            ),
        ),
        (
            'R{"r"}=? [ C{"cost"}<=5 ]',
            'the expected reward "r", from the start, collected in total with a collected reward "cost" of at most 5',
        ),
        (
            'filter(max, P=? [ F "a" ], "b")',
            (
                'the largest value, over the states in which "b" holds, of '
                '(the probability, from there, that "a" is reached)'
            ),
        ),
        (
            'filter(avg, P=? [ F "a" ])',
            'the average, over all states, of (the probability, from there, that "a" is reached)',
        ),
        ('filter(forall, "a", "b")', 'in every state in which "b" holds, "a" holds'),
        ('filter(count, "a")', 'the number of states, among all states, in which "a" holds'),
        ('filter(state, "a", "b")', 'the value, in the only state in which "b" holds, of "a" holds'),
        (
            'filter(argmin, P=? [ F "a" ], "b")',
            (
                'the states, among the states in which "b" holds, with the smallest value of '
                '(the probability, from there, that "a" is reached)'
            ),
        ),
        (
            'quantile(min B, P>=0.9 [ F<=B "a" ])',
            f'the smallest B for which ({P}"a" is reached within B steps is at least 0.9)',
        ),
        (
            'multi(Pmax=? [ F "a" ], P>=0.5 [ G "b" ])',
            (
                'with the same choices: (the largest probability, from the start, that "a" is reached) and '
                f'({P}at every step, "b" holds is at least 0.5)'
            ),
        ),
        ('<<p1>> P>=0.5 [ F "a" ]', f'with p1 choosing, ({P}"a" is reached is at least 0.5)'),
        ('-P=? [ F "a" ]', f'minus ({P}"a" is reached)'),
        ("max(x, 2) >= floor(y)", "(the largest of x and 2) is at least (y rounded down)"),
    ],
)
def test_reading(text: str, reading: str) -> None:
    assert explain(parse_formula(text)) == reading


def test_a_property_reads_like_its_formula() -> None:
    (entry,) = parse_properties('"n": P=? [ F "a" ]').properties
    assert explain(entry) == P + '"a" is reached'


def test_a_reference_to_a_number_reads_as_one() -> None:
    file = parse_properties('"n": P=? [ F "a" ]; "m": pow("n", 2) - "n"; "b": P>0 [ F "a" ]; "c": "b" & "n" > 0.5')
    assert explain(file.properties[1]) == '(the value of "n" to the power 2) minus the value of "n"'
    assert explain(file.properties[3]) == '"b" holds and (the value of "n" is more than 0.5)'


@given(formulas(["a", "b"], 2, rewards=["r"]) | any_formulas(["a", "b"], ["r"]))
def test_every_formula_can_be_read_and_mentions_its_labels(formula: ast.Formula) -> None:
    reading = explain(formula)
    assert all(f'"{node.name}"' in reading for node in ast.walk(formula) if isinstance(node, ast.Label))
    assert reading.count("(") == reading.count(")")
