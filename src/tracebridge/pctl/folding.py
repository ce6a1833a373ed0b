"""Step bounds as numbers: what an engine wants to be given."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from tracebridge.pctl.ast import (
    CumulativeReward,
    Formula,
    InstantaneousReward,
    Node,
    Number,
    Span,
    StepBound,
    Threshold,
)
from tracebridge.pctl.constants import literal
from tracebridge.pctl.evaluation import evaluate_constant

Part = TypeVar("Part", bound=Node | StepBound | Threshold)

_STEP_FIELDS = {StepBound: ("lower", "upper"), CumulativeReward: ("bound",), InstantaneousReward: ("time",)}


def fold_steps(node: Part) -> Part:
    """The tree with every step bound evaluated: ``F<=2*d`` becomes ``F<=16`` once d is substituted.

    Raises:
        PropertyError: a step bound is not constant.
    """
    steps = _STEP_FIELDS.get(type(node), ())
    updates: dict[str, Any] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name in steps and value is not None and not isinstance(value, Number):
            updates[field.name] = _folded(value)
        elif isinstance(value, tuple):
            updates[field.name] = tuple(fold_steps(part) for part in value)
        elif is_dataclass(value) and not isinstance(value, Span):
            updates[field.name] = fold_steps(value)  # type: ignore[type-var]
    changed = {name: value for name, value in updates.items() if value is not getattr(node, name)}
    return replace(node, **changed) if changed else node


def _folded(bound: Formula) -> Formula:
    return literal(evaluate_constant(bound), bound.span)
