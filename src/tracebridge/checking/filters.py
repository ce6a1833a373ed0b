"""Filters: one value made of the values in several states.

They mean what they mean in PRISM, over all states of the chain, reachable or not. Where a bound on rounding leaves open
which states are meant, or what holds in them, the result is bounded from both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.checking.truths import Truths
from tracebridge.closedform import directed
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.errors import EngineError, Location, Problem, PropertyError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

#: Filters whose value is that of their operand; they list values in states.
LISTING_ONLY = frozenset({"print", "printall", "values"})

#: Filters over numbers alone, and over truth values alone; the rest takes both.
_OF_NUMBERS = frozenset({"min", "max", "sum", "avg", "range", "argmin", "argmax"})
_OF_TRUTHS = frozenset({"count", "forall", "exists"})


@dataclass(frozen=True, slots=True)
class Range:
    """The value of ``filter(range, ...)``: the least and the greatest value."""

    least: Enclosure
    greatest: Enclosure


def of_numbers(node: ast.Filter, values: EnclosureVector, states: Truths) -> Enclosure | Range | Truths:
    """What a filter makes of n numbers; of ``argmin`` and ``argmax`` the states where they are attained.

    Args:
        values: shape (n,). states: which states are meant, shape (n,).

    Raises:
        PropertyError: no state is meant, ``state`` means several, or the filter is one over truth values. EngineError:
            likewise, where it hangs on values which states are meant.
    """
    if node.kind in _OF_TRUTHS:
        raise _refusal(node, f"filter({node.kind}, ...) needs a truth value and not a number")
    _refuse_wrong_number(node, states)
    chosen, sure = values.take(states.possibly), states.surely[states.possibly]
    match node.kind:
        case "min":
            return _least(chosen, sure)
        case "max":
            return _greatest(chosen, sure)
        case "range":
            return Range(_least(chosen, sure), _greatest(chosen, sure))
        case "argmax":
            return _where_greatest(values, states)
        case "argmin":
            return _where_greatest(-values, states)
        case "sum":
            return _sum(chosen, sure)
        case "avg":
            return _average(chosen, sure)
        case _:  # the value in one state: the first that is meant
            last = int(np.argmax(sure)) if sure.any() else len(sure) - 1  # it is none behind the first that surely is
            return chosen[0] if last == 0 else _hull(chosen.take(np.arange(last + 1)))


def of_truths(node: ast.Filter, values: Truths, states: Truths) -> Truths | tuple[int, int]:
    """What a filter makes of n truth values: one (masks of shape (1,)), or of ``count`` the least and greatest number.

    Args:
        values, states: shape (n,) each.

    Raises:
        PropertyError, EngineError: see `of_numbers`.
    """
    if node.kind in _OF_NUMBERS:
        raise _refusal(node, f"filter({node.kind}, ...) needs a number and not a truth value")
    _refuse_wrong_number(node, states)
    match node.kind:
        case "count":
            both = values & states
            return int(both.surely.sum()), int(both.possibly.sum())
        case "forall":
            fails = states & ~values
            return _single(surely=not fails.possibly.any(), possibly=not fails.surely.any())
        case "exists":
            both = values & states
            return _single(surely=bool(both.surely.any()), possibly=bool(both.possibly.any()))
        case _:
            sure = states.surely[states.possibly]
            last = int(np.argmax(sure)) if sure.any() else len(sure) - 1
            meant = np.flatnonzero(states.possibly)[: last + 1]
            return _single(surely=bool(values.surely[meant].all()), possibly=bool(values.possibly[meant].any()))


def _single(*, surely: bool, possibly: bool) -> Truths:
    return Truths(np.array([surely]), np.array([possibly]))


def _refuse_wrong_number(node: ast.Filter, states: Truths) -> None:
    meant = int(states.surely.sum())
    if not states.possibly.any():
        message = "this filter is over no state"
    elif node.kind == "state" and meant > 1:
        message = f"filter(state, ...) is about a single state, and {meant} are meant"
    else:
        return
    if node.states is not None and any(isinstance(part, ast.Operator) for part in ast.walk(node.states)):
        raise EngineError(f"{message}: {format_formula(node)}")  # which states are meant is a result itself
    raise _refusal(node, message)


def _refusal(node: ast.Filter, message: str) -> PropertyError:
    location = Location() if node.span is None else Location(line=node.span.line, column=node.span.column)
    return PropertyError(Problem(location=location, message=f"{message}: {format_formula(node)}"))


# ---------------------------------------------------------------- numbers


def _greatest(chosen: EnclosureVector, sure: Mask) -> Enclosure:
    """The greatest of the numbers that are surely meant, or of all, where some may be."""
    if chosen.undefined.any():
        return Enclosure.exactly(math.nan)
    if chosen.exact and sure.all():
        return Enclosure.exactly(max(chosen.value.tolist()))
    floats = chosen.to_float()
    counted = sure if sure.any() else np.ones_like(sure)
    lower = floats.lower[sure].max() if sure.any() else floats.lower.min()
    return Enclosure(float(floats.value[counted].max()), float(lower), float(floats.upper.max()))


def _least(chosen: EnclosureVector, sure: Mask) -> Enclosure:
    greatest = _greatest(-chosen, sure)
    return greatest if greatest.undefined else Enclosure(-greatest.value, -greatest.upper, -greatest.lower)


def _where_greatest(values: EnclosureVector, states: Truths) -> Truths:
    """Where the number is surely and where it is possibly the greatest of those that are meant."""
    if values.undefined[states.possibly].any():
        return Truths(np.zeros_like(states.surely), states.possibly)
    if values.exact and bool((states.surely == states.possibly).all()):
        greatest = max(values.value[states.surely].tolist())
        attained = states.surely & np.array([value == greatest for value in values.value.tolist()])
        return Truths(attained, attained)
    floats = values.to_float()
    least_top = floats.lower[states.surely].max() if states.surely.any() else -np.inf
    possibly = states.possibly & (floats.upper >= least_top)
    tops = np.where(possibly, floats.upper, -np.inf)
    first = int(np.argmax(tops))
    others = tops.copy()
    others[first] = -np.inf
    rival = np.where(np.arange(len(tops)) == first, others.max(), tops[first])  # the greatest top of another state
    return Truths(states.surely & possibly & (floats.lower >= rival), possibly)


def _sum(chosen: EnclosureVector, sure: Mask) -> Enclosure:
    if chosen.undefined.any():
        return Enclosure.exactly(math.nan)
    if chosen.exact and sure.all():
        return Enclosure.exactly(_exact_sum(chosen.value.tolist()))
    floats = chosen.to_float()
    value = _sum_bounds(np.where(sure, floats.value, 0))[0]
    lower = _sum_bounds(np.where(sure, floats.lower, np.minimum(floats.lower, 0)))[1]
    upper = _sum_bounds(np.where(sure, floats.upper, np.maximum(floats.upper, 0)))[2]
    if any(math.isnan(bound) for bound in (value, lower, upper)):
        return Enclosure.exactly(math.nan)
    return Enclosure(min(max(value, lower), upper), lower, upper)


def _average(chosen: EnclosureVector, sure: Mask) -> Enclosure:
    if not sure.all():  # it lies between the extremes, whoever is meant
        return _hull(chosen)
    total = _sum(chosen, sure)
    if total.exact or total.undefined:
        return Enclosure.exactly(total.value / len(chosen))
    value, lower, upper = (float(x) / len(chosen) for x in (total.value, total.lower, total.upper))
    return Enclosure(value, math.nextafter(lower, -math.inf), math.nextafter(upper, math.inf))


def _hull(chosen: EnclosureVector) -> Enclosure:
    """Around all of the numbers; undefined if one is."""
    if chosen.undefined.any():
        return Enclosure.exactly(math.nan)
    floats = chosen.to_float()
    return Enclosure(float(floats.value[0]), float(floats.lower.min()), float(floats.upper.max()))


def _exact_sum(values: list[Any]) -> Fraction | float:
    infinite = {value for value in values if isinstance(value, float)}
    if infinite:
        return infinite.pop() if len(infinite) == 1 else math.nan
    return sum(values, Fraction(0))


def _sum_bounds(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """The nearest double to a sum, the largest below and the smallest above; NaN for infinities of both signs."""
    infinite = set(values[np.isinf(values)].tolist())
    if infinite:
        total = infinite.pop() if len(infinite) == 1 else math.nan
        return total, total, total
    terms = values.tolist()
    try:
        total = math.fsum(terms)  # rounded once
    except OverflowError:
        return directed.enclosing(sum(map(Fraction, terms), Fraction(0)))
    error = math.fsum([*terms, -total])
    lower = math.nextafter(total, -math.inf) if error < 0 else total
    return total, lower, math.nextafter(total, math.inf) if error > 0 else total
