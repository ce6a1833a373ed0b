"""Places of what the grammar reduces, and the refusal of what the language does not admit there."""

from __future__ import annotations

from typing import Any, cast

from lark import Token

from tracebridge.pctl import ast

Children = list[Any]
"""The children of a rule: tokens, and what the rules below returned."""


class Rejection(Exception):  # noqa: N818 - it never leaves the package; the parser makes a PropertyError of it
    """A construct that the grammar admits and the language does not."""

    def __init__(self, span: ast.Span, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.span = span
        self.message = message
        self.hint = hint


def rule_span(children: Children) -> ast.Span:
    """The place of all that a rule reduces, from its first child to its last."""
    return join(span_of(children[0]), span_of(children[-1]))


def span_of(child: Any) -> ast.Span:
    """The place of a token or a node."""
    if isinstance(child, Token):
        assert child.line is not None  # noqa: S101 - every token of the lexer has a place
        assert child.column is not None  # noqa: S101
        assert child.end_line is not None  # noqa: S101
        assert child.end_column is not None  # noqa: S101
        return ast.Span(line=child.line, column=child.column, end_line=child.end_line, end_column=child.end_column)
    assert child.span is not None  # noqa: S101 - every node built here has one
    return cast(ast.Span, child.span)


def join(first: ast.Span, last: ast.Span) -> ast.Span:
    """From the start of one place to the end of another."""
    return ast.Span(line=first.line, column=first.column, end_line=last.end_line, end_column=last.end_column)
