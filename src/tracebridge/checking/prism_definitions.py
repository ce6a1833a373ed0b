"""Constants and formulas of a PRISM program, evaluated exactly from its text.

Storm explores a program but does not say what its formulas are worth in a state, and a division by zero in one ends
its process. So the definitions are read from the text, with the parser of the property language, whose expressions are
those of programs, and evaluated with the exact evaluator of constants, once for each combination of values that occurs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tracebridge.errors import PropertyError
from tracebridge.pctl import evaluate_constant, parse_formula
from tracebridge.pctl.ast import Formula, Identifier, walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

Value = Fraction | bool
_Held = TypeVar("_Held")

_COMMENT_OR_STRING = re.compile(r'//[^\n]*|("[^"\n]*")')
_DEFINITION = re.compile(
    r"\b(?P<kind>const|formula)\s+(?:(?:int|double|bool|rate|prob)\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"\s*(?:=(?P<expression>[^;]*))?;"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """The definitions of a program: the text behind ``=`` by name, in the order of the program."""

    constants: Mapping[str, str]
    formulas: Mapping[str, str]


class _NoValueError(Exception):
    """Why a definition has no value that can be told."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A value in every state: the different values, and which of them a state has, shape (n,)."""

    values: list[Value]
    value_of: NDArray[np.int64]


def read_definitions(text: str) -> Definitions:
    """Find the constants and formulas in the text of a program that Storm accepts.

    Constants without a value are left out.
    """
    bare = _COMMENT_OR_STRING.sub(lambda match: match[1] or " ", text)
    found: dict[str, dict[str, str]] = {"const": {}, "formula": {}}
    for match in _DEFINITION.finditer(bare):
        if match["expression"] is not None:
            found[match["kind"]][match["name"]] = match["expression"].strip()
    return Definitions(constants=found["const"], formulas=found["formula"])


def evaluate_constants(
    definitions: Mapping[str, str], given: Mapping[str, Value]
) -> tuple[dict[str, Value], dict[str, str]]:
    """The exact values of constants, and why others have none: an irrational value, such as ``pow(2, 0.5)``.

    Args:
        definitions: their texts. given: the values of those that the program leaves open.
    """
    values = dict(given)
    trees, reasons = _parsed(definitions)
    for name in _dependencies_first(trees):
        try:
            values[name] = evaluate_constant(trees[name], values)
        except PropertyError as error:
            reasons[name] = _first_line(error)
    return {**given, **_ordered(values, definitions)}, _ordered(reasons, definitions)


def evaluate_formulas(
    definitions: Mapping[str, str], *, variables: Mapping[str, NDArray[Any]], constants: Mapping[str, Value]
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The formulas of a program in every state, and why others are left out.

    Formulas are evaluated exactly, those that they are made of included. The result is bool, int64 where all values are
    whole numbers, or else rounded to float64. One that has no value in some state (a division by zero), no exact
    value, or none within 64 bits is left out.

    Args:
        definitions: their texts. variables: int64 or bool, shape (n,). constants: exact values.
    """
    trees, reasons = _parsed(definitions)
    columns = {name: _variable_column(values) for name, values in variables.items()}
    n = len(next(iter(variables.values()))) if variables else 1
    arrays = {}
    for name in _dependencies_first(trees):
        try:
            columns[name] = _evaluated(trees[name], columns, constants, n)
            arrays[name] = _array(columns[name])
        except _NoValueError as error:
            reasons[name] = str(error)
    return _ordered(arrays, definitions), _ordered(reasons, definitions)


def _parsed(definitions: Mapping[str, str]) -> tuple[dict[str, Formula], dict[str, str]]:
    trees, reasons = {}, {}
    for name, expression in definitions.items():
        try:
            trees[name] = parse_formula(expression)
        except PropertyError as error:
            reasons[name] = _first_line(error)
    return trees, reasons


def _dependencies_first(trees: Mapping[str, Formula]) -> Iterable[str]:
    """The definitions in an order in which they can be evaluated; Storm refuses those that depend on themselves."""
    uses = {name: _names(tree) & trees.keys() for name, tree in trees.items()}
    return TopologicalSorter(uses).static_order()


def _ordered(values: Mapping[str, _Held], definitions: Mapping[str, str]) -> dict[str, _Held]:
    """In the order of the program; that of evaluation is not the same in every run."""
    return {name: values[name] for name in definitions if name in values}


def _names(tree: Formula) -> set[str]:
    return {node.name for node in walk(tree) if isinstance(node, Identifier)}


def _variable_column(values: NDArray[Any]) -> _Column:
    different, value_of = np.unique(values, return_inverse=True)
    is_boolean = different.dtype == np.bool_
    return _Column([value if is_boolean else Fraction(value) for value in different.tolist()], value_of)


def _evaluated(tree: Formula, columns: Mapping[str, _Column], constants: Mapping[str, Value], n: int) -> _Column:
    """A formula in every state, evaluated once for each combination of values of the names in it.

    Raises:
        _NoValueError: it has none in some state.
    """
    names = sorted(_names(tree) & columns.keys())
    group = np.zeros(n, dtype=np.int64)
    for name in names:  # numbered anew after each name, so that the products stay below n * n
        _, group = np.unique(group * len(columns[name].values) + columns[name].value_of, return_inverse=True)
    _, examples = np.unique(group, return_index=True)
    numbering: dict[Value, int] = {}
    value_of_group = []
    for state in examples.tolist():
        here = {name: columns[name].values[columns[name].value_of[state]] for name in names}
        try:
            value = evaluate_constant(tree, {**constants, **here})
        except PropertyError as error:
            place = ", ".join(f"{name}={str(value).lower()}" for name, value in here.items())
            raise _NoValueError(_first_line(error) + (f" (where {place})" if place else "")) from None
        value_of_group.append(numbering.setdefault(value, len(numbering)))
    return _Column(list(numbering), np.array(value_of_group, dtype=np.int64)[group])


def _array(column: _Column) -> NDArray[Any]:
    """The column as an array.

    Raises:
        _NoValueError: a value does not fit into 64 bits.
    """
    if isinstance(column.values[0], bool):
        return np.array(column.values, dtype=np.bool_)[column.value_of]
    is_whole = all(value.denominator == 1 for value in column.values)
    try:
        different = np.array(
            [int(value) if is_whole else float(value) for value in column.values],
            dtype=np.int64 if is_whole else np.float64,
        )
    except OverflowError:
        raise _NoValueError("a value is beyond 64 bits") from None
    return different[column.value_of]


def _first_line(error: PropertyError) -> str:
    return error.problems[0].message
