"""What is doubtful in a property file, before anything is checked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from tracebridge.errors import PropertyError
from tracebridge.pctl.ast import (
    Coalition,
    Formula,
    Identifier,
    Label,
    LabelDefinition,
    Multi,
    Node,
    Number,
    Property,
    PropertyFile,
    Reward,
    Span,
    walk,
)
from tracebridge.pctl.constants import constant_values
from tracebridge.pctl.finding import Finding, Severity, entries, error_at, name_of, nodes
from tracebridge.pctl.lint_bounds import bound_findings, quantile_findings
from tracebridge.pctl.lint_hidden import hidden_findings
from tracebridge.pctl.portability import portability
from tracebridge.pctl.printer import Target, format_formula, quote
from tracebridge.pctl.references import expand_labels, free_identifiers, reward_bounds
from tracebridge.pctl.remarks import ANNOTATION_KEYS

BUILT_IN_LABELS = frozenset({"init", "deadlock"})
"""Labels that PRISM and Storm define on every model."""

SEVERITIES = ("blocking", "advisory")
"""What ``//@ severity`` may say; without it, or with another word, a property is blocking."""


def lint(
    file: PropertyFile,
    *,
    labels: Collection[str] | None = None,
    reward_structures: Collection[str] | None = None,
    names: Collection[str] = (),
    mixed: Mapping[str, Sequence[str]] = MappingProxyType({}),
    targets: Collection[Target] = ("prism", "storm"),
) -> list[Finding]:
    """Everything doubtful in a property file, in the order of its text.

    Args:
        file: a parsed file.
        labels: the labels of the model; None if there is no model at hand, and labels are not judged.
        reward_structures: the reward structures of the model; likewise.
        names: the constants, variables and formulas of the model, which a file may use without declaring them.
        mixed: words that are no labels because some states hold steps with and without them, and these states.
        targets: the tools for which a note says what they cannot take in their own syntax.
    """
    found = [
        *_constants(file, names, model_known=labels is not None),
        *_names(file, labels),
        *_labels(file, labels, mixed),
        *_rewards(file, reward_structures),
        *bound_findings(file),
        *quantile_findings(file, names),
        *_choices(file, model_known=labels is not None),
        *_annotations(file),
        *hidden_findings(file),
        *_portability(file, targets),
    ]
    return sorted(found, key=lambda finding: (finding.span.line, finding.span.column) if finding.span else (0, 0))


def _constants(file: PropertyFile, names: Collection[str], *, model_known: bool) -> Iterator[Finding]:
    used = {node.name for formula in _all_formulas(file) for node in walk(formula) if isinstance(node, Identifier)}
    declared = {constant.name for constant in file.constants}
    for constant in file.constants:
        if constant.name not in used:
            yield Finding(severity="warning", message=f"the constant {constant.name} is not used", span=constant.span)
    known = {*declared, *names}
    for entry in entries(file):
        for node in free_identifiers(entry.formula):
            if node.name in known:
                continue
            near = difflib.get_close_matches(node.name, sorted(known), n=1)
            hint = f"did you mean {near[0]}?" if near else f"a label stands in quotes: {quote(node.name)}"
            message = f"unknown name {node.name}" if model_known else f"unless the model has it, {node.name} is unknown"
            severity: Severity = "error" if model_known else "warning"
            yield Finding(severity=severity, message=message, span=node.span, hint=hint, property=name_of(entry))
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
    unnamed = [entry for entry in file.properties if entry.name is None]
    if unnamed:
        subject = "a property" if len(unnamed) == 1 else f"{len(unnamed)} properties"
        message = f"{subject} without a name {'is' if len(unnamed) == 1 else 'are'} hard to find in a report"
        yield Finding(severity="warning", message=message, span=unnamed[0].span, hint='write "name": in front of it')
    seen: set[str] = set()
    for entry in file.properties:
        name = entry.name
        if name is None:
            continue
        if name in seen:
            yield error_at(entry, f"a second property is called {quote(name)}", "names must differ")
        elif name in taken:
            hint = "PRISM keeps both in one namespace; rename the property"
            yield error_at(entry, f"the property {quote(name)} is called like a label", hint)
        seen.add(name)
    for definition in file.labels:
        if labels is not None and definition.name in labels:
            message = f"the definition of {quote(definition.name)} hides a label of the model"
            yield Finding(severity="error", message=message, span=definition.span, hint="choose another name")


def _labels(
    file: PropertyFile, labels: Collection[str] | None, mixed: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    defined = {definition.name for definition in file.labels}
    used = {node.name for _, node in nodes(file) if isinstance(node, Label)}
    for definition in file.labels:
        if definition.name not in used:
            message = f"the label {quote(definition.name)} is not used"
            yield Finding(severity="warning", message=message, span=definition.span)
    if labels is None:
        return
    properties = {entry.name for entry in file.properties if entry.name is not None}
    known = defined | set(labels) | BUILT_IN_LABELS | properties
    for entry, node in nodes(file):
        if not isinstance(node, Label) or node.name in known:
            continue
        near = difflib.get_close_matches(node.name, sorted(known), n=1)
        hint = f"did you mean {quote(near[0])}?" if near else f"the model has {_some(sorted(labels))}"
        if states := mixed.get(node.name):
            hint = (
                f"steps with and without it are together in {_some(sorted(states))}; `assess` with these properties "
                "keeps them apart, and so may `fit` with a larger --k-max or with --states"
            )
        yield error_at(entry, f"no state has the label {quote(node.name)}", hint, node)


def _rewards(file: PropertyFile, structures: Collection[str] | None) -> Iterator[Finding]:
    for entry, node in nodes(file):
        named = [bound.structure for bound in reward_bounds(node)]
        if isinstance(node, Reward):
            if isinstance(node.structure, Number) and structures is not None:
                if not 1 <= node.structure.value <= len(structures):
                    message = f"there is no reward structure {format_formula(node.structure)}"
                    yield error_at(entry, message, f"the model has {_some(sorted(structures))}, counted from 1", node)
            elif node.structure is None or isinstance(node.structure, str):
                named.append(node.structure)
        for name in named:
            if name is None:
                yield from _unnamed_structure(entry, node, structures)
            elif structures is not None and name not in structures:
                near = difflib.get_close_matches(name, sorted(structures), n=1)
                hint = f"did you mean {quote(near[0])}?" if near else f"the model has {_some(sorted(structures))}"
                yield error_at(entry, f"unknown reward structure {quote(name)}", hint, node)


def _unnamed_structure(
    entry: Property | LabelDefinition, node: Node, structures: Collection[str] | None
) -> Iterator[Finding]:
    if structures is not None and not structures:
        yield error_at(entry, "the model has no reward structure", None, node)
    elif structures is None or len(structures) > 1:
        what = "R" if isinstance(node, Reward) else "a reward bound"
        message = (
            f"{what} names no reward structure: the first is taken, as in PRISM; Storm refuses if there are several"
        )
        first = next(iter(structures)) if isinstance(structures, list | tuple) else "steps"
        hint = (
            f"write R{{{quote(first)}}}" if isinstance(node, Reward) else f"write {{{quote(first)}}} before the bound"
        )
        yield Finding(severity="warning", message=message, span=node.span, hint=hint, property=name_of(entry))


def _choices(file: PropertyFile, *, model_known: bool) -> Iterator[Finding]:
    """Questions about schedulers and players, put to a chain."""
    for entry, node in nodes(file):
        if model_known and isinstance(node, Multi | Coalition):
            message = "this asks about choices, and a Markov chain has none"
            yield Finding(severity="warning", message=message, span=node.span, property=name_of(entry))


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
                message = f"credible {note.value[:80]} is no level"
                hint = "the share of the posterior in which the property must hold: at least 0.5, and below 1"
                yield Finding(severity="error", message=message, span=note.span, hint=hint, property=entry.name)
            elif note.key == "severity" and note.value not in SEVERITIES:
                near = difflib.get_close_matches(note.value.lower(), SEVERITIES, n=1)
                hint = f"did you mean {near[0]}?" if near else f"it is {' or '.join(SEVERITIES)}"
                message = f"severity {note.value[:80]} is unknown, and the property counts as blocking"
                yield Finding(severity="warning", message=message, span=note.span, hint=hint, property=entry.name)
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


def _all_formulas(file: PropertyFile) -> Iterator[Formula]:
    yield from (constant.value for constant in file.constants if constant.value is not None)
    yield from (definition.formula for definition in file.labels)
    yield from (entry.formula for entry in file.properties)


def _some(names: list[str]) -> str:
    if not names:
        return "none"
    shown = ", ".join(quote(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


#: A fraction of bounded length: what reads levels later may build the whole number.
_LEVEL = re.compile(r"\d{0,30}\.?\d{1,30}|\d{1,30}/\d{1,30}", re.ASCII)


def _is_level(text: str) -> bool:
    """A share of the posterior that can decide: with less than a half, a property could hold and fail at once."""
    if not _LEVEL.fullmatch(text):
        return False
    numerator, _, denominator = text.partition("/")
    return float(denominator or 1) > 0 and 0.5 <= float(numerator) / float(denominator or 1) < 1
