"""The cross-validation rule: any two engines must agree, and how far they are apart is printed.

Two values agree if their numerical bounds meet: rationals must be equal; a closed-form double carries rigorous bounds,
and a double of Storm or PRISM the accuracy that its solver is assumed to have. Operators are compared in every state,
not only at the start. No engine is preferred and nothing is averaged. The *gap* of a property is the largest difference
between two engines over all of its operators and states, relative to the value where that is above one.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tracebridge.checking.result import CheckResult, Verdict, nearest_double, number_to_json
from tracebridge.errors import UsageError
from tracebridge.html_table import html_table

if TYPE_CHECKING:
    from tracebridge.closedform.enclosure import EnclosureVector
    from tracebridge.pctl.ast import Property


class Ends(Protocol):
    """An interval about the data."""

    @property
    def lower(self) -> float:
        """Its lower end."""

    @property
    def upper(self) -> float:
        """Its upper end."""


class Uncertain(Protocol):
    """What the data say about a property: a `PropertyUncertainty` of `tracebridge.inference`."""

    @property
    def level(self) -> float:
        """Of the interval, and of the rule that decides a property with ``credible``."""

    @property
    def interval(self) -> Ends | None:
        """Of the number that the property is about; None without one."""

    @property
    def satisfied(self) -> float | None:
        """``P(satisfied | data)``; None for a query."""

    @property
    def verdict(self) -> Verdict | None:
        """By the data alone; ``unsupported`` where no draw could be evaluated, None for a query."""

    @property
    def reason(self) -> str | None:
        """Why it is undecided or unsupported."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What else to know."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agreement:
    """What the engines together say about one property.

    Attributes:
        property: the property. results: one result an engine, in the order they were asked.
        agree: True or False where at least two engines answered, None otherwise.
        gap: the largest difference between two engines; 0 means equal; None without two answers, or where they agree
            that the value is undefined.
        allowed: the largest difference that their bounds allow at the place of the gap.
        verdict: the joint verdict; None for a query that was answered. Of a property with ``//@ credible`` it is
            undecided until `tracebridge.inference.judged` has applied the rule to the data behind the chain.
        reason: why the verdict is not simply the engines'.
        at_estimate, reason_at_estimate: the same for the chain as it is, whatever ``credible`` asks for.
        uncertainty: what the data behind the chain say; None for a chain without counts, or if it was not asked for.
    """

    property: Property
    results: tuple[CheckResult, ...]
    agree: bool | None
    gap: float | None
    allowed: float | None
    verdict: Verdict | None
    reason: str | None = None
    at_estimate: Verdict | None = None
    reason_at_estimate: str | None = None
    uncertainty: Uncertain | None = None

    @builtins.property  # the field called property hides it
    def ok(self) -> bool:
        """Satisfied or an answered query, and no two engines disagree."""
        return self.agree is not False and (self.verdict is None or self.verdict is Verdict.SATISFIED)

    @builtins.property  # the field called property hides it
    def exit_code(self) -> int:
        """0 fine, 1 violated, 4 undecided or an engine failed, 6 the engines disagree."""
        if self.agree is False:
            return 6
        if self.verdict is Verdict.VIOLATED:
            return 1
        failed = any(result.verdict is Verdict.ERROR for result in self.results)
        return 0 if self.ok and not failed else 4

    def __repr__(self) -> str:
        agreed = {True: f"gap {self.gap}", False: "THE ENGINES DISAGREE", None: "one engine"}[self.agree]
        found = self.uncertainty
        data = (
            ""
            if found is None or found.interval is None
            else f", {found.interval.lower:.4g}..{found.interval.upper:.4g}"
        )
        data += "" if found is None or found.satisfied is None else f", P(satisfied) {found.satisfied:.4g}"
        name = self.property.name or self.property.text
        return f"<Agreement on {name}: {self.verdict or 'answered'}, {agreed}{data}>"

    def _repr_html_(self) -> str:
        cells = [self.property.name or "", self.property.text, str(self.verdict or "answered")]
        cells += [
            str(number_to_json(result.value.value)) if result.value else str(result.truth) for result in self.results
        ]
        cells.append("" if self.gap is None else f"{self.gap:.2g}")
        heads = ["property", "formula", "verdict", *(result.engine for result in self.results), "gap"]
        if (found := self.uncertainty) is not None:
            heads += [f"{found.level:.6g} interval", "P(satisfied | data)"]
            cells.append("" if found.interval is None else f"[{found.interval.lower:.4g}, {found.interval.upper:.4g}]")
            cells.append("" if found.satisfied is None else f"{found.satisfied:.4g}")
        return html_table(heads, [cells])

    def to_records(self) -> list[dict[str, Any]]:
        """One record an engine: the property, the joint verdict, and what this engine says; for a data frame."""
        data = self.uncertainty.to_dict() if self.uncertainty is not None else {}
        interval = data.get("interval") or {}
        return [
            {
                "property": self.property.name,
                "formula": self.property.text,
                "verdict": None if self.verdict is None else str(self.verdict),
                "engine": result.engine,
                "engine_verdict": None if result.verdict is None else str(result.verdict),
                "value": None if result.value is None else nearest_double(result.value.value),
                "value_lower": None if result.value is None else nearest_double(result.value.lower),
                "value_upper": None if result.value is None else nearest_double(result.value.upper),
                "truth": result.truth,
                "agree": self.agree,
                "gap": self.gap,
                "interval_lower": interval.get("lower"),
                "interval_upper": interval.get("upper"),
                "satisfied": data.get("satisfied"),
            }
            for result in self.results
        ]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "name": self.property.name,
            "formula": self.property.text,
            "annotations": {note.key: note.value for note in self.property.annotations},
            "verdict": None if self.verdict is None else str(self.verdict),
            "at_estimate": None if self.at_estimate is None else str(self.at_estimate),
            "agree": self.agree,
            "gap": None if self.gap is None else number_to_json(self.gap),
            "allowed": None if self.allowed is None else number_to_json(self.allowed),
            "reason": self.reason,
            "uncertainty": None if self.uncertainty is None else self.uncertainty.to_dict(),
            "engines": [result.to_dict() for result in self.results],
        }


def compare(results: Sequence[CheckResult]) -> list[Agreement]:
    """Put the results of `check` side by side: one agreement a property, in the order of the properties.

    Raises:
        UsageError: it is no such list.
    """
    if isinstance(results, CheckResult):
        raise UsageError("compare takes all results of check, not one of them")
    groups: dict[int, list[CheckResult]] = {}
    for result in results:
        groups.setdefault(id(result.property), []).append(result)
    return [compare_property(group) for group in groups.values()]


def compare_property(results: Sequence[CheckResult]) -> Agreement:
    """Apply the cross-validation rule to the results of one property under several engines.

    Raises:
        ValueError: no result, or results of different properties.
    """
    if not results:
        raise ValueError("there is no result to compare")
    if any(result.property is not results[0].property for result in results):
        raise ValueError("the results are of different properties")
    answered = [result for result in results if result.answered]
    gap, allowed, agree = None, None, None
    if len(answered) >= 2:
        gap, allowed, agree = 0.0, 0.0, True
        for one, other in combinations(answered, 2):
            pair_gap, pair_allowed, pair_agree = _compare_pair(one, other)
            agree = agree and pair_agree
            if pair_gap > gap:
                gap, allowed = pair_gap, pair_allowed
        if agree and all(result.value is not None and result.value.undefined for result in answered):
            gap, allowed = None, None
    at_estimate, reason_at_estimate = _joint_verdict(results, answered, agree)
    verdict, reason = at_estimate, reason_at_estimate
    credible = results[0].property.annotation("credible")
    if credible is not None and verdict in {Verdict.SATISFIED, Verdict.VIOLATED}:
        verdict = Verdict.UNDECIDED
        asked = f"credible {credible} was asked for, but no posterior interval was computed"
        reason = asked if reason is None else f"{reason}; {asked}"
    return Agreement(
        property=results[0].property,
        results=tuple(results),
        agree=agree,
        gap=gap,
        allowed=allowed,
        verdict=verdict,
        reason=reason,
        at_estimate=at_estimate,
        reason_at_estimate=reason_at_estimate,
    )


def worst_exit_code(codes: Sequence[int]) -> int:
    """The exit code of a run from those of its parts: the worst wins, in the order 70 3 6 1 4 5."""
    return next((code for code in (70, 3, 6, 1, 4, 5) if code in codes), 0)


def _compare_pair(one: CheckResult, other: CheckResult) -> tuple[float, float, bool]:
    gap, allowed, agree = 0.0, 0.0, True
    for left, right in zip(one.operators, other.operators, strict=True):
        compared = left.states, right.states
        if left.uncertain or right.uncertain:  # then it is open too where the value is defined
            defined = np.flatnonzero(~(left.states.undefined | right.states.undefined))
            compared = left.states.take(defined), right.states.take(defined)
        vector_gap, vector_allowed, meets = _vector_gap(*compared)
        agree = agree and meets
        if vector_gap > gap:
            gap, allowed = vector_gap, vector_allowed
    contradiction = one.truth is not None and other.truth is not None and one.truth is not other.truth
    return gap, allowed, agree and not contradiction


def _vector_gap(one: EnclosureVector, other: EnclosureVector) -> tuple[float, float, bool]:
    """Largest difference, what the bounds allow there, and whether the bounds meet in every state."""
    both = one.exact and other.exact
    a, b = one.to_float().value, other.to_float().value
    undefined = np.isnan(a) & np.isnan(b)
    with np.errstate(invalid="ignore"):  # NaN among rationals
        meeting = (one.lower <= other.upper) & (other.lower <= one.upper)
        equal = np.asarray(one.value == other.value, dtype=np.bool_) | undefined
    same = equal | (np.isinf(a) & np.isinf(b))
    meets = bool(np.all(meeting | undefined)) and bool(np.all(np.isnan(a) == np.isnan(b)))
    if both:
        meets = bool(np.all(equal))
    scale = np.maximum(1.0, np.where(np.isinf(a), 1.0, np.abs(a)))
    with np.errstate(invalid="ignore"):
        gaps = np.where(same, 0.0, np.abs(a - b) / scale)
        room = (_radius(one) + _radius(other)) / scale
    if both and not meets:  # rationals that round to the same double still differ
        gaps = np.where(equal, gaps, np.maximum(gaps, np.finfo(float).tiny))
    gaps = np.where(np.isnan(gaps), inf, gaps)
    if not len(gaps):
        return 0.0, 0.0, True
    place = int(np.argmax(gaps))
    return float(gaps[place]), float(room[place]), meets


def _radius(vector: EnclosureVector) -> np.ndarray[Any, np.dtype[np.float64]]:
    if vector.exact:
        return np.zeros(len(vector))
    with np.errstate(invalid="ignore"):
        radius = np.maximum(vector.upper - vector.value, vector.value - vector.lower)
    return np.where(np.isnan(radius), 0.0, radius)


def _joint_verdict(
    results: Sequence[CheckResult], answered: Sequence[CheckResult], agree: bool | None
) -> tuple[Verdict | None, str | None]:
    if agree is False:
        return Verdict.ERROR, "the engines disagree"
    if not answered:
        reasons = "; ".join(f"{result.engine}: {result.reason}" for result in results)
        failed = any(result.verdict is Verdict.ERROR for result in results)
        return (Verdict.ERROR if failed else Verdict.UNSUPPORTED), reasons
    reason = None
    missing = [result for result in results if not result.answered]
    if missing:
        single = "single engine: " if len(answered) == 1 else "without "
        reason = single + "; ".join(f"{result.engine}: {result.reason}" for result in missing)
    verdicts = {result.verdict for result in answered}
    decided = verdicts - {Verdict.UNDECIDED}
    if not decided:
        own = None if len(answered) == 1 and reason else answered[0].reason
        return Verdict.UNDECIDED, _joined(own, reason)
    unsure = [result for result in answered if result.verdict is Verdict.UNDECIDED]
    if unsure:
        who = f"{unsure[0].engine} alone" if len(unsure) == 1 else " and ".join(result.engine for result in unsure)
        reason = _joined(f"{who} could not decide: {unsure[0].reason}", reason)
    return next(iter(decided)), reason


def _joined(*reasons: str | None) -> str | None:
    return "; ".join(reason for reason in reasons if reason) or None
