"""Rebuilding a tree with some of its nodes replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from tracebridge.pctl.ast import Formula, Node, Span, StepBound, Threshold

Part = TypeVar("Part", bound=Node | StepBound | Threshold)


def rewrite(node: Part, change: Callable[[Formula], Formula]) -> Part:
    """The tree with every formula replaced by ``change`` of it, children first; unchanged parts are shared.

    Thresholds and step bounds are part of the tree. ``change`` never sees a path or a reward path, only the formulas
    inside.
    """
    updates: dict[str, Any] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, tuple):
            changed: Any = tuple([rewrite(part, change) for part in value])
            if any(new is not old for new, old in zip(changed, value, strict=True)):
                updates[field.name] = changed
        elif is_dataclass(value) and not isinstance(value, Span):
            changed = rewrite(value, change)  # type: ignore[type-var]
            if changed is not value:
                updates[field.name] = changed
    rebuilt: Any = replace(node, **updates) if updates else node
    return change(rebuilt) if isinstance(rebuilt, Formula) else rebuilt  # type: ignore[return-value]
