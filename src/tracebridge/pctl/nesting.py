"""How deeply a formula may be nested."""

from __future__ import annotations

from tracebridge.pctl import ast
from tracebridge.pctl.source import Source

MAX_DEPTH = 1_000
"""The deepest nesting that is accepted.

A chain such as ``a | b | c``, of operators that bind equally strongly, is one level however long it is.
"""

_RANKS = {
    sign: rank
    for rank, signs in enumerate((("=>",), ("<=>",), ("|",), ("&",), ("=", "!="), ("<", "<=", ">", ">="), "+-", "*/"))
    for sign in signs
}
"""How strongly the binary operators bind."""


def check_depth(root: ast.Node, source: Source) -> None:
    """Refuse a formula that is nested too deeply.

    Raises:
        PropertyError: at the first part that is deeper than ``MAX_DEPTH``.
    """
    stack = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            span = node.span or root.span
            assert span is not None  # noqa: S101 - the parser gives every node a span
            raise source.error(span, f"nested more than {MAX_DEPTH:,} deep", "name parts of it with label definitions")
        stack.extend((child, depth + (not _continues(child, node))) for child in ast.children(node))


def _continues(child: ast.Node, node: ast.Node) -> bool:
    """Whether the child is the left part of a chain that the node continues, as ``a | b`` in ``a | b | c``."""
    return (
        isinstance(node, ast.Binary | ast.PathBinary)
        and child is node.left
        and isinstance(child, ast.Binary | ast.PathBinary)
        and _RANKS[child.operator] == _RANKS[node.operator]
    )
