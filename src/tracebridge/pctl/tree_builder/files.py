"""Rules of property files: declarations and properties."""

# ruff: noqa: D102 - the methods are the rules of the grammar

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

from lark import Token

from tracebridge.pctl import ast
from tracebridge.pctl.tree_builder.operands import PATHS, described, state_formula, unquote
from tracebridge.pctl.tree_builder.rejection import Children, Rejection, join, rule_span, span_of
from tracebridge.pctl.words import PRISM_WORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedProperty:
    """A property and how it ended: the next one must start on a new line unless a ``;`` came between."""

    property: ast.Property
    terminated: bool


class _Type(NamedTuple):
    value: ast.ConstantType


class FileRules:
    """What the rules of files make of their children."""

    def file(self, children: Children) -> list[ast.Constant | ast.LabelDefinition | ParsedProperty]:
        return children

    def formula(self, children: Children) -> ast.Formula:
        return state_formula(children[0])

    def constant(self, children: Children) -> ast.Constant:
        kind: ast.ConstantType = "int"
        if not isinstance(children[1], Token):
            kind = children[1].value
        name = next(child for child in children if isinstance(child, Token) and child.type == "IDENTIFIER")
        if name in PRISM_WORDS:
            raise Rejection(span_of(name), f"{name} is a reserved word of PRISM and cannot name a constant")
        value = state_formula(children[-2]) if children[-3] == "=" else None
        return ast.Constant(name=str(name), type=kind, value=value, span=rule_span(children))

    def type(self, children: Children) -> _Type:
        return _Type(cast(ast.ConstantType, str(children[0])))

    def label_definition(self, children: Children) -> ast.LabelDefinition:
        return ast.LabelDefinition(
            name=unquote(children[1]), formula=state_formula(children[3]), span=rule_span(children)
        )

    def property(self, children: Children) -> ParsedProperty:
        named = len(children) > 2 and isinstance(children[0], Token)
        formula = children[2] if named else children[0]
        if isinstance(formula, PATHS):
            raise Rejection(
                span_of(formula),
                f"{described(formula)} and stands between the brackets of P",
                "write P=? [ ... ] or P>=0.9 [ ... ] around it",
            )
        name = unquote(children[0]) if named else None
        span = join(span_of(children[0]), span_of(formula))
        return ParsedProperty(
            property=ast.Property(formula=formula, name=name, span=span),
            terminated=isinstance(children[-1], Token) and children[-1] == ";",
        )
