"""The verdict table: one row a property, the same on the terminal and in the summary."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from math import isinf, isnan
from typing import TYPE_CHECKING

from tracebridge.checking.result import Verdict, is_precise
from tracebridge.pctl import ast, format_formula

if TYPE_CHECKING:
    from tracebridge.agreement import Agreement, Ends
    from tracebridge.checking.result import CheckResult
    from tracebridge.closedform.enclosure import Enclosure

#: What stands for "there is no such number".
NOTHING = "-"

#: A list of values is shown so far.
SHOWN_VALUES = 20

#: Ends of intervals that are smaller are not told apart: draws of probabilities are cut off far below.
SMALLEST_END = 1e-12

_LONGEST_FRACTION = 15

#: A quotient of integers whose lengths differ by more bits may be no normal double.
_DOUBLE_BITS = 1_020

#: So many bits of a large integer are more than any table shows digits of.
_SHOWN_BITS = 200


def verdict_columns(agreements: Sequence[Agreement], *, engines: bool = True) -> list[str]:
    """The column heads: property, verdict, value, interval and P(sat.) if the data were asked, each engine, gap."""
    names = [result.engine for result in agreements[0].results] if agreements and engines else []
    data = [f"{_common_level(agreements)} interval", "P(sat.)"] if _has_data(agreements) else []
    return ["property", "verdict", "value", *data, *names, "gap"]


def verdict_rows(
    agreements: Sequence[Agreement], *, engines: bool = True, marks: Sequence[Sequence[str]] = ()
) -> list[list[str]]:
    """One row a property, aligned with `verdict_columns`.

    Args:
        engines: with a column for each engine. marks: words beside the verdict of each property.
    """
    has_data = _has_data(agreements)
    return [
        [
            property_name(agreement, position),
            verdict_text(agreement, marks[position - 1] if marks else ()),
            _headline(agreement),
            *(_data(agreement, _common_level(agreements)) if has_data else ()),
            *(value_text(result, digits=10) for result in (agreement.results if engines else ())),
            gap_text(agreement),
        ]
        for position, agreement in enumerate(agreements, start=1)
    ]


def _has_data(agreements: Sequence[Agreement]) -> bool:
    return any(agreement.uncertainty is not None for agreement in agreements)


def _common_level(agreements: Sequence[Agreement]) -> str:
    return common_level([found.level for found in (agreement.uncertainty for agreement in agreements) if found])


def common_level(levels: Sequence[float]) -> str:
    """The level of most intervals, which goes without saying in the cells; empty without any."""
    texts = [level_text(level) for level in levels]
    return max(dict.fromkeys(texts), key=texts.count) if texts else ""


def level_text(level: float) -> str:
    """``95 %``."""
    return f"{100 * level:.6g} %"


def _data(agreement: Agreement, common: str) -> tuple[str, str]:
    """The interval of the value, and the share of the posterior in which the property holds."""
    found = agreement.uncertainty
    if found is None:
        return NOTHING, NOTHING
    ends = found.interval
    interval = interval_text(ends)
    if ends is not None and level_text(found.level) != common:
        interval += f" {level_text(found.level)}"
    return interval, NOTHING if found.satisfied is None else f"{found.satisfied:.4g}"


def interval_text(ends: Ends | None, *, digits: int = 4) -> str:
    """``[0.36, 0.5]``. An end nearer to zero than any count can tell is below that: ``[<1e-12, 0.5]``."""
    if ends is None:
        return NOTHING
    lower, upper = (
        f"<{SMALLEST_END:g}" if 0 < end < SMALLEST_END else format_number(end, digits)
        for end in (ends.lower, ends.upper)
    )
    return f"[{lower}, {upper}]"


def property_name(agreement: Agreement, position: int) -> str:
    """The property's name, or its number in the file."""
    return agreement.property.name or f"#{position}"


def verdict_text(agreement: Agreement, marks: Sequence[str] = ()) -> str:
    """The joint verdict in one word or two, and in brackets what it must not be read without."""
    word = "answered" if agreement.verdict is None else str(agreement.verdict)
    if agreement.agree is False:
        word = "DISAGREE"
    return f"{word} ({', '.join(marks)})" if marks else word


def listing_lines(agreement: Agreement, name: str) -> list[str]:
    """The values that the filters of a property list, as the first engine that answered has them."""
    result = next((result for result in agreement.results if result.answered), None)
    lines = []
    for listing in result.listings if result is not None else ():
        lines.append(f"{name}: {listing.text}")
        for state, value in listing.entries[:SHOWN_VALUES]:
            if isinstance(value, bool) or value is None:
                shown = "undecided" if value is None else str(value).lower()
            else:
                shown = enclosure_text(value, 10)
            lines.append(f"  {state}: {shown}")
        if listing.total > SHOWN_VALUES:
            lines.append(f"  and {listing.total - SHOWN_VALUES} more")
    return lines


def gap_text(agreement: Agreement) -> str:
    """How far the engines are apart."""
    return distance_text(agreement.gap, exact=all(result.exact for result in agreement.results if result.answered))


def distance_text(gap: float | Fraction | None, *, exact: bool) -> str:
    """How far engines are apart, which all worked in rationals or did not; None where fewer than two answered."""
    if gap is None:
        return NOTHING
    return "equal" if exact and gap == 0 else format_number(gap, 2)


def _headline(agreement: Agreement) -> str:
    """The value of the first engine that decided, or else answered, and the bound that it is held against."""
    answered = [result for result in agreement.results if result.answered]
    if not answered:
        return NOTHING
    result = next((result for result in answered if result.verdict is not Verdict.UNDECIDED), answered[0])
    return value_text(result, digits=6) + (bound_text(agreement.property) if result.value else "")


def bound_text(property_: ast.Property) -> str:
    """`` (>=0.9)``: what the value of a property is held against; empty for a query."""
    formula = property_.formula
    threshold = formula.threshold if isinstance(formula, ast.Quantitative) else None
    return "" if threshold is None else f" ({threshold.comparison}{format_formula(threshold.value)})"


def value_text(result: CheckResult, *, digits: int) -> str:
    """The value or truth that one engine found, or how it failed."""
    if not result.answered:
        return str(result.verdict)
    return answer_text(value=result.value, ends=result.range, truth=result.truth, digits=digits)


def answer_text(*, value: Enclosure | None, ends: Sequence[Enclosure] | None, truth: bool | None, digits: int) -> str:
    """What an engine answered: the ends of a range of values, or else a value, or else a truth."""
    if ends is not None:
        return f"[{', '.join(enclosure_text(end, digits) for end in ends)}]"
    if value is not None:
        return enclosure_text(value, digits)
    return NOTHING if truth is None else str(truth).lower()


def enclosure_text(number: Enclosure, digits: int) -> str:
    """The number; where rounding leaves it too open, its bounds."""
    if is_precise(number):
        return format_number(number.value, digits)
    if isinf(number.upper) and not isinf(number.lower):
        return f"at least {format_number(number.lower, digits)}"
    if isinf(number.lower) and not isinf(number.upper):
        return f"at most {format_number(number.upper, digits)}"
    return f"{format_number(number.lower, digits)}..{format_number(number.upper, digits)}"


def format_number(value: float | Fraction, digits: int) -> str:
    """A number for a table: a short rational as it is, otherwise the given number of significant digits."""
    if isinstance(value, Fraction):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) <= 64:
            text = str(value)
            if len(text) <= _LONGEST_FRACTION:
                return text
        bits = value.numerator.bit_length() - value.denominator.bit_length()
        if value and abs(bits) > _DOUBLE_BITS:
            return _beyond_doubles(value, digits)
        value = float(value)
    if isnan(value):
        return "undefined"
    if isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return f"{float(value) + 0.0:.{digits}g}"  # adding zero takes the sign from -0.0


def _beyond_doubles(value: Fraction, digits: int) -> str:
    """A rational that may be too large or too small for a double, in scientific notation."""
    with localcontext(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN):
        number = _leading(value.numerator) / _leading(value.denominator)
        mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{exponent}"


def _leading(number: int) -> Decimal:
    """An integer by its leading bits."""
    surplus = max(number.bit_length() - _SHOWN_BITS, 0)
    return Decimal(number >> surplus) * Decimal(2) ** surplus
