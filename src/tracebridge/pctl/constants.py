"""Constants and label definitions: evaluated exactly, and substituted."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from tracebridge.errors import Problem, PropertyError, UsageError
from tracebridge.pctl.ast import (
    Constant,
    Formula,
    Identifier,
    Label,
    LabelDefinition,
    Node,
    Number,
    PropertyFile,
    Span,
    Truth,
    children,
    walk,
)
from tracebridge.pctl.evaluation import Value, evaluate_constant, refusal
from tracebridge.pctl.parser import MAX_DEPTH
from tracebridge.pctl.rewrite import Part, rewrite
from tracebridge.pctl.source import locate

MAX_NODES = 100_000
"""The largest formula that label definitions may expand to."""


def resolve_constants(file: PropertyFile, values: Mapping[str, Value | int | float] | None = None) -> PropertyFile:
    """Substitute every constant by its value, and expand every label definition.

    Args:
        file: a parsed file.
        values: constants from outside (``--const d=8``); they take precedence over the values of the file. A float is
            read as the decimal that it prints as.

    Returns:
        The file without constants and label definitions; numbers are exact.

    Raises:
        UsageError: ``values`` names a constant that the file does not declare.
        PropertyError: a constant that is used has no value or one of the wrong type, an unknown name, a definition that
            depends on itself, or definitions that expand to more than ``MAX_NODES`` nodes.
    """
    known = constant_values(file, values or {})
    expanded = expand_labels(file)
    if problems := [problem for entry in expanded.properties for problem in _unknown_names(entry.formula, file, known)]:
        raise PropertyError(problems)

    properties = tuple(replace(entry, formula=substitute(entry.formula, known)) for entry in expanded.properties)
    return replace(expanded, properties=properties, constants=())


def expand_labels(file: PropertyFile) -> PropertyFile:
    """Replace every label that the file defines by its definition.

    Raises:
        PropertyError: a definition depends on itself, or an expanded formula has more than ``MAX_NODES`` nodes or
            ``MAX_DEPTH`` levels.
    """
    definitions = {label.name: label for label in file.labels}
    uses = {name: _names(label.formula, Label) for name, label in definitions.items()}
    expansions: dict[str, _Expansion] = {}
    for name in _dependency_order(uses, definitions, file.path):
        if name in definitions:
            expansions[name] = _expand(definitions[name].formula, expansions, file.path)
    properties = tuple(
        replace(entry, formula=_expand(entry.formula, expansions, file.path).formula) for entry in file.properties
    )
    return replace(file, properties=properties, labels=())


def constant_values(file: PropertyFile, values: Mapping[str, Value | int | float]) -> dict[str, Value]:
    """The value of every constant of a file that has one; those that depend on a missing one are left out.

    Raises:
        UsageError, PropertyError: as for :func:`resolve_constants`.
    """
    declared = {constant.name: constant for constant in file.constants}
    for name in values:
        if name not in declared:
            raise UsageError(
                f"no constant {name} is declared in {file.path or 'the properties'}{_near(name, declared)}"
            )
    definitions = {
        name: constant.value for name, constant in declared.items() if constant.value is not None and name not in values
    }
    order = _dependency_order(
        {name: _names(value, Identifier) for name, value in definitions.items()}, declared, file.path
    )
    known = {name: _typed(_exact(value, name), declared[name], file.path) for name, value in values.items()}
    for name in order:
        if name in definitions and all(used in known for used in _names(definitions[name], Identifier)):
            value = evaluate_constant(definitions[name], known, path=file.path)
            known[name] = _typed(value, declared[name], file.path)
    return known


# ---------------------------------------------------------------- substitution


class _Expansion(NamedTuple):
    """A formula over the model's own labels, with its number of nodes and levels."""

    formula: Formula
    size: int
    depth: int


def _expand(formula: Formula, expansions: Mapping[str, _Expansion], path: str | None) -> _Expansion:
    """The formula with its labels expanded; its size is known, and refused, before anything is built."""
    size = depth = 0
    stack: list[tuple[Node, int]] = [(formula, 1)]
    while stack:
        node, level = stack.pop()
        inner = expansions.get(node.name) if isinstance(node, Label) else None
        size += inner.size if inner else 1
        depth = max(depth, level - 1 + (inner.depth if inner else 1))
        if size > MAX_NODES or depth > MAX_DEPTH:
            raise refusal(
                node.span, path, f"label definitions expand to more than {MAX_NODES:,} nodes or {MAX_DEPTH} levels"
            )
        stack.extend((child, level + 1) for child in children(node))

    def change(node: Formula) -> Formula:
        return expansions[node.name].formula if isinstance(node, Label) and node.name in expansions else node

    return _Expansion(rewrite(formula, change) if expansions else formula, size, depth)


def substitute(part: Part, values: Mapping[str, Value]) -> Part:
    """The formula, or the step bound, with every name that has a value replaced by it."""

    def change(node: Formula) -> Formula:
        if isinstance(node, Identifier) and node.name in values:
            return literal(values[node.name], node.span)
        return node

    return rewrite(part, change)


def literal(value: Value, span: Span | None = None) -> Formula:
    """A value as a formula."""
    if isinstance(value, bool):
        return Truth(value, span=span)
    return Number(value, integer=value.denominator == 1, span=span)


def _unknown_names(formula: Formula, file: PropertyFile, values: Mapping[str, Value]) -> Iterable[Problem]:
    declared = {constant.name for constant in file.constants}
    for node in walk(formula):
        if not isinstance(node, Identifier) or node.name in values:
            continue
        location = locate(node.span, file.path)
        if node.name in declared:
            yield Problem(
                location=location,
                message=f"the constant {node.name} has no value",
                hint=f"give it one: --const {node.name}=...",
            )
        else:
            hint = f'a label stands in quotes: "{node.name}"; a constant needs a const declaration'
            near = _near(node.name, sorted(declared))
            yield Problem(location=location, message=f"unknown name {node.name}", hint=f"{hint}{near}")


def _dependency_order(
    uses: Mapping[str, Collection[str]], declarations: Mapping[str, Constant | LabelDefinition], path: str | None
) -> list[str]:
    try:
        return list(TopologicalSorter(uses).static_order())
    except CycleError as error:
        cycle: list[str] = error.args[1]
        span = declarations[cycle[0]].span
        shown = " -> ".join(cycle[::-1][:8]) + (" -> ..." if len(cycle) > 8 else "")
        raise refusal(span, path, f"{cycle[0]} is defined in terms of itself: {shown}") from None


def _names(formula: Formula, kind: type[Identifier] | type[Label]) -> list[str]:
    """The names that a formula uses, in order, each once."""
    return list(dict.fromkeys(node.name for node in walk(formula) if isinstance(node, kind)))


def _exact(value: Value | int | float, name: str) -> Value:
    if isinstance(value, bool | Fraction):
        return value
    if not math.isfinite(value):
        raise UsageError(f"the constant {name} cannot be {value}")
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


def _typed(value: Value, constant: Constant, path: str | None) -> Value:
    fits = isinstance(value, bool) == (constant.type == "bool")
    if fits and constant.type == "int" and not isinstance(value, bool):
        fits = value.denominator == 1
    if not fits:
        shown = str(value).lower()
        raise refusal(
            constant.span, path, f"the constant {constant.name} is declared {constant.type} and cannot be {shown}"
        )
    return value


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
