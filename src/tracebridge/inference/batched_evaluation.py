"""A property on many chains at a time: values and truths draw by draw.

The same meaning as `tracebridge.checking.evaluate` gives a formula, in plain doubles. Values have the shape
(n + 1, draws), or (n + 1, 1) where all draws have the same; the last row is the start. Draws in which an operand of an
operator holds in the same states are evaluated together, so that nested thresholds cost one evaluation for each set of
states that they single out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from tracebridge.checking.formula_values import FormulaValues
from tracebridge.checking.operands import evaluated_parts, signs_of
from tracebridge.checking.truths import Truths
from tracebridge.closedform.batched.operators import evaluate_stacked, is_batched
from tracebridge.closedform.batched.step_quantile import step_quantile
from tracebridge.closedform.float_arithmetic import FloatArithmetic
from tracebridge.closedform.modelcheck import evaluate_operator, evaluate_quantile
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tracebridge.closedform.batched.chain_stack import ChainStack

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Value = Truths | Floats

#: Relative distance up to which resamples tie with a threshold.
TIE = 1e-12

_COMPARE: dict[str, Callable[[Floats, Floats], Mask]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}

#: Filters whose value is that of their operand.
_LISTING_ONLY = frozenset({"print", "printall", "values"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PropertyDraws:
    """What a property is in each draw.

    Attributes:
        values: the number that a query asks for or a lone threshold is about, shape (draws,), NaN where undefined; None
            for a property without such a number.
        holds, fails: where it is true and where it is false, shape (draws,), neither where it is undefined; None for a
            query.
    """

    values: Floats | None
    holds: Mask | None
    fails: Mask | None

    @classmethod
    def joined(cls, parts: list[PropertyDraws]) -> PropertyDraws:
        """The draws of several stacks one after the other."""
        joined = {
            name: None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])
            for name in ("values", "holds", "fails")
        }
        return cls(**joined)


def one_by_one(formula: ast.Formula) -> tuple[str, ...]:
    """The operators of a formula that are evaluated one chain at a time, by the closed-form engine, as texts."""
    operators = (node for node, _ in evaluated_parts(formula) if isinstance(node, ast.Operator))
    return tuple(dict.fromkeys(format_formula(node) for node in operators if not is_batched(node)))


def evaluate_draws(stack: ChainStack, formula: ast.Formula, *, tie: float = 0.0) -> PropertyDraws:
    """Evaluate a formula whose constants, labels and references are resolved, in every chain of a stack.

    Args:
        stack: the chains. formula: the formula.
        tie: numbers whose relative distance is at most this count as equal. Draws of a posterior have no ties; chains
            of small counts do, `TIE` at most apart in doubles.

    Raises:
        PropertyError: the formula does not fit the chains.
        UnsupportedError: an operator cannot be evaluated, or there is no single number, as for a range.
        EngineError: the closed-form engine failed on a draw.
    """
    evaluation = _Evaluation(stack, tie)
    with np.errstate(all="ignore"):  # undefined numbers are NaN here, and counted
        result = evaluation.run(formula)
        headline = evaluation.headline(formula)
    draws = stack.draws
    values = None if headline is None else np.broadcast_to(headline, (draws,)).copy()
    if isinstance(result, Truths):
        holds = np.broadcast_to(result.surely[-1], (draws,)).copy()
        fails = np.broadcast_to(~result.possibly[-1], (draws,)).copy()
        return PropertyDraws(values=values, holds=holds, fails=fails)
    return PropertyDraws(values=values, holds=None, fails=None)


class _Evaluation(FormulaValues[np.ndarray[Any, np.dtype[np.float64]], Never]):
    """The values of all nodes of one formula on one stack."""

    numbers_type = np.ndarray

    def __init__(self, stack: ChainStack, tie: float) -> None:
        super().__init__(stack.chain)
        self.tie = tie
        self.stack = stack
        self.operators: dict[int, Floats] = {}

    def headline(self, formula: ast.Formula) -> Floats | None:
        """The number at the start that a reader wants to see, shape (draws,) or (1,)."""
        number = self.lone_number(formula)
        if number is None and not isinstance(formula, ast.Quantified):
            number = self.operators.get(id(formula))
        return None if number is None else np.asarray(number[-1])

    # ------------------------------------------------------------ numbers and sets of states

    def _everywhere(self, surely: Mask, possibly: Mask | None = None) -> Truths:
        """Sets of states, shape (n, draws); the start is in one surely if all start states are."""
        possibly = surely if possibly is None else possibly
        start = self.chain.initial > 0
        return Truths(
            np.vstack([surely, np.all(surely[start], axis=0)]), np.vstack([possibly, np.any(possibly[start], axis=0)])
        )

    def _of_states(self, holds: Mask) -> Truths:
        return self._everywhere(holds[:, None])

    def _constant(self, number: Fraction) -> Floats:
        return np.full((self.n + 1, 1), float(number))

    def _of_variable(self, values: NDArray[Any], start: float) -> Floats:
        return np.append(values.astype(np.float64), start)[:, None]

    def _calculated(self, operator: str, left: Floats, right: Floats) -> Floats:
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case _:
                return np.where(right == 0, np.nan, left / right)

    def _negative(self, operand: Floats) -> Floats:
        return -operand

    def _compared(self, operator: str, left: Floats, right: Floats) -> Truths:
        """A comparison; where a side is undefined it possibly holds."""
        if self.tie:
            left = np.where(np.abs(left - right) <= self.tie * np.abs(right), right, left)
        found = _COMPARE[operator](left, right)
        undefined = np.isnan(left) | np.isnan(right)
        return Truths(found & ~undefined, found | undefined)

    def _chosen(self, test: Truths, then: Floats, otherwise: Floats) -> Floats:
        known = (test.surely == test.possibly) | (then == otherwise)
        return np.where(known, np.where(test.surely, then, otherwise), np.nan)

    def _called(self, function: ast.Function, arguments: list[Floats]) -> Floats:
        first, *rest = arguments
        match function:
            case "min":
                for argument in rest:
                    first = np.minimum(first, argument)
                return first
            case "max":
                for argument in rest:
                    first = np.maximum(first, argument)
                return first
            case "floor":
                return np.floor(first)
            case "ceil":
                return np.ceil(first)
            case "round":  # halves upward, as in PRISM
                below = np.floor(first)
                return np.where(np.isfinite(first), below + (first - below >= 0.5), first)
            case "pow":
                undefined = ((first == 0) & (rest[0] < 0)) | np.isnan(first) | np.isnan(rest[0])
                return np.where(undefined, np.nan, np.power(first, rest[0]))
            case "mod":
                remainder = first - rest[0] * np.floor(first / rest[0])
                return np.where(rest[0] > 0, np.clip(remainder, 0.0, rest[0]), np.nan)
            case "log":
                base = np.log(rest[0])
                return np.where(base == 0, np.nan, np.log(first) / base)

    # ------------------------------------------------------------ filters

    def _filter(self, node: ast.Filter) -> Value:
        operand = self.values[id(node.operand)]
        everywhere = np.ones((self.n, 1), dtype=np.bool_)
        states = Truths(everywhere, everywhere) if node.states is None else self.truths(node.states).states
        if node.kind in _LISTING_ONLY:
            return operand
        meant, known = states.surely, (states.surely == states.possibly).all(axis=0)
        if not self._has_states(node, meant):
            known = known & meant.any(axis=0) & ((meant.sum(axis=0) == 1) | (node.kind != "state"))
        if isinstance(operand, Truths):
            return self._filter_of_truths(node, operand.states, meant, known)
        return self._filter_of_numbers(node, operand[: self.n], meant, known)

    def _has_states(self, node: ast.Filter, meant: Mask) -> bool:
        """Whether the right number of states is meant; False where that differs from draw to draw."""
        numbers = meant.sum(axis=0)
        wrong = (numbers == 0) | ((numbers > 1) & (node.kind == "state"))
        if not wrong.any():
            return True
        by_values = node.states is not None and any(isinstance(part, ast.Operator) for part in ast.walk(node.states))
        if by_values:
            return False
        amount = "no state" if numbers[0] == 0 else f"{numbers[0]} states, and state means a single one"
        raise PropertyError(f"this filter is over {amount}: {format_formula(node)}")

    def _filter_of_truths(self, node: ast.Filter, operand: Truths, meant: Mask, known: Mask) -> Value:
        match node.kind:
            case "count":
                surely, possibly = ((meant & part).sum(axis=0) for part in (operand.surely, operand.possibly))
                return self._repeated(np.where(known & (surely == possibly), surely, np.nan).astype(np.float64))
            case "forall":
                parts = [(~meant | part).all(axis=0) for part in (operand.surely, operand.possibly)]
            case "exists":
                parts = [(meant & part).any(axis=0) for part in (operand.surely, operand.possibly)]
            case "state" | "first":
                parts = [_of_first(meant, part) for part in (operand.surely, operand.possibly)]
            case _:
                raise PropertyError(f"filter({node.kind}, ...) needs a number: {format_formula(node)}")
        surely, possibly = parts[0] & known, parts[1] | ~known
        return Truths(*(np.repeat(part[None], self.n + 1, axis=0) for part in (surely, possibly)))

    def _filter_of_numbers(self, node: ast.Filter, operand: Floats, meant: Mask, known: Mask) -> Value:
        unknown = (np.isnan(operand) & meant).any(axis=0) | ~known
        match node.kind:
            case "min":
                value = np.where(meant, operand, np.inf).min(axis=0)
            case "max":
                value = np.where(meant, operand, -np.inf).max(axis=0)
            case "sum":
                value = np.where(meant, operand, 0.0).sum(axis=0)
            case "avg":
                value = np.where(meant, operand, 0.0).sum(axis=0) / meant.sum(axis=0)
            case "state" | "first":
                value, unknown = _of_first(meant, operand), ~known
            case "argmin" | "argmax":
                signed = operand if node.kind == "argmax" else -operand
                best = np.where(meant, signed, -np.inf).max(axis=0)
                attained = meant & (signed == best)
                return self._everywhere(attained & ~unknown, attained | (meant & unknown))
            case "range":
                raise UnsupportedError("a range is two numbers; ask for filter(min, ...) and filter(max, ...)")
            case _:
                raise PropertyError(f"filter({node.kind}, ...) needs a truth value: {format_formula(node)}")
        return self._repeated(np.where(unknown, np.nan, value))

    def _repeated(self, values: Floats) -> Floats:
        return np.repeat(values[None], self.n + 1, axis=0)

    # ------------------------------------------------------------ operators

    def _operator(self, node: ast.Operator, *, nested: bool) -> Value:  # noqa: ARG002
        whole = self._evaluate(node)
        self.operators[id(node)] = whole
        if isinstance(node, ast.Quantified):
            states = whole[: self.n]
            return self._everywhere(states == 1, (states == 1) | np.isnan(states))
        if not isinstance(node, ast.Quantitative) or node.threshold is None:
            return whole
        return self._compared(node.threshold.comparison, whole, self.numbers(node.threshold.value))

    def _evaluate(self, node: ast.Operator) -> Floats:
        """The operator in every state and at the start; NaN in draws where an operand of it is undefined."""
        operands = [self.truths(operand).states for operand, _ in signs_of(node).values()]
        ids = list(signs_of(node))
        certain = np.ones(1, dtype=np.bool_)
        for operand in operands:
            certain = certain & (operand.surely == operand.possibly).all(axis=0)
        if all(operand.surely.shape[1] == 1 for operand in operands):
            if not certain.all():
                return np.full((self.n + 1, 1), np.nan)
            return self._appended(
                node, self.stack, dict(zip(ids, (part.surely[:, 0] for part in operands), strict=True))
            )
        draws = self.stack.draws
        keys = np.concatenate([np.broadcast_to(operand.surely, (self.n, draws)) for operand in operands])
        distinct, group = np.unique(np.packbits(keys, axis=0), axis=1, return_inverse=True)
        result = np.full((self.n + 1, draws), np.nan)
        certain = np.broadcast_to(certain, (draws,))
        for g in range(distinct.shape[1]):
            members = np.flatnonzero((group == g) & certain)
            if not len(members):
                continue
            sets = keys[:, members[0]].reshape(len(operands), self.n)
            result[:, members] = self._appended(node, self.stack.select(members), dict(zip(ids, sets, strict=True)))
        return result

    def _appended(self, node: ast.Operator, stack: ChainStack, sets: dict[int, Mask]) -> Floats:
        """The operator on a stack in which its operands hold in the same states, with the start as last row."""

        def holds(operand: ast.Formula) -> Mask:
            return sets[id(operand)]

        if not is_batched(node):
            return _one_by_one(stack, node, holds)
        if isinstance(node, ast.Quantile):
            return step_quantile(stack, node, holds, tie=self.tie)
        values = evaluate_stacked(stack, node, holds)
        condition = node.condition if isinstance(node, ast.Probability | ast.Reward) else None
        if condition is None or np.count_nonzero(stack.chain.initial) == 1:
            start = np.atleast_1d(stack.mean_at_start(values))
        else:  # runs that start where the condition is likelier count more
            share = evaluate_stacked(stack, ast.Probability(condition), holds)
            both = np.multiply(values, share, out=np.zeros(np.broadcast(values, share).shape), where=share > 0)
            start = np.atleast_1d(stack.mean_at_start(both) / stack.mean_at_start(share))
        width = max(values.shape[1], len(start))
        rows = (np.broadcast_to(part, (len(part), width)) for part in (values, start[None]))
        return np.concatenate(list(rows))


def _one_by_one(stack: ChainStack, node: ast.Operator, holds: Callable[[ast.Formula], Mask]) -> Floats:
    """The operator on one chain after the other, by the closed-form engine; shape (n + 1, draws)."""
    columns = []
    for draw in range(stack.draws):
        chain = stack.chain_at(draw)
        arithmetic = FloatArithmetic(chain)
        if isinstance(node, ast.Quantile):
            vector, start = evaluate_quantile(arithmetic, node, holds, chain.exact_initial())
            columns.append(np.append(vector.to_float().value, float(start.value)))
        else:
            values = evaluate_operator(arithmetic, node, holds).to_float().value
            support = np.flatnonzero(chain.initial)
            columns.append(np.append(values, (chain.initial[support] * values[support]).sum()))
    return np.stack(columns, axis=1)


def _of_first(meant: Mask, values: NDArray[Any]) -> NDArray[Any]:
    """The entry of the first state that is meant, in each draw."""
    width = max(meant.shape[1], values.shape[1])
    first = np.broadcast_to(np.argmax(meant, axis=0), (width,))
    return np.asarray(np.take_along_axis(np.broadcast_to(values, (len(values), width)), first[None], axis=0)[0])
