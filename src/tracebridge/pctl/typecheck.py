"""What can be known about types without a model: truth values, whole numbers, numbers.

A name that no constant of the file declares may be a variable of the model, and is accepted wherever it could fit. A
label that is the name of a property of the file has the type of that property. Trees are walked bottom-up, without
recursion; what has an error in it has no type, so that one mistake is one message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal, get_args

from tracebridge.errors import Problem, PropertyError
from tracebridge.pctl.ast import (
    AutomatonPath,
    Binary,
    Call,
    Coalition,
    Conditional,
    Constant,
    CumulativeReward,
    Eventually,
    Filter,
    Formula,
    Globally,
    Identifier,
    InstantaneousReward,
    Label,
    LabelDefinition,
    LongRunReward,
    Multi,
    Next,
    Node,
    Number,
    OnePerStep,
    Operator,
    PathBinary,
    PathNot,
    PathReward,
    Probability,
    Property,
    PropertyFile,
    Quantified,
    Quantile,
    QuantileVariable,
    Quantitative,
    ReachReward,
    Release,
    Reward,
    RewardBound,
    SteadyState,
    StepBound,
    Threshold,
    Truth,
    Unary,
    Until,
    WeakUntil,
    children,
    walk,
)
from tracebridge.pctl.source import MAX_PROBLEMS, Source

Type = Literal["bool", "int", "double", "range", "several", "path", "unknown"]
"""``range`` is the least and the greatest of some values, ``several`` the values of a query with several answers."""

_DESCRIPTION: dict[Type, str] = {
    "bool": "a truth value",
    "int": "a whole number",
    "double": "a number",
    "range": "a range of numbers",
    "several": "a list of values",
    "path": "a path formula",
    "unknown": "a value",
}
_FUNCTION_ARGUMENTS = {"floor": 1, "ceil": 1, "round": 1, "pow": 2, "mod": 2, "log": 2}
_TEMPORAL = {Next: "X", Eventually: "F", Globally: "G", Until: "U", WeakUntil: "W", Release: "R"}
_QUANTITATIVE = get_args(Quantitative)
_NOT_CONSTANT = (*get_args(Operator), Filter)
_Scope = frozenset[str]


def check_file(file: PropertyFile, source: Source) -> None:
    """Check every declaration and property of a parsed file.

    Raises:
        PropertyError: the operands that have the wrong type, with their places, up to ``MAX_PROBLEMS``.
    """
    checker = _Checker(source, file)
    checker.check_declarations()
    checker.check_properties()
    checker.finish()


def check_formula(formula: Formula, source: Source) -> None:
    """Check one formula that stands alone.

    Raises:
        PropertyError: the operands that have the wrong type, with their places, up to ``MAX_PROBLEMS``.
    """
    checker = _Checker(source, PropertyFile(properties=()))
    checker.check(formula)
    checker.finish()


class _Checker:
    """Types of the nodes seen so far, by identity; a node that is refused has the type ``unknown``."""

    def __init__(self, source: Source, file: PropertyFile) -> None:
        self._source = source
        self._file = file
        self._constants: Mapping[str, Type] = {constant.name: constant.type for constant in file.constants}
        self._labels = frozenset(label.name for label in file.labels)
        self._names = Counter(entry.name for entry in file.properties if entry.name)
        self._properties: dict[str, Type] = {}
        self._types: dict[int, Type] = {}
        self._problems: list[Problem] = []

    def finish(self) -> None:
        if self._problems:
            self._problems.sort(key=lambda problem: (problem.location.line or 0, problem.location.column or 0))
            raise PropertyError(self._problems[:MAX_PROBLEMS])

    # ------------------------------------------------------------ files

    def check_declarations(self) -> None:
        seen: set[str] = set()
        for constant in self._file.constants:
            if constant.name in seen:
                self._refuse(constant, f"the constant {constant.name} is declared twice", "remove one declaration")
            seen.add(constant.name)
            if constant.value is not None:
                self._constant(constant, constant.value)
        seen.clear()
        for label in self._file.labels:
            if label.name in seen:
                self._refuse(label, f'the label "{label.name}" is defined twice', "remove one definition")
            seen.add(label.name)

    def check_properties(self) -> None:
        """Properties after those that they refer to; a reference that closes a circle has no type."""
        entries = {entry.name: entry for entry in reversed(self._file.properties) if entry.name}
        started: set[int] = set()
        for first in self._file.properties:
            stack = [] if id(first) in started else [(first, self._references(first, entries))]
            started.add(id(first))
            while stack:
                entry, references = stack[-1]
                reference = next((other for other in references if id(other) not in started), None)
                if reference is not None:
                    started.add(id(reference))
                    stack.append((reference, self._references(reference, entries)))
                    continue
                stack.pop()
                found = self.check(entry.formula)
                if entry.name and self._names[entry.name] == 1:
                    self._properties[entry.name] = found
        for label in self._file.labels:
            self.check(label.formula)
            self._truth(label.formula, "a label definition")

    @staticmethod
    def _references(entry: Property, entries: Mapping[str, Property]) -> Iterator[Property]:
        return (entries[node.name] for node in walk(entry.formula) if isinstance(node, Label) and node.name in entries)

    def _constant(self, constant: Constant, value: Formula) -> None:
        self.check(value)
        if not self._constant_only(value, f"the value of the constant {constant.name}"):
            return
        actual = self._types[id(value)]
        fits = {"bool": ("bool",), "int": ("int",), "double": ("int", "double")}[constant.type]
        if actual not in (*fits, "unknown"):
            self._refuse(
                value,
                f"the constant {constant.name} is declared {constant.type}, but its value is {_DESCRIPTION[actual]}",
                f"declare it const {actual}",
            )

    # ------------------------------------------------------------ trees

    def check(self, root: Formula) -> Type:
        """The type of a formula; every node in it is checked."""
        stack: list[tuple[Node, _Scope, bool]] = [(root, frozenset(), False)]
        while stack:
            node, scope, ready = stack.pop()
            if ready:
                self._types[id(node)] = self._type(node, scope)
                continue
            if isinstance(node, Quantile):
                scope |= {variable.name for variable in node.variables}
            stack.append((node, scope, True))
            stack.extend((child, scope, False) for child in reversed(list(children(node))))
        return self._types[id(root)]

    def _type(self, node: Node, scope: _Scope) -> Type:
        """The type of a node whose children have theirs."""
        match node:
            case Truth():
                return "bool"
            case Number():
                return "int" if node.integer else "double"
            case Label():
                return self._label(node)
            case Identifier():
                return "int" if node.name in scope else self._constants.get(node.name, "unknown")
            case Unary(operator="!"):
                return self._truth(node.operand, "!")
            case Unary():
                return self._number(node.operand, "-")
            case Binary():
                return self._binary(node)
            case Conditional():
                self._truth(node.test, "the test before ?")
                return self._same_kind(node.then, node.otherwise, "? :")
            case Call():
                return self._call(node)
            case Filter():
                return self._filter(node)
            case Probability() | Reward() | SteadyState() | Quantified() | Quantile() | Multi() | Coalition():
                return self._operator(node)
            case _:
                self._path(node)
                return "path"

    def _label(self, label: Label) -> Type:
        if label.name not in self._names:
            return "bool"
        if label.name in self._labels:
            return self._refuse(label, f'"{label.name}" is a label and a property of this file', "rename one of them")
        if self._names[label.name] > 1:
            return self._refuse(label, f'two properties are named "{label.name}"', "rename one of them")
        return self._properties.get(label.name, "unknown")

    def _binary(self, formula: Binary) -> Type:
        operator = formula.operator
        match operator:
            case "<=>" | "=>" | "|" | "&":
                self._truth(formula.left, operator)
                self._truth(formula.right, operator)
                return "bool"
            case "=" | "!=":
                self._same_kind(formula.left, formula.right, operator)
                return "bool"
            case "<" | "<=" | ">" | ">=":
                self._number(formula.left, operator)
                self._number(formula.right, operator)
                return "bool"
            case _:
                joined = _join(self._number(formula.left, operator), self._number(formula.right, operator))
                return "double" if operator == "/" else joined

    def _same_kind(self, left: Formula, right: Formula, consumer: str) -> Type:
        first, second = self._types[id(left)], self._types[id(right)]
        for side, actual in ((left, first), (right, second)):
            if actual in ("range", "several"):
                return self._refuse(side, f"{consumer} needs single values, and this is {_DESCRIPTION[actual]}", None)
        if "unknown" not in (first, second) and (first == "bool") != (second == "bool"):
            return self._refuse(
                right,
                f"the two sides of {consumer} do not match: {_DESCRIPTION[first]} and {_DESCRIPTION[second]}",
                None,
            )
        return "bool" if first == second == "bool" else _join(first, second)

    def _call(self, formula: Call) -> Type:
        name, arguments = formula.function, formula.arguments
        wanted = _FUNCTION_ARGUMENTS.get(name)
        if wanted is not None and len(arguments) != wanted:
            message = f"{name} takes {wanted} argument{'s'[: wanted > 1]}, here are {len(arguments)}"
            return self._refuse(formula, message, None)
        if wanted is None and len(arguments) < 2:
            return self._refuse(formula, f"{name} takes two arguments or more", None)
        joined: Type = "int"
        for argument in arguments:
            actual = self._number(argument, name)
            if name == "mod" and actual == "double":
                self._refuse(argument, "mod needs whole numbers", None)
            joined = _join(joined, actual)
        match name:
            case "floor" | "ceil" | "round" | "mod":
                return "int"
            case "log":
                return "double"
            case _:
                return joined

    def _filter(self, formula: Filter) -> Type:
        """The types of PRISM's manual; ``values`` is Storm's name for the listing of ``printall``."""
        if formula.states is not None:
            self._truth(formula.states, "the set of states of a filter")
        consumer = f"the filter {formula.kind}"
        match formula.kind:
            case "count" | "forall" | "exists":
                self._truth(formula.operand, consumer)
                return "int" if formula.kind == "count" else "bool"
            case "argmin" | "argmax":
                self._number(formula.operand, consumer)
                return "bool"
            case "min" | "max" | "sum":
                return self._number(formula.operand, consumer)
            case "avg" | "range":
                self._number(formula.operand, consumer)
                return "double" if formula.kind == "avg" else "range"
            case "state" | "first" | "print" | "printall" | "values":
                return self._types[id(formula.operand)]

    # ------------------------------------------------------------ operators

    def _operator(self, operator: Operator) -> Type:
        match operator:
            case Quantified():
                return "bool"
            case Coalition():
                return self._types[id(operator.operator)]
            case Quantile():
                self._variables(operator, operator.variables)
                return "double" if len(operator.variables) == 1 else "several"
            case Multi():
                queries = sum(self._types[id(objective)] != "bool" for objective in operator.objectives)
                return ("bool", "double")[queries] if queries < 2 else "several"
            case Probability() | Reward() | SteadyState():
                self._quantitative(operator)
                return "double" if operator.threshold is None else "bool"

    def _quantitative(self, operator: Quantitative) -> None:
        if operator.threshold is not None:
            self._threshold(operator.threshold, f"the bound of {_letter(operator)}")
        if isinstance(operator, SteadyState):
            self._truth(operator.operand, "S")
        if isinstance(operator, Reward) and isinstance(operator.structure, Formula):
            self._structure(operator.structure)

    def _threshold(self, threshold: Threshold, consumer: str) -> None:
        if self._constant_only(threshold.value, consumer):
            self._number(threshold.value, consumer)

    def _structure(self, structure: Formula) -> None:
        consumer = "the number of a reward structure"
        if not self._constant_only(structure, consumer):
            return
        if self._number(structure, consumer) == "double":
            self._refuse(structure, f"{consumer} must be a whole number", None)
        elif isinstance(structure, Number) and structure.value < 1:
            self._refuse(structure, "reward structures are counted from 1", None)

    def _variables(self, quantile: Quantile, variables: tuple[QuantileVariable, ...]) -> None:
        for name, times in Counter(variable.name for variable in variables).items():
            if times > 1:
                self._refuse(quantile, f"the variable {name} of this quantile is declared twice", "rename one of them")

    # ------------------------------------------------------------ paths

    def _path(self, path: Node) -> None:
        match path:
            case Next() | PathNot():
                self._operand(path.operand, _TEMPORAL.get(type(path), "!"))
            case Eventually() | Globally():
                self._operand(path.operand, _TEMPORAL[type(path)])
                self._bounds(path.bound, path.reward_bounds)
            case Until() | WeakUntil() | Release():
                self._operand(path.left, _TEMPORAL[type(path)])
                self._operand(path.right, _TEMPORAL[type(path)])
                self._bounds(path.bound, path.reward_bounds)
            case PathBinary():
                self._operand(path.left, path.operator)
                self._operand(path.right, path.operator)
            case AutomatonPath():
                for proposition in path.propositions:
                    self._truth(proposition.formula, f'the proposition "{proposition.name}"')
            case ReachReward():
                self._truth(path.operand, "F")
            case CumulativeReward():
                self._cumulative(path)
            case InstantaneousReward():
                self._steps(path.time, "the time of I")
            case PathReward() | LongRunReward():
                return

    def _operand(self, operand: Node, consumer: str) -> None:
        """An operand that may be a path formula."""
        if isinstance(operand, Formula):
            self._truth(operand, consumer)

    def _bounds(self, steps: StepBound | None, rewards: tuple[RewardBound, ...]) -> None:
        for end in _ends(steps):
            self._steps(end, "a step bound")
        self._reward_bounds(rewards)

    def _reward_bounds(self, rewards: tuple[RewardBound, ...]) -> None:
        for bound in rewards:
            for end in _ends(bound.bound):
                if self._constant_only(end, "a reward bound"):
                    self._number(end, "a reward bound")

    def _cumulative(self, path: CumulativeReward) -> None:
        if path.bound is not None:
            self._steps(path.bound, "the bound of C")
        if path.discount is not None and self._constant_only(path.discount, "a discount"):
            self._number(path.discount, "a discount")
        self._reward_bounds(path.reward_bounds)

    def _steps(self, formula: Formula, consumer: str) -> None:
        if self._constant_only(formula, consumer) and self._number(formula, consumer) == "double":
            hint = "round it with floor(...) or ceil(...)"
            self._refuse(formula, f"{consumer} counts steps and needs a whole number", hint)

    # ------------------------------------------------------------ what a consumer needs

    def _truth(self, formula: Formula, consumer: str) -> Type:
        actual = self._types[id(formula)]
        if actual in ("int", "double", "range", "several"):
            hint = "compare it with a number, as in x >= 3" if actual in ("int", "double") else None
            if isinstance(formula, _QUANTITATIVE):
                letter = _letter(formula)
                hint = f"compare it with a bound, as in {letter}>=0.9 [ ... ]; {letter}=? asks for the number"
            elif isinstance(formula, Label):
                hint = "it is the value of the property of this name; to mean the label, rename the property"
            self._refuse(formula, f"{consumer} needs a truth value, and this is {_DESCRIPTION[actual]}", hint)
        return "bool"

    def _number(self, formula: Formula, consumer: str) -> Type:
        actual = self._types[id(formula)]
        if actual in ("int", "double", "unknown"):
            return actual
        hint = None
        if isinstance(formula, Label) and formula.name not in self._names:
            hint = 'a label holds or does not hold in a state; for its probability write P=? [ F "label" ]'
        elif isinstance(formula, _QUANTITATIVE):
            hint = f"with =? instead of the bound, {_letter(formula)} is a number"
        return self._refuse(formula, f"{consumer} needs a number, and this is {_DESCRIPTION[actual]}", hint)

    def _constant_only(self, formula: Formula, consumer: str) -> bool:
        for node in walk(formula):
            if isinstance(node, _NOT_CONSTANT):
                self._refuse(node, f"{consumer} must be a constant, not an operator", None)
                return False
            if isinstance(node, Label):
                hint = "a constant is written without quotes" if node.name.isidentifier() else None
                self._refuse(node, f"{consumer} must be a constant, not a label", hint)
                return False
        return True

    def _refuse(self, node: Node | Constant | LabelDefinition, message: str, hint: str | None) -> Type:
        span = node.span
        assert span is not None  # noqa: S101 - the parser gives every node a span
        self._problems.append(self._source.problem(span, message, hint))
        if not isinstance(node, Constant | LabelDefinition):
            self._types[id(node)] = "unknown"
        return "unknown"


def _ends(bound: StepBound | None) -> Iterator[Formula]:
    """The ends of a bound, each once."""
    if bound is not None and bound.lower is not None:
        yield bound.lower
    if bound is not None and bound.upper is not None and not bound.exact:
        yield bound.upper


def _letter(operator: Quantitative) -> str:
    if isinstance(operator, Reward) and isinstance(operator.structure, OnePerStep):
        return "T"
    return {Probability: "P", Reward: "R", SteadyState: "S"}[type(operator)]


def _join(left: Type, right: Type) -> Type:
    """The type of a number made of two."""
    if "unknown" in (left, right):
        return "unknown"
    return "int" if left == right == "int" else "double"
