"""The exact value of constant formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from tracebridge.errors import Location, Problem, PropertyError
from tracebridge.pctl.ast import Binary, Call, Conditional, Formula, Identifier, Number, Span, StepBound, Truth, Unary
from tracebridge.pctl.source import locate
from tracebridge.pctl.trampoline import Recursion, run

MAX_BITS = 14_000
"""The longest numerator or denominator of a constant; it still prints (4,300 digits)."""

Value = Fraction | bool


def evaluate_constant(formula: Formula, values: Mapping[str, Value] | None = None, *, path: str | None = None) -> Value:
    """The exact value of a constant formula.

    Raises:
        PropertyError: the formula has no constant exact value: it uses a label, an operator or an unknown name, divides
            by zero, takes an irrational power or logarithm, or is larger than ``MAX_BITS``.
    """
    return run(_Evaluator(values or {}, path).value(formula))


def step_window(bound: StepBound | None, *, path: str | None = None) -> tuple[int, int | None]:
    """The first and the last step that a step bound admits, both inclusive; a last step of None means no limit.

    Raises:
        PropertyError: an end is no whole number or the last step lies before the first or before step 0.
    """
    if bound is None:
        return 0, None
    first = 0 if bound.lower is None else _step(bound.lower, path) + bound.lower_strict
    last = None if bound.upper is None else _step(bound.upper, path) - bound.upper_strict
    if last is not None and last < max(first, 0):
        assert bound.upper is not None  # noqa: S101 - there is a last step
        raise refusal(
            bound.upper.span, path, f"no step satisfies this bound: the last is {last}, the first {max(first, 0)}"
        )
    return max(first, 0), last


def _step(formula: Formula, path: str | None) -> int:
    value = evaluate_constant(formula, path=path)
    if isinstance(value, bool) or value.denominator != 1:
        raise refusal(formula.span, path, f"a step bound must be a whole number, not {value}")
    return value.numerator


class _Evaluator:
    def __init__(self, values: Mapping[str, Value], path: str | None) -> None:
        self._values = values
        self._path = path

    def value(self, formula: Formula) -> Recursion[Value]:
        result: Value
        match formula:
            case Truth() | Number():
                return formula.value
            case Identifier():
                if formula.name not in self._values:
                    hint = f"give it a value: --const {formula.name}=..."
                    raise refusal(formula.span, self._path, f"{formula.name} has no value here", hint)
                return self._values[formula.name]
            case Unary(operator="!"):
                result = not (yield self._truth(formula.operand))
                return result
            case Unary():
                result = -(yield self._number(formula.operand))
                return result
            case Binary(operator="&" | "|" | "=>"):  # the right side is not looked at where the left one decides
                first = yield self._truth(formula.left)
                if first == (formula.operator == "|"):
                    return formula.operator != "&"
                result = yield self._truth(formula.right)
                return result
            case Binary(operator="<=>"):
                result = (yield self._truth(formula.left)) == (yield self._truth(formula.right))
                return result
            case Binary(operator="=" | "!="):
                left, right = (yield self.value(formula.left)), (yield self.value(formula.right))
                if isinstance(left, bool) != isinstance(right, bool):
                    raise refusal(formula.span, self._path, "a truth value cannot equal a number")
                result = (left == right) == (formula.operator == "=")
                return result
            case Binary():
                left, right = (yield self._number(formula.left)), (yield self._number(formula.right))
                return self._combined(left, right, formula)
            case Conditional():
                chosen = formula.then if (yield self._truth(formula.test)) else formula.otherwise
                result = yield self.value(chosen)
                return result
            case Call():
                arguments = []
                for argument in formula.arguments:
                    arguments.append((yield self._number(argument)))
                return self._call(formula, arguments)
            case _:
                raise refusal(
                    formula.span, self._path, "this must be a constant; labels and operators have no fixed value"
                )

    def _truth(self, formula: Formula) -> Recursion[bool]:
        value = yield self.value(formula)
        if not isinstance(value, bool):
            raise refusal(formula.span, self._path, f"a truth value is needed, and this is the number {value}")
        return value

    def _number(self, formula: Formula) -> Recursion[Fraction]:
        value = yield self.value(formula)
        if isinstance(value, bool):
            raise refusal(formula.span, self._path, f"a number is needed, and this is {str(value).lower()}")
        assert isinstance(value, Fraction)  # noqa: S101 - there is no third kind of value
        return value

    def _combined(self, left: Fraction, right: Fraction, formula: Binary) -> Value:
        match formula.operator:
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">":
                return left > right
            case ">=":
                return left >= right
            case "+":
                return self._bounded(left + right, formula)
            case "-":
                return self._bounded(left - right, formula)
            case "*":
                return self._bounded(left * right, formula)
            case _:
                if right == 0:
                    raise refusal(formula.span, self._path, "division by zero")
                return self._bounded(left / right, formula)

    def _call(self, formula: Call, arguments: list[Fraction]) -> Fraction:
        match formula.function:
            case "min":
                return min(arguments)
            case "max":
                return max(arguments)
            case "floor":
                return Fraction(math.floor(arguments[0]))
            case "ceil":
                return Fraction(math.ceil(arguments[0]))
            case "round":  # half rounds up, as in PRISM and Storm
                return Fraction(math.floor(arguments[0] + Fraction(1, 2)))
            case "mod":
                return self._mod(arguments[0], arguments[1], formula)
            case "pow":
                return self._power(arguments[0], arguments[1], formula)
            case "log":
                return self._logarithm(arguments[0], arguments[1], formula)

    def _mod(self, value: Fraction, modulus: Fraction, formula: Call) -> Fraction:
        if value.denominator != 1 or modulus.denominator != 1 or modulus <= 0:
            raise refusal(
                formula.span, self._path, f"mod needs a whole number and a positive one, not {value} and {modulus}"
            )
        return value % modulus

    def _power(self, base: Fraction, exponent: Fraction, formula: Call) -> Fraction:
        """Exact for whole exponents, and for a fraction p/q when the q-th root is rational."""
        if base == 0 and exponent < 0:
            raise refusal(formula.span, self._path, "0 has no negative power")
        root = _rational_root(base, exponent.denominator)
        if root is None:
            raise refusal(formula.span, self._path, f"pow({base}, {exponent}) is not rational; write it as a decimal")
        bits = max(root.numerator.bit_length(), root.denominator.bit_length())
        if abs(root) not in (0, 1) and (bits - 1) * abs(exponent.numerator) > MAX_BITS:
            raise refusal(formula.span, self._path, f"the power {exponent} is too large to be evaluated exactly")
        return self._bounded(root ** (exponent.numerator if abs(root) != 1 else exponent.numerator % 2), formula)

    def _logarithm(self, value: Fraction, base: Fraction, formula: Call) -> Fraction:
        """Exact when the logarithm is a whole number."""
        if value <= 0 or base <= 0 or base == 1:
            raise refusal(formula.span, self._path, f"log({value}, {base}) is not defined")
        scale = _log(base)
        whole = round(_log(value) / scale) if scale else 0
        if abs(whole) > MAX_BITS or base**whole != value:
            raise refusal(formula.span, self._path, f"log({value}, {base}) is no whole number; write it as a decimal")
        return Fraction(whole)

    def _bounded(self, value: Fraction, formula: Formula) -> Fraction:
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
            raise refusal(formula.span, self._path, f"this value has more than {MAX_BITS:,} bits")
        return value


def _rational_root(value: Fraction, degree: int) -> Fraction | None:
    """The rational root of a number, or None."""
    if degree == 1 or value in (0, 1):
        return value
    if value < 0 or degree > MAX_BITS:
        return None
    numerator, denominator = _integer_root(value.numerator, degree), _integer_root(value.denominator, degree)
    root = Fraction(numerator, denominator)
    return root if root**degree == value else None


def _integer_root(value: int, degree: int) -> int:
    """The floor of the root of a positive integer, by Newton's method from above."""
    guess = 1 << -(-value.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def refusal(span: Span | None, path: str | None, message: str, hint: str | None = None) -> PropertyError:
    """The error about a place of a file whose text is no longer at hand."""
    location = locate(span, path) if span or path else Location()
    return PropertyError(Problem(location=location, message=message, hint=hint))
