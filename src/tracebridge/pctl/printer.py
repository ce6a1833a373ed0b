"""Text from trees: the canonical form, and the forms that PRISM and Storm read.

The canonical form parses to the same tree. It writes the parentheses that the grammar needs, and those around the
operand of a temporal operator that help a reader.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from tracebridge.pctl.ast import (
    Binary,
    Call,
    Conditional,
    CumulativeReward,
    Eventually,
    Formula,
    Globally,
    Identifier,
    InstantaneousReward,
    Label,
    LongRunReward,
    Next,
    Number,
    Operator,
    PathFormula,
    Probability,
    ReachReward,
    Release,
    Reward,
    RewardPath,
    SteadyState,
    StepBound,
    Threshold,
    Truth,
    Unary,
    Until,
    WeakUntil,
)

Target = Literal["prism", "storm"]
Names = Callable[[str], str]

_LEVELS = {
    "=>": 1,
    "<=>": 2,
    "|": 3,
    "&": 4,
    "=": 6,
    "!=": 6,
    "<": 7,
    "<=": 7,
    ">": 7,
    ">=": 7,
    "+": 8,
    "-": 8,
    "*": 9,
    "/": 9,
}
_CONDITIONAL, _NOT, _SUM, _PRODUCT, _SIGNED, _ATOM = 0, 5, 8, 9, 10, 11
_LONGEST_DECIMAL = 4_000
_ZERO = Number(Fraction(0), integer=True)
_ONE = Number(Fraction(1), integer=True)


def format_formula(formula: Formula, *, target: Target | None = None, names: Names | None = None) -> str:
    """The text of a formula.

    Args:
        formula: any formula; labels must be expanded already where the target cannot define them.
        target: None for the canonical form, or the tool whose syntax to use. What that tool's syntax cannot say is
            written as in the canonical form; :func:`tracebridge.pctl.portability` tells beforehand.
        names: from the user's label to the name in the tool's model.
    """
    return _Printer(target, names or (lambda name: name)).formula(formula, _CONDITIONAL)


def negation(formula: Formula) -> Formula:
    """Not the formula; a double negation is left out."""
    if isinstance(formula, Unary) and formula.operator == "!":
        return formula.operand
    return Unary("!", formula, span=formula.span)


def quote(name: str) -> str:
    """A name in double quotes; what is no printable character is escaped."""
    escaped = "".join(
        f"\\{char}" if char in '"\\' else char if char.isprintable() else _escape(ord(char)) for char in name
    )
    return f'"{escaped}"'


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


class _Printer:
    def __init__(self, target: Target | None, names: Names) -> None:
        self._target = target
        self._names = names

    def formula(self, formula: Formula, minimum: int) -> str:
        """The text of a formula where the grammar wants one that binds at least as strongly as ``minimum``."""
        match formula:
            case Truth():
                text, level = ("true" if formula.value else "false"), _ATOM
            case Number():
                text, level = _number(formula)
            case Label():
                text, level = quote(self._names(formula.name)), _ATOM
            case Identifier():
                text, level = formula.name, _ATOM
            case Unary(operator="!"):
                text, level = f"!{self.formula(formula.operand, _NOT)}", _NOT
            case Unary():
                text, level = f"-{self.formula(formula.operand, _SIGNED)}", _SIGNED
            case Binary():
                text, level = self._binary(formula)
            case Conditional():
                text, level = self._conditional(formula)
            case Call():
                arguments = [self.formula(argument, _CONDITIONAL) for argument in formula.arguments]
                text, level = f"{formula.function}({', '.join(arguments)})", _ATOM
            case _:
                text, level = self._operator(formula), _ATOM
        return text if level >= minimum else f"({text})"

    def _binary(self, formula: Binary) -> tuple[str, int]:
        level = _LEVELS[formula.operator]
        left = self.formula(formula.left, level)
        right = self.formula(formula.right, level + 1)
        return f"{left} {formula.operator} {right}", level

    def _conditional(self, formula: Conditional) -> tuple[str, int]:
        test, then = self.formula(formula.test, 1), self.formula(formula.then, 1)
        return f"{test} ? {then} : {self.formula(formula.otherwise, _CONDITIONAL)}", _CONDITIONAL

    def _operator(self, operator: Operator) -> str:
        match operator:
            case Probability():
                return (
                    f"P{operator.optimum or ''}{self._requirement(operator.threshold)} [ {self._path(operator.path)} ]"
                )
            case Reward():
                structure = f"{{{quote(self._names(operator.structure))}}}" if operator.structure is not None else ""
                head = f"R{structure}{operator.optimum or ''}{self._requirement(operator.threshold)}"
                return f"{head} [ {self._reward_path(operator.path)} ]"
            case SteadyState():
                return f"S{self._requirement(operator.threshold)} [ {self.formula(operator.operand, _CONDITIONAL)} ]"

    def _requirement(self, threshold: Threshold | None) -> str:
        if threshold is None:
            return "=?"
        return f"{threshold.comparison}{self.formula(threshold.value, _SUM)}"

    def _path(self, path: PathFormula) -> str:
        if self._target == "storm":
            dual = _storm_dual(path)
            if dual is not None:
                return f"!({self._path(dual)})"
        match path:
            case Next():
                return f"X {self._operand(path.operand)}"
            case Eventually() | Globally():
                letter = "F" if isinstance(path, Eventually) else "G"
                return f"{letter}{self._bound(path.bound)} {self._operand(path.operand)}"
            case Until() | WeakUntil() | Release():
                letter = {Until: "U", WeakUntil: "W", Release: "R"}[type(path)]
                left, right = self._operand(path.left), self._operand(path.right)
                return f"{left} {letter}{self._bound(path.bound)} {right}"

    def _operand(self, formula: Formula) -> str:
        """An operand in parentheses, unless it is one word, an operator, or the negation of one."""
        negations = 0
        inner = formula
        while isinstance(inner, Unary) and inner.operator == "!":
            inner, negations = inner.operand, negations + 1
        return "!" * negations + self.formula(inner, _ATOM)

    def _bound(self, bound: StepBound | None) -> str:
        if bound is None:
            return ""
        lower, upper = bound.lower, bound.upper
        if bound.exact and upper is not None:
            return f"={self._step(upper)}"
        if upper is None:
            return f"{'>' if bound.lower_strict else '>='}{self._step(lower or _ZERO)}"
        if lower is None:
            return f"{'<' if bound.upper_strict else '<='}{self._step(upper)}"
        first = Binary("+", lower, _ONE) if bound.lower_strict else lower
        last = Binary("-", upper, _ONE) if bound.upper_strict else upper
        return f"[{self.formula(first, _SUM)},{self.formula(last, _SUM)}]"

    def _step(self, formula: Formula) -> str:
        """The end of a step bound: PRISM reads ``F<=k (a)`` as meant, but ``F<=2*k (a)`` as a call of k."""
        text = self.formula(formula, _ATOM)
        return f"({text})" if isinstance(formula, Call) else text

    def _reward_path(self, path: RewardPath) -> str:
        match path:
            case ReachReward():
                return f"F {self._operand(path.operand)}"
            case CumulativeReward():
                if path.bound is None:
                    return "C"
                if path.strict and self._target == "prism":  # PRISM has no C<k
                    return f"C<={self.formula(Binary('-', path.bound, _ONE), _SUM)}"
                return f"C{'<' if path.strict else '<='}{self.formula(path.bound, _SUM)}"
            case InstantaneousReward():
                return f"I={self.formula(path.time, _SUM)}"
            case LongRunReward():
                return "S"


def _storm_dual(path: PathFormula) -> PathFormula | None:
    """The path formula whose negation says in Storm's syntax what this one says; None where Storm has the operator.

    ``G<=k a`` is ``!(F<=k !a)``, ``a R b`` is ``!(!a U !b)`` and ``a W b`` is ``!((a & !b) U (!a & !b))``, with any
    bound.
    """
    match path:
        case Globally() if path.bound is not None:
            return Eventually(negation(path.operand), path.bound)
        case WeakUntil():
            neither = Binary("&", negation(path.left), negation(path.right))
            return Until(Binary("&", path.left, negation(path.right)), neither, path.bound)
        case Release():
            return Until(negation(path.left), negation(path.right), path.bound)
        case _:
            return None


def _number(number: Number) -> tuple[str, int]:
    """A number and how strongly its text binds; a value that is no decimal is written as a fraction."""
    value = number.value
    if value < 0:
        text, level = _number(Number(-value, number.integer))
        return f"-{text}", min(level, _SIGNED)
    if number.integer:
        return str(value), _ATOM if value.denominator == 1 else _PRODUCT
    digits, shift = _decimal(value)
    if digits is None:
        return f"{value.numerator}/{value.denominator}", _PRODUCT
    if shift > 20 or len(digits) > shift + 20:
        return f"{digits.rstrip('0')}e{len(digits) - len(digits.rstrip('0')) - shift}", _ATOM
    digits = digits.zfill(shift + 1)
    return f"{digits[: len(digits) - shift]}.{digits[len(digits) - shift :] or '0'}", _ATOM


def _decimal(value: Fraction) -> tuple[str | None, int]:
    """The digits of a decimal number and how many of them stand after the point; no digits if it is none."""
    rest = value.denominator
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    shift = max(twos, fives)
    if rest != 1 or shift > _LONGEST_DECIMAL:
        return None, 0
    digits = str(value.numerator * 10**shift // value.denominator)
    return (digits, shift) if len(digits) <= _LONGEST_DECIMAL else (None, 0)
