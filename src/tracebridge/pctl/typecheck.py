"""What can be known about types without a model: truth values, whole numbers, numbers.

A name that no constant of the file declares may be a variable of the model, and is accepted wherever it could fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NoReturn

from tracebridge.pctl.ast import (
    Binary,
    Call,
    Conditional,
    Constant,
    CumulativeReward,
    Eventually,
    Formula,
    Globally,
    Identifier,
    InstantaneousReward,
    Label,
    LabelDefinition,
    LongRunReward,
    Next,
    Node,
    Number,
    Operator,
    PathFormula,
    Probability,
    PropertyFile,
    ReachReward,
    Release,
    Reward,
    RewardPath,
    SteadyState,
    StepBound,
    Threshold,
    Truth,
    Unary,
    Until,
    WeakUntil,
    walk,
)
from tracebridge.pctl.source import Source

Type = Literal["bool", "int", "double", "unknown"]

_DESCRIPTION = {"bool": "a truth value", "int": "a whole number", "double": "a number", "unknown": "a value"}
_FUNCTION_ARGUMENTS = {"floor": 1, "ceil": 1, "round": 1, "pow": 2, "mod": 2, "log": 2}


def check_file(file: PropertyFile, source: Source) -> None:
    """Check every declaration and property of a parsed file.

    Raises:
        PropertyError: the first operand that has the wrong type, with its place.
    """
    checker = _Checker(
        source,
        constants={constant.name: constant.type for constant in file.constants},
        properties=frozenset(entry.name for entry in file.properties if entry.name),
    )
    seen: set[str] = set()
    for constant in file.constants:
        if constant.name in seen:
            checker.refuse(constant, f"the constant {constant.name} is declared twice", "remove one declaration")
        seen.add(constant.name)
        if constant.value is not None:
            checker.constant(constant)
    seen.clear()
    for label in file.labels:
        if label.name in seen:
            checker.refuse(label, f'the label "{label.name}" is defined twice', "remove one definition")
        seen.add(label.name)
        checker.truth(label.formula, "a label definition")
    for entry in file.properties:
        checker.type_of(entry.formula)


def check_formula(formula: Formula, source: Source) -> None:
    """Check one formula that stands alone.

    Raises:
        PropertyError: the first operand that has the wrong type, with its place.
    """
    _Checker(source, constants={}, properties=frozenset()).type_of(formula)


class _Checker:
    def __init__(self, source: Source, *, constants: Mapping[str, Type], properties: frozenset[str]) -> None:
        self._source = source
        self._constants = constants
        self._properties = properties

    def constant(self, constant: Constant) -> None:
        assert constant.value is not None  # noqa: S101 - the caller asked
        self._constant_only(constant.value, f"the value of the constant {constant.name}")
        actual = self.type_of(constant.value)
        fits = {"bool": ("bool",), "int": ("int",), "double": ("int", "double")}[constant.type]
        if actual not in (*fits, "unknown"):
            self.refuse(
                constant.value,
                f"the constant {constant.name} is declared {constant.type}, but its value is {_DESCRIPTION[actual]}",
                f"declare it const {actual}" if actual != "bool" or constant.type != "bool" else None,
            )

    def type_of(self, formula: Formula) -> Type:
        match formula:
            case Truth() | Label():
                return "bool"
            case Number():
                return "int" if formula.integer else "double"
            case Identifier():
                return self._constants.get(formula.name, "unknown")
            case Unary(operator="!"):
                self.truth(formula.operand, "!")
                return "bool"
            case Unary():
                return self.number(formula.operand, "-")
            case Binary():
                return self._binary(formula)
            case Conditional():
                self.truth(formula.test, "the test before ?")
                return self._same_kind(formula.then, formula.otherwise, "? :")
            case Call():
                return self._call(formula)
            case _:
                return self._operator(formula)

    def truth(self, formula: Formula, consumer: str) -> None:
        actual = self.type_of(formula)
        if actual in ("int", "double"):
            hint = "compare it with a number, as in x >= 3"
            if isinstance(formula, Probability | Reward | SteadyState):
                letter = _letter(formula)
                hint = f"compare it with a bound, as in {letter}>=0.9 [ ... ]; {letter}=? asks for the number"
            self.refuse(formula, f"{consumer} needs a truth value, and this is {_DESCRIPTION[actual]}", hint)

    def number(self, formula: Formula, consumer: str) -> Type:
        actual = self.type_of(formula)
        if actual == "bool":
            self._refuse_truth(formula, consumer)
        return actual

    def _refuse_truth(self, formula: Formula, consumer: str) -> NoReturn:
        hint = None
        if isinstance(formula, Label) and formula.name in self._properties:
            self.refuse(
                formula, f'not supported yet: a reference to the property "{formula.name}"', "repeat its formula"
            )
        if isinstance(formula, Label):
            hint = 'a label holds or does not hold in a state; for its probability write P=? [ F "label" ]'
        elif isinstance(formula, Probability | Reward | SteadyState):
            hint = f"with =? instead of the bound, {_letter(formula)} is a number"
        self.refuse(formula, f"{consumer} needs a number, and this is a truth value", hint)

    def _binary(self, formula: Binary) -> Type:
        operator = formula.operator
        match operator:
            case "<=>" | "=>" | "|" | "&":
                self.truth(formula.left, operator)
                self.truth(formula.right, operator)
                return "bool"
            case "=" | "!=":
                self._same_kind(formula.left, formula.right, operator)
                return "bool"
            case "<" | "<=" | ">" | ">=":
                self.number(formula.left, operator)
                self.number(formula.right, operator)
                return "bool"
            case _:
                left, right = self.number(formula.left, operator), self.number(formula.right, operator)
                return "double" if operator == "/" else _join(left, right)

    def _same_kind(self, left: Formula, right: Formula, consumer: str) -> Type:
        first, second = self.type_of(left), self.type_of(right)
        if "unknown" not in (first, second) and (first == "bool") != (second == "bool"):
            self.refuse(
                right,
                f"the two sides of {consumer} do not match: {_DESCRIPTION[first]} and {_DESCRIPTION[second]}",
                None,
            )
        return "bool" if first == second == "bool" else _join(first, second)

    def _call(self, formula: Call) -> Type:
        name, arguments = formula.function, formula.arguments
        wanted = _FUNCTION_ARGUMENTS.get(name)
        if wanted is not None and len(arguments) != wanted:
            self.refuse(formula, f"{name} takes {wanted} argument{'s'[: wanted > 1]}, here are {len(arguments)}", None)
        if wanted is None and len(arguments) < 2:
            self.refuse(formula, f"{name} takes two arguments or more", None)
        types = [self.number(argument, name) for argument in arguments]
        if name == "mod":
            for argument, actual in zip(arguments, types, strict=True):
                if actual == "double":
                    self.refuse(argument, "mod needs whole numbers", None)
        match name:
            case "floor" | "ceil" | "round" | "mod":
                return "int"
            case "log":
                return "double"
            case _:
                joined = types[0]
                for actual in types[1:]:
                    joined = _join(joined, actual)
                return joined

    def _operator(self, operator: Operator) -> Type:
        if operator.threshold is not None:
            self._threshold(operator.threshold, f"the bound of {_letter(operator)}")
        match operator:
            case Probability():
                self._path(operator.path)
            case Reward():
                self._reward_path(operator.path)
            case SteadyState():
                self.truth(operator.operand, "S")
        return "double" if operator.threshold is None else "bool"

    def _threshold(self, threshold: Threshold, consumer: str) -> None:
        self._constant_only(threshold.value, consumer)
        self.number(threshold.value, consumer)

    def _path(self, path: PathFormula) -> None:
        match path:
            case Until() | WeakUntil() | Release():
                letter = {Until: "U", WeakUntil: "W", Release: "R"}[type(path)]
                self.truth(path.left, letter)
                self.truth(path.right, letter)
            case _:
                self.truth(path.operand, {Next: "X", Eventually: "F", Globally: "G"}[type(path)])
        bound: StepBound | None = getattr(path, "bound", None)
        for end in (bound.lower, bound.upper) if bound is not None else ():
            if end is not None:
                self._steps(end, "a step bound")

    def _reward_path(self, path: RewardPath) -> None:
        match path:
            case ReachReward():
                self.truth(path.operand, "F")
            case CumulativeReward():
                if path.bound is not None:
                    self._steps(path.bound, "the bound of C")
            case InstantaneousReward():
                self._steps(path.time, "the time of I")
            case LongRunReward():
                return

    def _steps(self, formula: Formula, consumer: str) -> None:
        self._constant_only(formula, consumer)
        if self.number(formula, consumer) == "double":
            hint = "round it with floor(...) or ceil(...)"
            self.refuse(formula, f"{consumer} counts steps and needs a whole number", hint)

    def _constant_only(self, formula: Formula, consumer: str) -> None:
        for node in walk(formula):
            if isinstance(node, Probability | Reward | SteadyState):
                self.refuse(node, f"{consumer} must be a constant, not an operator", None)
            if isinstance(node, Label):
                hint = "a constant is written without quotes" if node.name.isidentifier() else None
                self.refuse(node, f"{consumer} must be a constant, not a label", hint)

    def refuse(self, node: Node | Constant | LabelDefinition, message: str, hint: str | None) -> NoReturn:
        span = node.span
        assert span is not None  # noqa: S101 - the parser gives every node a span
        raise self._source.error(span, message, hint)


def _letter(operator: Operator) -> str:
    return {Probability: "P", Reward: "R", SteadyState: "S"}[type(operator)]


def _join(left: Type, right: Type) -> Type:
    """The type of a number made of two."""
    if "unknown" in (left, right):
        return "unknown"
    return "int" if left == right == "int" else "double"
