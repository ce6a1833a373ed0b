"""Names and numbers in the lines of a PRISM file that tracebridge wrote: each as what it is, or why it is none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import fsum, isfinite, lcm
from typing import NoReturn

from tracebridge.chain.transition_rows import ROW_SUM_TOLERANCE
from tracebridge.export.prism_text import MARKER, MAX_INTEGER_BITS, double_text, fraction_text

#: What to do about a file that was edited by hand.
UNDO = (
    f"undo the edit, or take away the first line ({MARKER} ...) to have the file read by Storm's builder as any PRISM "
    "model"
)

_MAX_DIGITS = 4_300  # of a number; Python reads no longer ones
_SHOWN_BITS = 500  # of a sum in a message

# The constructor of a chain has the last word on sums of doubles; they may round in another way there.
_SURELY_NOT_ONE = 2 * ROW_SUM_TOLERANCE
_MUCH = 1e9  # sums far beyond one need not be exact, and fsum refuses to overflow

_RATIONAL = re.compile(r"([0-9]+)(?:\.0)?(?:/([0-9]+)(?:\.0)?)?")
_HIDDEN = re.compile(r"\\u\{([0-9a-f]{1,6})\}")


class RejectedLineError(Exception):
    """A line that cannot be read: the message, and what to do. The functions here raise nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Successors in ascending order, each once, with positive values: integers over ``denominator``, or doubles."""

    targets: list[int]
    values: list[int] | list[float]
    denominator: int | None

    def texts(self) -> list[str]:
        """The values as they are written."""
        return [number_text(value, self.denominator) for value in self.values]


def reject(message: str, hint: str | None = UNDO) -> NoReturn:
    """Refuse the line that is being read."""
    raise RejectedLineError(message, hint)


def read_name(text: str) -> str:
    r"""A name between its quotes, with ``\u{hex}`` replaced by the characters."""
    try:
        return _HIDDEN.sub(lambda match: chr(int(match[1], 16)), text)
    except ValueError:
        reject(f'the name "{text}" has a character that does not exist')


def read_position(digits: str) -> int:
    """The number of a state; of one with more than ten digits the first ten."""
    return int(digits[:10])  # no file that can be read has as many states


def read_double(text: str) -> float:
    """A finite double."""
    _refuse_long(text, 2 * _MAX_DIGITS)
    try:
        value = float(text)
    except ValueError:
        reject(f"{text[:80]} is no decimal number", "the first line, or that of the rewards, says float")
    if not isfinite(value):
        reject(f"{text[:80]} is beyond the largest double")
    return value


def _rational(text: str) -> tuple[int, int]:
    """Numerator and denominator as they are written."""
    _refuse_long(text, 3 * _MAX_DIGITS)
    match = _RATIONAL.fullmatch(text)
    if match is None:
        reject(f"{text[:80]} is no fraction of integers", "the first line, or that of the rewards, says exact numbers")
    for digits in match.groups("1"):
        _refuse_long(digits, _MAX_DIGITS)
    top, bottom = map(int, match.groups("1"))
    if not bottom:
        reject(f"{text[:80]} is no fraction: its denominator is 0")
    return top, bottom


def _refuse_long(text: str, limit: int) -> None:
    if len(text) > limit:
        reject(f"the number {text[:20]}... has more than {_MAX_DIGITS} digits")


def read_distribution(branches: list[tuple[int, str]], what: str, *, exact: bool) -> Distribution:
    """The branches by their targets, rationals over a common denominator: the one written if they share it."""
    branches = sorted(branches, key=lambda branch: branch[0])
    targets = [target for target, _ in branches]
    for target, following in pairwise(targets):
        if target == following:
            reject(f"two branches lead to s'={target}; write one with their sum")
    values: list[int] | list[float]
    denominator = None
    if exact:
        rationals = [_rational(text) for _, text in branches]
        denominator = _common_denominator([bottom for _, bottom in rationals])
        values = [top * (denominator // bottom) for top, bottom in rationals]
        total: Fraction | float = Fraction(sum(values), denominator)
        is_one = total == 1
    else:
        values = doubles = [read_double(text) for _, text in branches]
        rounded: float = fsum(doubles) if max(doubles) < _MUCH else sum(doubles)
        total, is_one = rounded, abs(rounded - 1) <= _SURELY_NOT_ONE
    for target, value in zip(targets, values, strict=True):
        if not value:
            reject(f"the branch to s'={target} has the probability 0; leave it out")
    if not is_one:
        reject(f"{what} sums to {_sum_text(total)}", "probabilities must sum to one; nothing is normalised")
    return Distribution(targets=targets, values=values, denominator=denominator)


def _sum_text(total: Fraction | float) -> str:
    if isinstance(total, float) or total.numerator.bit_length() + total.denominator.bit_length() <= _SHOWN_BITS:
        return str(total)
    return f"a fraction of many digits that is {'more' if total > 1 else 'less'} than 1"


def _common_denominator(bottoms: list[int]) -> int:
    common = 1
    for bottom in set(bottoms):
        common = lcm(common, bottom)
        if common.bit_length() > MAX_INTEGER_BITS:
            reject(
                f"the common denominator of the probabilities has more than {MAX_INTEGER_BITS} bits",
                "write shorter fractions",
            )
    return common


def read_reward_denominator(kind: str) -> int | None:
    """What rewards are written over; None where they are doubles."""
    if kind == "float":
        return None
    _refuse_long(kind, _MAX_DIGITS)
    denominator = int(kind)
    if not denominator or denominator.bit_length() > MAX_INTEGER_BITS:
        reject(f"{kind[:20]} is no denominator of rewards: it must be from 1 to {MAX_INTEGER_BITS} bits long")
    return denominator


def read_reward(text: str, denominator: int, line: int) -> int:
    """A reward in units of one over the denominator of its structure, which stands on ``line``."""
    top, bottom = _rational(text)
    value, rest = divmod(top * denominator, bottom)
    if rest:
        reject(
            f"the reward {text[:80]} is no multiple of {number_text(1, denominator)[:80]}",
            f"line {line} says over which denominator rewards are written: write a common one there",
        )
    if value.bit_length() > MAX_INTEGER_BITS:
        reject(f"a reward over the denominator of its structure has more than {MAX_INTEGER_BITS} bits")
    return value


def number_text(value: float, denominator: int | None) -> str:
    """A numerator over a denominator, or a double, as it is written."""
    return double_text(value) if denominator is None else fraction_text(int(value), denominator)
