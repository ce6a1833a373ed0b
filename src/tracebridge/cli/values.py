"""Values as users write them on a command line."""

from __future__ import annotations

import re
from fractions import Fraction

from tracebridge.errors import UsageError

# Fraction("1e999999999") would try to build the number; what a property author means is shorter.
_NUMBER = re.compile(r"[+-]?(\d{1,300}(/\d{1,300})?|(\d{1,300}\.?|\d{0,300}\.\d{1,300})([eE][+-]?\d{1,3})?)")


def parse_pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """``a=b,c=d`` pairs of a repeatable option.

    Raises:
        UsageError: a part without ``=``, or a name given twice.
    """
    pairs: dict[str, str] = {}
    for part in (part.strip() for text in texts for part in text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise UsageError(f"{option} takes NAME=VALUE, not {part!r}")
        if name in pairs:
            raise UsageError(f"{option} gives {name!r} twice")
        pairs[name] = value
    return pairs


def parse_decimal(text: str, option: str) -> Fraction:
    """A number as it is written: 0.01 is 1/100.

    Raises:
        UsageError: for anything else.
    """
    try:
        return Fraction(text if _NUMBER.fullmatch(text) else "no number")
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"{option} takes a number, not {text!r}") from None


def parse_constants(texts: tuple[str, ...]) -> dict[str, Fraction | bool]:
    """Values of constants: integers, decimals, fractions, true and false.

    Raises:
        UsageError: a value that is none of these.
    """
    values: dict[str, Fraction | bool] = {}
    for name, text in parse_pairs(texts, "--const").items():
        if text in {"true", "false"}:
            values[name] = text == "true"
            continue
        try:
            values[name] = Fraction(text if _NUMBER.fullmatch(text) else "no number")
        except (ValueError, ZeroDivisionError):
            raise UsageError(f"--const {name}={text}: {text!r} is no number, true or false") from None
    return values
