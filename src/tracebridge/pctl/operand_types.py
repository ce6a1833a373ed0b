"""The types of operands, and what an operator needs of them: a truth value, a number, a constant."""

from __future__ import annotations

from collections.abc import Container
from typing import Literal, get_args

from tracebridge.errors import Problem
from tracebridge.pctl import ast
from tracebridge.pctl.source import Source

Type = Literal["bool", "int", "double", "range", "several", "path", "unknown"]
"""``range`` is the least and the greatest of some values, ``several`` the values of a query with several answers."""

DESCRIPTION: dict[Type, str] = {
    "bool": "a truth value",
    "int": "a whole number",
    "double": "a number",
    "range": "a range of numbers",
    "several": "a list of values",
    "path": "a path formula",
    "unknown": "a value",
}
_QUANTITATIVE = get_args(ast.Quantitative)
_NOT_CONSTANT = (*get_args(ast.Operator), ast.Filter)


class OperandTypes:
    """Types of the nodes seen so far, by identity; a node that is refused has the type ``unknown``."""

    def __init__(self, source: Source, properties: Container[str]) -> None:
        """What is refused is a problem of the source; ``properties`` are the names of the properties of the file."""
        self.problems: list[Problem] = []
        self._source = source
        self._properties = properties
        self._types: dict[int, Type] = {}

    def of(self, node: ast.Node) -> Type:
        """The type of a node that was seen."""
        return self._types[id(node)]

    def note(self, node: ast.Node, found: Type) -> None:
        """Keep the type of a node."""
        self._types[id(node)] = found

    def truth(self, formula: ast.Formula, consumer: str) -> Type:
        """``bool``; what is no truth value is refused."""
        actual = self.of(formula)
        if actual in ("int", "double", "range", "several"):
            hint = "compare it with a number, as in x >= 3" if actual in ("int", "double") else None
            if isinstance(formula, _QUANTITATIVE):
                letter = letter_of(formula)
                hint = f"compare it with a bound, as in {letter}>=0.9 [ ... ]; {letter}=? asks for the number"
            elif isinstance(formula, ast.Label):
                hint = "it is the value of the property of this name; to mean the label, rename the property"
            self.refuse(formula, f"{consumer} needs a truth value, and this is {DESCRIPTION[actual]}", hint)
        return "bool"

    def number(self, formula: ast.Formula, consumer: str) -> Type:
        """The type of a number; what is none is refused."""
        actual = self.of(formula)
        if actual in ("int", "double", "unknown"):
            return actual
        hint = None
        if isinstance(formula, ast.Label) and formula.name not in self._properties:
            hint = 'a label holds or does not hold in a state; for its probability write P=? [ F "label" ]'
        elif isinstance(formula, _QUANTITATIVE):
            hint = f"with =? instead of the bound, {letter_of(formula)} is a number"
        return self.refuse(formula, f"{consumer} needs a number, and this is {DESCRIPTION[actual]}", hint)

    def same_kind(self, left: ast.Formula, right: ast.Formula, consumer: str) -> Type:
        """The type of two single values, both truth values or both numbers; else they are refused."""
        first, second = self.of(left), self.of(right)
        for side, actual in ((left, first), (right, second)):
            if actual in ("range", "several"):
                return self.refuse(side, f"{consumer} needs single values, and this is {DESCRIPTION[actual]}")
        if "unknown" not in (first, second) and (first == "bool") != (second == "bool"):
            return self.refuse(
                right,
                f"the two sides of {consumer} do not match: {DESCRIPTION[first]} and {DESCRIPTION[second]}",
            )
        return "bool" if first == second == "bool" else join(first, second)

    def constant(self, formula: ast.Formula, consumer: str) -> bool:
        """Whether it is made of constants; what is not is refused."""
        for node in ast.walk(formula):
            if isinstance(node, _NOT_CONSTANT):
                self.refuse(node, f"{consumer} must be a constant, not an operator")
                return False
            if isinstance(node, ast.Label):
                hint = "a constant is written without quotes" if node.name.isidentifier() else None
                self.refuse(node, f"{consumer} must be a constant, not a label", hint)
                return False
        return True

    def constant_number(self, formula: ast.Formula, consumer: str) -> Type:
        """The type of a number made of constants; what is none is refused."""
        return self.number(formula, consumer) if self.constant(formula, consumer) else "unknown"

    def steps(self, formula: ast.Formula, consumer: str) -> None:
        """Refuse what is no constant whole number."""
        if self.constant_number(formula, consumer) == "double":
            hint = "round it with floor(...) or ceil(...)"
            self.refuse(formula, f"{consumer} counts steps and needs a whole number", hint)

    def refuse(
        self, node: ast.Node | ast.Constant | ast.LabelDefinition, message: str, hint: str | None = None
    ) -> Type:
        """Note a problem; the node has the type ``unknown`` from now on, which is returned."""
        span = node.span
        assert span is not None  # noqa: S101 - the parser gives every node a span
        self.problems.append(self._source.problem(span, message, hint))
        if not isinstance(node, ast.Constant | ast.LabelDefinition):
            self.note(node, "unknown")
        return "unknown"


def letter_of(operator: ast.Quantitative) -> str:
    """The letter that an operator is written with."""
    if isinstance(operator, ast.Reward) and isinstance(operator.structure, ast.OnePerStep):
        return "T"
    return {ast.Probability: "P", ast.Reward: "R", ast.SteadyState: "S"}[type(operator)]


def join(left: Type, right: Type) -> Type:
    """The type of a number made of two."""
    if "unknown" in (left, right):
        return "unknown"
    return "int" if left == right == "int" else "double"
