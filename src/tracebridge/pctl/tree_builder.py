"""From the grammar's reductions to the typed tree, one call per rule, bottom-up and without recursion.

Each method gets the children of its rule: tokens, and what earlier calls returned. What the grammar admits and the
language does not is refused here with a :class:`Rejection`, which the parser turns into an error with the source line.
"""

# ruff: noqa: D102 - the methods are the rules of the grammar

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, cast, get_args

from lark import Token

from tracebridge.pctl.ast import (
    AutomatonPath,
    AutomatonProposition,
    Binary,
    BinaryOperator,
    Call,
    Coalition,
    Comparison,
    Conditional,
    Constant,
    ConstantType,
    CumulativeReward,
    Eventually,
    Filter,
    FilterKind,
    Formula,
    Function,
    Globally,
    Identifier,
    InstantaneousReward,
    Label,
    LabelDefinition,
    LongRunReward,
    Multi,
    Next,
    Number,
    OnePerStep,
    Operator,
    Optimum,
    PathBinary,
    PathFormula,
    PathNot,
    PathReward,
    Probability,
    Property,
    Quantified,
    Quantile,
    QuantileVariable,
    Quantitative,
    ReachReward,
    Release,
    Reward,
    RewardBound,
    RewardPath,
    Span,
    SteadyState,
    StepBound,
    Structure,
    Threshold,
    Truth,
    Unary,
    Until,
    WeakUntil,
    is_pctl,
)
from tracebridge.pctl.words import PRISM_WORDS

MAX_DIGITS = 4_300  # Python refuses longer integers in text, too

_PathOperator = Literal["&", "|", "=>", "<=>"]

_PATHS = get_args(PathFormula)
_OPERATORS = get_args(Operator)
_QUANTITATIVE = get_args(Quantitative)
_LETTERS: dict[type[Any], str] = {Next: "X", Eventually: "F", Globally: "G", Until: "U", WeakUntil: "W", Release: "R"}
_BINARY_PATHS: dict[str, type[Until | WeakUntil | Release]] = {"U": Until, "W": WeakUntil, "R": Release}
_FILTER_KINDS: tuple[FilterKind, ...] = get_args(FilterKind)
_FILTER_SIGNS: dict[str, FilterKind] = {"+": "sum", "&": "forall", "|": "exists"}
_LONG_RUN_WORDS = ("LRA", "MP")
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


class _Bounds(NamedTuple):
    """The bounds of one operator: at most one over steps, and any number over rewards."""

    steps: StepBound | None
    rewards: tuple[RewardBound, ...]
    span: Span


class _Bound(NamedTuple):
    measure: _Measure
    bound: StepBound
    span: Span


class _Measure(NamedTuple):
    """What a bound counts: steps, or the reward of a structure (None is the first one)."""

    steps: bool
    structure: str | None
    span: Span | None = None


class _Condition(NamedTuple):
    path: PathFormula


class _OldFilter(NamedTuple):
    states: Formula
    kind: FilterKind
    optimum: Token | None


class _Discount(NamedTuple):
    value: Formula
    span: Span


class _Players(NamedTuple):
    names: tuple[str, ...]


_Children = list[Any]
_STEPS = _Measure(steps=True, structure=None)


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
                f"{_described(formula)} and stands between the brackets of P",
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
        span = _span(children)
        if letter == "X":
            if bounds:
                raise Rejection(span, "X takes no step bound", "X is exactly one step; for k steps write F=k")
            return Next(operand, span=span)
        operator = Eventually if letter == "F" else Globally
        return operator(operand, *_steps_and_rewards(bounds), span=span)

    def temporal_binary(self, children: _Children) -> PathFormula:
        left, letter, *bounds, right = children
        return _BINARY_PATHS[letter](left, right, *_steps_and_rewards(bounds), span=_span(children))

    def bounds(self, children: _Children) -> _Bounds:
        steps: StepBound | None = None
        rewards: list[RewardBound] = []
        for part in children:
            if not isinstance(part, _Bound):
                continue
            if not part.measure.steps:
                rewards.append(RewardBound(part.measure.structure, part.bound))
            elif steps is None:
                steps = part.bound
            else:
                steps = _both_ends(steps, part)
        return _Bounds(steps, tuple(rewards), _span(children))

    def bound(self, children: _Children) -> _Bound:
        measure, rest = (children[0], children[1:]) if isinstance(children[0], _Measure) else (_STEPS, children)
        return _Bound(measure, self._ends(rest), _span(children))

    @staticmethod
    def _ends(children: _Children) -> StepBound:
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

    def measure(self, children: _Children) -> _Measure:
        over_steps = isinstance(children[0], Token) and children[0].type == "STEPS"
        structure = next((child.structure for child in children if isinstance(child, _Measure)), None)
        return _Measure(over_steps, structure, _span(children))

    def structure(self, children: _Children) -> _Measure:
        return _Measure(steps=False, structure=_unquote(children[1]), span=_span(children))

    def automaton(self, children: _Children) -> AutomatonPath:
        propositions = tuple(child for child in children if isinstance(child, AutomatonProposition))
        return AutomatonPath(_unquote(children[3]), propositions, span=_span(children))

    def automaton_proposition(self, children: _Children) -> AutomatonProposition:
        name, _, formula = children
        return AutomatonProposition(_unquote(name), _state(formula))

    # ------------------------------------------------------------ state formulas and numbers

    def conditional(self, children: _Children) -> Formula:
        test, _, then, _, otherwise = children
        return Conditional(_part(test), _part(then), _part(otherwise), span=_span(children))

    def binary(self, children: _Children) -> Formula | PathFormula:
        left, operator, right = children
        sign = str(operator)
        if sign in get_args(_PathOperator) and (isinstance(left, _PATHS) or isinstance(right, _PATHS)):
            return PathBinary(cast(_PathOperator, sign), left, right, span=_span(children))
        return Binary(cast(BinaryOperator, sign), _part(left), _part(right), span=_span(children))

    def unary(self, children: _Children) -> Formula | PathFormula:
        operator, operand = children
        if operator == "!" and isinstance(operand, _PATHS):
            return PathNot(operand, span=_span(children))
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

    # ------------------------------------------------------------ operators

    def probability(self, children: _Children) -> Formula:
        letter, requirement, _, path, *_ = children
        if not isinstance(path, _PATHS):
            raise Rejection(
                _span_of(path),
                "P needs a temporal operator between its brackets: F, G, X, U, W or R",
                'for "eventually" write F in front, for "at the first state" F<=0',
            )
        optimum, threshold = _requirement(letter, requirement)
        operator = Probability(path, threshold, optimum, _condition(children), span=_span(children))
        return _filtered(operator, children)

    def reward(self, children: _Children) -> Formula:
        letter, *structures, requirement, _, path = children[: _first_bracket(children) + 2]
        structure: Structure = structures[0] if structures else None
        if letter.type == "EXPECTED_TIME":
            structure = OnePerStep()
            if not isinstance(path, ReachReward | PathReward):
                hint = 'as in T=? [ F "done" ]; a reward structure of 1 everywhere gives the other rewards'
                raise Rejection(_span_of(path), "T, the expected time, needs F between its brackets", hint)
        optimum, threshold = _requirement(letter, requirement)
        operator = Reward(path, structure, threshold, optimum, _condition(children), span=_span(children))
        return _filtered(operator, children)

    def steady_state(self, children: _Children) -> Formula:
        letter, requirement, _, operand, *_ = children
        optimum, threshold = _requirement(letter, requirement)
        if isinstance(operand, _PATHS):
            what = f"the temporal operator {_LETTERS[type(operand)]}" if type(operand) in _LETTERS else "a path formula"
            raise Rejection(
                _span_of(operand),
                f"{letter} needs a condition on states, not {what}",
                f"{letter} is the long-run fraction of time in states where the condition holds; for a path write P",
            )
        return _filtered(SteadyState(operand, threshold, optimum, span=_span(children)), children)

    def quantified(self, children: _Children) -> Quantified:
        quantifier, _, path, _ = children
        if not isinstance(path, _PATHS):
            hint = f'as in {quantifier} [ F "done" ]'
            raise Rejection(_span_of(path), f"{quantifier} needs a temporal operator between its brackets", hint)
        return Quantified("A" if quantifier == "A" else "E", path, span=_span(children))

    def requirement(self, children: _Children) -> _Requirement:
        optimum: Optimum | None = None
        if children[0].type in ("MIN", "MAX"):
            optimum, *children = children
            optimum = cast(Optimum, str(optimum))
        if children[0] == "=":
            return _Requirement(optimum, None)
        return _Requirement(optimum, Threshold(cast(Comparison, str(children[0])), _state(children[1])))

    def condition(self, children: _Children) -> _Condition:
        _, path = children
        if not isinstance(path, _PATHS):
            raise Rejection(
                _span_of(path),
                "the condition after || needs a temporal operator",
                'as in P=? [ F "a" || F "b" ]; the Boolean or is a single |',
            )
        return _Condition(path)

    def old_filter(self, children: _Children) -> _OldFilter:
        optima = [child for child in children if isinstance(child, Token) and child.type in ("MIN", "MAX")]
        kind = "range" if len(set(optima)) == 2 else str(optima[0]) if optima else "state"
        return _OldFilter(_state(children[1]), cast(FilterKind, kind), optima[0] if optima else None)

    def filter(self, children: _Children) -> Filter:
        kind, operand, *states = children[2:-1:2]
        return Filter(kind, _state(operand), _state(states[0]) if states else None, span=_span(children))

    def filter_kind(self, children: _Children) -> FilterKind:
        word = str(children[0])
        if word in _FILTER_SIGNS:
            return _FILTER_SIGNS[word]
        if word in _FILTER_KINDS:
            return word
        near = difflib.get_close_matches(word, _FILTER_KINDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the kinds are {', '.join(_FILTER_KINDS)}"
        raise Rejection(_span(children), f"unknown kind of filter: {word[:40]}", hint)

    def quantile(self, children: _Children) -> Quantile:
        operator = children[-2]
        if not isinstance(operator, Probability | Reward) or operator.threshold is None:
            raise Rejection(
                _span_of(operator),
                "a quantile needs P or R with a bound",
                'as in quantile(min B, P>=0.9 [ F<=B "done" ]): the least B for which it holds',
            )
        variables = tuple(child for child in children if isinstance(child, QuantileVariable))
        return Quantile(variables, operator, span=_span(children))

    def quantile_variable(self, children: _Children) -> QuantileVariable:
        *optimum, name = children
        return QuantileVariable(str(name), cast(Optimum, str(optimum[0])) if optimum else None)

    def multi(self, children: _Children) -> Multi:
        objectives = children[2:-1:2]
        for objective in objectives:
            if not isinstance(objective, _QUANTITATIVE):
                raise Rejection(
                    _span_of(objective),
                    f"the objectives of {children[0]} are the operators P, R and S",
                    f'as in {children[0]}(Pmax=? [ F "a" ], R{{"cost"}}<=3 [ C ])',
                )
        return Multi("multi" if children[0] == "multi" else "multilex", tuple(objectives), span=_span(children))

    def coalition(self, children: _Children) -> Coalition:
        players = next(child for child in children if isinstance(child, _Players))
        operator = children[-1]
        if not isinstance(operator, _OPERATORS):
            raise Rejection(_span_of(operator), "an operator such as P or R follows the players")
        return Coalition(players.names, children[0] == "[", operator, span=_span(children))

    def players(self, children: _Children) -> _Players:
        return _Players(tuple(child for child in children if child != ","))

    def player(self, children: _Children) -> str:
        if children[0].type == "NUMBER" and not children[0].isdigit():
            raise Rejection(_span(children), "a player is a name or a whole number")
        return str(children[0])

    def reward_structure(self, children: _Children) -> str | Formula:
        inner = _state(children[1])
        return inner.name if isinstance(inner, Label) else inner

    # ------------------------------------------------------------ rewards

    def reward_path(self, children: _Children) -> RewardPath:
        first = children[0]
        if isinstance(first, Token):
            match first.type:
                case "CUMULATIVE":
                    return self._cumulative(children)
                case "INSTANTANEOUS":
                    return InstantaneousReward(_state(children[2]), span=_span(children))
                case _:
                    return LongRunReward(span=_span(children))
        if isinstance(first, _PATHS):
            if isinstance(first, Eventually) and first.bound is None and not first.reward_bounds and is_pctl(first):
                return ReachReward(cast(Formula, first.operand), span=first.span)
            return PathReward(first, span=first.span)
        match first:
            case Identifier(name) if name in _LONG_RUN_WORDS:
                return LongRunReward(span=first.span)
            case Binary("=", Identifier("Cdiscount"), value):  # Storm needs it written as one word
                return CumulativeReward(discount=value, span=first.span)
            case _:
                hint = 'as in R{"steps"}=? [ F "absorbed" ]'
                raise Rejection(_span_of(first), "a reward needs F, C, I or S between its brackets", hint)

    def discount(self, children: _Children) -> _Discount:
        return _Discount(_state(children[2]), _span(children))

    @staticmethod
    def _cumulative(children: _Children) -> CumulativeReward:
        bounds = [child for child in children if isinstance(child, _Bounds)]
        steps, rewards = _steps_and_rewards(bounds)
        for bound in (steps, *(entry.bound for entry in rewards)):
            if bound is not None and (bound.upper is None or bound.lower is not None):
                raise Rejection(bounds[0].span, "C takes upper bounds only", "write C<=k, C<k, or C for the total")
        discount = next((child.value for child in children if isinstance(child, _Discount)), None)
        end = steps or StepBound()
        return CumulativeReward(end.upper, end.upper_strict, discount, rewards, span=_span(children))


# ---------------------------------------------------------------- parts of operators


def _both_ends(first: StepBound, second: _Bound) -> StepBound:
    """A lower and an upper bound on the steps, written apart as Storm allows, as one."""
    for low, high in ((first, second.bound), (second.bound, first)):
        if low.upper is None and high.lower is None:
            return StepBound(low.lower, high.upper, low.lower_strict, high.upper_strict)
    raise Rejection(second.span, "a second bound on the steps", "write both ends as one: F[2,8]")


def _steps_and_rewards(bounds: list[_Bounds]) -> tuple[StepBound | None, tuple[RewardBound, ...]]:
    """The bounds of an operator, which may have none."""
    return (bounds[0].steps, bounds[0].rewards) if bounds else (None, ())


def _first_bracket(children: _Children) -> int:
    return next(index for index, child in enumerate(children) if isinstance(child, Token) and child.type == "LSQB")


def _condition(children: _Children) -> PathFormula | None:
    return next((child.path for child in children if isinstance(child, _Condition)), None)


def _filtered(operator: Quantitative, children: _Children) -> Formula:
    """The operator in the filter that stands within its brackets, as PRISM reads it."""
    old = next((child for child in children if isinstance(child, _OldFilter)), None)
    if old is None:
        return operator
    if operator.threshold is None:
        return Filter(old.kind, operator, old.states, span=operator.span)
    if old.optimum is not None:
        raise Rejection(
            _span_of(old.optimum),
            f"{{{old.optimum}}} needs numbers, and an operator with a bound is true or false",
            "with a bound, {states} alone asks whether it holds in all of them",
        )
    return Filter("forall", operator, old.states, span=operator.span)


def _requirement(letter: Token, requirement: _Requirement) -> _Requirement:
    """The bound of an operator, with the ``min`` or ``max`` that its letter may carry (``Pmax``)."""
    optima: tuple[Optimum, ...] = ("min", "max")
    carried = next((word for word in optima if letter.endswith(word)), None)
    if carried and requirement.optimum:
        raise Rejection(
            _span_of(letter), f"{letter} is followed by a second {requirement.optimum}", "write one of them"
        )
    return requirement._replace(optimum=carried or requirement.optimum)


def _described(path: PathFormula) -> str:
    letter = _LETTERS.get(type(path))
    return f"{letter} is a temporal operator" if letter else "this is a path formula"


def _state(child: Formula | PathFormula) -> Formula:
    """A child that must be a formula with a value in every state."""
    if isinstance(child, _PATHS):
        raise Rejection(
            _span_of(child),
            f"{_described(child)} and has no value here",
            "temporal operators stand between the brackets of P",
        )
    return cast(Formula, child)


def _part(child: Formula | PathFormula) -> Formula:
    """A part of an arithmetic formula, or of another one that no path formula can be a part of."""
    if isinstance(child, _PATHS):
        raise Rejection(
            _span_of(child),
            f"{_described(child)} and has no value here",
            "within path formulas, only ! & | => and <=> join temporal operators",
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


# ---------------------------------------------------------------- places


def _span(children: _Children) -> Span:
    return _join(_span_of(children[0]), _span_of(children[-1]))


def _span_of(child: Any) -> Span:
    if isinstance(child, Token):
        assert child.line is not None  # noqa: S101 - every token of the lexer has a place
        assert child.column is not None  # noqa: S101
        assert child.end_line is not None  # noqa: S101
        assert child.end_column is not None  # noqa: S101
        return Span(line=child.line, column=child.column, end_line=child.end_line, end_column=child.end_column)
    assert child.span is not None  # noqa: S101 - every node built here has one
    return cast(Span, child.span)


def _join(first: Span, last: Span) -> Span:
    return Span(line=first.line, column=first.column, end_line=last.end_line, end_column=last.end_column)
