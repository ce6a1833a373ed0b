"""What is written for PRISM and Storm means what the formula means: the exact engine is asked about both."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.export.test_properties import random_chain, values
from tests.pctl.strategies import any_paths

from tracebridge.errors import PropertyError
from tracebridge.pctl import ast, parse_formula
from tracebridge.pctl.tool_syntax import MAX_NODES, prism_form, storm_form, tool_form

CHAINS = [random_chain(Random(seed)) for seed in range(4)]
LABELS = st.sampled_from(["a", "b-c", "F", "end"]).map(ast.Label)


def equal(first: ast.Formula, second: ast.Formula) -> bool:
    return all(values(first, chain) == values(second, chain) for chain in CHAINS)


@settings(max_examples=60)
@given(any_paths(LABELS, depth=1, automata=False))
def test_storm_gets_the_same_path_formula(path: ast.PathFormula) -> None:
    form = storm_form(path)
    lacking = (ast.WeakUntil, ast.Release)
    for node in ast.walk(form):
        assert not isinstance(node, lacking)
        assert not (isinstance(node, ast.Globally) and node.bound is not None)
        assert not (isinstance(node, ast.PathBinary) and node.operator in {"=>", "<=>"})
        assert not (isinstance(node, ast.Until) and node.bound is not None and node.bound.lower is not None)
    assert equal(ast.Probability(path), ast.Probability(form))


@settings(max_examples=60)
@given(
    st.sampled_from(["A", "E"]), any_paths(LABELS, depth=0, automata=False), st.sampled_from([prism_form, storm_form])
)
def test_a_and_e_become_the_right_probability(quantifier: str, path: ast.PathFormula, form: object) -> None:
    quantified = ast.Quantified(quantifier, path)  # type: ignore[arg-type]
    written = form(quantified)  # type: ignore[operator]
    if not isinstance(written, ast.Probability):
        return
    assert written.threshold is not None
    for chain in CHAINS:
        found = [value > 0 for value in values(ast.Probability(written.path), chain)]
        if written.threshold.comparison == "<=":
            found = [not positive for positive in found]
        assert found == [value == 1 for value in values(quantified, chain)]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('E [ F (X "a") ]', 'P>0 [ F X "a" ]'),
        ('A [ (G "a") | (X "b") ]', 'P<=0 [ !((G "a") | (X "b")) ]'),
        ('A [ F "a" ]', None),
        ('E [ G "a" ]', None),
        ('E [ F (G "a") ]', None),
        ('A [ "a" R "b" ]', 'P<=0 [ !"a" U !"b" ]'),
    ],
)
def test_which_questions_about_runs_are_ones_about_probabilities(text: str, written: str | None) -> None:
    form = storm_form(parse_formula(text))
    assert form == parse_formula(text if written is None else written)


@settings(max_examples=40)
@given(any_paths(LABELS, depth=0, automata=False), any_paths(LABELS, depth=0, automata=False))
def test_prism_gets_a_condition_as_a_quotient(path: ast.PathFormula, condition: ast.PathFormula) -> None:
    given_ = ast.Probability(path, condition=condition)
    quotient = prism_form(given_)
    if quotient is given_:
        assert any(getattr(part, "bound", None) for part in (path, condition))
        return
    assert isinstance(quotient, ast.Binary)
    for chain in CHAINS:
        defined = [bottom > 0 for bottom in values(quotient.right, chain)]
        if all(defined):
            assert values(given_, chain) == values(quotient, chain)


def test_a_formula_that_would_explode_is_refused() -> None:
    formula: ast.Formula = ast.Label("a")
    for _ in range(60):
        formula = ast.Binary("<=>", formula, ast.Label("b"))
    with pytest.raises(PropertyError, match="has no <=>, and without it the formula is too large"):
        tool_form(formula, "storm")
    path: ast.Formula | ast.PathFormula = ast.Next(ast.Label("a"))
    for _ in range(60):
        path = ast.WeakUntil(path, ast.Next(ast.Label("b")))
    assert isinstance(path, ast.WeakUntil)
    with pytest.raises(PropertyError, match="too large"):
        tool_form(ast.Probability(path), "storm")


def test_a_large_formula_that_does_not_grow_is_written() -> None:
    formula = parse_formula(" & ".join(['"a"'] * MAX_NODES + ["E [ F true ]"]))
    assert sum(1 for _ in ast.walk(tool_form(formula, "storm"))) > MAX_NODES
    assert tool_form(parse_formula("R=? [ C<5 ]"), "prism") == parse_formula("R=? [ C<=4 ]")
    assert tool_form(ast.Number(Fraction(1), integer=True), "prism") == ast.Number(Fraction(1), integer=True)
