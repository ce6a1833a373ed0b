"""Constants are evaluated exactly, and nothing that a file says can blow up."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pctl.strategies import any_formulas

from tracebridge.errors import PropertyError, UsageError
from tracebridge.pctl import (
    ast,
    evaluate_constant,
    format_formula,
    parse_formula,
    parse_properties,
    resolve_constants,
    rewrite,
    step_window,
)
from tracebridge.pctl.folding import fold_steps


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1 + 0.2", Fraction(3, 10)),
        ("1/3 + 1/3 + 1/3", Fraction(1)),
        ("7/2", Fraction(7, 2)),
        ("-2 * 3 - 4", Fraction(-10)),
        ("pow(2, 10)", Fraction(1024)),
        ("pow(2, -3)", Fraction(1, 8)),
        ("pow(2/3, 3)", Fraction(8, 27)),
        ("pow(0.25, 0.5)", Fraction(1, 2)),
        ("pow(8/27, 2/3)", Fraction(4, 9)),
        ("pow(-1, 1e18 + 1)", Fraction(-1)),
        ("pow(0, 0)", Fraction(1)),
        ("log(8, 2)", Fraction(3)),
        ("log(1/9, 3)", Fraction(-2)),
        ("floor(-2.5)", Fraction(-3)),
        ("ceil(-2.5)", Fraction(-2)),
        ("round(2.5)", Fraction(3)),
        ("round(-2.5)", Fraction(-2)),
        ("mod(-1, 3)", Fraction(2)),
        ("min(3, 1, 2) + max(3, 1, 2)", Fraction(4)),
        ("2 > 1 ? 5 : 1/0", Fraction(5)),
    ],
)
def test_numbers(text: str, value: Fraction) -> None:
    assert evaluate_constant(parse_formula(text)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1 + 0.2 = 0.3", True),
        ("1 != 1", False),
        ("true => false", False),
        ("false => false", True),
        ("true <=> false", False),
        ("!(1 < 2) | 2 <= 2 & 3 >= 4", False),
        ("false & 1/0 = 1", False),
        ("true | 1/0 = 1", True),
    ],
)
def test_truth_values(text: str, value: bool) -> None:
    assert evaluate_constant(parse_formula(text)) is value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1/0", "division by zero"),
        ("pow(0, -1)", "0 has no negative power"),
        ("pow(2, 0.5)", "is not rational"),
        ("pow(-4, 0.5)", "is not rational"),
        ("pow(10, 100000)", "too large"),
        ("pow(pow(2, 9000), 2)", "too large"),
        ("pow(2, 9000) * pow(2, 9000)", "more than 14,000 bits"),
        ("pow(2, 1e-4000)", "is not rational"),
        ("log(10, 2)", "is no whole number"),
        ("log(0, 2)", "is not defined"),
        ("log(2, 1)", "is not defined"),
        ("log(2, 1 + 1e-300)", "is no whole number"),
        ("mod(5, 0)", "mod needs a whole number and a positive one"),
        ("k + 1", "k has no value here"),
        ('"a" & true', "must be a constant"),
    ],
)
def test_no_exact_value(text: str, message: str) -> None:
    start = time.process_time()
    with pytest.raises(PropertyError, match=message):
        evaluate_constant(parse_formula(text))
    assert time.process_time() - start < 1


@given(st.fractions(0, 50, max_denominator=99), st.integers(-6, 6), st.integers(1, 6))
def test_powers_and_roots_undo_each_other(base: Fraction, exponent: int, degree: int) -> None:
    if base == 0 and exponent <= 0:
        return

    def number(value: Fraction) -> ast.Number:
        return ast.Number(value, integer=False)

    power = evaluate_constant(ast.Call("pow", (number(base), number(Fraction(exponent * degree)))))
    assert power == base ** (exponent * degree)
    root = evaluate_constant(ast.Call("pow", (number(Fraction(power)), number(Fraction(1, degree)))))
    assert root == base**exponent


@given(st.integers(2, 1000), st.integers(-200, 200))
def test_logarithms_of_powers(base: int, exponent: int) -> None:
    arguments = (ast.Number(Fraction(base) ** exponent, integer=False), ast.Number(Fraction(base), integer=True))
    assert evaluate_constant(ast.Call("log", arguments)) == exponent


def test_constants_are_substituted_everywhere() -> None:
    file = parse_properties(
        "const int d = 2 * half; const int half = 4; const double p = 1/3; const bool on = d > 7;\n"
        '"n": P>=p [ F<=d+1 ("a" & on) ]; R{"r"}<=d [ C<=half ]; P=? [ "a" U[half,d] "b" ]'
    )
    plain = 'P>=1/3 [ F<=8+1 ("a" & true) ]; R{"r"}<=8 [ C<=4 ]; P=? [ "a" U[4,8] "b" ]'
    resolved = resolve_constants(file)
    assert resolved.constants == ()
    expected = [entry.formula for entry in parse_properties(plain).properties]
    third = ast.Number(Fraction(1, 3), integer=False)
    expected[0] = ast.Probability(expected[0].path, ast.Threshold(">=", third))  # type: ignore[union-attr]
    assert [entry.formula for entry in resolved.properties] == expected
    assert resolved.properties[0].text == 'P>=p [ F<=d+1 ("a" & on) ]'


def test_values_from_outside_take_precedence() -> None:
    file = parse_properties('const int d = 8; const double p; P>=p [ F<=d "a" ]')
    (entry,) = resolve_constants(file, {"d": 3, "p": 0.1}).properties
    third = resolve_constants(file, {"d": Fraction(3), "p": Fraction(1, 10)}).properties[0]
    assert entry == third
    assert entry.formula == parse_formula('P>=0.1 [ F<=3 "a" ]')


def test_labels_are_expanded() -> None:
    file = parse_properties('label "x" = "a" | k > 1; label "y" = !"x" & "b"; const int k = 2; P=? [ F "y" ]; "x"')
    formulas = [entry.formula for entry in resolve_constants(file).properties]
    assert formulas == [parse_formula('P=? [ F (!("a" | 2 > 1) & "b") ]'), parse_formula('"a" | 2 > 1')]


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("const int k; k = 1", {}, r"a\.props:1:14: the constant k has no value \(give it one: --const k=\.\.\.\)"),
        ("const int k; const int m = k; m = 1", {}, r"1:31: the constant m has no value"),
        ("P=? [ F success ]", {}, r'1:9: unknown name success \(a label stands in quotes: "success"'),
        ("const int steps = 3; step = 1", {}, r"1:22: unknown name step .*did you mean steps\?"),
        (
            "const int a = b; const int b = a; a = 1",
            {},
            r"1:\d+: . is defined in terms of itself: (a -> b -> a|b -> a -> b)",
        ),
        ("const int a = a; a = 1", {}, "a is defined in terms of itself: a -> a"),
        ('label "x" = !"x"; "x"', {}, "x is defined in terms of itself"),
        ("const int k; k = 1", {"k": 2.5}, "the constant k is declared int and cannot be 5/2"),
        ("const int k; k = 1", {"k": True}, "the constant k is declared int and cannot be true"),
        ("const bool k; k", {"k": 1}, "the constant k is declared bool and cannot be 1"),
        ("const int k = j; const double j = 2.5; k = 1", {}, "declared int, but its value is a number|cannot be 5/2"),
        ("const double k = 1/0; k = 1", {}, "1:18: division by zero"),
    ],
)
def test_what_cannot_be_resolved(text: str, values: dict[str, float | bool], message: str) -> None:
    with pytest.raises(PropertyError, match=message):
        resolve_constants(parse_properties(text, path="a.props"), values)


def test_every_missing_constant_is_named_at_once() -> None:
    with pytest.raises(PropertyError) as caught:
        resolve_constants(parse_properties("const int a; const int b; a = 1; b = 2; c = 3"))
    assert [problem.message for problem in caught.value.problems] == [
        "the constant a has no value",
        "the constant b has no value",
        "unknown name c",
    ]


def test_a_constant_that_is_not_used_needs_no_value() -> None:
    assert resolve_constants(parse_properties('const int k; "a"')).properties[0].formula == ast.Label("a")


def test_a_constant_that_is_not_declared_is_a_mistake_of_the_call() -> None:
    with pytest.raises(UsageError, match=r"no constant dd is declared in a\.props; did you mean d\?"):
        resolve_constants(parse_properties("const int d = 1; d = 1", path="a.props"), {"dd": 1})


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_constant_is_finite(value: float) -> None:
    with pytest.raises(UsageError, match="cannot be"):
        resolve_constants(parse_properties("const double d; d = 1"), {"d": value})


def test_definitions_that_double_at_every_step_are_refused() -> None:
    labels = 'label "a0" = "x";' + "".join(f'label "a{i + 1}" = "a{i}" & "a{i}";' for i in range(150))
    with pytest.raises(PropertyError, match=r"expand to more than 100,000 nodes"):
        resolve_constants(parse_properties(labels + '"a150"'))
    constants = "const int a0 = 3;" + "".join(f"const int a{i + 1} = a{i} * a{i};" for i in range(150))
    with pytest.raises(PropertyError, match=r"more than 14,000 bits"):
        resolve_constants(parse_properties(constants + "a150 = 1"))


def test_long_chains_of_definitions_need_no_recursion() -> None:
    constants = "const int a0 = 1;" + "".join(f"const int a{i + 1} = a{i} + 1;" for i in range(5000))
    (entry,) = resolve_constants(parse_properties(constants + "a5000 = 1")).properties
    assert entry.formula == ast.Binary(
        "=", ast.Number(Fraction(5001), integer=True), ast.Number(Fraction(1), integer=True)
    )


@pytest.mark.parametrize(
    ("bound", "window"),
    [
        ("", (0, None)),
        ("<=3", (0, 3)),
        ("<3", (0, 2)),
        (">=3", (3, None)),
        (">3", (4, None)),
        ("=3", (3, 3)),
        ("[2,5]", (2, 5)),
        ("<=2*3-1", (0, 5)),
        (">=-2", (0, None)),
    ],
)
def test_which_steps_count(bound: str, window: tuple[int, int | None]) -> None:
    formula = parse_formula(f'P=? [ F{bound} "a" ]')
    assert isinstance(formula, ast.Probability)
    assert isinstance(formula.path, ast.Eventually)
    assert step_window(formula.path.bound) == window


@pytest.mark.parametrize("bound", ["<0", "<=-1", "[3,2]", "=-1", "<=5/2"])
def test_a_bound_without_steps_is_an_error(bound: str) -> None:
    end = ast.Binary("/", ast.Number(Fraction(5), integer=True), ast.Number(Fraction(2), integer=True))
    if bound == "<=5/2":  # the parser refuses it; a tree may still hold it
        step_bound = ast.StepBound(upper=end)
    else:
        formula = parse_formula(f'P=? [ F{bound} "a" ]')
        assert isinstance(formula, ast.Probability)
        assert isinstance(formula.path, ast.Eventually)
        assert formula.path.bound is not None
        step_bound = formula.path.bound
    with pytest.raises(PropertyError, match=r"no step satisfies this bound|must be a whole number"):
        step_window(step_bound)


QUANTILE = "quantile(min B, P>=p [ F<=B (x > k) ])"


def test_constants_and_variables_of_the_model() -> None:
    file = parse_properties(f"const double p = 1/2; {QUANTILE}; P=? [ F<=N (x > k) ]")
    model = {"k": Fraction(3), "N": Fraction(7), "p": Fraction(9, 10)}
    formulas = [entry.formula for entry in resolve_constants(file, model_constants=model, variables=["x"]).properties]
    assert formulas == [
        parse_formula("quantile(min B, P>=0.5 [ F<=B (x > 3) ])"),
        parse_formula("P=? [ F<=7 (x > 3) ]"),
    ]


def test_a_declaration_may_use_constants_of_the_model_and_hides_its_names() -> None:
    file = parse_properties("const int d = 2 * N; const int x = 1; P=? [ F<=d (x > 0) ]")
    (entry,) = resolve_constants(file, model_constants={"N": Fraction(4)}, variables=["x"]).properties
    assert entry.formula == parse_formula("P=? [ F<=8 (1 > 0) ]")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            f"const double p = 0.5; const int B = 1; {QUANTILE}",
            {},
            "variable B of the quantile is called like a constant",
        ),
        (f"const double p = 0.5; {QUANTILE}", {"model_constants": {"B": Fraction(1)}}, "like a constant of the model"),
        (f"const double p = 0.5; {QUANTILE}", {"variables": ["B"]}, "like a variable of the model"),
        ("quantile(min B, P>=0.5 [ F<=B true ]) + B", {}, r"1:41: unknown name B"),
        ("P=? [ F x ]", {"variables": ["y"]}, "1:9: unknown name x"),
    ],
)
def test_names_that_clash_or_are_unknown(text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PropertyError, match=message):
        resolve_constants(parse_properties(text), **{"variables": ["x", "k"], **options})


def test_step_bounds_are_folded_everywhere_but_for_the_variables_of_quantiles() -> None:
    formula = parse_formula(
        'P=? [ (F<=2*3 "a") & (G^{rew{"r"}<=1/2+1,steps<3-1} "b") ] + R{1+1}=? [ C<=2+2 discount=1/2 ]'
        " + quantile(B, P>0.5 [ F[1+1,B+1] (P>0.1 [ F<=2+1 true ]) ])"
    )
    expected = parse_formula(
        'P=? [ (F<=6 "a") & (G^{rew{"r"}<=1.5,steps<2} "b") ] + R{2}=? [ C<=4 discount=0.5 ]'
        " + quantile(B, P>0.5 [ F[2,B+1] (P>0.1 [ F<=3 true ]) ])"
    )
    assert fold_steps(formula) == expected
    assert fold_steps(expected) is expected
    with pytest.raises(PropertyError, match="B has no value here"):
        fold_steps(parse_formula("P>0.5 [ F<=B+1 true ]"))


@given(any_formulas(["a"], ["r"]))
def test_rewriting_reaches_every_formula_and_shares_what_it_leaves(formula: ast.Formula) -> None:
    seen: list[ast.Formula] = []

    def note(node: ast.Formula) -> ast.Formula:
        seen.append(node)
        return node

    assert rewrite(formula, note) is formula
    below = [node for node in ast.walk(formula) if isinstance(node, ast.Formula)]
    assert {id(node) for node in below} == {id(node) for node in seen}
    assert fold_steps(fold_steps(formula)) == fold_steps(formula)

    def rename(node: ast.Formula) -> ast.Formula:
        return ast.Label("b") if node == ast.Label("a") else node

    renamed = format_formula(rewrite(formula, rename))
    assert renamed == format_formula(formula, names=lambda name: "b" if name == "a" else name)
