"""From the operators that an engine evaluates to the verdict of a property: the same path for every engine.

Values live per state plus one more entry, the *start*: there an operator's value is its mean under the initial
distribution, which is also its value in the single initial state of an exported model. Truth is three-valued, because a
threshold may lie inside the numerical bounds of a value: a formula holds *surely*, *possibly*, or not at all.

The formula is evaluated bottom-up over a list of its nodes, so that its depth costs no recursion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracebridge.checking.engine import EngineSession, Holds
from tracebridge.checking.result import CheckResult, OperatorValue, Verdict
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.errors import EngineError, PropertyError, UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from tracebridge.chain.markov import MarkovChain

Mask = NDArray[np.bool_]

#: Results list the values of so many start states.
MAX_START_STATES = 100


@dataclass(frozen=True, slots=True)
class Truths:
    """Where a formula surely and where it possibly holds, shape (n + 1,) each; the last entry is the start."""

    surely: Mask
    possibly: Mask

    def __invert__(self) -> Truths:
        return Truths(~self.possibly, ~self.surely)

    def __and__(self, other: Truths) -> Truths:
        return Truths(self.surely & other.surely, self.possibly & other.possibly)

    def __or__(self, other: Truths) -> Truths:
        return Truths(self.surely | other.surely, self.possibly | other.possibly)

    def iff(self, other: Truths) -> Truths:
        """Both hold or neither does."""
        return (self & other) | (~self & ~other)

    @property
    def certain(self) -> bool:
        """No state is undecided (the start is not looked at)."""
        return bool((self.surely == self.possibly)[:-1].all())


Value = Truths | EnclosureVector


class PropertyChecker:
    """Evaluates properties of one chain with one engine."""

    def __init__(self, chain: MarkovChain, session: EngineSession) -> None:
        self.chain = chain
        self.session = session
        self._support = np.flatnonzero(chain.initial)
        weights = chain.exact_initial()
        self._weights = [weights[i] for i in self._support.tolist()]

    def check(self, property_: ast.Property, *, propagate: tuple[type[EngineError], ...] = ()) -> CheckResult:
        """Evaluate a property whose constants and label definitions are resolved.

        An engine that fails or cannot evaluate an operator yields a result that says so, except for the errors to
        ``propagate``; a property that does not fit the chain (an unknown label or reward structure) raises.

        Raises:
            PropertyError: the property does not fit the chain.
        """
        evaluation = _Evaluation(self)
        self.session.notes.clear()
        verdict, truth, value, reason = None, None, None, None
        try:
            result = evaluation.run(property_.formula)
            verdict, truth, reason = _verdict(result, exact=self.session.exact)
            value = evaluation.headline(property_.formula)
            if verdict is None and evaluation.is_uncertain:
                verdict, reason = Verdict.UNDECIDED, _spread(value)
        except propagate:
            raise
        except UnsupportedError as error:
            verdict, reason = Verdict.UNSUPPORTED, str(error)
        except EngineError as error:
            verdict, reason = Verdict.ERROR, str(error)
        return CheckResult(
            property=property_,
            engine=self.session.name,
            exact=self.session.exact,
            verdict=verdict,
            value=value,
            truth=truth,
            operators=tuple(evaluation.operators),
            reason=reason,
            notes=tuple(sorted(dict.fromkeys(self.session.notes), key=lambda note: note.kind != "warning")),
        )

    def at_start(self, vector: EnclosureVector) -> Enclosure:
        """The mean of per-state values under the initial distribution."""
        return vector.take(self._support).weighted_mean(self._weights)

    def by_start(self, vector: EnclosureVector) -> dict[str, Enclosure]:
        """The value in each start state, of the first `MAX_START_STATES` of them."""
        return {self.chain.states[i]: vector[i] for i in self._support[:MAX_START_STATES].tolist()}


def _verdict(result: Value, *, exact: bool) -> tuple[Verdict | None, bool | None, str | None]:
    if isinstance(result, EnclosureVector):
        if result.undefined[-1]:
            return Verdict.UNDECIDED, None, "the value is undefined (such as 0/0)"
        if not result.exact and np.isfinite(result.value[-1]) and result.upper[-1] == np.inf:
            return Verdict.UNDECIDED, None, "the value is beyond the largest double (--exact may give it)"
        return None, None, None
    if result.surely[-1]:
        return Verdict.SATISFIED, True, None
    if not result.possibly[-1]:
        return Verdict.VIOLATED, False, None
    differ = "the start states differ in a label, so that it neither holds at the start nor fails there"
    if exact:
        return Verdict.UNDECIDED, None, differ
    return (
        Verdict.UNDECIDED,
        None,
        f"a threshold lies inside the numerical bounds of a value (--exact decides), or {differ}",
    )


def _spread(value: Enclosure | None) -> str:
    """Why a query is undecided whose value hangs on a nested threshold that the bounds do not decide."""
    known = "" if value is None else f": it lies between {float(value.lower):.6g} and {float(value.upper):.6g}"
    return f"the value hangs on a nested threshold that lies inside numerical bounds{known} (--exact decides)"


class _Evaluation:
    """The values of all nodes of one formula under one engine."""

    def __init__(self, checker: PropertyChecker) -> None:
        self.checker = checker
        self.chain = checker.chain
        self.session = checker.session
        self.values: dict[int, Value] = {}
        self.operators: list[OperatorValue] = []
        self.is_uncertain = False  # whether a nested threshold that the bounds do not decide went into a value
        self.n = checker.chain.n_states

    def run(self, formula: ast.Formula) -> Value:
        nodes = list(ast.walk(formula))
        nested = _nested_operators(formula)
        for node in reversed(nodes):  # children before parents
            if isinstance(node, ast.Operator):
                self.values[id(node)] = self._operator(node, nested=id(node) in nested)
            elif isinstance(node, ast.Formula):
                self.values[id(node)] = self._combine(node)
        return self.values[id(formula)]

    def headline(self, formula: ast.Formula) -> Enclosure | None:
        """The one number a reader wants to see: a query's, or that which a lone threshold or comparison is about."""
        value = self.values[id(formula)]
        if isinstance(value, EnclosureVector):
            return None if value.undefined[-1] else value[self.n]
        if isinstance(formula, ast.Operator):
            return next(o.start for o in reversed(self.operators) if not o.nested)
        if isinstance(formula, ast.Binary):
            left = self.values[id(formula.left)]
            plain = not any(isinstance(node, ast.Operator) for node in ast.walk(formula.right))
            if plain and isinstance(left, EnclosureVector) and not left.undefined[-1]:
                return left[self.n]
        return None

    # ------------------------------------------------------------ nodes

    def _combine(self, node: ast.Formula) -> Value:
        match node:
            case ast.Truth(value):
                return self._everywhere(np.full(self.n, value))
            case ast.Number(value):
                return EnclosureVector.constant(self.n + 1, value, exact=self.session.exact)
            case ast.Label(name):
                return self._everywhere(self.chain.label(name))
            case ast.Identifier(name):
                raise PropertyError(f"{name!r} is no constant of the property file; name states by their labels")
            case ast.Unary("!"):
                return ~self._truths(node.operand)
            case ast.Unary("-"):
                return -self._numbers(node.operand)
            case ast.Binary():
                return self._binary(node)
            case ast.Conditional():
                return self._conditional(node)
            case ast.Call():
                return _call(node.function, [self._numbers(argument) for argument in node.arguments])
        raise PropertyError(f"{type(node).__name__} has no value in a state")

    def _everywhere(self, mask: Mask) -> Truths:
        """A set of states; the start is in it surely if all start states are, possibly if one is."""
        inside = mask[self.chain.initial > 0]
        return Truths(np.append(mask, inside.all()), np.append(mask, inside.any()))

    def _binary(self, node: ast.Binary) -> Value:
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
        if isinstance(left, EnclosureVector) and isinstance(right, EnclosureVector):
            match operator:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "/":
                    return left / right
                case "<" | "<=" | ">" | ">=" | "=" | "!=":
                    return Truths(*left.compare(operator, right))
        raise PropertyError(f"{operator!r} cannot join a truth value and a number: {format_formula(node)}")

    def _conditional(self, node: ast.Conditional) -> Value:
        test = self._truths(node.test)
        then, otherwise = self.values[id(node.then)], self.values[id(node.otherwise)]
        if isinstance(then, Truths) and isinstance(otherwise, Truths):
            return (test & then) | (~test & otherwise)
        if isinstance(then, EnclosureVector) and isinstance(otherwise, EnclosureVector):
            if bool((test.surely == test.possibly).all()):
                return EnclosureVector.where(test.surely, then, otherwise)
            chosen = EnclosureVector.where(test.surely, then, otherwise)
            return EnclosureVector.where(test.surely == test.possibly, chosen, then.hull(otherwise))
        raise PropertyError(f"the two branches differ in type: {format_formula(node)}")

    def _operator(self, node: ast.Operator, *, nested: bool) -> Value:
        vector = self._evaluate(node)
        start = self.checker.at_start(vector)
        self.operators.append(
            OperatorValue(
                text=format_formula(node),
                nested=nested,
                states=vector,
                start=start,
                by_start=self.checker.by_start(vector),
            )
        )
        whole = _appended(vector, start)
        if node.threshold is None:
            return whole
        return Truths(*whole.compare(node.threshold.comparison, self._numbers(node.threshold.value)))

    def _evaluate(self, node: ast.Operator) -> EnclosureVector:
        """The operator in every state; it is monotone in its operands, which bounds it where they are uncertain."""
        operands = [child for child in ast.children(_path(node)) if isinstance(self.values.get(id(child)), Truths)]
        lower = self.session.evaluate(node, self._holds("surely"))
        if all(self._truths(operand).certain for operand in operands if isinstance(operand, ast.Formula)):
            return lower
        self.is_uncertain = True
        return lower.hull(self.session.evaluate(node, self._holds("possibly")))

    def _holds(self, degree: str) -> Holds:
        def holds(operand: ast.Formula) -> Mask:
            mask: Mask = getattr(self._truths(operand), degree)
            return mask[:-1]

        return holds

    def _truths(self, node: ast.Formula) -> Truths:
        value = self.values[id(node)]
        if not isinstance(value, Truths):
            raise PropertyError(f"a truth value is needed here, not a number: {format_formula(node)}")
        return value

    def _numbers(self, node: ast.Formula) -> EnclosureVector:
        value = self.values[id(node)]
        if not isinstance(value, EnclosureVector):
            raise PropertyError(f"a number is needed here, not a truth value: {format_formula(node)}")
        return value


def _path(node: ast.Operator) -> ast.Node:
    """What stands between the brackets; for S the operator itself, whose operand is a state formula."""
    return node if isinstance(node, ast.SteadyState) else node.path


def _appended(vector: EnclosureVector, last: Enclosure) -> EnclosureVector:
    """The vector with one more entry."""
    if vector.exact:
        return EnclosureVector.from_fractions([*vector.value.tolist(), last.value])
    tail = EnclosureVector.from_enclosures([last]).to_float()
    return EnclosureVector(
        np.append(vector.value, tail.value), np.append(vector.lower, tail.lower), np.append(vector.upper, tail.upper)
    )


def _nested_operators(formula: ast.Formula) -> set[int]:
    """The ids of operators that stand inside another operator."""
    nested: set[int] = set()
    for node in ast.walk(formula):
        if isinstance(node, ast.Operator) and id(node) not in nested:
            nested.update(
                id(below) for below in ast.walk(node) if below is not node and isinstance(below, ast.Operator)
            )
    return nested


def _call(function: ast.Function, arguments: list[EnclosureVector]) -> EnclosureVector:
    first, *rest = arguments
    match function:
        case "min":
            for argument in rest:
                first = first.minimum(argument)
            return first
        case "max":
            for argument in rest:
                first = first.maximum(argument)
            return first
        case "floor":
            return first.floor()
        case "ceil":
            return first.ceil()
        case "round":
            return first.round()
        case "pow":
            return first ** rest[0]
        case "mod":
            return first.mod(rest[0])
        case "log":
            return first.log(rest[0])
