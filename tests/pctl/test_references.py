"""References to properties and label definitions are written out, and nothing that they say can blow up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tracebridge.errors import PropertyError
from tracebridge.pctl import ast, format_properties, parse_formula, parse_properties, resolve_constants
from tracebridge.pctl.references import expand_labels, free_identifiers, structure_names


def formulas(text: str) -> list[ast.Formula]:
    return [entry.formula for entry in expand_labels(parse_properties(text)).properties]


def test_the_name_of_a_property_stands_for_its_formula() -> None:
    text = '"n2": "n1" + 1; "n1": P=? [ F "a" ]; "n3": pow("n2", 2) / "n1"'
    assert formulas(text) == [
        parse_formula('P=? [ F "a" ] + 1'),
        parse_formula('P=? [ F "a" ]'),
        parse_formula('pow(P=? [ F "a" ] + 1, 2) / P=? [ F "a" ]'),
    ]


def test_a_property_that_is_true_or_false_stands_where_a_label_does() -> None:
    text = 'label "bad" = "x" | "safe"; "safe": P>=0.9 [ G "y" ]; P=? [ F !"safe" ]; P=? [ F "bad" ]'
    assert formulas(text)[1:] == [
        parse_formula('P=? [ F !P>=0.9 [ G "y" ] ]'),
        parse_formula('P=? [ F ("x" | P>=0.9 [ G "y" ]) ]'),
    ]


def test_constants_reach_what_is_referred_to() -> None:
    file = parse_properties('const int d = 3; "n": P=? [ F<=d "a" ]; 1 - "n"')
    assert [entry.formula for entry in resolve_constants(file).properties] == [
        parse_formula('P=? [ F<=3 "a" ]'),
        parse_formula('1 - P=? [ F<=3 "a" ]'),
    ]


def test_labels_come_before_properties() -> None:
    file = parse_properties('"a": P>0 [ F "a" ]; "b": P>0 [ F "a" ]')
    expanded = expand_labels(file, model_labels=["a"])
    assert [entry.formula for entry in expanded.properties] == [parse_formula('P>0 [ F "a" ]')] * 2
    defined = replace(file, labels=(ast.LabelDefinition(name="a", formula=ast.Label("x")),))
    assert [entry.formula for entry in expand_labels(defined).properties] == [parse_formula('P>0 [ F "x" ]')] * 2


def test_what_changes_nothing_is_the_same_object() -> None:
    file = parse_properties('"n": P=? [ F "a" ]; "m": "n" + 1; S>0 [ "b" ]')
    same = [new is old for new, old in zip(expand_labels(file).properties, file.properties, strict=True)]
    assert same == [True, False, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"a": "b" + 1; "b": "a" + 1', r"1:\d+: . is defined in terms of itself: (a -> b -> a|b -> a -> b)"),
        (
            '"a": P>0 [ F "a" ]',
            "1:1: a is defined in terms of itself: a -> a .*rename it if a label of the model is meant",
        ),
        ('label "x" = P>0 [ F "p" ]; "p": "x"', "is defined in terms of itself"),
    ],
)
def test_circles_are_refused(text: str, message: str) -> None:
    with pytest.raises(PropertyError, match=message):
        formulas(text)


def test_references_that_double_at_every_step_are_refused_at_once() -> None:
    text = '"a0": P=? [ F "x" ];' + "".join(f'"a{i + 1}": "a{i}" + "a{i}";' for i in range(100))
    with pytest.raises(PropertyError, match=r"label definitions and references expand to more than 100,000 nodes"):
        formulas(text)


def test_references_that_nest_too_deep_are_refused_and_flat_ones_are_not() -> None:
    deep = '"a0": P=? [ F "x" ];' + "".join(f'"a{i + 1}": 1 - "a{i}";' for i in range(999))
    with pytest.raises(PropertyError, match=r"or 1,000 levels"):
        formulas(deep)
    flat = '"a0": "x";' + "".join(f'"a{i + 1}": "a{i}" | "y";' for i in range(400))
    assert sum(1 for _ in ast.walk(formulas(flat)[-1])) == 801


def test_for_a_tool_references_are_written_out() -> None:
    file = parse_properties('"n": P=? [ F "a" ]; "m": 1 - "n"; "k": quantile(B, P>0.5 [ F<=B "a" ])')
    assert format_properties(file) == ('"n": P=? [ F "a" ];\n"m": 1 - "n";\n"k": quantile(B, P>0.5 [ F<=B "a" ]);\n')
    assert format_properties(file, target="prism") == (
        '"n": P=? [ F "a" ];\n"m": 1 - P=? [ F "a" ];\n'
        '// PRISM has no quantile\n// "k": quantile(B, P>0.5 [ F<=B "a" ]);\n'
    )


def test_the_variables_of_a_quantile_are_not_free() -> None:
    formula = parse_formula("quantile(B, P>p [ F[k,B] (quantile(D, P>q [ F[B,D] true ]) > B) ]) + B")
    assert [node.name for node in free_identifiers(formula)] == ["p", "k", "q", "B"]


def test_what_names_reward_structures() -> None:
    formula = parse_formula('R{"r"}=? [ C{"c"}<=3 ] + R=? [ C ] + P=? [ F^{rew{"d"}<=1,rew<=2} "a" ]')
    assert [name for node in ast.walk(formula) for name in structure_names(node)] == ["r", "c", None, "d", None]
