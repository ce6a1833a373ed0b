"""Which certificate a property needs: of when runs end and how, or of the whole way there.

A property is about *timing* if the joint law of the number of steps and the outcome decides it: it names no label but
``success``, ``failure`` and ``absorbed``, counts no reward but steps, and asks nothing of states on the way. Then
a chain that gets this law right answers it, whatever it makes of the path. Every other property is about the *path*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tracebridge.pctl import ast

if TYPE_CHECKING:
    from tracebridge.pctl.ast import Formula, Node

#: What a certificate is about; ``path`` includes ``timing``.
Scope = Literal["timing", "path"]

_OUTCOMES = frozenset({"success", "failure", "absorbed"})
_STEPS = "steps"
_OPERATORS = (ast.Probability, ast.Reward, ast.SteadyState, ast.Quantified, ast.Quantile)
_ABOUT_STATES = (ast.Filter, ast.Multi, ast.Coalition, ast.AutomatonPath)


def required_scope(formula: Formula) -> Scope:
    """The scope of a resolved property about a fitted chain, whose first reward structure is ``steps``."""
    waiting: list[tuple[Node, bool]] = [(formula, False)]  # and whether it is looked at in states on the way
    variables: set[str] = set()
    while waiting:
        node, on_the_way = waiting.pop()
        if isinstance(node, ast.Label) and node.name not in _OUTCOMES:
            return "path"
        if isinstance(node, ast.Identifier) and node.name not in variables:
            return "path"
        if isinstance(node, _ABOUT_STATES) or (isinstance(node, _OPERATORS) and on_the_way):
            return "path"
        bounds = getattr(node, "reward_bounds", ())
        if not all(map(_counts_steps, (node, *bounds))):
            return "path"
        if isinstance(node, ast.Quantile):  # its variables are numbers of steps, and its operator is the outer one
            variables |= {variable.name for variable in node.variables}
            waiting += [(part, True) for part in ast.children(node.operator)]
            continue
        deeper = on_the_way or isinstance(node, _OPERATORS)
        waiting += [(part, deeper) for part in ast.children(node)]
    return "timing"


def _counts_steps(node: ast.Tree) -> bool:
    structure = getattr(node, "structure", None)
    return structure is None or structure == _STEPS or isinstance(structure, ast.OnePerStep)
