"""Constants, evaluated exactly and substituted."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from tracebridge.errors import Problem, PropertyError, UsageError
from tracebridge.pctl.ast import (
    Constant,
    Formula,
    Identifier,
    Number,
    PropertyFile,
    Quantile,
    Span,
    Truth,
    walk,
)
from tracebridge.pctl.evaluation import Value, evaluate_constant, refusal
from tracebridge.pctl.references import (
    MAX_NODES,
    dependency_order,
    expand_labels,
    expanded_property,
    free_identifiers,
)
from tracebridge.pctl.rewrite import Part, rewrite
from tracebridge.pctl.source import locate

__all__ = ["MAX_NODES", "constant_values", "expand_labels", "literal", "resolve_constants", "substitute"]


def resolve_constants(
    file: PropertyFile,
    values: Mapping[str, Value | int | float] | None = None,
    *,
    model_constants: Mapping[str, Value] | None = None,
    variables: Collection[str] = (),
    model_labels: Collection[str] = (),
) -> PropertyFile:
    """Substitute every constant by its value, and expand every label definition and reference to a property.

    Args:
        file: a parsed file.
        values: constants from outside (``--const d=8``); they take precedence over the values of the file. A float is
            read as the decimal that it prints as.
        model_constants: the constants of the model, for names that the file does not declare.
        variables: names with a value in each state of the model; they stay in the formulas.
        model_labels: the labels of the model, which no property can be referred to by.

    Returns:
        The file without constants and label definitions; numbers are exact. The variables of quantiles stay, too.

    Raises:
        UsageError: ``values`` names a constant that the file does not declare.
        PropertyError: a constant that is used has no value or one of the wrong type, an unknown name, a definition or
            property that depends on itself, a variable of a quantile that is called like a constant or a variable of
            the model, or definitions that expand to more than ``MAX_NODES`` nodes.
    """
    model = dict(model_constants or {})
    known = constant_values(file, values or {}, model_constants=model)
    expanded = expand_labels(file, model_labels=model_labels)
    declared = {constant.name for constant in file.constants}
    taken = {**dict.fromkeys(variables, "variable of the model"), **dict.fromkeys(model, "constant of the model")}
    taken |= dict.fromkeys(declared, "constant")
    problems: list[Problem] = []
    for entry in expanded.properties:
        problems += _shadowed_names(entry.formula, file, taken)
        problems += _unknown_names(entry.formula, file, {*known, *(set(variables) - declared)})
    if problems:
        raise PropertyError(problems)
    properties = tuple(expanded_property(entry, substitute(entry.formula, known)) for entry in expanded.properties)
    return replace(expanded, properties=properties, constants=())


def constant_values(
    file: PropertyFile,
    values: Mapping[str, Value | int | float],
    *,
    model_constants: Mapping[str, Value] | None = None,
) -> dict[str, Value]:
    """The value of every constant that has one, those of the model that the file does not declare included.

    Constants that depend on a missing one are left out.

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
    order = dependency_order({name: _identifiers(value) for name, value in definitions.items()}, declared, file.path)
    known = {name: value for name, value in (model_constants or {}).items() if name not in declared}
    known |= {name: _typed(_exact(value, name), declared[name], file.path) for name, value in values.items()}
    for name in order:
        if name in definitions and all(used in known for used in _identifiers(definitions[name])):
            value = evaluate_constant(definitions[name], known, path=file.path)
            known[name] = _typed(value, declared[name], file.path)
    return known


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


def _unknown_names(formula: Formula, file: PropertyFile, known: Collection[str]) -> Iterable[Problem]:
    declared = {constant.name for constant in file.constants}
    for node in free_identifiers(formula):
        if node.name in known:
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


def _shadowed_names(formula: Formula, file: PropertyFile, taken: Mapping[str, str]) -> Iterable[Problem]:
    for node in walk(formula):
        for variable in node.variables if isinstance(node, Quantile) else ():
            if variable.name in taken:
                message = f"the variable {variable.name} of the quantile is called like a {taken[variable.name]}"
                yield Problem(location=locate(node.span, file.path), message=message, hint="choose another name")


def _identifiers(formula: Formula) -> list[str]:
    """The names that a constant formula uses, in order, each once."""
    return list(dict.fromkeys(node.name for node in walk(formula) if isinstance(node, Identifier)))


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
