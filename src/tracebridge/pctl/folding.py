"""Bounds as numbers: what an engine wants to be given."""

from __future__ import annotations

from typing import Any

from tracebridge.pctl.ast import (
    CumulativeReward,
    Formula,
    Identifier,
    InstantaneousReward,
    Number,
    Quantile,
    Reward,
    StepBound,
    Threshold,
    walk,
)
from tracebridge.pctl.constants import literal
from tracebridge.pctl.evaluation import evaluate_constant
from tracebridge.pctl.rewrite import Part, rebuild
from tracebridge.pctl.trampoline import Recursion, run

_CONSTANT_FIELDS = {
    StepBound: ("lower", "upper"),
    CumulativeReward: ("bound", "discount"),
    InstantaneousReward: ("time",),
    Reward: ("structure",),
}


def fold_steps(node: Part) -> Part:
    """The tree with every bound on steps and rewards evaluated, and discounts and numbers of reward structures too.

    ``F<=2*d`` becomes ``F<=16`` once d is substituted. In a quantile the threshold is evaluated too, and a bound with a
    variable of the quantile stays.

    Raises:
        PropertyError: a bound is not constant.
    """
    folded: Part = run(_folded(node, frozenset()))
    return folded


def _folded(node: Any, variables: frozenset[str]) -> Recursion[Any]:
    if isinstance(node, Quantile):
        variables |= {variable.name for variable in node.variables}
    constant = {id(getattr(node, name)) for name in _CONSTANT_FIELDS.get(type(node), ())}
    if variables and isinstance(node, Threshold):
        constant = {id(node.value)}

    def inner(part: Any) -> Recursion[Any]:
        return _value(part, variables) if id(part) in constant else _folded(part, variables)

    return (yield from rebuild(node, inner))


def _value(formula: Formula, variables: frozenset[str]) -> Recursion[Formula]:
    """The number that a constant formula is; as it stands where a variable is in it."""
    yield from ()
    if not isinstance(formula, Formula) or isinstance(formula, Number) or _names_any(formula, variables):
        return formula
    return literal(evaluate_constant(formula), formula.span)


def _names_any(formula: Formula, variables: frozenset[str]) -> bool:
    return bool(variables) and any(isinstance(part, Identifier) and part.name in variables for part in walk(formula))
