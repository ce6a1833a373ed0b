"""What is doubtful in a property file, before anything is checked."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from fractions import Fraction

from tracebridge.errors import PropertyError
from tracebridge.pctl.ast import (
    CumulativeReward,
    Eventually,
    Formula,
    Globally,
    Identifier,
    InstantaneousReward,
    Label,
    LabelDefinition,
    Node,
    Operator,
    Probability,
    Property,
    PropertyFile,
    Release,
    Reward,
    Span,
    SteadyState,
    Until,
    WeakUntil,
    walk,
)
from tracebridge.pctl.constants import constant_values, expand_labels, substitute
from tracebridge.pctl.evaluation import evaluate_constant, step_window
from tracebridge.pctl.finding import Finding
from tracebridge.pctl.parser import ANNOTATION_KEYS
from tracebridge.pctl.portability import portability
from tracebridge.pctl.printer import Target, format_formula, quote

BUILT_IN_LABELS = frozenset({"init", "deadlock"})
"""Labels that PRISM and Storm define on every model."""


def lint(
    file: PropertyFile,
    *,
    labels: Collection[str] | None = None,
    reward_structures: Collection[str] | None = None,
    targets: Collection[Target] = ("prism", "storm"),
) -> list[Finding]:
    """Everything doubtful in a property file, in the order of its text.

    Args:
        file: a parsed file.
        labels: the labels of the model; None if there is no model at hand, and labels are not judged.
        reward_structures: the reward structures of the model; likewise.
        targets: the tools for which a note says what they cannot take in their own syntax.
    """
    found = [
        *_constants(file),
        *_names(file, labels),
        *_labels(file, labels),
        *_rewards(file, reward_structures),
        *_bounds(file),
        *_annotations(file),
        *_portability(file, targets),
    ]
    return sorted(found, key=lambda finding: (finding.span.line, finding.span.column) if finding.span else (0, 0))


def _constants(file: PropertyFile) -> Iterator[Finding]:
    used = {node.name for formula in _all_formulas(file) for node in walk(formula) if isinstance(node, Identifier)}
    declared = {constant.name for constant in file.constants}
    for constant in file.constants:
        if constant.name not in used:
            yield Finding(severity="warning", message=f"the constant {constant.name} is not used", span=constant.span)
    for entry, node in _nodes(file):
        if isinstance(node, Identifier) and node.name not in declared:
            near = difflib.get_close_matches(node.name, declared, n=1)
            yield Finding(
                severity="error",
                message=f"unknown name {node.name}",
                span=node.span,
                hint=f"did you mean {near[0]}?" if near else f"a label stands in quotes: {quote(node.name)}",
                property=entry.name if isinstance(entry, Property) else None,
            )
    try:
        expand_labels(file)
        constant_values(file, {})
    except PropertyError as error:
        problem = error.problems[0]
        line, column = problem.location.line, problem.location.column
        span = Span(line=line, column=column, end_line=line, end_column=column + 1) if line and column else None
        yield Finding(severity="error", message=problem.message, span=span, hint=problem.hint)


def _names(file: PropertyFile, labels: Collection[str] | None) -> Iterator[Finding]:
    taken = {definition.name for definition in file.labels} | set(labels or ())
    seen: set[str] = set()
    for entry in file.properties:
        name = entry.name
        if name is None:
            message = "a property without a name is hard to find in a report"
            yield Finding(severity="warning", message=message, span=entry.span, hint='write "name": in front of it')
        elif name in seen:
            yield _error(entry, f"a second property is called {quote(name)}", "names must differ")
        elif name in taken:
            hint = "PRISM keeps both in one namespace; rename the property"
            yield _error(entry, f"the property {quote(name)} is called like a label", hint)
        if name is not None:
            seen.add(name)
    for definition in file.labels:
        if labels is not None and definition.name in labels:
            message = f"the definition of {quote(definition.name)} hides a label of the model"
            yield Finding(severity="error", message=message, span=definition.span, hint="choose another name")


def _labels(file: PropertyFile, labels: Collection[str] | None) -> Iterator[Finding]:
    defined = {definition.name for definition in file.labels}
    used = {node.name for _, node in _nodes(file) if isinstance(node, Label)}
    for definition in file.labels:
        if definition.name not in used:
            message = f"the label {quote(definition.name)} is not used"
            yield Finding(severity="warning", message=message, span=definition.span)
    if labels is None:
        return
    known = defined | set(labels) | BUILT_IN_LABELS
    properties = {entry.name for entry in file.properties}
    for entry, node in _nodes(file):
        if not isinstance(node, Label) or node.name in known:
            continue
        near = difflib.get_close_matches(node.name, sorted(known), n=1)
        hint = f"did you mean {quote(near[0])}?" if near else f"the model has {_some(sorted(labels))}"
        if node.name in properties:
            hint = "this is the name of a property; references to properties are not supported yet"
        yield _error(entry, f"no state has the label {quote(node.name)}", hint, node)


def _rewards(file: PropertyFile, structures: Collection[str] | None) -> Iterator[Finding]:
    for entry, node in _nodes(file):
        if not isinstance(node, Reward):
            continue
        if node.structure is None:
            if structures is None or len(structures) != 1:
                message = "R names no reward structure: PRISM takes the first, Storm refuses when there are several"
                yield Finding(
                    severity="warning", message=message, span=node.span, hint='write R{"steps"}', property=_name(entry)
                )
        elif structures is not None and node.structure not in structures:
            near = difflib.get_close_matches(node.structure, sorted(structures), n=1)
            hint = f"did you mean {quote(near[0])}?" if near else f"the model has {_some(sorted(structures))}"
            yield _error(entry, f"unknown reward structure {quote(node.structure)}", hint, node)


def _bounds(file: PropertyFile) -> Iterator[Finding]:
    """Thresholds and step bounds, as far as the constants of the file decide them."""
    try:
        values = constant_values(file, {})
    except PropertyError:
        return  # reported with the constants
    for entry, node in _nodes(file):
        try:
            match node:
                case Probability() | Reward() | SteadyState():
                    yield from _threshold(entry, node, values)
                case Eventually() | Globally() | Until() | WeakUntil() | Release():
                    if node.bound is not None and _known(node.bound.lower, values) and _known(node.bound.upper, values):
                        step_window(substitute(node.bound, values))
                case CumulativeReward() | InstantaneousReward():
                    time = node.bound if isinstance(node, CumulativeReward) else node.time
                    if time is not None and _known(time, values) and evaluate_constant(time, values) < 0:
                        yield _error(entry, "a step count cannot be negative", None, node)
        except PropertyError as error:
            yield _error(entry, error.problems[0].message, None, node)


def _threshold(
    entry: Property | LabelDefinition, operator: Operator, values: dict[str, Fraction | bool]
) -> Iterator[Finding]:
    threshold = operator.threshold
    if threshold is None or not _known(threshold.value, values):
        return
    value = evaluate_constant(threshold.value, values)
    top = None if isinstance(operator, Reward) else 1
    outside = value < 0 or (top is not None and value > top)
    shown = f"{threshold.comparison}{format_formula(threshold.value)}"
    above = threshold.comparison in (">", ">=")
    if outside and top is not None:
        yield _error(entry, f"a probability lies between 0 and 1, and the bound is {shown}", None, operator)
    elif (above and value == top and threshold.comparison == ">") or (
        not above and value == 0 and threshold.comparison == "<"
    ):
        yield _error(entry, f"the bound {shown} can never hold", "use >= or <=", operator)
    elif not above and value < 0:
        yield _error(entry, f"the bound {shown} can never hold: rewards are not negative", None, operator)
    elif (above and value <= 0 and threshold.comparison == ">=") or (
        not above and value == top and threshold.comparison == "<="
    ):
        message = f"the bound {shown} always holds"
        yield Finding(severity="warning", message=message, span=operator.span, property=_name(entry))


def _annotations(file: PropertyFile) -> Iterator[Finding]:
    for entry in file.properties:
        for note in entry.annotations:
            if note.key not in ANNOTATION_KEYS:
                near = difflib.get_close_matches(note.key, ANNOTATION_KEYS, n=1)
                hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(ANNOTATION_KEYS)}"
                message = f"unknown annotation {note.key!r}" if note.key else "an annotation without a key"
                yield Finding(severity="warning", message=message, span=note.span, hint=hint, property=entry.name)
            elif not note.value:
                message = f"the annotation {note.key} has no value"
                yield Finding(severity="error", message=message, span=note.span, property=entry.name)
            elif note.key == "credible" and not _is_level(note.value):
                message = f"credible needs a level between 0 and 1, not {note.value}"
                yield Finding(severity="error", message=message, span=note.span, hint="as in 0.95", property=entry.name)
    for note in file.unattached:
        message = f"no property follows the annotation {note.key}"
        yield Finding(severity="warning", message=message, span=note.span, hint="put it before its property")


def _portability(file: PropertyFile, targets: Collection[Target]) -> Iterator[Finding]:
    try:
        expanded = expand_labels(file)
    except PropertyError:
        return  # reported with the constants
    for entry in expanded.properties:
        for target in targets:
            yield from portability(entry, target)
    for definition in file.labels:
        if targets:
            message = (
                "neither PRISM nor Storm defines a label by other labels; `props format --for prism` writes it out"
            )
            yield Finding(severity="note", message=message, span=definition.span)


# ---------------------------------------------------------------- parts


def _nodes(file: PropertyFile) -> Iterator[tuple[Property | LabelDefinition, Node]]:
    entries: list[Property | LabelDefinition] = [*file.labels, *file.properties]
    for entry in entries:
        for node in walk(entry.formula):
            yield entry, node


def _all_formulas(file: PropertyFile) -> Iterator[Formula]:
    yield from (constant.value for constant in file.constants if constant.value is not None)
    yield from (definition.formula for definition in file.labels)
    yield from (entry.formula for entry in file.properties)


def _error(
    entry: Property | LabelDefinition, message: str, hint: str | None = None, node: Node | None = None
) -> Finding:
    span = node.span if node is not None and node.span is not None else entry.span
    return Finding(severity="error", message=message, span=span, hint=hint, property=_name(entry))


def _name(entry: Property | LabelDefinition) -> str | None:
    return entry.name if isinstance(entry, Property) else None


def _some(names: list[str]) -> str:
    if not names:
        return "none"
    shown = ", ".join(quote(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


def _known(formula: Formula | None, values: dict[str, Fraction | bool]) -> bool:
    return formula is None or all(node.name in values for node in walk(formula) if isinstance(node, Identifier))


def _is_level(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False
