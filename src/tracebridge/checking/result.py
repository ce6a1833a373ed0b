"""What an engine says about one property."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from math import inf, isinf
from typing import TYPE_CHECKING, Any, Literal

from tracebridge.html_table import html_table

if TYPE_CHECKING:
    from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
    from tracebridge.pctl.ast import Property


class Verdict(StrEnum):
    """How a property fared. A query (``=?``) that was answered has no verdict but a value."""

    SATISFIED = "satisfied"
    VIOLATED = "violated"
    UNDECIDED = "undecided"
    UNSUPPORTED = "unsupported"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorValue:
    """The value of one operator of a property: in every state, and at the start.

    Attributes:
        text: the operator, as a property text. nested: it stands inside another operator.
        states: shape (n,), aligned with the chain's states. start: the mean under the initial distribution;
            of a quantile, that of the mean.
        by_start: the value in each start state, by name, in the order of the chain.
        uncertain: nested thresholds that the bounds do not decide leave open in which states its operands hold.
    """

    text: str
    nested: bool
    states: EnclosureVector
    start: Enclosure
    by_start: Mapping[str, Enclosure] = field(default_factory=dict)
    uncertain: bool = False

    def to_dict(self) -> dict[str, Any]:
        """A JSON document; the values per start state where there are several start states."""
        document: dict[str, Any] = {
            "operator": self.text,
            "nested": self.nested,
            "start": enclosure_to_dict(self.start),
        }
        if len(self.by_start) > 1:
            document["start_states"] = {name: enclosure_to_dict(value) for name, value in self.by_start.items()}
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a reader should know about how a value came about.

    Attributes:
        kind: ``warning`` if the number is not what was asked for or an engine fell short; ``formulation`` if it only
            tells how an engine was asked.
        text: one sentence, without a full stop.
    """

    kind: Literal["warning", "formulation"]
    text: str

    def to_dict(self) -> dict[str, str]:
        """A JSON document."""
        return {"kind": self.kind, "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listing:
    """Values in several states, as a filter lists them: ``print``, ``printall``, ``values``, ``argmin`` or ``argmax``.

    Attributes:
        text: the filter, as a property text. entries: state and value, in the order of the chain, at most `MAX_LISTED`;
            a truth value is None where it is undecided. total: how many there are.
    """

    text: str
    entries: tuple[tuple[str, Enclosure | bool | None], ...]
    total: int

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        values = {
            state: value if isinstance(value, bool) or value is None else enclosure_to_dict(value)
            for state, value in self.entries
        }
        return {"filter": self.text, "values": values, "total": self.total}


#: A listing keeps so many entries.
MAX_LISTED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckResult:
    """One property under one engine.

    Attributes:
        property: the property that was checked. engine: the engine's name. exact: whether it worked in rationals.
        verdict: None for a query that was answered.
        value: the number a query asked for, or the value of the operator that a lone threshold is about; None where the
            property is a Boolean combination. range: the least and the greatest value that ``filter(range, ...)`` asked
            for. truth: the truth value of a Boolean property, None if undecided.
        operators: every operator that was evaluated, in order of evaluation.
        listings: the values that filters list. reason: why the verdict is undecided, unsupported or an error.
        notes: what a reader should know about how the value came about, warnings first.
    """

    property: Property
    engine: str
    exact: bool
    verdict: Verdict | None
    value: Enclosure | None = None
    range: tuple[Enclosure, Enclosure] | None = None
    truth: bool | None = None
    operators: tuple[OperatorValue, ...] = ()
    listings: tuple[Listing, ...] = ()
    reason: str | None = None
    notes: tuple[Note, ...] = field(default=())

    @builtins.property  # the field called property hides it
    def ok(self) -> bool:
        """Satisfied, or a query that was answered."""
        return self.verdict is None or self.verdict is Verdict.SATISFIED

    @builtins.property  # the field called property hides it
    def answered(self) -> bool:
        """The engine evaluated every operator of the property."""
        return self.verdict not in {Verdict.UNSUPPORTED, Verdict.ERROR}

    def __repr__(self) -> str:
        value = "" if self.value is None else f", value {number_to_json(self.value.value)}"
        name = self.property.name or self.property.text
        return f"<CheckResult of {self.engine}: {name}: {self.verdict or 'answered'}{value}>"

    def _repr_html_(self) -> str:
        ends = (None, None, None) if self.value is None else (self.value.value, self.value.lower, self.value.upper)
        row = (self.property.name, self.property.text, self.engine, self.verdict or "answered", *ends, self.reason)
        heads = ("property", "formula", "engine", "verdict", "value", "lower bound", "upper bound", "reason")
        return html_table(heads, [row])

    def to_dict(self) -> dict[str, Any]:
        """A JSON document; rationals as ``"num/den"``, infinity as ``"Infinity"``."""
        document = {
            "engine": self.engine,
            "exact": self.exact,
            "verdict": None if self.verdict is None else str(self.verdict),
            "value": None if self.value is None else enclosure_to_dict(self.value),
            "truth": self.truth,
            "operators": [operator.to_dict() for operator in self.operators],
            "reason": self.reason,
            "notes": [note.to_dict() for note in self.notes],
        }
        if self.range is not None:
            document["range"] = [enclosure_to_dict(end) for end in self.range]
        if self.listings:
            document["listings"] = [listing.to_dict() for listing in self.listings]
        return document


#: A number is given, and a query answered, if rounding leaves no more doubt than this: relative, or absolute.
RELATIVE_PRECISION = 1e-6
ABSOLUTE_PRECISION = 1e-9


def is_precise(number: Enclosure) -> bool:
    """Whether the bounds on rounding are so close that the number can be given instead of them.

    They are far apart where rounding may have carried a number over a step of ``floor``, ``mod`` or ``? :``, where all
    digits of a difference cancel, and beyond the largest double. The undefined number and infinities are precise.
    """
    if number.exact or number.undefined or number.lower == number.upper:
        return True
    value, width = float(number.value), float(number.upper - number.lower)
    return width <= max(RELATIVE_PRECISION * abs(value), ABSOLUTE_PRECISION)


def number_to_json(value: float | Fraction) -> float | str:
    """A number as JSON can carry it: rationals as text, and the three doubles JSON has no form for as text too."""
    if isinstance(value, Fraction):
        top, bottom = _digits(value.numerator), _digits(value.denominator)
        return top if value.denominator == 1 else f"{top}/{bottom}"
    value = float(value)
    if value != value:  # noqa: PLR0124 - NaN
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value + 0.0  # takes the sign from -0.0


def number_from_json(value: float | str) -> float | Fraction:
    """What `number_to_json` wrote.

    Raises:
        ValueError: a text that is no such number.
    """
    if not isinstance(value, str) or value in {"NaN", "Infinity", "-Infinity"}:
        return float(value)
    top, slash, bottom = value.partition("/")
    return Fraction(_integer(top), _integer(bottom) if slash else 1)


def _integer(text: str) -> int:
    """An integer of any number of digits; see `_digits`."""
    if len(text) < 4_000:
        return int(text)
    from flint import fmpz

    return int(fmpz(text))


def nearest_double(value: float | Fraction) -> float:
    """A number as a double; a rational beyond the largest one is an infinity."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _digits(value: int) -> str:
    """The decimal digits of an integer of any size; Python's own conversion stops at 4,300 digits."""
    if value.bit_length() < 10_000:
        return str(value)
    from flint import fmpz

    return str(fmpz(value))


def enclosure_to_dict(enclosure: Enclosure) -> dict[str, float | str]:
    """Value and numerical bounds of an enclosure."""
    return {
        "value": number_to_json(enclosure.value),
        "lower": number_to_json(enclosure.lower),
        "upper": number_to_json(enclosure.upper),
    }
