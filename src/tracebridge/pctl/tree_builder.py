"""From the grammar's reductions to the typed tree, one call per rule, bottom-up and without recursion.

Each method gets the children of its rule: tokens, and what earlier calls returned. What the grammar admits and the
language does not is refused here with a :class:`Rejection`, which the parser turns into an error with the source line.
"""

# ruff: noqa: D102 - the methods are the rules of the grammar

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, cast, get_args

from lark import Token

from tracebridge.pctl.ast import (
    Binary,
    BinaryOperator,
    Call,
    Comparison,
    Conditional,
    Constant,
    ConstantType,
    CumulativeReward,
    Eventually,
    Formula,
    Function,
    Globally,
    Identifier,
    InstantaneousReward,
    Label,
    LabelDefinition,
    LongRunReward,
    Next,
    Number,
    Operator,
    Optimum,
    PathFormula,
    Probability,
    Property,
    ReachReward,
    Release,
    Reward,
    RewardPath,
    Span,
    SteadyState,
    StepBound,
    Threshold,
    Truth,
    Unary,
    Until,
    WeakUntil,
)
from tracebridge.pctl.words import PRISM_WORDS

MAX_DIGITS = 4_300  # Python refuses longer integers in text, too

_PATHS = get_args(PathFormula)
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")


class Rejection(Exception):  # noqa: N818 - it never leaves the package; the parser makes a PropertyError of it
    """A construct that the grammar admits and the language does not."""

    def __init__(self, span: Span, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.span = span
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedProperty:
    """A property and how it ended: the next one must start on a new line unless a ``;`` came between."""

    property: Property
    terminated: bool


class _Type(NamedTuple):
    value: ConstantType


class _Requirement(NamedTuple):
    optimum: Optimum | None
    threshold: Threshold | None


class _Structure(NamedTuple):
    name: str


_Children = list[Any]


class TreeBuilder:
    """The callbacks of the grammar's rules; without state, so that one instance serves every parse."""

    # ------------------------------------------------------------ files

    def file(self, children: _Children) -> list[Constant | LabelDefinition | ParsedProperty]:
        return children

    def formula(self, children: _Children) -> Formula:
        return _state(children[0])

    def constant(self, children: _Children) -> Constant:
        kind: ConstantType = "int"
        if not isinstance(children[1], Token):
            kind = children[1].value
        name = next(child for child in children if isinstance(child, Token) and child.type == "IDENTIFIER")
        if name in PRISM_WORDS:
            raise Rejection(_span_of(name), f"{name} is a reserved word of PRISM and cannot name a constant")
        value = _state(children[-2]) if children[-3] == "=" else None
        return Constant(name=str(name), type=kind, value=value, span=_span(children))

    def type(self, children: _Children) -> _Type:
        return _Type(cast(ConstantType, str(children[0])))

    def label_definition(self, children: _Children) -> LabelDefinition:
        return LabelDefinition(name=_unquote(children[1]), formula=_state(children[3]), span=_span(children))

    def property(self, children: _Children) -> ParsedProperty:
        named = len(children) > 2 and isinstance(children[0], Token)
        formula = children[2] if named else children[0]
        if isinstance(formula, _PATHS):
            raise Rejection(
                _span_of(formula),
                f"{_OPERATOR_LETTER[type(formula)]} is a temporal operator and stands between the brackets of P",
                "write P=? [ ... ] or P>=0.9 [ ... ] around it",
            )
        name = _unquote(children[0]) if named else None
        span = _join(_span_of(children[0]), _span_of(formula))
        return ParsedProperty(
            property=Property(formula=formula, name=name, span=span),
            terminated=isinstance(children[-1], Token) and children[-1] == ";",
        )

    # ------------------------------------------------------------ temporal operators

    def temporal_unary(self, children: _Children) -> PathFormula:
        letter, *bounds, operand = children
        operand = _operand(operand)
        bound = bounds[0] if bounds else None
        if letter == "X":
            if bound is not None:
                raise Rejection(
                    _span(children), "X takes no step bound", "X is exactly one step; for k steps write F=k"
                )
            return Next(operand, span=_span(children))
        if letter == "F":
            return Eventually(operand, bound, span=_span(children))
        return Globally(operand, bound, span=_span(children))

    def temporal_binary(self, children: _Children) -> PathFormula:
        left, letter, *bounds, right = children
        operators: dict[str, type[Until | WeakUntil | Release]] = {"U": Until, "W": WeakUntil, "R": Release}
        return operators[str(letter)](
            _operand(left), _operand(right), bounds[0] if bounds else None, span=_span(children)
        )

    def step_bound(self, children: _Children) -> StepBound:
        if children[0] == "[":
            return StepBound(lower=_state(children[1]), upper=_state(children[3]))
        value = _state(children[1])
        match str(children[0]):
            case "<=":
                return StepBound(upper=value)
            case "<":
                return StepBound(upper=value, upper_strict=True)
            case ">=":
                return StepBound(lower=value)
            case ">":
                return StepBound(lower=value, lower_strict=True)
            case _:
                return StepBound(lower=value, upper=value, exact=True)

    # ------------------------------------------------------------ state formulas and numbers

    def conditional(self, children: _Children) -> Formula:
        test, _, then, _, otherwise = children
        return Conditional(_part(test), _part(then), _part(otherwise), span=_span(children))

    def binary(self, children: _Children) -> Formula:
        left, operator, right = children
        return Binary(cast(BinaryOperator, str(operator)), _part(left), _part(right), span=_span(children))

    def unary(self, children: _Children) -> Formula:
        operator, operand = children
        return Unary("!" if operator == "!" else "-", _part(operand), span=_span(children))

    def number(self, children: _Children) -> Number:
        (token,) = children
        mantissa, _, exponent = str(token).lower().partition("e")
        if len(mantissa) > MAX_DIGITS or len(exponent) > 6 or abs(int(exponent or "0")) > MAX_DIGITS:
            raise Rejection(_span(children), f"this number has more than {MAX_DIGITS:,} digits", "round it")
        return Number(Fraction(str(token)), integer=str(token).isdigit(), span=_span(children))

    def truth(self, children: _Children) -> Truth:
        return Truth(children[0] == "true", span=_span(children))

    def label(self, children: _Children) -> Label:
        return Label(_unquote(children[0]), span=_span(children))

    def identifier(self, children: _Children) -> Identifier:
        return Identifier(str(children[0]), span=_span(children))

    def call(self, children: _Children) -> Call:
        arguments = tuple(_part(child) for child in children[2:-1:2])
        return Call(cast(Function, str(children[0])), arguments, span=_span(children))

    def group(self, children: _Children) -> Formula | PathFormula:
        return cast("Formula | PathFormula", replace(children[1], span=_span(children)))

    def later(self, children: _Children) -> Formula:
        raise Rejection(_span(children), f"not supported yet: {children[0]}(...)")

    # ------------------------------------------------------------ operators

    def probability(self, children: _Children) -> Probability:
        letter, requirement, _, path, _ = children
        if not isinstance(path, _PATHS):
            raise Rejection(
                _span_of(path),
                "P needs a temporal operator between its brackets: F, G, X, U, W or R",
                'for "eventually" write F in front',
            )
        optimum, threshold = _requirement(letter, requirement)
        return Probability(path, threshold, optimum, span=_span(children))

    def reward(self, children: _Children) -> Reward:
        letter, *structure, requirement, _, path, _ = children
        optimum, threshold = _requirement(letter, requirement)
        return Reward(path, structure[0].name if structure else None, threshold, optimum, span=_span(children))

    def steady_state(self, children: _Children) -> SteadyState:
        letter, requirement, _, operand, _ = children
        optimum, threshold = _requirement(letter, requirement)
        if optimum is not None:
            raise Rejection(_span_of(letter), "S takes neither min nor max", "write S=? or a bound such as S>=0.5")
        if isinstance(operand, _PATHS):
            raise Rejection(
                _span_of(operand),
                f"S needs a condition on states, not the temporal operator {_OPERATOR_LETTER[type(operand)]}",
                "S is the long-run fraction of time in states where the condition holds; for a path write P",
            )
        return SteadyState(operand, threshold, span=_span(children))

    def structure(self, children: _Children) -> _Structure:
        return _Structure(_unquote(children[1]))

    def requirement(self, children: _Children) -> _Requirement:
        optimum: Optimum | None = None
        if children[0].type in ("MIN", "MAX"):
            optimum, *children = children
            optimum = cast(Optimum, str(optimum))
        if children[0] == "=":
            return _Requirement(optimum, None)
        return _Requirement(optimum, Threshold(cast(Comparison, str(children[0])), _state(children[1])))

    def reward_path(self, children: _Children) -> RewardPath:
        first = children[0]
        if isinstance(first, Token):
            span = _span(children)
            match first.type:
                case "CUMULATIVE":
                    return self._cumulative(children, span)
                case "INSTANTANEOUS":
                    return InstantaneousReward(_state(children[2]), span=span)
                case _:
                    return LongRunReward(span=span)
        if isinstance(first, Eventually) and first.bound is None:
            return ReachReward(first.operand, span=first.span)
        if isinstance(first, Eventually):
            raise Rejection(
                _span_of(first),
                "the F of a reward takes no step bound",
                'for the reward of the first k steps write C<=k, for the reward until a label F "label"',
            )
        if isinstance(first, _PATHS):
            raise Rejection(
                _span_of(first),
                f"not supported yet: {_OPERATOR_LETTER[type(first)]} in a reward",
                'a reward takes F "label", C, C<=k, I=k or S',
            )
        if isinstance(first, Identifier) and first.name == "LRA":
            raise Rejection(_span_of(first), "not supported yet: LRA", "PRISM's word for the long-run average is S")
        raise Rejection(
            _span_of(first), "a reward needs F, C, I or S between its brackets", 'as in R{"steps"}=? [ F "absorbed" ]'
        )

    @staticmethod
    def _cumulative(children: _Children, span: Span) -> CumulativeReward:
        if len(children) == 1:
            return CumulativeReward(span=span)
        if children[1] not in ("<=", "<"):
            raise Rejection(span, f"C{children[1]} has no meaning", "write C<=k, C<k, or C for the total")
        return CumulativeReward(_state(children[2]), strict=children[1] == "<", span=span)


_OPERATOR_LETTER = {Next: "X", Eventually: "F", Globally: "G", Until: "U", WeakUntil: "W", Release: "R"}


def _requirement(letter: Token, requirement: _Requirement) -> _Requirement:
    """The bound of an operator, with the ``min`` or ``max`` that its letter may carry (``Pmax``)."""
    carried = cast("Optimum | None", str(letter)[1:] or None)
    if carried and requirement.optimum:
        raise Rejection(
            _span_of(letter), f"{letter} is followed by a second {requirement.optimum}", "write one of them"
        )
    return requirement._replace(optimum=carried or requirement.optimum)


def _state(child: Formula | PathFormula) -> Formula:
    """A child that must be a formula with a value in every state."""
    if isinstance(child, _PATHS):
        raise Rejection(
            _span_of(child),
            f"{_OPERATOR_LETTER[type(child)]} is a temporal operator and has no value here",
            "temporal operators stand between the brackets of P",
        )
    return cast(Formula, child)


def _operand(child: Formula | PathFormula) -> Formula:
    """The operand of a temporal operator."""
    if isinstance(child, _PATHS):
        letter = _OPERATOR_LETTER[type(child)]
        raise Rejection(
            _span_of(child),
            f"not supported yet: {letter} inside another temporal operator (LTL)",
            "for PCTL give it its own bound, as in P>=0.9 [ ... ]",
        )
    return cast(Formula, child)


def _part(child: Formula | PathFormula) -> Formula:
    """A part of a Boolean or arithmetic formula."""
    if isinstance(child, _PATHS):
        letter = _OPERATOR_LETTER[type(child)]
        raise Rejection(
            _span_of(child),
            f"not supported yet: a path formula ({letter}) inside a Boolean or arithmetic formula (LTL)",
            "combine operators instead, as in P>=0.9 [ ... ] & P>=0.5 [ ... ]",
        )
    return cast(Formula, child)


def _unquote(token: Token) -> str:
    """The text of a quoted name, with its escapes resolved."""

    def resolve(escape: re.Match[str]) -> str:
        code = escape[1]
        if code in _ESCAPES:
            return _ESCAPES[code]
        if len(code) > 1 and int(code[1:], 16) <= 0x10FFFF:
            return chr(int(code[1:], 16))
        span = _span([token])
        raise Rejection(span, f"unknown escape {escape[0]} in a name", r"escapes are \" \\ \n \r \t \uXXXX \UXXXXXXXX")

    name = _ESCAPE.sub(resolve, str(token)[1:-1])
    if not name:
        raise Rejection(_span([token]), "a name between quotes cannot be empty")
    return name


def _span(children: _Children) -> Span:
    return _join(_span_of(children[0]), _span_of(children[-1]))


def _span_of(child: Token | Formula | PathFormula | RewardPath | Operator) -> Span:
    if isinstance(child, Token):
        assert child.line is not None  # noqa: S101 - every token of the lexer has a place
        assert child.column is not None  # noqa: S101
        assert child.end_line is not None  # noqa: S101
        assert child.end_column is not None  # noqa: S101
        return Span(line=child.line, column=child.column, end_line=child.end_line, end_column=child.end_column)
    assert child.span is not None  # noqa: S101 - every node built here has one
    return child.span


def _join(first: Span, last: Span) -> Span:
    return Span(line=first.line, column=first.column, end_line=last.end_line, end_column=last.end_column)
