"""Rules of the expression language: literals, names, and what joins them."""

# ruff: noqa: D102 - the methods are the rules of the grammar

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal, cast, get_args

from tracebridge.pctl import ast
from tracebridge.pctl.tree_builder.operands import PATHS, part, unquote
from tracebridge.pctl.tree_builder.rejection import Children, Rejection, rule_span

MAX_DIGITS = 4_300  # Python refuses longer integers in text, too

_PathOperator = Literal["&", "|", "=>", "<=>"]


class ExpressionRules:
    """What the rules of expressions make of their children."""

    def conditional(self, children: Children) -> ast.Formula:
        test, _, then, _, otherwise = children
        return ast.Conditional(part(test), part(then), part(otherwise), span=rule_span(children))

    def binary(self, children: Children) -> ast.Formula | ast.PathFormula:
        left, operator, right = children
        sign = str(operator)
        if sign in get_args(_PathOperator) and (isinstance(left, PATHS) or isinstance(right, PATHS)):
            return ast.PathBinary(cast(_PathOperator, sign), left, right, span=rule_span(children))
        return ast.Binary(cast(ast.BinaryOperator, sign), part(left), part(right), span=rule_span(children))

    def unary(self, children: Children) -> ast.Formula | ast.PathFormula:
        operator, operand = children
        if operator == "!" and isinstance(operand, PATHS):
            return ast.PathNot(operand, span=rule_span(children))
        return ast.Unary("!" if operator == "!" else "-", part(operand), span=rule_span(children))

    def number(self, children: Children) -> ast.Number:
        (token,) = children
        mantissa, _, exponent = str(token).lower().partition("e")
        if len(mantissa) > MAX_DIGITS or len(exponent) > 6 or abs(int(exponent or "0")) > MAX_DIGITS:
            raise Rejection(rule_span(children), f"this number has more than {MAX_DIGITS:,} digits", "round it")
        return ast.Number(Fraction(str(token)), integer=str(token).isdigit(), span=rule_span(children))

    def truth(self, children: Children) -> ast.Truth:
        return ast.Truth(children[0] == "true", span=rule_span(children))

    def label(self, children: Children) -> ast.Label:
        return ast.Label(unquote(children[0]), span=rule_span(children))

    def identifier(self, children: Children) -> ast.Identifier:
        return ast.Identifier(str(children[0]), span=rule_span(children))

    def call(self, children: Children) -> ast.Call:
        arguments = tuple(part(child) for child in children[2:-1:2])
        return ast.Call(cast(ast.Function, str(children[0])), arguments, span=rule_span(children))

    def group(self, children: Children) -> ast.Formula | ast.PathFormula:
        return cast("ast.Formula | ast.PathFormula", replace(children[1], span=rule_span(children)))
