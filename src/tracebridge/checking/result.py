"""What an engine says about one property."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from math import isinf
from typing import TYPE_CHECKING, Any

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
    """The value of one P, R or S operator of a property: in every state, and at the start.

    Attributes:
        text: the operator, as a property text. nested: it stands inside another operator.
        states: shape (n,), aligned with the chain's states. start: the mean under the initial distribution.
    """

    text: str
    nested: bool
    states: EnclosureVector
    start: Enclosure


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckResult:
    """One property under one engine.

    Attributes:
        property: the property that was checked. engine: the engine's name. exact: whether it worked in rationals.
        verdict: None for a query that was answered.
        value: the number a query asked for, or the value of the operator that a lone threshold is about; None where the
            property is a Boolean combination. truth: the truth value of a Boolean property, None if undecided.
        operators: every operator that was evaluated, in order of evaluation.
        reason: why the verdict is undecided, unsupported or an error.
        notes: what a reader should know about how the value came about.
    """

    property: Property
    engine: str
    exact: bool
    verdict: Verdict | None
    value: Enclosure | None = None
    truth: bool | None = None
    operators: tuple[OperatorValue, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = field(default=())

    @builtins.property  # the field called property hides it
    def ok(self) -> bool:
        """Satisfied, or a query that was answered."""
        return self.verdict is None or self.verdict is Verdict.SATISFIED

    @builtins.property  # the field called property hides it
    def answered(self) -> bool:
        """The engine evaluated every operator of the property."""
        return self.verdict not in {Verdict.UNSUPPORTED, Verdict.ERROR}

    def to_dict(self) -> dict[str, Any]:
        """A JSON document; rationals as ``"num/den"``, infinity as ``"Infinity"``."""
        return {
            "engine": self.engine,
            "exact": self.exact,
            "verdict": None if self.verdict is None else str(self.verdict),
            "value": None if self.value is None else enclosure_to_dict(self.value),
            "truth": self.truth,
            "operators": [
                {"operator": operator.text, "nested": operator.nested, "start": enclosure_to_dict(operator.start)}
                for operator in self.operators
            ],
            "reason": self.reason,
            "notes": list(self.notes),
        }


def number_to_json(value: float | Fraction) -> float | str:
    """A number as JSON can carry it: rationals as text, and the three doubles JSON has no form for as text too."""
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}" if value.denominator != 1 else str(value.numerator)
    value = float(value)
    if value != value:  # noqa: PLR0124 - NaN
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def enclosure_to_dict(enclosure: Enclosure) -> dict[str, float | str]:
    """Value and numerical bounds of an enclosure."""
    return {
        "value": number_to_json(enclosure.value),
        "lower": number_to_json(enclosure.lower),
        "upper": number_to_json(enclosure.upper),
    }
