"""Experiments: a property file checked for every combination of values of its constants.

``d=1:50`` gives d the values 1, 2, ..., 50 and ``p=0.1:0.2:0.9`` gives p the values 0.1, 0.3, ..., 0.9, as PRISM's
``-const`` does: start, step and end, both ends included where the steps meet the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

from tracebridge.errors import UsageError
from tracebridge.pctl.evaluation import MAX_BITS, Value

MAX_POINTS = 100_000
"""The largest number of combinations."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+/[0-9]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?)")
_LONGEST = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Values for constants, some of them a range.

    Attributes:
        values: for each constant its values, in order; a single one where nothing varies.
    """

    values: dict[str, tuple[Value, ...]]

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Experiment:
        """Read ``name=value``, ``name=start:end`` (by steps of 1) and ``name=start:step:end``.

        A value is a whole number, a decimal, a fraction (``1/3``), true or false; decimals are exact.

        Raises:
            UsageError: a text is none of these, a constant is given twice, or there are more than ``MAX_POINTS``
                combinations.
        """
        values: dict[str, tuple[Value, ...]] = {}
        for text in texts:
            name, equals, given = (part.strip() for part in text.partition("="))
            if not equals or not _NAME.fullmatch(name):
                raise UsageError(f"--const {_shown(text)}: write name=value, as in d=8, or a range, as in d=1:50")
            if name in values:
                raise UsageError(f"--const {name} is given twice")
            values[name] = _values(name, given)
            if prod(len(several) for several in values.values()) > MAX_POINTS:
                raise UsageError(f"--const: more than {MAX_POINTS:,} combinations of values; take larger steps")
        return cls(values=values)

    @property
    def varying(self) -> tuple[str, ...]:
        """The constants with more than one value, in the order in which they were given."""
        return tuple(name for name, several in self.values.items() if len(several) > 1)

    def __len__(self) -> int:
        """How many points there are; one where nothing varies."""
        return prod(len(several) for several in self.values.values())

    def points(self) -> Iterator[dict[str, Value]]:
        """Every combination, the constant that was given last varying fastest."""
        for combination in product(*self.values.values()):
            yield dict(zip(self.values, combination, strict=True))


def _values(name: str, text: str) -> tuple[Value, ...]:
    if text in {"true", "false"}:
        return (text == "true",)
    parts = [part.strip() for part in text.split(":")]
    if len(parts) > 1 and not all(parts):
        raise UsageError(f"--const {name}={_shown(text)}: a range is start:end or start:step:end")
    numbers = [_number(name, part, text) for part in parts]
    match numbers:
        case [value]:
            return (value,)
        case [start, end]:
            step = Fraction(1)
        case [start, step, end]:
            pass
        case _:
            raise UsageError(f"--const {name}={_shown(text)}: a range is start:end or start:step:end")
    if step <= 0:
        raise UsageError(f"--const {name}={_shown(text)}: the step {step} must be positive")
    if end < start:
        raise UsageError(f"--const {name}={_shown(text)}: the end {end} lies before the start {start}")
    last = (end - start) // step
    if last >= MAX_POINTS:
        raise UsageError(f"--const {name}={_shown(text)}: more than {MAX_POINTS:,} values; take larger steps")
    return tuple(start + i * step for i in range(last + 1))


def _number(name: str, part: str, text: str) -> Fraction:
    try:
        if len(part) > _LONGEST or not _NUMBER.fullmatch(part):
            raise ValueError(part)
        value = Fraction(part)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"--const {name}={_shown(text)}: {_shown(part)!r} is no number, true or false") from None
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise UsageError(f"--const {name}={_shown(text)}: this number has more than {MAX_BITS:,} bits")
    return value


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."
