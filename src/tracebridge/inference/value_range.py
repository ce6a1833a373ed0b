"""Between which numbers the value of a property lies, whatever the chain."""

from __future__ import annotations

import math

from tracebridge.pctl import ast

_ANY = (-math.inf, math.inf)


def value_range(formula: ast.Formula) -> tuple[float, float]:
    """The least and the largest value that a formula may have; infinite where that is not known.

    Known of operators, numbers, their sums, differences and products, the least and the greatest of them, quotients by
    what has one sign, and powers of what is not negative.
    """
    try:
        return _range(formula)
    except OverflowError:  # numbers beyond doubles
        return _ANY


def _range(formula: ast.Formula) -> tuple[float, float]:
    match formula:
        case ast.Probability() | ast.SteadyState():
            return 0.0, 1.0
        case ast.Reward():
            return 0.0, math.inf
        case ast.Number(value=value):
            return float(value), float(value)
        case ast.Unary(operator="-", operand=operand):
            low, high = _range(operand)
            return -high, -low
        case ast.Binary(operator="+" | "-" | "*" as operator, left=left, right=right):
            return _combined(operator, _range(left), _range(right))
        case ast.Binary(operator="/", left=left, right=right):
            return _quotient(_range(left), _range(right))
        case ast.Call(function="min" | "max" as function, arguments=arguments):
            choose = min if function == "min" else max
            lows, highs = zip(*map(_range, arguments), strict=True)
            return choose(lows), choose(highs)
        case ast.Call(function="pow", arguments=(base, ast.Number(value=power))) if power >= 0:
            low, high = _range(base)
            return (low ** float(power), high ** float(power)) if low >= 0 else _ANY
    return _ANY


def _combined(operator: str, left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    (a, b), (c, d) = left, right
    if operator == "+":
        return a + c, b + d
    if operator == "-":
        return a - d, b - c
    products = [_product(x, y) for x in (a, b) for y in (c, d)]
    return min(products), max(products)


def _quotient(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    """Of what is divided by numbers of one sign; a quotient by zero is infinite, or undefined."""
    (a, b), (c, d) = left, right
    if d <= 0 and c < 0:
        a, b, c, d = -b, -a, -d, -c
    if c < 0 or d == 0:
        return _ANY
    small, large = 0.0 if math.isinf(d) else 1 / d, 1 / c if c else math.inf
    return _product(a, small if a >= 0 else large), _product(b, large if b >= 0 else small)


def _product(x: float, y: float) -> float:
    return 0.0 if 0 in (x, y) else x * y
