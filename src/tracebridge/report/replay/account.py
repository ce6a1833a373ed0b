"""What became of every value of an evidence file: equal, different, or not computed again, and why."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tracebridge.checking.result import number_from_json, number_to_json

#: Doubles that differ by no more than this, relative or absolute, differ by rounding: other processors add in another
#: order.
RELATIVE_ROUNDING = 1e-9
ABSOLUTE_ROUNDING = 1e-12

#: Where there is no value.
ABSENT = "(absent)"

_NUMBER = re.compile(r"-?[0-9]+(/[0-9]+)?|NaN|-?Infinity", re.ASCII)

Kind = Literal["digest", "file", "input", "inconsistent", "recomputed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Stands for values that were not computed again. ``reason``: why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Stands for a number that may differ from the recorded one by so much, and why."""

    value: Any
    allowed: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that is not as it was recorded.

    Attributes:
        path: where in the document, or the name of a file. kind: what found it.
        recorded: what stands there. found: what should. amount: ``found - recorded``, for numbers.
        message: what is wrong, if two values do not say it.
    """

    path: str
    kind: Kind
    recorded: Any = None
    found: Any = None
    amount: float | None = None
    message: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        amount = None if self.amount is None else number_to_json(self.amount)
        names = ("path", "kind", "recorded", "found", "message")
        return {**{name: getattr(self, name) for name in names}, "difference": amount}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRecomputed:
    """Values that were not computed again. ``path``: where; ``values``: how many; ``reason``: why."""

    path: str
    values: int
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {"path": self.path, "values": self.values, "reason": self.reason}


@dataclass(slots=True)
class Account:
    """Counts of values, and what is to be told of them.

    Attributes:
        equal: how many are equal. rounded: how many differ by rounding, ``largest`` at most, relative where above one.
        allowed: how many differ by no more than a stated tolerance. differences, not_recomputed: the rest.
        words: other wordings in texts are no difference; so it is where another version wrote them.
    """

    words: bool = False
    equal: int = 0
    rounded: int = 0
    allowed: int = 0
    largest: float = 0.0
    differences: list[Difference] = field(default_factory=list)
    not_recomputed: list[NotRecomputed] = field(default_factory=list)

    def compare(self, recorded: Any, found: Any, path: str = "") -> None:
        """Compare JSON values with what was found for them, which may hold `Unknown` and `Within`."""
        waiting = [(recorded, found, path)]
        while waiting:
            old, new, place = waiting.pop()
            if isinstance(new, Unknown):
                self.not_recomputed.append(NotRecomputed(path=place, values=_leaves(old), reason=new.reason))
            elif isinstance(old, Mapping) and isinstance(new, Mapping):
                waiting += reversed([*_fields(old, new, place)])
            elif isinstance(old, list) and isinstance(new, list | tuple):
                waiting += reversed([*_fields(dict(enumerate(old)), dict(enumerate(new)), place)])
            else:
                self._leaf(old, new, place)

    def _leaf(self, old: Any, new: Any, place: str) -> None:
        tolerance = 0.0
        if isinstance(new, Within):
            tolerance, new = new.allowed, new.value
        if type(old) is type(new) and old == new:
            self.equal += 1
            return
        a, b = _as_number(old), _as_number(new)
        if a is None or b is None:
            if self.words and isinstance(old, str) and isinstance(new, str) and a is b is None:
                reason = "the wording of another version"
                self.not_recomputed.append(NotRecomputed(path=place, values=1, reason=reason))
                return
            self.differences.append(Difference(path=place, kind="recomputed", recorded=old, found=new))
            return
        if a == b and not isinstance(old, str) and not isinstance(new, str):  # 17 and 17.0
            self.equal += 1
            return
        amount = b - a
        distance = abs(amount)
        if isinstance(old, float) or isinstance(new, float):
            if distance <= max(RELATIVE_ROUNDING * max(abs(a), abs(b)), ABSOLUTE_ROUNDING):
                self.rounded += 1
                self.largest = max(self.largest, distance / max(1.0, abs(a)))
                return
            if distance <= tolerance:
                self.allowed += 1
                return
        found = Difference(path=place, kind="recomputed", recorded=old, found=new, amount=amount)
        self.differences.append(found)


def _fields(old: Mapping[Any, Any], new: Mapping[Any, Any], place: str) -> Iterator[tuple[Any, Any, str]]:
    for key in dict.fromkeys([*old, *new]):
        yield old.get(key, ABSENT), new.get(key, ABSENT), _joined(place, key)


def _joined(place: str, key: str | int) -> str:
    """A path such as ``results.properties[2].gap``; keys that are no words stand in quotes."""
    if isinstance(key, int):
        return f"{place}[{key}]"
    if not re.fullmatch(r"\w+", key):
        return f"{place}[{key!r}]"
    return f"{place}.{key}" if place else key


def _as_number(value: Any) -> float | None:
    """A JSON number, or a text that is one, as a double; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    try:
        return float(number_from_json(value))
    except ZeroDivisionError:
        return math.nan
    except OverflowError:
        return math.inf


def _leaves(value: Any) -> int:
    count, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
        else:
            count += 1
    return count
