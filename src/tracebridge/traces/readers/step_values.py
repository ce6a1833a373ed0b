"""What the texts in the columns of a flat trace file say of steps."""

from __future__ import annotations

import math
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.traces.model import Count, Probability, Seconds
from tracebridge.traces.problems import shown
from tracebridge.traces.readers.row_block import RowBlock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BLANK_WORDS = frozenset({"", "nan", "none", "null", "na", "n/a"})
CONVERTED = ("error", "confidence", "tokens", "duration")
"""The fields of a step that are no texts."""

_ERROR_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NUMBER_TYPES: Mapping[str, Any] = MappingProxyType({"confidence": Probability, "tokens": Count, "duration": Seconds})
NUMBER_KINDS: Mapping[str, frozenset[type]] = MappingProxyType(
    {"confidence": frozenset({float}), "tokens": frozenset({int}), "duration": frozenset({float})}
)
"""The kinds of numbers that a column may hold instead of their texts, which then mean the same."""

# Structs, because msgspec looks through their types once, and through that of a list each time.
_COLUMN_TYPES: Mapping[str, Any] = MappingProxyType(
    {
        name: msgspec.defstruct(f"_{name.title()}Column", [("numbers", list[kind])], array_like=True)  # type: ignore[valid-type]
        for name, kind in _NUMBER_TYPES.items()
    }
)


def plain(text: str) -> str:
    """Lower case, and integers as integers: tables with gaps often hold 1.0 for 1."""
    return text.lower().removesuffix(".0")


@lru_cache(maxsize=1 << 14)
def step_value(name: str, text: str) -> Any:
    """The value of one of the ``CONVERTED`` fields; where the text stands for none, its default.

    Raises:
        ValidationError: the text is no such value.
    """
    word = plain(text)
    if name == "error":
        if word not in _ERROR_WORDS and word not in BLANK_WORDS:
            raise msgspec.ValidationError(f"true or false was expected, got {shown(text)}")
        return _ERROR_WORDS.get(word, False)
    if word in BLANK_WORDS:
        return None
    try:
        return msgspec.convert(word, _NUMBER_TYPES[name], strict=False)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"{error}, got {shown(word)}") from error


def with_values(block: RowBlock) -> RowBlock:
    """The rows with values in the ``CONVERTED`` columns; of one in which some text is no value the texts."""
    cells = [
        _values(name, texts) if name in CONVERTED else texts
        for name, texts in zip(block.names, block.cells, strict=True)
    ]
    return block._replace(cells=tuple(cells))


def _values(name: str, cells: Sequence[Any]) -> Sequence[Any]:
    if type(cells[0]) in NUMBER_KINDS.get(name, ()):
        try:
            numbers: list[float] = msgspec.convert([cells], _COLUMN_TYPES[name]).numbers
        except msgspec.ValidationError:
            return list(map(str, cells))
        return [number + 0 for number in numbers] if 0 in numbers else numbers  # -0.0 is 0, as its text is
    try:
        if name == "error":
            values = {text: step_value(name, text) for text in set(cells)}
            return [values[text] for text in cells]
        found = _numbers(name, cells)
        return [step_value(name, text) for text in cells] if found is None else found
    except msgspec.ValidationError:
        return cells


def _numbers(name: str, texts: Sequence[str]) -> Sequence[float | None] | None:
    """A column of plain numbers, all at once; None where `step_value` may say something else of a text."""
    given = texts if "" not in texts else [text for text in texts if text]
    try:
        numbers: list[float] = msgspec.convert([given], _COLUMN_TYPES[name], strict=False).numbers
    except msgspec.ValidationError:
        return None
    if "-" in "".join(given) or (name != "tokens" and not math.isfinite(sum(numbers))):
        return None  # of "-0.0" the sign counts, "nan" stands for no value
    if given is texts:
        return numbers
    found = iter(numbers)
    return [next(found) if text else None for text in texts]
