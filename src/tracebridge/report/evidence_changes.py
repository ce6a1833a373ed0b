"""What changed between two evidence files, as values and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracebridge.checking.result import number_to_json

if TYPE_CHECKING:
    from tracebridge.inference.intervals import Interval
    from tracebridge.pctl import ast


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that differs.

    Attributes:
        what: a name. old, new: JSON values; None where there is none.
    """

    what: str
    old: Any
    new: Any

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {"what": self.what, "old": self.old, "new": self.new}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionChange:
    """A transition that has another probability.

    Attributes:
        source, target: the states. old, new: the probability in each chain.
        error: the posterior standard error of the difference; None for chains that remember more than their state.
    """

    source: str
    target: str
    old: float
    new: float
    error: float | None

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        names = ("source", "target", "old", "new", "error")
        return {name: getattr(self, name) for name in names} | {"difference": self.new - self.old}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PropertyChange:
    """A property that both evidence files have.

    Attributes:
        key: its requirement id, name or formula. matched_by: ``requirement``, ``name`` or ``formula``.
        old, new: its entries in the two results documents.
        asked: the new property, resolved. same_formula: both ask the same, constants in place.
        old_value, new_value: the number that it is about, for the fitted chains; None without one.
        difference: of the number, new minus old, an interval of the two posteriors.
        probability_greater: that the new number is the greater one, ties counting half. None, as the difference, with
            the ``reason``.
        old_satisfied, new_satisfied: the shares of draws in which it holds; None for a query, or without draws.
        draws: how many pairs the difference is made of. undefined: pairs that have none, which are left out.
    """

    key: str
    matched_by: str
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    asked: ast.Property
    same_formula: bool
    old_value: float | None
    new_value: float | None
    difference: Interval | None = None
    probability_greater: float | None = None
    old_satisfied: float | None = None
    new_satisfied: float | None = None
    draws: int = 0
    undefined: int = 0
    reason: str | None = None

    @property
    def value_change(self) -> float | None:
        """The new number minus the old one, both of the fitted chains; NaN where both are infinite."""
        return None if self.old_value is None or self.new_value is None else self.new_value - self.old_value

    @property
    def verdict_changed(self) -> bool:
        """Whether its verdict is another one."""
        return bool(self.old["verdict"] != self.new["verdict"])

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        numbers = ("old_value", "new_value", "value_change", "probability_greater", "old_satisfied", "new_satisfied")
        return {
            "key": self.key,
            "matched_by": self.matched_by,
            "same_formula": self.same_formula,
            "old": _side(self.old),
            "new": _side(self.new),
            **{name: _number(getattr(self, name)) for name in numbers},
            "difference": None if self.difference is None else self.difference.to_dict(),
            "draws": self.draws,
            "undefined": self.undefined,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvidenceDiff:
    """What changed from one evidence file to another.

    Attributes:
        options, inputs, corpus, standings: of the command, of the files read, of what they held, of the certificates.
        states_added, states_removed: of the chain.
        transitions: those between common states that differ, at most `MOST_TRANSITIONS`, the surest first.
        transitions_changed: how many differ in all.
        properties: those that both have, in the order of the new file. properties_added, properties_removed: the rest.
        level: of the intervals.
    """

    options: tuple[Change, ...]
    inputs: tuple[Change, ...]
    corpus: tuple[Change, ...]
    standings: tuple[Change, ...]
    states_added: tuple[str, ...]
    states_removed: tuple[str, ...]
    transitions: tuple[TransitionChange, ...]
    transitions_changed: int
    properties: tuple[PropertyChange, ...]
    properties_added: tuple[str, ...]
    properties_removed: tuple[str, ...]
    level: float

    @property
    def verdicts_changed(self) -> tuple[PropertyChange, ...]:
        """The properties with another verdict than before."""
        return tuple(each for each in self.properties if each.verdict_changed)

    @property
    def surely_changed(self) -> tuple[PropertyChange, ...]:
        """The properties whose interval of the difference does not hold zero."""
        return tuple(each for each in self.properties if each.difference is not None and 0.0 not in each.difference)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        changes = ("options", "inputs", "corpus", "standings", "transitions", "properties")
        names = ("states_added", "states_removed", "properties_added", "properties_removed")
        return {
            "kind": "tracebridge-evidence-diff",
            "schema_version": 1,
            "level": self.level,
            **{name: [each.to_dict() for each in getattr(self, name)] for name in changes},
            "transitions_changed": self.transitions_changed,
            **{name: list(getattr(self, name)) for name in names},
        }


def _side(entry: Mapping[str, Any]) -> dict[str, Any]:
    uncertainty = entry["uncertainty"] or {}
    return {
        "name": entry["name"],
        "formula": entry["formula"],
        "verdict": entry["verdict"],
        "marks": entry["marks"],
        "interval": uncertainty.get("interval"),
    }


def _number(value: float | None) -> float | str | None:
    return None if value is None else number_to_json(value)
