"""The types of formulas, of operators and of filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tracebridge.pctl import ast
from tracebridge.pctl.operand_types import OperandTypes, Type, join, letter_of
from tracebridge.pctl.path_types import check_path

_FUNCTION_ARGUMENTS = {"floor": 1, "ceil": 1, "round": 1, "pow": 2, "mod": 2, "log": 2}
Scope = frozenset[str]
"""The variables of the quantiles that a node stands in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaTypes:
    """The types of formulas in a file with these names.

    Attributes:
        constants: the declared types. labels: the names that the file defines. times: how many properties have a name.
        properties: the types of those that were checked, by their names.
    """

    constants: Mapping[str, Type]
    labels: frozenset[str]
    times: Counter[str]
    properties: dict[str, Type] = field(default_factory=dict)

    def type_of(self, node: ast.Node, scope: Scope, types: OperandTypes) -> Type:
        """The type of a node whose children have theirs."""
        match node:
            case ast.Truth():
                return "bool"
            case ast.Number():
                return "int" if node.integer else "double"
            case ast.Label():
                return self._label(node, types)
            case ast.Identifier():
                return "int" if node.name in scope else self.constants.get(node.name, "unknown")
            case ast.Unary(operator="!"):
                return types.truth(node.operand, "!")
            case ast.Unary():
                return types.number(node.operand, "-")
            case ast.Binary():
                return _binary(node, types)
            case ast.Conditional():
                types.truth(node.test, "the test before ?")
                return types.same_kind(node.then, node.otherwise, "? :")
            case ast.Call():
                return _call(node, types)
            case ast.Filter():
                return _filter(node, types)
            case (
                ast.Probability()
                | ast.Reward()
                | ast.SteadyState()
                | ast.Quantified()
                | ast.Quantile()
                | ast.Multi()
                | ast.Coalition()
            ):
                return _operator(node, types)
            case _:
                check_path(node, types)
                return "path"

    def _label(self, label: ast.Label, types: OperandTypes) -> Type:
        if label.name not in self.times:
            return "bool"
        if label.name in self.labels:
            return types.refuse(label, f'"{label.name}" is a label and a property of this file', "rename one of them")
        if self.times[label.name] > 1:
            return types.refuse(label, f'two properties are named "{label.name}"', "rename one of them")
        return self.properties.get(label.name, "unknown")


def _binary(formula: ast.Binary, types: OperandTypes) -> Type:
    operator = formula.operator
    match operator:
        case "<=>" | "=>" | "|" | "&":
            types.truth(formula.left, operator)
            types.truth(formula.right, operator)
            return "bool"
        case "=" | "!=":
            types.same_kind(formula.left, formula.right, operator)
            return "bool"
        case "<" | "<=" | ">" | ">=":
            types.number(formula.left, operator)
            types.number(formula.right, operator)
            return "bool"
        case _:
            joined = join(types.number(formula.left, operator), types.number(formula.right, operator))
            return "double" if operator == "/" else joined


def _call(formula: ast.Call, types: OperandTypes) -> Type:
    name, arguments = formula.function, formula.arguments
    wanted = _FUNCTION_ARGUMENTS.get(name)
    if wanted is not None and len(arguments) != wanted:
        message = f"{name} takes {wanted} argument{'s'[: wanted > 1]}, here are {len(arguments)}"
        return types.refuse(formula, message)
    if wanted is None and len(arguments) < 2:
        return types.refuse(formula, f"{name} takes two arguments or more")
    joined: Type = "int"
    for argument in arguments:
        actual = types.number(argument, name)
        if name == "mod" and actual == "double":
            types.refuse(argument, "mod needs whole numbers")
        joined = join(joined, actual)
    match name:
        case "floor" | "ceil" | "round" | "mod":
            return "int"
        case "log":
            return "double"
        case _:
            return joined


def _filter(formula: ast.Filter, types: OperandTypes) -> Type:
    """The types of PRISM's manual; ``values`` is Storm's name for the listing of ``printall``."""
    if formula.states is not None:
        types.truth(formula.states, "the set of states of a filter")
    consumer = f"the filter {formula.kind}"
    match formula.kind:
        case "count" | "forall" | "exists":
            types.truth(formula.operand, consumer)
            return "int" if formula.kind == "count" else "bool"
        case "argmin" | "argmax":
            types.number(formula.operand, consumer)
            return "bool"
        case "min" | "max" | "sum":
            return types.number(formula.operand, consumer)
        case "avg" | "range":
            types.number(formula.operand, consumer)
            return "double" if formula.kind == "avg" else "range"
        case "state" | "first" | "print" | "printall" | "values":
            return types.of(formula.operand)


def _operator(operator: ast.Operator, types: OperandTypes) -> Type:
    match operator:
        case ast.Quantified():
            return "bool"
        case ast.Coalition():
            return types.of(operator.operator)
        case ast.Quantile():
            _variables(operator, types)
            return "double" if len(operator.variables) == 1 else "several"
        case ast.Multi():
            queries = sum(types.of(objective) != "bool" for objective in operator.objectives)
            return ("bool", "double")[queries] if queries < 2 else "several"
        case ast.Probability() | ast.Reward() | ast.SteadyState():
            _quantitative(operator, types)
            return "double" if operator.threshold is None else "bool"


def _quantitative(operator: ast.Quantitative, types: OperandTypes) -> None:
    if operator.threshold is not None:
        types.constant_number(operator.threshold.value, f"the bound of {letter_of(operator)}")
    if isinstance(operator, ast.SteadyState):
        types.truth(operator.operand, "S")
    if isinstance(operator, ast.Reward) and isinstance(operator.structure, ast.Formula):
        _reward_structure(operator.structure, types)


def _reward_structure(structure: ast.Formula, types: OperandTypes) -> None:
    consumer = "the number of a reward structure"
    if types.constant_number(structure, consumer) == "double":
        types.refuse(structure, f"{consumer} must be a whole number")
    elif isinstance(structure, ast.Number) and structure.value < 1:
        types.refuse(structure, "reward structures are counted from 1")


def _variables(quantile: ast.Quantile, types: OperandTypes) -> None:
    for name, times in Counter(variable.name for variable in quantile.variables).items():
        if times > 1:
            types.refuse(quantile, f"the variable {name} of this quantile is declared twice", "rename one of them")
