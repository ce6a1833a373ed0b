"""The typed tree of the property language: PRISM's property language, with Storm's additions.

A *formula* is anything that has a value in a state: a truth value or a number. Operators such as ``P``, ``R`` and ``S``
are formulas; what stands between their brackets is a *path formula* or a *reward path*. A path formula whose operands
are all formulas is one of PCTL; with path formulas inside path formulas it is one of LTL. Equality of two trees is
equality of meaning up to layout: positions are not part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Literal, cast

from tracebridge.html_table import html_table

Comparison = Literal["<", "<=", ">", ">="]
Optimum = Literal["min", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where in a property text something stands; lines and columns count from 1, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Tree:
    """Equality and hash of everything below, by value and without recursion: trees may be thousands of levels deep."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        pairs: list[tuple[Any, Any]] = [(self, other)]
        while pairs:
            ours, theirs = pairs.pop()
            if ours is theirs:
                continue
            if type(ours) is not type(theirs) and isinstance(ours, Tree | tuple):
                return False
            if isinstance(ours, Tree):
                pairs += [(getattr(ours, name), getattr(theirs, name)) for name in _compared_fields(type(ours))]
            elif isinstance(ours, tuple):
                if len(ours) != len(theirs):
                    return False
                pairs += zip(ours, theirs, strict=True)
            elif ours != theirs:
                return False
        return True

    def __hash__(self) -> int:
        flat: list[Any] = []
        stack: list[Any] = [self]
        while stack:
            part = stack.pop()
            if isinstance(part, Tree):
                flat.append(type(part))
                stack += [getattr(part, name) for name in _compared_fields(type(part))]
            elif isinstance(part, tuple):
                flat.append(len(part))
                stack += part
            else:
                flat.append(part)
        return hash(tuple(flat))


def _compared_fields(kind: type[Tree]) -> tuple[str, ...]:
    return tuple(entry.name for entry in fields(cast(Any, kind)) if entry.compare)


# ---------------------------------------------------------------- formulas: a value in every state


@dataclass(frozen=True, slots=True, eq=False)
class Truth(Tree):
    """``true`` or ``false``."""

    value: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Number(Tree):
    """A literal number, kept exactly; ``integer`` tells ``2`` from ``2.0`` (a step bound must be the former)."""

    value: Fraction
    integer: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Label(Tree):
    """``"name"``: an atomic proposition, in the user's own spelling."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Identifier(Tree):
    """A bare name: a constant, or a variable of the model."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Tree):
    """``!a`` or ``-a``."""

    operator: Literal["!", "-"]
    operand: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


BinaryOperator = Literal["<=>", "=>", "|", "&", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/"]


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Tree):
    """Two formulas joined by a Boolean, relational or arithmetic operator."""

    operator: BinaryOperator
    left: Formula
    right: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Tree):
    """``test ? then : otherwise``."""

    test: Formula
    then: Formula
    otherwise: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


Function = Literal["min", "max", "floor", "ceil", "round", "pow", "mod", "log"]


@dataclass(frozen=True, slots=True, eq=False)
class Call(Tree):
    """A function of PRISM's expression language applied to formulas."""

    function: Function
    arguments: tuple[Formula, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Threshold(Tree):
    """The bound of an operator: ``>= 0.72``; the value is a constant formula."""

    comparison: Comparison
    value: Formula


@dataclass(frozen=True, slots=True, eq=False)
class Probability(Tree):
    """``P bound [ path ]``; without a threshold it is the query ``P=? [ path ]``.

    With a condition it is Storm's ``P bound [ path || condition ]``: the probability among the runs that satisfy the
    condition.
    """

    path: PathFormula
    threshold: Threshold | None = None
    optimum: Optimum | None = None
    condition: PathFormula | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class OnePerStep(Tree):
    """The reward structure of Storm's ``T``, the expected time: one for every step."""


@dataclass(frozen=True, slots=True, eq=False)
class Reward(Tree):
    """``R{structure} bound [ path ]``, and Storm's ``R{structure} bound [ path || condition ]``."""

    path: RewardPath
    structure: Structure = None
    threshold: Threshold | None = None
    optimum: Optimum | None = None
    condition: PathFormula | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class SteadyState(Tree):
    """``S bound [ operand ]``: the long-run fraction of time in which the operand holds; ``LRAmin`` is ``Smin``."""

    operand: Formula
    threshold: Threshold | None = None
    optimum: Optimum | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Quantified(Tree):
    """CTL's ``A [ path ]`` (all runs) and ``E [ path ]`` (some run); about the graph, not about probabilities."""

    quantifier: Literal["A", "E"]
    path: PathFormula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class QuantileVariable(Tree):
    """A bound that a quantile looks for: ``max B``."""

    name: str
    optimum: Optimum | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Quantile(Tree):
    """Storm's ``quantile(max B, P>0.3 [ F{"steps"}<=B a ])``: the best values of the variables for which it holds.

    The variables are `Identifier` nodes within the operator.
    """

    variables: tuple[QuantileVariable, ...]
    operator: Probability | Reward
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Multi(Tree):
    """``multi(...)`` and Storm's ``multilex(...)``: several objectives of one scheduler of an MDP."""

    kind: Literal["multi", "multilex"]
    objectives: tuple[Formula, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Coalition(Tree):
    """``<<players>> operator``, or ``[[players]] operator`` for their opponents: a game."""

    players: tuple[str, ...]
    opponents: bool
    operator: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


FilterKind = Literal[
    "min", "max", "sum", "avg", "count", "forall", "exists", "state", "first", "range", "print", "printall",
    "argmin", "argmax", "values",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Filter(Tree):
    """``filter(kind, operand, states)``: one value made of the values in several states, all states if None.

    PRISM's other spellings mean the same: ``+`` is sum, ``&`` forall, ``|`` exists, and ``P=? [ path {states}{min} ]``
    is ``filter(min, P=? [ path ], states)``, without a kind ``filter(state, ...)``.
    """

    kind: FilterKind
    operand: Formula
    states: Formula | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


Quantitative = Probability | Reward | SteadyState
Operator = Quantitative | Quantified | Quantile | Multi | Coalition
Formula = (
    Truth
    | Number
    | Label
    | Identifier
    | Unary
    | Binary
    | Conditional
    | Call
    | Filter
    | Probability
    | Reward
    | SteadyState
    | Quantified
    | Quantile
    | Multi
    | Coalition
)
Structure = str | Formula | OnePerStep | None
"""What names a reward structure: ``{"name"}``, a number counted from 1 (``{1}``), ``T``; None is the first one."""

# ---------------------------------------------------------------- path formulas: true or false of a path


@dataclass(frozen=True, slots=True, eq=False)
class StepBound(Tree):
    """Which steps count: ``<=k``, ``<k``, ``>=k``, ``>k``, ``=k`` (both ends k) or ``[a,b]``; ends are constants.

    ``exact`` marks a bound written ``=k``; then lower and upper are the same formula.
    """

    lower: Formula | None = None
    upper: Formula | None = None
    lower_strict: bool = False
    upper_strict: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RewardBound(Tree):
    """How much reward may be collected on the way: Storm's ``F{"cost"}<=5`` and ``F^{rew{"cost"}<=5, ...}``.

    The reward of a step counts when the state is left, so that the state where the goal holds adds none. A structure
    of None is the only or first one.
    """

    structure: str | None
    bound: StepBound


@dataclass(frozen=True, slots=True, eq=False)
class PathNot(Tree):
    """``!`` of a path formula (LTL)."""

    operand: PathFormula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class PathBinary(Tree):
    """A Boolean combination of which at least one side is a path formula (LTL)."""

    operator: Literal["&", "|", "=>", "<=>"]
    left: Formula | PathFormula
    right: Formula | PathFormula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class AutomatonPath(Tree):
    """Storm's ``HOA: {"file", "a" -> formula, ...}``: the runs that an automaton in a file accepts."""

    file: str
    propositions: tuple[AutomatonProposition, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class AutomatonProposition(Tree):
    """What a proposition of an automaton stands for."""

    name: str
    formula: Formula


@dataclass(frozen=True, slots=True, eq=False)
class Next(Tree):
    """``X a``."""

    operand: Formula | PathFormula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Eventually(Tree):
    """``F bound a``."""

    operand: Formula | PathFormula
    bound: StepBound | None = None
    reward_bounds: tuple[RewardBound, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Globally(Tree):
    """``G bound a``."""

    operand: Formula | PathFormula
    bound: StepBound | None = None
    reward_bounds: tuple[RewardBound, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Until(Tree):
    """``a U bound b``."""

    left: Formula | PathFormula
    right: Formula | PathFormula
    bound: StepBound | None = None
    reward_bounds: tuple[RewardBound, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class WeakUntil(Tree):
    """``a W bound b``: a until b, or a forever."""

    left: Formula | PathFormula
    right: Formula | PathFormula
    bound: StepBound | None = None
    reward_bounds: tuple[RewardBound, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Release(Tree):
    """``a R bound b``: b up to and including the first a, or b forever."""

    left: Formula | PathFormula
    right: Formula | PathFormula
    bound: StepBound | None = None
    reward_bounds: tuple[RewardBound, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


PathFormula = Next | Eventually | Globally | Until | WeakUntil | Release | PathNot | PathBinary | AutomatonPath
Temporal = Next | Eventually | Globally | Until | WeakUntil | Release

# ---------------------------------------------------------------- reward paths: a random amount of reward


@dataclass(frozen=True, slots=True, eq=False)
class ReachReward(Tree):
    """``F a``: reward collected before a is reached; infinite where a is not reached almost surely."""

    operand: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class PathReward(Tree):
    """Reward collected until a path formula other than ``F a`` is satisfied; infinite where it is not, almost surely.

    PRISM takes ``a U b`` and every co-safe formula of LTL: one that a finite part of a run satisfies.
    """

    path: PathFormula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeReward(Tree):
    """``C<=k``: reward collected in the first k steps; ``C`` (no bound): in total.

    With Storm's ``discount=x`` the reward of step i counts x**i; with its ``C{"cost"}<=k`` collection ends when
    another reward is used up.
    """

    bound: Formula | None = None
    strict: bool = False
    discount: Formula | None = None
    reward_bounds: tuple[RewardBound, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class InstantaneousReward(Tree):
    """``I=k``: the state reward at step k."""

    time: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class LongRunReward(Tree):
    """``S``: the long-run average reward of a step."""

    span: Span | None = field(default=None, compare=False, repr=False)


RewardPath = ReachReward | PathReward | CumulativeReward | InstantaneousReward | LongRunReward
Node = Formula | PathFormula | RewardPath

# ---------------------------------------------------------------- files

ConstantType = Literal["int", "double", "bool"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constant(Tree):
    """``const int d = 8;``; without a value it must be given from outside."""

    name: str
    type: ConstantType
    value: Formula | None = None
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelDefinition(Tree):
    """``label "name" = formula;``: a shorthand over the labels of the model."""

    name: str
    formula: Formula
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Annotation(Tree):
    """A ``//@ key value`` line; it belongs to the property that follows."""

    key: str
    value: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Property(Tree):
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PropertyFile(Tree):
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

    def to_records(self) -> list[dict[str, Any]]:
        """One record a property: ``name``, ``formula``, and its annotations by key."""
        return [
            {"name": each.name, "formula": each.text, **{note.key: note.value for note in each.annotations}}
            for each in self.properties
        ]

    def _repr_html_(self) -> str:
        rows = [
            (each.name, each.text, "; ".join(f"{note.key} {note.value}" for note in each.annotations))
            for each in self.properties
        ]
        caption = f"PropertyFile {self.path or ''} of {len(rows)} properties"
        return html_table(("property", "formula", "annotations"), rows, caption=caption, noun="properties")


def children(node: Node) -> Iterator[Node]:
    """The direct subtrees of a node, left to right, thresholds and bounds included."""
    match node:
        case Eventually() | Globally():
            yield from _bound_ends(node.bound, node.reward_bounds)
            yield node.operand
        case Unary() | Next() | ReachReward() | PathNot():
            yield node.operand
        case SteadyState():
            if node.threshold:
                yield node.threshold.value
            yield node.operand
        case Binary() | PathBinary():
            yield node.left
            yield node.right
        case Until() | WeakUntil() | Release():
            yield node.left
            yield from _bound_ends(node.bound, node.reward_bounds)
            yield node.right
        case Conditional():
            yield from (node.test, node.then, node.otherwise)
        case Call():
            yield from node.arguments
        case Probability() | Reward():
            if isinstance(node, Reward) and isinstance(node.structure, Formula):
                yield node.structure
            if node.threshold:
                yield node.threshold.value
            yield node.path
            if node.condition is not None:
                yield node.condition
        case Quantified() | PathReward():
            yield node.path
        case Quantile() | Coalition():
            yield node.operator
        case Multi():
            yield from node.objectives
        case Filter():
            yield node.operand
            if node.states is not None:
                yield node.states
        case AutomatonPath():
            yield from (proposition.formula for proposition in node.propositions)
        case CumulativeReward():
            if node.bound is not None:
                yield node.bound
            if node.discount is not None:
                yield node.discount
            yield from _bound_ends(None, node.reward_bounds)
        case InstantaneousReward():
            yield node.time
        case _:
            return


def _bound_ends(bound: StepBound | None, reward_bounds: tuple[RewardBound, ...]) -> Iterator[Formula]:
    for ends in (bound, *(reward_bound.bound for reward_bound in reward_bounds)):
        if ends is not None and ends.lower is not None:
            yield ends.lower
        if ends is not None and ends.upper is not None and not ends.exact:
            yield ends.upper


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    stack: list[Node] = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))


def is_pctl(path: PathFormula) -> bool:
    """Whether a path formula is one temporal operator over formulas; else it is one of LTL, or an automaton."""
    match path:
        case Next() | Eventually() | Globally():
            return isinstance(path.operand, Formula)
        case Until() | WeakUntil() | Release():
            return isinstance(path.left, Formula) and isinstance(path.right, Formula)
        case _:
            return False


def state_formulas(path: PathFormula | RewardPath) -> Iterator[Formula]:
    """The formulas that a path is about, left to right: its operands, and those of the path formulas inside it.

    Step bounds and other constants are not among them.
    """
    stack: list[Node] = [path]
    while stack:
        node = stack.pop()
        match node:
            case Next() | Eventually() | Globally() | PathNot() | ReachReward():
                stack.append(node.operand)
            case Until() | WeakUntil() | Release() | PathBinary():
                stack += [node.right, node.left]
            case PathReward():
                stack.append(node.path)
            case AutomatonPath():
                stack += [proposition.formula for proposition in reversed(node.propositions)]
            case CumulativeReward() | InstantaneousReward() | LongRunReward():
                continue
            case _:
                yield node


def state_operand(operand: Formula | PathFormula) -> Formula:
    """The operand of a temporal operator of PCTL (`is_pctl`), which is a formula.

    Raises:
        TypeError: it is a path formula.
    """
    if not isinstance(operand, Formula):
        raise TypeError(f"{type(operand).__name__} is a path formula, not a formula")
    return operand
