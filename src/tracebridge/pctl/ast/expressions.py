"""Formulas of PRISM's expression language: literals, names, and Boolean and arithmetic combinations."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from tracebridge.pctl.ast.tree import Placed

if TYPE_CHECKING:
    from tracebridge.pctl.ast.nodes import Formula

BinaryOperator = Literal["<=>", "=>", "|", "&", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/"]
Function = Literal["min", "max", "floor", "ceil", "round", "pow", "mod", "log"]


@dataclass(frozen=True, slots=True, eq=False)
class Truth(Placed):
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, slots=True, eq=False)
class Number(Placed):
    """A literal number, kept exactly; ``integer`` tells ``2`` from ``2.0`` (a step bound must be the former)."""

    value: Fraction
    integer: bool


@dataclass(frozen=True, slots=True, eq=False)
class Label(Placed):
    """``"name"``: an atomic proposition, in the user's own spelling."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Identifier(Placed):
    """A bare name: a constant, or a variable of the model."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Placed):
    """``!a`` or ``-a``."""

    operator: Literal["!", "-"]
    operand: Formula


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Placed):
    """Two formulas joined by a Boolean, relational or arithmetic operator."""

    operator: BinaryOperator
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Placed):
    """``test ? then : otherwise``."""

    test: Formula
    then: Formula
    otherwise: Formula


@dataclass(frozen=True, slots=True, eq=False)
class Call(Placed):
    """A function of PRISM's expression language applied to formulas."""

    function: Function
    arguments: tuple[Formula, ...]
