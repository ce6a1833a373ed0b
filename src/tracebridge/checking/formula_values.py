"""Values of the parts of a formula, whatever a number is: enclosures of one chain, or columns of many chains.

A part has a truth value or a number in every state and at the start. The formula is evaluated bottom-up over a list of
its nodes, so that its depth costs no recursion; what operators, filters and arithmetic mean is for subclasses to say.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeGuard, TypeVar

import numpy as np

from tracebridge.checking.operands import evaluated_parts
from tracebridge.checking.truths import Truths
from tracebridge.errors import PropertyError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tracebridge.chain import MarkovChain

    Mask = NDArray[np.bool_]

Numbers = TypeVar("Numbers")
Other = TypeVar("Other")


class FormulaValues(ABC, Generic[Numbers, Other]):
    """The values of all nodes of one formula; ``Other`` is a value that nothing can be made of, such as a range."""

    numbers_type: ClassVar[type]

    def __init__(self, chain: MarkovChain) -> None:
        self.chain = chain
        self.n = chain.n_states
        self.values: dict[int, Truths | Numbers | Other] = {}

    def run(self, formula: ast.Formula) -> Truths | Numbers | Other:
        """The value of the formula.

        Raises:
            PropertyError: it does not fit the chain. EngineError: the engine failed, or a filter is over no state.
        """
        about_states: set[int] = set()
        for node, nested in reversed(list(evaluated_parts(formula))):  # parts before what they are parts of
            if id(node) not in self.values:
                self.values[id(node)] = self._value(node, nested=nested)
            if _is_about_states(node, about_states):
                about_states.add(id(node))
                self.values[id(node)] = self._at_start_as_in_states(self.values[id(node)])
        return self.values[id(formula)]

    def _at_start_as_in_states(self, value: Truths | Numbers | Other) -> Truths | Numbers | Other:
        """What says something of states alone, such as ``"a" | "b"``, holds at the start if every start state has it.

        From its parts that does not follow: neither of them need hold in all start states.
        """
        if not isinstance(value, Truths) or value.surely.size != self.n + 1 or not value.certain:
            return value
        return self._of_states(value.states.surely.reshape(self.n))

    def lone_number(self, formula: ast.Formula) -> Numbers | None:
        """The number that a formula is, or that a lone comparison is about; None without one."""
        value = self.values[id(formula)]
        if self._is_number(value):
            return value
        if isinstance(formula, ast.Binary):
            left = self.values[id(formula.left)]
            plain = not any(isinstance(node, ast.Operator) for node in ast.walk(formula.right))
            if plain and self._is_number(left):
                return left
        return None

    def truths(self, node: ast.Formula) -> Truths:
        """The truth value of a part.

        Raises:
            PropertyError: it is a number.
        """
        value = self.values[id(node)]
        if not isinstance(value, Truths):
            raise PropertyError(f"a truth value is needed here, not a number: {format_formula(node)}")
        return value

    def numbers(self, node: ast.Formula) -> Numbers:
        """The number that a part is in every state and at the start.

        Raises:
            PropertyError: it is a truth value.
        """
        value = self.values[id(node)]
        if not self._is_number(value):
            raise PropertyError(f"a number is needed here, not a truth value: {format_formula(node)}")
        return value

    # ------------------------------------------------------------ what subclasses say

    @abstractmethod
    def _operator(self, node: ast.Operator, *, nested: bool) -> Truths | Numbers: ...

    @abstractmethod
    def _filter(self, node: ast.Filter) -> Truths | Numbers | Other: ...

    @abstractmethod
    def _of_states(self, holds: Mask) -> Truths:
        """A set of states, shape (n,), with the start."""

    @abstractmethod
    def _constant(self, number: Fraction) -> Numbers:
        """The same number everywhere."""

    @abstractmethod
    def _of_variable(self, values: NDArray[Any], start: float) -> Numbers:
        """Numbers of the states, shape (n,), and of the start."""

    @abstractmethod
    def _calculated(self, operator: str, left: Numbers, right: Numbers) -> Numbers: ...

    @abstractmethod
    def _negative(self, operand: Numbers) -> Numbers: ...

    @abstractmethod
    def _compared(self, operator: str, left: Numbers, right: Numbers) -> Truths: ...

    @abstractmethod
    def _chosen(self, test: Truths, then: Numbers, otherwise: Numbers) -> Numbers: ...

    @abstractmethod
    def _called(self, function: ast.Function, arguments: list[Numbers]) -> Numbers: ...

    # ------------------------------------------------------------ nodes

    def _is_number(self, value: Truths | Numbers | Other) -> TypeGuard[Numbers]:
        return isinstance(value, self.numbers_type)

    def _value(self, node: ast.Formula, *, nested: bool) -> Truths | Numbers | Other:
        if isinstance(node, ast.Operator):
            return self._operator(node, nested=nested)
        match node:
            case ast.Filter():
                return self._filter(node)
            case ast.Truth(value):
                return self._of_states(np.full(self.n, value))
            case ast.Number(value):
                return self._constant(value)
            case ast.Label(name):
                return self._of_states(self.chain.label(name))
            case ast.Identifier(name):
                return self._variable(name)
            case ast.Unary("!"):
                return ~self.truths(node.operand)
            case ast.Unary("-"):
                return self._negative(self.numbers(node.operand))
            case ast.Binary():
                return self._binary(node)
            case ast.Conditional():
                return self._conditional(node)
            case ast.Call():
                return self._called(node.function, [self.numbers(argument) for argument in node.arguments])
        raise PropertyError(f"{type(node).__name__} has no value in a state")

    def _variable(self, name: str) -> Truths | Numbers:
        """What a bare word means in each state; at the start what all start states have in common, if anything."""
        if name in self.chain.constants:
            constant = self.chain.constants[name]
            if isinstance(constant, bool):
                return self._of_states(np.full(self.n, constant))
            return self._constant(constant)
        if name not in self.chain.variables:
            raise PropertyError(f"{name!r} is neither a constant nor a variable of the model; labels stand in quotes")
        values = self.chain.variables[name]
        if values.dtype == np.bool_:
            return self._of_states(values)
        at_start = np.unique(values[self.chain.initial > 0]).tolist()
        return self._of_variable(values, at_start[0] if len(at_start) == 1 else math.nan)

    def _binary(self, node: ast.Binary) -> Truths | Numbers:
        operator, left, right = node.operator, self.values[id(node.left)], self.values[id(node.right)]
        if isinstance(left, Truths) and isinstance(right, Truths):
            match operator:
                case "&":
                    return left & right
                case "|":
                    return left | right
                case "=>":
                    return ~left | right
                case "<=>" | "=":
                    return left.iff(right)
                case "!=":
                    return ~left.iff(right)
        if self._is_number(left) and self._is_number(right):
            match operator:
                case "+" | "-" | "*" | "/":
                    return self._calculated(operator, left, right)
                case "<" | "<=" | ">" | ">=" | "=" | "!=":
                    return self._compared(operator, left, right)
        raise PropertyError(f"{operator!r} cannot join a truth value and a number: {format_formula(node)}")

    def _conditional(self, node: ast.Conditional) -> Truths | Numbers:
        test = self.truths(node.test)
        then, otherwise = self.values[id(node.then)], self.values[id(node.otherwise)]
        if isinstance(then, Truths) and isinstance(otherwise, Truths):
            return (test & then) | (~test & otherwise)
        if self._is_number(then) and self._is_number(otherwise):
            return self._chosen(test, then, otherwise)
        raise PropertyError(f"the two branches differ in type: {format_formula(node)}")


def _is_about_states(node: ast.Formula, known: set[int]) -> bool:
    """Whether a formula has no operator in it, given which of its parts have none."""
    if isinstance(node, ast.Operator | ast.Filter):
        return False
    return all(id(part) in known for part in ast.children(node))
