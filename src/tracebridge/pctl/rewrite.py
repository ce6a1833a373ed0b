"""Rebuilding a tree with some of its parts replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, get_args

from tracebridge.pctl.ast import (
    AutomatonProposition,
    Formula,
    Node,
    PathFormula,
    RewardBound,
    StepBound,
    Threshold,
)
from tracebridge.pctl.trampoline import Recursion, run

Part = TypeVar("Part", bound=Node | StepBound | RewardBound | Threshold | AutomatonProposition)

_FORMULAS = frozenset(get_args(Formula))
_PATHS = frozenset(get_args(PathFormula))


def rewrite(
    node: Part,
    change: Callable[[Formula], Formula],
    *,
    change_path: Callable[[PathFormula], PathFormula] | None = None,
) -> Part:
    """The tree with every formula replaced by ``change`` of it, children first; unchanged parts are shared.

    Thresholds and bounds are part of the tree. ``change`` sees formulas, ``change_path`` path formulas, and neither
    sees a reward path itself.
    """
    rewritten: Part = run(_rewrite(node, change, change_path))
    return rewritten


def _rewrite(
    node: Any, change: Callable[[Formula], Formula], change_path: Callable[[PathFormula], PathFormula] | None
) -> Recursion[Any]:
    rebuilt = yield from rebuild(node, lambda part: _rewrite(part, change, change_path))
    if type(rebuilt) in _FORMULAS:
        return change(rebuilt)
    if change_path is not None and type(rebuilt) in _PATHS:
        return change_path(rebuilt)
    return rebuilt


def rebuild(node: Part, inner: Callable[[Any], Recursion[Any]]) -> Recursion[Part]:
    """The node with each of its parts (nodes, bounds, thresholds) replaced by the result of ``inner``.

    It is the same object if nothing changed. To be called with ``yield from`` within a `Recursion`.
    """
    updates: dict[str, Any] = {}
    kind: Any = type(node)
    for name in part_fields(kind):
        value = getattr(node, name)
        if isinstance(value, tuple):
            changed: Any = []
            for part in value:
                changed.append((yield inner(part)) if is_dataclass(part) else part)
            if any(new is not old for new, old in zip(changed, value, strict=True)):
                updates[name] = tuple(changed)
        elif is_dataclass(value):
            changed = yield inner(value)
            if changed is not value:
                updates[name] = changed
    return replace(node, **updates) if updates else node


@cache
def part_fields(kind: Any) -> tuple[str, ...]:
    """The fields of a kind of node that may hold parts of the tree."""
    return tuple(field.name for field in fields(kind) if field.name != "span")
