"""How the number of a property moves with each transition probability: backwards through its formula.

The formula is evaluated once by the closed form; then the derivative of its number with respect to the value of each
part, in each state and at the start, is passed down from the whole to the parts. An operator passes its own on to the
transition probabilities (see `tracebridge.closedform.gradient`). Nested thresholds, and all that is true or false, are
the sets of states that they are: they do not move, unless a threshold is exactly met.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.evaluation import Evaluation
from tracebridge.checking.operands import evaluated_parts
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.gradient import EntryGradient
from tracebridge.closedform.gradient_operators import TracedOperators
from tracebridge.errors import UnsupportedError
from tracebridge.pctl import ast, fold_steps
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain

    Floats = NDArray[np.float64]


def property_gradient(chain: MarkovChain, property_: ast.Property) -> EntryGradient:
    """The gradient of the number that a query asks for, or that a lone threshold or comparison is about.

    Args:
        property_: its constants, labels and references are resolved.

    Raises:
        UnsupportedError: for a property without one number, for operators without a gradient, and where the number is
            infinite, undefined, or between two branches that meet.
        PropertyError, EngineError: as of `tracebridge.checking.check`.
    """
    return _BackwardPass(chain, fold_steps(property_.formula)).gradient()


class _BackwardPass:
    """The derivative of the number of one formula with respect to its parts, shape (n + 1,) each."""

    def __init__(self, chain: MarkovChain, formula: ast.Formula) -> None:
        self._chain = chain
        self._formula = formula
        self._evaluation = Evaluation(PropertyChecker(chain, ClosedFormSession(chain)))
        self._evaluation.run(formula)
        if self._evaluation.is_uncertain:
            raise UnsupportedError("a nested threshold is met up to rounding, where a value jumps: no derivative")
        self._values: dict[int, Floats] = {}
        self._adjoints: dict[int, Floats] = {}
        self._operators = TracedOperators(chain)
        self._entries = np.zeros(chain.transitions.nnz)
        self._initial = np.zeros(chain.n_states)

    def gradient(self) -> EntryGradient:
        n = self._chain.n_states
        top, value = self._number()
        if not math.isfinite(value):
            raise UnsupportedError(f"the value is {value!r}: it has no derivative")
        self._adjoints[id(top)] = np.append(np.zeros(n), 1.0)
        parts: dict[int, ast.Formula] = {}  # in the order of evaluation, parts before what they are parts of
        for node, _ in reversed(list(evaluated_parts(self._formula))):
            parts.setdefault(id(node), node)
        for node in reversed(parts.values()):
            adjoint = self._adjoints.pop(id(node), None)
            if adjoint is not None and adjoint.any():
                self._pass_on(node, adjoint)
        return EntryGradient(chain=self._chain, value=value, free=self._entries, initial=self._initial)

    def _number(self) -> tuple[ast.Formula, float]:
        """The part whose value at the start is the number of the formula, and that value."""
        formula, evaluation = self._formula, self._evaluation
        if isinstance(formula, ast.Quantitative) and formula.threshold is not None:
            return formula, float(evaluation.operators[-1].start.value)
        if isinstance(evaluation.values[id(formula)], EnclosureVector):
            return formula, float(self._value(formula)[-1])
        if isinstance(formula, ast.Binary) and evaluation.lone_number(formula) is not None:
            return formula.left, float(self._value(formula.left)[-1])
        raise UnsupportedError("a property without a number of its own, such as a Boolean one, has no gradient")

    def _value(self, node: ast.Formula) -> Floats:
        """The number that a part is, in every state and at the start, shape (n + 1,)."""
        if id(node) not in self._values:
            self._values[id(node)] = self._evaluation.numbers(node).to_float().value
        return self._values[id(node)]

    def _add(self, node: ast.Formula, adjoint: Floats) -> None:
        known = self._adjoints.get(id(node))
        self._adjoints[id(node)] = adjoint if known is None else known + adjoint

    # ------------------------------------------------------------ from a part to its parts

    def _pass_on(self, node: ast.Formula, adjoint: Floats) -> None:
        if isinstance(node, ast.Operator):
            self._to_entries(node, adjoint)
            return
        match node:
            case ast.Number() | ast.Identifier():
                pass
            case ast.Unary("-", operand):
                self._add(operand, -adjoint)
            case ast.Binary(("+" | "-" | "*" | "/") as operator, left, right):
                self._through_arithmetic(operator, left, right, adjoint)
            case ast.Conditional():
                test = self._evaluation.truths(node.test)
                self._refuse_ties(node, (test.surely != test.possibly) & (adjoint != 0))
                chosen = test.surely
                self._add(node.then, np.where(chosen, adjoint, 0.0))
                self._add(node.otherwise, np.where(chosen, 0.0, adjoint))
            case ast.Call():
                self._through_function(node, adjoint)
            case ast.Filter():
                self._through_filter(node, adjoint)
            case _:
                raise UnsupportedError(f"{type(node).__name__.lower()} has no derivative: {format_formula(node)}")

    def _to_entries(self, node: ast.Operator, adjoint: Floats) -> None:
        n, initial = self._chain.n_states, self._chain.initial

        def holds(part: ast.Formula) -> NDArray[np.bool_]:
            return self._evaluation.truths(part).surely[:n]

        vector = self._operators.value(node, holds)
        condition = node.condition if isinstance(node, ast.Probability | ast.Reward) else None
        if condition is not None and adjoint[n] and np.count_nonzero(initial) > 1:
            share = self._operators.value(ast.Probability(condition), holds)
            possible = share.value > 0
            shares, values = np.where(possible, share.value, 0.0), np.where(possible, vector.value, 0.0)
            total = initial @ shares
            gain = np.where(possible, values - (initial * shares) @ values / total, 0.0) / total
            self._entries += self._operators.pull_back(vector, adjoint[:n] + adjoint[n] * initial * shares / total)
            self._entries += self._operators.pull_back(share, adjoint[n] * initial * gain)
            self._initial += adjoint[n] * shares * gain
            return
        self._entries += self._operators.pull_back(vector, adjoint[:n] + adjoint[n] * initial)
        if adjoint[n]:
            self._initial += adjoint[n] * vector.value

    def _through_arithmetic(self, operator: str, left: ast.Formula, right: ast.Formula, adjoint: Floats) -> None:
        x, y = self._value(left), self._value(right)
        match operator:
            case "+" | "-":
                self._add(left, adjoint)
                self._add(right, adjoint if operator == "+" else -adjoint)
            case "*":
                self._add(left, _times(adjoint, y))
                self._add(right, _times(adjoint, x))
            case _:
                with np.errstate(divide="ignore", invalid="ignore"):  # only where nothing is asked
                    inverse = 1 / y
                    self._add(left, _times(adjoint, inverse))
                    self._add(right, -_times(adjoint, x * inverse**2))

    def _through_function(self, node: ast.Call, adjoint: Floats) -> None:
        arguments = [self._value(argument) for argument in node.arguments]
        x, *rest = arguments
        with np.errstate(all="ignore"):  # only where nothing is asked
            match node.function:
                case "min" | "max":
                    stacked = np.stack(arguments)
                    best = stacked.min(axis=0) if node.function == "min" else stacked.max(axis=0)
                    attained = stacked == best
                    self._refuse_ties(node, (attained.sum(axis=0) > 1) & (adjoint != 0))
                    for argument, chosen in zip(node.arguments, attained, strict=True):
                        self._add(argument, np.where(chosen, adjoint, 0.0))
                case "floor" | "ceil" | "round":
                    shifted = x + 0.5 if node.function == "round" else x
                    self._refuse_ties(node, (shifted == np.floor(shifted)) & (adjoint != 0))
                case "pow":
                    (y,) = rest
                    self._add(node.arguments[0], _times(adjoint, np.where(y == 0, 0.0, y * np.power(x, y - 1))))
                    if self._moves(node.arguments[1]):
                        self._add(node.arguments[1], _times(adjoint, np.power(x, y) * np.log(x)))
                case "mod":
                    pass  # of whole numbers, which do not move
                case "log":
                    (base,) = rest
                    self._add(node.arguments[0], _times(adjoint, 1 / (x * np.log(base))))
                    if self._moves(node.arguments[1]):
                        self._add(node.arguments[1], -_times(adjoint, np.log(x) / (base * np.log(base) ** 2)))

    def _through_filter(self, node: ast.Filter, adjoint: Floats) -> None:
        n = self._chain.n_states
        if node.kind in {"print", "printall", "values"}:
            self._add(node.operand, adjoint)
            return
        meant = np.ones(n, dtype=np.bool_)
        if node.states is not None:
            meant = self._evaluation.truths(node.states).surely[:n]
        x, share = self._value(node.operand)[:n], np.zeros(n + 1)
        match node.kind:
            case "min" | "max":
                best = x[meant].min() if node.kind == "min" else x[meant].max()
                chosen = np.flatnonzero(meant & (x == best))
                self._refuse_ties(node, np.array([len(chosen) > 1]))
                share[chosen] = 1
            case "sum" | "avg":
                share[:n][meant] = 1 if node.kind == "sum" else 1 / np.count_nonzero(meant)
            case "state" | "first":
                share[np.flatnonzero(meant)[0]] = 1
            case "count":
                return
            case _:
                raise UnsupportedError(f"filter({node.kind}, ...) has no derivative: {format_formula(node)}")
        self._add(node.operand, adjoint.sum() * share)  # a filter has the same value everywhere

    def _moves(self, node: ast.Formula) -> bool:
        return any(isinstance(part, ast.Operator) for part in ast.walk(node))

    def _refuse_ties(self, node: ast.Formula, tied: NDArray[np.bool_]) -> None:
        if bool(tied.any()):
            raise UnsupportedError(f"two branches meet here, and there is no derivative: {format_formula(node)}")


def _times(adjoint: Floats, slope: Floats) -> Floats:
    """Their product, and zero where nothing is asked, whatever the slope is there.

    Raises:
        UnsupportedError: where something is asked and the slope is infinite or undefined.
    """
    asked = adjoint != 0
    if not np.isfinite(slope[asked]).all():
        raise UnsupportedError("an infinite or undefined slope, such as that of 1/x or log(x) at zero: no derivative")
    return np.where(asked, adjoint * np.where(asked, slope, 0.0), 0.0)
