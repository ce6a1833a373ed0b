"""One form for answers that are certainly the same; what is only probably the same is left to judges."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache

_MAX_UNWRAPPED = 1_000
_MAX_DIGITS = 50
_MAX_EXPONENT = 50
_WRAPPERS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"))
_BRACED = re.compile(r"\\(?:boxed|text|mathrm|textbf|mathbf)\s*\{")
_BRACE = re.compile("[{}]")
_BOX = re.compile(r"\\boxed\s*\{")
_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,3}))?", re.ASCII)
_SIMPLE_FRACTION = re.compile(r"([+-]?)([0-9]+) ?/ ?([0-9]+)", re.ASCII)
_LATEX_FRACTION = re.compile(r"([+-]?)\\[dt]?frac ?\{([0-9]+)\} ?\{([0-9]+)\}", re.ASCII)


@lru_cache(maxsize=65_536)
def canonical_answer(text: str) -> str:
    r"""The canonical form of an answer; ``""`` for one that says nothing. Applying it twice changes nothing more.

    - Unicode composition (NFC), outer blanks removed, inner runs of white space one space.
    - What surrounds the whole answer is taken off: ``\boxed{}``, ``\text{}`` and its like, ``$ $``, ``\( \)``,
      ``\[ \]`` (of answers of up to 1,000 characters).
    - A number is its exact value: ``0.50``, ``.5``, ``5e-1``, ``1/2`` and ``\frac{1}{2}`` are ``1/2``; ``+7``, ``7.0``
      and ``-0`` are ``7``, ``7`` and ``0``. Numbers of more than 50 digits stay as they are.

    Left alone, because they can differ in meaning: case, a final full stop, units and percent signs, thousands
    separators (``1,234`` may be a pair) and leading zeros (``007`` may be a code).
    """
    text = " ".join(unicodedata.normalize("NFC", text).split())
    if len(text) > _MAX_UNWRAPPED:
        return text
    while (inner := _unwrapped(text)) is not None:
        text = inner
    value = _number(text)
    return text if value is None else str(value)


def boxed_answer(text: str) -> str | None:
    r"""What the last complete ``\boxed{}`` of a message holds; None where there is none."""
    boxes = {match.end() for match in _BOX.finditer(text)}
    last: tuple[int, int] | None = None
    open_braces: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            open_braces.append(brace.end())
        elif open_braces:
            start = open_braces.pop()
            if start in boxes and (last is None or start > last[0]):
                last = (start, brace.start())
    return None if last is None else text[slice(*last)]


def _unwrapped(text: str) -> str | None:
    """The inside of what surrounds the whole text; None where nothing does."""
    braced = _BRACED.match(text)
    if braced is not None and _closing_brace(text, braced.end()) == len(text) - 1:
        return text[braced.end() : -1].strip()
    for opening, closing in _WRAPPERS:
        inner = text[len(opening) : len(text) - len(closing)]
        is_around = len(text) >= len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing)
        if is_around and opening not in inner and closing not in inner:
            return inner.strip()
    return None


def _closing_brace(text: str, start: int) -> int | None:
    """Where the brace closes that opened just before ``start``."""
    depth = 1
    for place in range(start, len(text)):
        if text[place] == "{":
            depth += 1
        elif text[place] == "}":
            depth -= 1
            if not depth:
                return place
    return None


def _number(text: str) -> Fraction | None:
    for pattern in (_SIMPLE_FRACTION, _LATEX_FRACTION):
        if match := pattern.fullmatch(text):
            sign, above, below = match.groups()
            if _is_code(above) or _is_code(below) or not int(below):
                return None
            return Fraction(int(sign + above), int(below))
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    sign, whole, decimals, exponent = match[1], match[2] or "", match[3] or "", int(match[4] or 0)
    if not whole + decimals or len(whole + decimals) > _MAX_DIGITS or abs(exponent) > _MAX_EXPONENT or _is_code(whole):
        return None
    return Fraction(int(sign + whole + decimals)) * Fraction(10) ** (exponent - len(decimals))


def _is_code(digits: str) -> bool:
    """Leading zeros make digits a code rather than a number, and very many are not worth reading."""
    return len(digits) > _MAX_DIGITS or (len(digits) > 1 and digits.startswith("0"))
