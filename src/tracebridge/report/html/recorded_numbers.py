"""Numbers of the results document as a reader sees them: the same digits as in the summary."""

from __future__ import annotations

from math import inf, isnan
from typing import TYPE_CHECKING, Any

from tracebridge.checking.result import number_from_json
from tracebridge.closedform.enclosure import Enclosure
from tracebridge.inference.intervals import Interval
from tracebridge.report.table import NOTHING, format_number, interval_text

if TYPE_CHECKING:
    from collections.abc import Mapping


def sortable(value: float | str | None) -> float | None:
    """A number to sort by; None where there is none, or it is undefined."""
    if value is None:
        return None
    number = number_from_json(value)
    try:
        return None if isnan(number) else float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def number_text(value: float | str | None, digits: int = 4) -> str:
    """A number with so many significant digits, a short rational as it is."""
    return NOTHING if value is None else format_number(number_from_json(value), digits)


def enclosure_of(document: Mapping[str, Any]) -> Enclosure:
    """A number with numerical bounds."""
    return Enclosure(*(number_from_json(document[name]) for name in ("value", "lower", "upper")))


def bounds_text(document: Mapping[str, Any]) -> str:
    """The numerical bounds of a number, with every digit; of an undefined one there are none."""
    if isnan(number_from_json(document["value"])):
        return NOTHING
    lower, upper = (number_from_json(document[name]) for name in ("lower", "upper"))
    return "exact" if lower == upper else f"[{format_number(lower, 17)}, {format_number(upper, 17)}]"


def interval_of(document: Mapping[str, Any] | None, digits: int = 4) -> str:
    """A statistical interval."""
    if document is None:
        return NOTHING
    return interval_text(
        Interval(
            lower=float(document["lower"]),
            upper=float(document["upper"]),
            level=float(document["level"]),
            method=document["method"],
        ),
        digits=digits,
    )


def percent(share: float | None, digits: int = 3) -> str:
    """A share as a percentage."""
    return NOTHING if share is None else f"{100 * share:.{digits}g} %"
