"""Operands as their rules need them: formulas that have a value in every state, and quoted names."""

from __future__ import annotations

import re
from typing import cast, get_args

from lark import Token

from tracebridge.pctl import ast
from tracebridge.pctl.tree_builder.rejection import Rejection, rule_span, span_of

PATHS = get_args(ast.PathFormula)

_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")


def described(path: ast.PathFormula) -> str:
    """What a path formula is called in a message."""
    return f"{path.letter} is a temporal operator" if isinstance(path, ast.Temporal) else "this is a path formula"


def state_formula(
    child: ast.Formula | ast.PathFormula, hint: str = "temporal operators stand between the brackets of P"
) -> ast.Formula:
    """A child that must be a formula with a value in every state.

    Raises:
        Rejection: it is a path formula; with the hint.
    """
    if isinstance(child, PATHS):
        raise Rejection(span_of(child), f"{described(child)} and has no value here", hint)
    return cast(ast.Formula, child)


def part(child: ast.Formula | ast.PathFormula) -> ast.Formula:
    """A part of an arithmetic formula, or of another one that no path formula can be a part of.

    Raises:
        Rejection: it is a path formula.
    """
    return state_formula(child, "within path formulas, only ! & | => and <=> join temporal operators")


def unquote(token: Token) -> str:
    """The text of a quoted name, with its escapes resolved."""

    def resolve(escape: re.Match[str]) -> str:
        code = escape[1]
        if code in _ESCAPES:
            return _ESCAPES[code]
        if len(code) > 1 and int(code[1:], 16) <= 0x10FFFF:
            return chr(int(code[1:], 16))
        span = rule_span([token])
        raise Rejection(span, f"unknown escape {escape[0]} in a name", r"escapes are \" \\ \n \r \t \uXXXX \UXXXXXXXX")

    name = _ESCAPE.sub(resolve, str(token)[1:-1])
    if not name:
        raise Rejection(rule_span([token]), "a name between quotes cannot be empty")
    return name
