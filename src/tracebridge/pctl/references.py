"""Labels that stand for something else in the file, its label definitions and its other properties, written out.

``"n2": "n1" + 1`` means the formula of ``n1`` in the place of its name. A label that neither the file defines nor a
property is called by is one of the model and stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from tracebridge.pctl.ast import (
    Binary,
    Constant,
    CumulativeReward,
    Eventually,
    Formula,
    Globally,
    Identifier,
    Label,
    LabelDefinition,
    Node,
    PathBinary,
    Property,
    PropertyFile,
    Quantile,
    Release,
    Reward,
    RewardBound,
    Structure,
    Until,
    WeakUntil,
    children,
    walk,
)
from tracebridge.pctl.evaluation import refusal
from tracebridge.pctl.nesting import MAX_DEPTH
from tracebridge.pctl.printer import BINDING
from tracebridge.pctl.rewrite import rewrite

MAX_NODES = 100_000
"""The largest formula that definitions and references may expand to."""


def expand_labels(file: PropertyFile, *, model_labels: Collection[str] = ()) -> PropertyFile:
    """Replace every label that the file defines by its definition, and every name of a property by its formula.

    A label definition takes precedence over a property of the same name, and so does a label of the model, if
    ``model_labels`` are given.

    Raises:
        PropertyError: a definition or a property depends on itself, or an expanded formula has more than ``MAX_NODES``
            nodes or ``MAX_DEPTH`` levels.
    """
    definitions = named_formulas(file, model_labels)
    uses = {name: label_names(definition.formula) for name, definition in definitions.items()}
    expansions: dict[str, _Expansion] = {}
    for name in dependency_order(uses, definitions, file.path):
        if name in definitions:
            expansions[name] = _expand(definitions[name].formula, expansions, file.path)
    properties = tuple(
        expanded_property(entry, expansions[entry.name].formula)
        if entry.name is not None and definitions.get(entry.name) is entry
        else expanded_property(entry, _expand(entry.formula, expansions, file.path).formula)
        for entry in file.properties
    )
    return replace(file, properties=properties, labels=())


def expanded_property(entry: Property, formula: Formula) -> Property:
    """The property with its formula replaced; the same object if nothing changed."""
    return entry if formula is entry.formula else replace(entry, formula=formula)


def named_formulas(file: PropertyFile, model_labels: Collection[str] = ()) -> dict[str, LabelDefinition | Property]:
    """What a label in a file can stand for: its label definitions, and its properties; the first of each name."""
    named: dict[str, LabelDefinition | Property] = {definition.name: definition for definition in file.labels}
    for entry in file.properties:
        if entry.name is not None and entry.name not in model_labels:
            named.setdefault(entry.name, entry)
    return named


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
            message = (
                f"label definitions and references expand to more than {MAX_NODES:,} nodes or {MAX_DEPTH:,} levels"
            )
            raise refusal(node.span, path, message)
        stack.extend((child, level + _is_deeper(child, node)) for child in children(node))

    def change(node: Formula) -> Formula:
        return expansions[node.name].formula if isinstance(node, Label) and node.name in expansions else node

    return _Expansion(rewrite(formula, change) if expansions else formula, size, depth)


def _is_deeper(child: Node, parent: Node) -> bool:
    """Whether a child is a level below its parent: ``a | b | c``, of operators that bind alike, is one level."""
    return not (
        isinstance(parent, Binary | PathBinary)
        and child is parent.left
        and isinstance(child, Binary | PathBinary)
        and BINDING[child.operator] == BINDING[parent.operator]
    )


# ---------------------------------------------------------------- names


def free_identifiers(formula: Formula) -> Iterator[Identifier]:
    """The identifiers of a formula that are no variables of a quantile around them, left to right."""
    stack: list[tuple[Node, frozenset[str]]] = [(formula, frozenset())]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, Identifier) and node.name not in bound:
            yield node
        if isinstance(node, Quantile):
            bound |= {variable.name for variable in node.variables}
        stack.extend((child, bound) for child in reversed(list(children(node))))


def reward_bounds(node: Node) -> tuple[RewardBound, ...]:
    """The bounds on collected rewards that stand at a node."""
    match node:
        case Eventually() | Globally() | Until() | WeakUntil() | Release() | CumulativeReward():
            return node.reward_bounds
        case _:
            return ()


def structure_names(node: Node) -> Iterator[Structure]:
    """What names the reward structures that a node refers to: R itself, and its bounds."""
    if isinstance(node, Reward):
        yield node.structure
    yield from (bound.structure for bound in reward_bounds(node))


def label_names(formula: Formula) -> list[str]:
    """The labels that a formula uses, in order, each once."""
    return list(dict.fromkeys(node.name for node in walk(formula) if isinstance(node, Label)))


def dependency_order(
    uses: Mapping[str, Collection[str]],
    declarations: Mapping[str, Constant | LabelDefinition | Property],
    path: str | None,
) -> list[str]:
    """Names in an order in which each comes after those that it uses.

    Raises:
        PropertyError: a name depends on itself.
    """
    try:
        return list(TopologicalSorter(uses).static_order())
    except CycleError as error:
        cycle: list[str] = error.args[1]
        declaration = declarations[cycle[0]]
        shown = " -> ".join(cycle[::-1][:8]) + (" -> ..." if len(cycle) > 8 else "")
        hint = None
        if isinstance(declaration, Property):
            hint = "the name of a property stands for its formula; rename it if a label of the model is meant"
        message = f"{cycle[0]} is defined in terms of itself: {shown}"
        raise refusal(declaration.span, path, message, hint) from None
