"""The typed tree of the property language: PRISM's property language for DTMCs, with Storm's additions.

A *formula* is anything that has a value in a state: a truth value or a number. Operators ``P``, ``R`` and ``S`` are
formulas; what stands between their brackets is a *path formula* or a *reward path*. Equality of two trees is
equality of meaning up to layout: positions are not part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

Comparison = Literal["<", "<=", ">", ">="]
Optimum = Literal["min", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where in a property text something stands; lines and columns count from 1, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


# ---------------------------------------------------------------- formulas: a value in every state


@dataclass(frozen=True, slots=True)
class Truth:
    """``true`` or ``false``."""

    value: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number:
    """A literal number, kept exactly; ``integer`` tells ``2`` from ``2.0`` (a step bound must be the former)."""

    value: Fraction
    integer: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Label:
    """``"name"``: an atomic proposition, in the user's own spelling."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Identifier:
    """A bare name: a constant, or a variable of the model."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """``!a`` or ``-a``."""

    operator: Literal["!", "-"]
    operand: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


BinaryOperator = Literal["<=>", "=>", "|", "&", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/"]


@dataclass(frozen=True, slots=True)
class Binary:
    """Two formulas joined by a Boolean, relational or arithmetic operator."""

    operator: BinaryOperator
    left: Formula
    right: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    """``test ? then : otherwise``."""

    test: Formula
    then: Formula
    otherwise: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


Function = Literal["min", "max", "floor", "ceil", "round", "pow", "mod", "log"]


@dataclass(frozen=True, slots=True)
class Call:
    """A function of PRISM's expression language applied to formulas."""

    function: Function
    arguments: tuple[Formula, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Threshold:
    """The bound of an operator: ``>= 0.72``; the value is a constant formula."""

    comparison: Comparison
    value: Formula


@dataclass(frozen=True, slots=True)
class Probability:
    """``P bound [ path ]``; without a threshold it is the query ``P=? [ path ]``."""

    path: PathFormula
    threshold: Threshold | None = None
    optimum: Optimum | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reward:
    """``R{"structure"} bound [ path ]``; a structure of None means the only or first one."""

    path: RewardPath
    structure: str | None = None
    threshold: Threshold | None = None
    optimum: Optimum | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SteadyState:
    """``S bound [ operand ]``: the long-run fraction of time in which the operand holds."""

    operand: Formula
    threshold: Threshold | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


Operator = Probability | Reward | SteadyState
Formula = Truth | Number | Label | Identifier | Unary | Binary | Conditional | Call | Probability | Reward | SteadyState

# ---------------------------------------------------------------- path formulas: true or false of a path


@dataclass(frozen=True, slots=True)
class StepBound:
    """Which steps count: ``<=k``, ``<k``, ``>=k``, ``>k``, ``=k`` (both ends k) or ``[a,b]``; ends are constants.

    ``exact`` marks a bound written ``=k``; then lower and upper are the same formula.
    """

    lower: Formula | None = None
    upper: Formula | None = None
    lower_strict: bool = False
    upper_strict: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Next:
    """``X a``."""

    operand: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Eventually:
    """``F bound a``."""

    operand: Formula
    bound: StepBound | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Globally:
    """``G bound a``."""

    operand: Formula
    bound: StepBound | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Until:
    """``a U bound b``."""

    left: Formula
    right: Formula
    bound: StepBound | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WeakUntil:
    """``a W bound b``: a until b, or a forever."""

    left: Formula
    right: Formula
    bound: StepBound | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Release:
    """``a R bound b``: b up to and including the first a, or b forever."""

    left: Formula
    right: Formula
    bound: StepBound | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


PathFormula = Next | Eventually | Globally | Until | WeakUntil | Release

# ---------------------------------------------------------------- reward paths: a random amount of reward


@dataclass(frozen=True, slots=True)
class ReachReward:
    """``F a``: reward collected before a is reached; infinite where a is not reached almost surely."""

    operand: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CumulativeReward:
    """``C<=k``: reward collected in the first k steps; ``C`` (no bound): in total."""

    bound: Formula | None = None
    strict: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InstantaneousReward:
    """``I=k``: the state reward at step k."""

    time: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LongRunReward:
    """``S``: the long-run average reward of a step."""

    span: Span | None = field(default=None, compare=False, repr=False)


RewardPath = ReachReward | CumulativeReward | InstantaneousReward | LongRunReward
Node = Formula | PathFormula | RewardPath

# ---------------------------------------------------------------- files

ConstantType = Literal["int", "double", "bool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """``const int d = 8;``; without a value it must be given from outside."""

    name: str
    type: ConstantType
    value: Formula | None = None
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelDefinition:
    """``label "name" = formula;``: a shorthand over the labels of the model."""

    name: str
    formula: Formula
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A ``//@ key value`` line; it belongs to the property that follows."""

    key: str
    value: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A named property of a file; ``text`` is the formula as the user wrote it."""

    formula: Formula
    name: str | None = None
    annotations: tuple[Annotation, ...] = ()
    text: str = field(default="", compare=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)

    def annotation(self, key: str) -> str | None:
        """The value of the last annotation with this key, or None."""
        return next((note.value for note in reversed(self.annotations) if note.key == key), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyFile:
    """A whole property file, in file order.

    ``comments`` of an item are the lines of comments before it, with their ``//`` (an empty one is a blank line);
    ``unattached`` are the annotations, and ``trailing_comments`` the comments, that nothing follows.
    """

    properties: tuple[Property, ...]
    constants: tuple[Constant, ...] = ()
    labels: tuple[LabelDefinition, ...] = ()
    unattached: tuple[Annotation, ...] = field(default=(), compare=False)
    trailing_comments: tuple[str, ...] = field(default=(), compare=False, repr=False)
    path: str | None = field(default=None, compare=False)


def children(node: Node) -> Iterator[Node]:
    """The direct subtrees of a node, left to right, thresholds and step bounds included."""
    match node:
        case Unary() | Eventually() | Globally() | Next() | ReachReward():
            if bound := getattr(node, "bound", None):
                yield from _bound_ends(bound)
            yield node.operand
        case SteadyState():
            if node.threshold:
                yield node.threshold.value
            yield node.operand
        case Binary():
            yield node.left
            yield node.right
        case Until() | WeakUntil() | Release():
            yield node.left
            if node.bound:
                yield from _bound_ends(node.bound)
            yield node.right
        case Conditional():
            yield from (node.test, node.then, node.otherwise)
        case Call():
            yield from node.arguments
        case Probability() | Reward():
            if node.threshold:
                yield node.threshold.value
            yield node.path
        case CumulativeReward():
            if node.bound is not None:
                yield node.bound
        case InstantaneousReward():
            yield node.time
        case _:
            return


def _bound_ends(bound: StepBound) -> Iterator[Formula]:
    if bound.lower is not None:
        yield bound.lower
    if bound.upper is not None and not bound.exact:
        yield bound.upper


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    stack: list[Node] = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))
