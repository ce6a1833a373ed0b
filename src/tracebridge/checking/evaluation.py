"""The value of every part of a formula, in every state and at the start.

Values live per state plus one more entry, the *start*: there an operator's value is its mean under the initial
distribution (under a condition, over the runs that satisfy it), which is also its value in the single initial state of
an exported model; a label, a variable or an ``A`` or ``E`` has there what all start states have in common, and a filter
what it has everywhere. Truth is three-valued,
because a threshold may lie inside the numerical bounds of a value.

Where it is open in which states an operand holds, an operator is evaluated on the smallest and on the largest such set:
it is monotone in every operand that does not stand both plain and negated, nor in a condition. Else its value is
bounded by what values it can have at all. The formula is evaluated bottom-up over a list of its nodes, so that its
depth costs no recursion. Arithmetic of constants is done in rationals, also where the engine works in doubles.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracebridge.checking.engine import OptimisingSession
from tracebridge.checking.filters import LISTING_ONLY, Range, of_numbers, of_truths
from tracebridge.checking.formula_values import FormulaValues
from tracebridge.checking.operands import Signs, signs_of
from tracebridge.checking.result import MAX_LISTED, Listing, OperatorValue, is_precise
from tracebridge.checking.truths import Truths
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.errors import UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from tracebridge.checking.evaluate import PropertyChecker

Mask = NDArray[np.bool_]

#: Larger constants go on as doubles, unless the engine is exact.
MAX_CONSTANT_BITS = 2**17

Value = Truths | EnclosureVector | Range


class Evaluation(FormulaValues[EnclosureVector, Range]):
    """The values of all nodes of one formula under one engine."""

    numbers_type = EnclosureVector

    def __init__(self, checker: PropertyChecker) -> None:
        super().__init__(checker.chain)
        self.checker = checker
        self.session = checker.session
        self.operators: list[OperatorValue] = []
        self.listings: list[Listing] = []
        self._constants: dict[int, EnclosureVector] = {}  # the parts that are one number everywhere, once
        self.is_uncertain = False  # whether a nested threshold that the bounds do not decide went into a value

    def headline(self, formula: ast.Formula) -> Enclosure | None:
        """The one number a reader wants to see: a query's, or that which a lone threshold or comparison is about."""
        number = self.lone_number(formula)
        if number is not None:
            return number[self.n]
        if isinstance(formula, ast.Operator) and not isinstance(formula, ast.Quantified):
            return next(o.start for o in reversed(self.operators) if not o.nested)
        return None

    # ------------------------------------------------------------ constants

    def _value(self, node: ast.Formula, *, nested: bool) -> Value:
        constant = self._constant_value(node)
        if constant is None:
            return super()._value(node, nested=nested)
        if isinstance(constant, Truths):
            return Truths(np.repeat(constant.surely, self.n + 1), np.repeat(constant.possibly, self.n + 1))
        if not self.session.exact and constant.exact and _bits(constant.value[0]) > MAX_CONSTANT_BITS:
            constant = constant.to_float()
        self._constants[id(node)] = constant
        if constant.exact and not is_precise(constant.to_float()[0]):  # beyond all doubles
            return EnclosureVector.constant(self.n + 1, constant.value[0], exact=True)
        return self._repeated(constant[0])

    def _constant_value(self, node: ast.Formula) -> EnclosureVector | Truths | None:
        """What numbers alone make of a part, as one entry; None for any other part.

        Raises:
            UnsupportedError: a power is too large for rationals, in exact mode.
        """
        if isinstance(node, ast.Number):
            return EnclosureVector.constant(1, node.value, exact=True)
        if not isinstance(node, ast.Unary | ast.Binary | ast.Call):
            return None
        parts: list[EnclosureVector] = []
        for child in ast.children(node):
            if (part := self._constants.get(id(child))) is None:
                return None
            parts.append(part)
        try:
            return self._of_constants(node, parts)
        except UnsupportedError:
            if self.session.exact:
                raise
            return self._of_constants(node, [parts[0].to_float(), *parts[1:]])

    def _of_constants(
        self, node: ast.Unary | ast.Binary | ast.Call, parts: list[EnclosureVector]
    ) -> EnclosureVector | Truths:
        if isinstance(node, ast.Call):
            return self._called(node.function, parts)
        if isinstance(node, ast.Unary):
            return -parts[0]
        if node.operator in {"+", "-", "*", "/"}:
            return self._calculated(node.operator, *parts)
        return self._compared(node.operator, *parts)

    # ------------------------------------------------------------ numbers and sets of states

    def _everywhere(self, surely: Mask, possibly: Mask | None = None) -> Truths:
        """A set of states; the start is in it surely if all start states are, possibly if one may be."""
        possibly = surely if possibly is None else possibly
        start = self.chain.initial > 0
        return Truths(np.append(surely, surely[start].all()), np.append(possibly, possibly[start].any()))

    def _of_states(self, holds: Mask) -> Truths:
        return self._everywhere(holds)

    def _constant(self, number: Fraction) -> EnclosureVector:
        return EnclosureVector.constant(self.n + 1, number, exact=self.session.exact)

    def _of_variable(self, values: NDArray[Any], start: float) -> EnclosureVector:
        if self.session.exact or (values.dtype != np.float64 and bool((np.abs(values) > 2**53).any())):
            exact = EnclosureVector.from_fractions([*map(Fraction, values.tolist()), start])
            return exact if self.session.exact else exact.to_float()
        return EnclosureVector.from_floats(np.append(values.astype(np.float64), start))

    def _calculated(self, operator: str, left: EnclosureVector, right: EnclosureVector) -> EnclosureVector:
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case _:
                return left / right

    def _negative(self, operand: EnclosureVector) -> EnclosureVector:
        return -operand

    def _compared(self, operator: str, left: EnclosureVector, right: EnclosureVector) -> Truths:
        return Truths(*left.compare(operator, right))

    def _chosen(self, test: Truths, then: EnclosureVector, otherwise: EnclosureVector) -> EnclosureVector:
        chosen = EnclosureVector.where(test.surely, then, otherwise)
        if bool((test.surely == test.possibly).all()):
            return chosen
        return EnclosureVector.where(test.surely == test.possibly, chosen, then.hull(otherwise))

    def _called(self, function: ast.Function, arguments: list[EnclosureVector]) -> EnclosureVector:
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

    # ------------------------------------------------------------ filters

    def _filter(self, node: ast.Filter) -> Value:
        operand = self.values[id(node.operand)]
        everywhere = np.ones(self.n, dtype=np.bool_)
        states = Truths(everywhere, everywhere) if node.states is None else self.truths(node.states).states
        made: Enclosure | Range | Truths | tuple[int, int]
        if isinstance(operand, Truths):
            made = of_truths(node, operand.states, states)
        else:
            made = of_numbers(node, self.numbers(node.operand).take(np.arange(self.n)), states)
        if node.kind in LISTING_ONLY | {"argmin", "argmax"}:
            self.listings.append(self._listing(node, operand, states, made))
        if node.kind in LISTING_ONLY:
            return operand
        match made:
            case Truths() if node.kind in {"argmin", "argmax"}:
                return self._everywhere(made.surely, made.possibly)
            case Truths():
                return Truths(np.repeat(made.surely, self.n + 1), np.repeat(made.possibly, self.n + 1))
            case (least, most):
                self.is_uncertain |= least != most
                made = Enclosure.exactly(Fraction(least)) if least == most else Enclosure(least, least, most)
            case _:
                self.is_uncertain |= not bool((states.surely == states.possibly).all())
        return made if isinstance(made, Range) else self._repeated(made)

    def _repeated(self, number: Enclosure) -> EnclosureVector:
        """The same number in every state and at the start."""
        if number.exact or number.undefined:
            return EnclosureVector.constant(self.n + 1, number.value, exact=self.session.exact)
        return EnclosureVector.from_bounds(
            *(np.full(self.n + 1, float(part)) for part in (number.value, number.lower, number.upper))
        )

    def _listing(self, node: ast.Filter, operand: Value, states: Truths, made: object) -> Listing:
        """The values that a filter lists; ``print`` leaves out zero and false, as PRISM does."""
        shown = made.possibly if isinstance(made, Truths) and node.kind not in LISTING_ONLY else states.possibly
        if node.kind == "print" and isinstance(operand, Truths):
            shown = shown & operand.possibly[:-1]
        elif node.kind == "print" and isinstance(operand, EnclosureVector):
            zero = EnclosureVector.constant(self.n + 1, 0, exact=self.session.exact)
            shown = shown & operand.compare("!=", zero)[1][:-1]
        places = np.flatnonzero(shown)
        entries: list[tuple[str, Enclosure | bool | None]] = []
        for i in places[:MAX_LISTED].tolist():
            if isinstance(operand, EnclosureVector):
                entries.append((self.chain.states[i], operand[i]))
            elif isinstance(operand, Truths):
                decided = bool(operand.surely[i]) if operand.surely[i] == operand.possibly[i] else None
                entries.append((self.chain.states[i], decided))
        return Listing(text=format_formula(node), entries=tuple(entries), total=len(places))

    # ------------------------------------------------------------ operators

    def _operator(self, node: ast.Operator, *, nested: bool) -> Truths | EnclosureVector:
        signs = signs_of(node)
        open_signs = {sign for operand, sign in signs.values() if not self.truths(operand).certain}
        self.is_uncertain |= bool(open_signs)
        whole = self._evaluate(node, signs, open_signs)
        states = whole.take(np.arange(self.n))
        self.operators.append(
            OperatorValue(
                text=format_formula(node),
                nested=nested,
                states=states,
                start=whole[self.n],
                by_start=self.checker.by_start(states),
                uncertain=bool(open_signs),
            )
        )
        if isinstance(node, ast.Quantified) or _decides(node):
            one = EnclosureVector.constant(self.n, 1, exact=self.session.exact)
            return self._everywhere(*states.compare("=", one))
        if not isinstance(node, ast.Quantitative) or node.threshold is None:
            return whole
        return Truths(*whole.compare(node.threshold.comparison, self.numbers(node.threshold.value)))

    def _evaluate(self, node: ast.Operator, signs: Signs, open_signs: set[int]) -> EnclosureVector:
        """The operator in every state and at the start; some operands with ``open_signs`` are undecided."""
        lower = self._ask(node, signs, "surely")
        if not open_signs:
            return lower
        if 0 not in open_signs:
            return lower.hull(self._ask(node, signs, "possibly"))
        largest = 1.0 if isinstance(node, ast.Probability | ast.SteadyState | ast.Quantified) else np.inf
        value = lower.to_float().value
        return EnclosureVector.from_bounds(value, np.zeros(self.n + 1), np.full(self.n + 1, largest))

    def _ask(self, node: ast.Operator, signs: Signs, degree: str) -> EnclosureVector:
        """The engine's answer if what is uncertain holds to a degree, and what stands negated to the other degree."""
        other = "possibly" if degree == "surely" else "surely"

        def holds(operand: ast.Formula) -> Mask:
            sign = signs[id(operand)][1]
            mask: Mask = getattr(self.truths(operand), other if sign < 0 else degree)
            return mask[:-1]

        if isinstance(node, ast.Quantile):
            vector, start = self.session.evaluate_quantile(node, holds, self.checker.weights)
        else:
            vector = self.session.evaluate(node, holds)
            condition = node.condition if isinstance(node, ast.Probability | ast.Reward) else None
            if condition is None or not self.checker.starts_vary:
                start = self.checker.at_start(vector)
            elif isinstance(self.session, OptimisingSession) and isinstance(node, ast.Probability):
                start = self.session.evaluate_start_under_condition(node, holds)
            else:
                start = self.checker.under_condition(
                    vector, self.session.evaluate(ast.Probability(condition, span=node.span), holds)
                )
        return _appended(vector, start)


def _decides(node: ast.Operator) -> bool:
    """Whether several objectives all have thresholds, so that together they hold or not."""
    return isinstance(node, ast.Multi) and all(
        isinstance(each, ast.Quantitative) and each.threshold is not None for each in node.objectives
    )


def _bits(number: Fraction | float) -> int:
    """The size of a rational; fractions count more than whole numbers, whose arithmetic needs no common divisors."""
    if not isinstance(number, Fraction):
        return 0
    return max(number.numerator.bit_length(), 32 * (number.denominator.bit_length() - 1))


def _appended(vector: EnclosureVector, last: Enclosure) -> EnclosureVector:
    """The vector with one more entry."""
    if vector.exact:
        return EnclosureVector.from_fractions([*vector.value.tolist(), last.value])
    tail = EnclosureVector.from_enclosures([last]).to_float()
    return EnclosureVector(
        np.append(vector.value, tail.value), np.append(vector.lower, tail.lower), np.append(vector.upper, tail.upper)
    )
