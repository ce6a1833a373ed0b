"""What is printed parses to the same tree; what is parsed prints to the same text."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pctl.strategies import any_formulas, formulas, queries

from tracebridge.pctl import (
    ast,
    evaluate_constant,
    explain,
    format_formula,
    format_properties,
    lint,
    parse_formula,
    parse_properties,
    portability,
    resolve_constants,
    rewrite,
)
from tracebridge.pctl.folding import fold_steps
from tracebridge.pctl.nesting import MAX_DEPTH

LABELS = ["success", "tool-call", 'a "quoted" name', "größe", "back\\slash", "line\nbreak", "\u2028", "\ud800"]


@given(formulas(LABELS, 3, rewards=["steps", "kosten €"]))
def test_a_printed_formula_parses_to_itself(formula: ast.Formula) -> None:
    assert parse_formula(format_formula(formula)) == formula


@given(queries(LABELS, 2, rewards=["steps"]))
def test_a_printed_query_parses_to_itself(formula: ast.Formula) -> None:
    assert parse_formula(format_formula(formula)) == formula


@given(any_formulas(LABELS, ["steps", "kosten €"]))
def test_a_printed_formula_of_the_whole_language_parses_to_itself(formula: ast.Formula) -> None:
    assert parse_formula(format_formula(formula)) == formula


def expressions() -> st.SearchStrategy[ast.Formula]:
    """Arithmetic and comparisons over names, of every shape that the types admit."""
    names = st.sampled_from(["k", "x_1", "log", "pow"]).map(ast.Identifier)
    literals = st.one_of(
        st.integers(0, 10**6).map(lambda value: ast.Number(Fraction(value), integer=True)),
        st.builds(
            lambda digits, shift: ast.Number(Fraction(digits) / 10**shift, integer=False),
            st.integers(0, 10**9),
            st.integers(0, 60),
        ),
    )
    numbers = st.recursive(
        names | literals,
        lambda inner: st.one_of(
            st.builds(ast.Binary, st.sampled_from(["+", "-", "*", "/"]), inner, inner),
            st.builds(lambda operand: ast.Unary("-", operand), inner),
            st.builds(lambda a, b: ast.Call("min", (a, b)), inner, inner),
            st.builds(lambda a: ast.Call("floor", (a,)), inner),
            st.builds(lambda a, b, c: ast.Conditional(ast.Binary("<", a, b), b, c), inner, inner, inner),
        ),
        max_leaves=8,
    )
    conditions = st.builds(ast.Binary, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), numbers, numbers)
    return st.recursive(
        conditions,
        lambda inner: st.one_of(
            st.builds(ast.Binary, st.sampled_from(["&", "|", "=>", "<=>", "=", "!="]), inner, inner),
            st.builds(lambda operand: ast.Unary("!", operand), inner),
            st.builds(ast.Conditional, inner, inner, inner),
        ),
        max_leaves=6,
    )


@given(expressions())
def test_precedence_and_associativity_survive_printing(formula: ast.Formula) -> None:
    assert parse_formula(format_formula(formula)) == formula


@pytest.mark.parametrize(
    ("loose", "strict"),
    [
        ("a = 1 | b = 2 & c = 3", "(a = 1) | ((b = 2) & (c = 3))"),
        ("!a = b", "!(a = b)"),
        ("a - b - c = d", "((a - b) - c) = d"),
        ("a / b * c = d", "((a / b) * c) = d"),
        ("-a * b + c < d = e", "((((-a) * b) + c) < d) = e"),
        ("a => b => c", "(a => b) => c"),
        ("a => b <=> c", "a => (b <=> c)"),
        ("a <=> b | c", "a <=> (b | c)"),
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
        ("a | b ? c & d : e => f", "(a | b) ? (c & d) : (e => f)"),
        ('P=? [ F "a" & "b" ]', 'P=? [ F ("a" & "b") ]'),
        ('P=? [ F<=k+1 "a" ]', 'P=? [ F<=(k + 1) "a" ]'),
        ("P=? [ F<=k (s=1) ]", "P=? [ F<=(k) ((s = 1)) ]"),
        ('P=? [ "a" | "b" U !"c" & "d" ]', 'P=? [ ("a" | "b") U ((!"c") & "d") ]'),
        ('!P>=0.9 [ F "a" ] & "b"', '(!(P>=0.9 [ F "a" ])) & "b"'),
        ('P max=? [ F "a" ]', 'Pmax = ? [F "a"]'),
        ('R{"r"} min >= 3 [ C ]', 'R{"r"}min>=3 [ C ]'),
        ('P=? [ "a" R<=3 R{"x"}>1 [ S ] ]', 'P=? [ "a" R<=3 (R{"x"}>1 [ S ]) ]'),
    ],
)
def test_precedence_is_that_of_prism(loose: str, strict: str) -> None:
    """The table of operators in PRISM's manual, and PrismParser.jj where the manual is silent."""
    assert parse_formula(loose) == parse_formula(strict)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("F<=3", ast.StepBound(upper=ast.Number(Fraction(3), integer=True))),
        ("F<3", ast.StepBound(upper=ast.Number(Fraction(3), integer=True), upper_strict=True)),
        ("F>=3", ast.StepBound(lower=ast.Number(Fraction(3), integer=True))),
        ("F>3", ast.StepBound(lower=ast.Number(Fraction(3), integer=True), lower_strict=True)),
        (
            "F=3",
            ast.StepBound(
                lower=ast.Number(Fraction(3), integer=True), upper=ast.Number(Fraction(3), integer=True), exact=True
            ),
        ),
        (
            "F[2,k]",
            ast.StepBound(lower=ast.Number(Fraction(2), integer=True), upper=ast.Identifier("k")),
        ),
    ],
)
def test_every_form_of_step_bound(text: str, bound: ast.StepBound) -> None:
    assert parse_formula(f'P=? [ {text} "a" ]') == ast.Probability(ast.Eventually(ast.Label("a"), bound))


@pytest.mark.parametrize(
    ("text", "value", "integer"),
    [
        ("1e-3", Fraction(1, 1000), False),
        (".5", Fraction(1, 2), False),
        ("0.1", Fraction(1, 10), False),
        ("2", Fraction(2), True),
        ("2.0", Fraction(2), False),
        ("1E2", Fraction(100), False),
        ("12.50e+1", Fraction(125), False),
    ],
)
def test_numbers_are_exact(text: str, value: Fraction, integer: bool) -> None:
    assert parse_formula(f"x = {text}") == ast.Binary("=", ast.Identifier("x"), ast.Number(value, integer))


@pytest.mark.parametrize(
    "value", [Fraction(-3), Fraction(1, 3), Fraction(-1, 3), Fraction(1, 10**300), Fraction(10**30)]
)
def test_a_number_that_no_literal_says_keeps_its_value(value: Fraction) -> None:
    number = ast.Number(value, integer=value.denominator == 1)
    product = ast.Binary("*", number, ast.Number(Fraction(2), integer=True))
    assert evaluate_constant(parse_formula(format_formula(product))) == 2 * value


FILE = """\
// What this file is about.
//
// More of it.

const int d = 8;
// the bound
const double p = 0.75;
const bool strict;

label "done" = "success" | "failure";
//@ requirement REQ-7
//@ credible 0.95
"within": P>=p [ F<=d "success" ];

// asks for the value
P=? [ F "done" ];
// the end
"""


def test_the_canonical_text_of_a_file_is_stable() -> None:
    assert format_properties(parse_properties(FILE)) == FILE


def test_layout_becomes_canonical_and_nothing_is_lost() -> None:
    messy = (
        "\ufeffconst   int d=8 ; // budget\r\n//@credible  0.9     over the posterior\r\n"
        '"x" :P>=0.5[F<=d "a"]// why\r\nP=?\n[F "a"]'
    )
    canonical = (
        "// budget\nconst int d = 8;\n// over the posterior\n// why\n//@ credible 0.9\n"
        '"x": P>=0.5 [ F<=d "a" ];\nP=? [ F "a" ];\n'
    )
    assert format_properties(parse_properties(messy)) == canonical
    assert parse_properties(messy) == parse_properties(canonical)


LAYOUT = [
    "",
    "   ",
    "//",
    "// a remark",
    "//@ requirement R more words",
    "//@ note blocking",
    "//@",
    "const int K = 3; // behind",
    "const int K =\n\n3;",
    '"N": P=? [ F\n// inside\n"a" ]; // behind',
    'P=? [ F "a" ];',
]


@given(st.lists(st.sampled_from(LAYOUT), max_size=12))
def test_formatting_any_layout_settles_at_once(lines: list[str]) -> None:
    named = (line.replace("K", f"k{i}").replace("N", f"n{i}") for i, line in enumerate(lines))
    file = parse_properties("\n".join(named))
    formatted = format_properties(file)
    assert parse_properties(formatted) == file
    assert format_properties(parse_properties(formatted)) == formatted


def test_a_file_without_positions_prints_declarations_first() -> None:
    file = ast.PropertyFile(
        properties=(ast.Property(formula=ast.Label("a"), name="n"),),
        constants=(ast.Constant(name="k", type="int"),),
    )
    assert format_properties(file) == 'const int k;\n"n": "a";\n'
    assert parse_properties(format_properties(file)) == file


def deep(depth: int) -> list[tuple[str, str]]:
    """Texts whose trees have this many levels."""
    operators = (depth - 1) // 2
    return [
        ("negations", "!" * (depth - 1) + '"a"'),
        ("operators", "P>=0.5 [ F " * operators + '"a"' + " ]" * operators),
        ("paths", "P=? [ " + "X " * (depth - 2) + '"a" ]'),
        ("bounded paths", "P=? [ " + "G<=2 (" * (depth - 2) + '"a"' + ")" * (depth - 2) + " ]"),
        ("filters", "filter(forall, " * (depth - 1) + '"a"' + ")" * (depth - 1)),
        ("to the right", '"a" => (' * (depth - 1) + '"a"' + ")" * (depth - 1)),
        ("conditionals", "x > 0 ? y : " * (depth - 3) + "y"),
        ("signs", "-" * (depth - 2) + "1 = x"),
        ("parentheses", "(" * depth + '"a"' + ")" * depth),
    ]


def long(length: int) -> list[tuple[str, str]]:
    """Flat texts with this many operands, whose trees lean to the left."""
    return [
        ("and", " & ".join(['"a"'] * length)),
        ("or of names", " | ".join(["x"] * length)),
        ("sum", " + ".join(["1"] * length) + " = x"),
        ("equalities", " = ".join(["x"] * length)),
        ("path formulas", "P=? [ " + " & ".join(['(F "a")'] * length) + " ]"),
    ]


def shape(formula: ast.Formula) -> list[tuple[object, ...]]:
    """What a tree consists of, node by node; comparing trees themselves needs Python's stack."""
    scalars = (bool, str, Fraction, type(None))
    return [
        (type(node), *(value for field in fields(node) if isinstance(value := getattr(node, field.name), scalars)))
        for node in ast.walk(formula)
    ]


@pytest.mark.parametrize(("kind", "text"), [*deep(MAX_DEPTH), *long(1_200)])
def test_the_deepest_and_longest_formulas_survive_every_algorithm_on_trees(kind: str, text: str) -> None:
    first = parse_formula(text)
    assert shape(parse_formula(format_formula(first))) == shape(first)
    named = ast.Property(formula=first, name="n")
    file = ast.PropertyFile(properties=(named,))
    assert explain(first)
    assert fold_steps(first) is first
    assert rewrite(first, lambda node: node) is first
    (expanded,) = resolve_constants(file, variables=["x", "y"]).properties
    assert shape(expanded.formula) == shape(first)
    for tool in ("prism", "storm"):
        assert isinstance(portability(first, tool), list)  # type: ignore[arg-type]
        text = format_properties(file, target=tool)  # type: ignore[arg-type]
        assert text.endswith(";\n")
    assert all(finding.severity != "error" for finding in lint(file))


def test_constants_of_any_depth_are_evaluated() -> None:
    depth = MAX_DEPTH - 5
    assert evaluate_constant(parse_formula("-" * depth + "1")) == (-1) ** depth
    assert evaluate_constant(parse_formula(" + ".join(["1"] * 3_000))) == 3_000
    assert evaluate_constant(parse_formula("true ? (" * depth + "7" + ") : 1" * depth)) == 7
    assert evaluate_constant(parse_formula("min(1, " * depth + "0" + ")" * depth)) == 0


@pytest.mark.parametrize(("kind", "text"), [case for case in deep(200) if case[0] != "parentheses"])
def test_trees_compare_hash_and_show(kind: str, text: str) -> None:
    first, second = parse_formula(text), parse_formula(text)
    assert first == second
    assert hash(first) == hash(second)
    assert repr(first) == repr(second)
