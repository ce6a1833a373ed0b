"""What the texts in the columns of a flat trace file say of steps."""

from __future__ import annotations

import sys
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tracebridge.traces.model import Count, Probability, Seconds
from tracebridge.traces.problems import shown
from tracebridge.traces.readers.row_block import RowBlock, as_texts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

BLANK_WORDS = frozenset({"", "nan", "none", "null", "na", "n/a"})
CONVERTED = ("error", "confidence", "tokens", "duration")
"""The fields of a step that are no texts."""

_ERROR_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NUMBER_TYPES: Mapping[str, Any] = MappingProxyType({"confidence": Probability, "tokens": Count, "duration": Seconds})
_OWN_KINDS: Mapping[str, type] = MappingProxyType(
    {"step": int, "error": bool, "confidence": float, "tokens": int, "duration": float}
)

# A column at once, of finite numbers that JSON has. Structs, because msgspec looks through their types once, and
# through that of a list each time.
_COLUMN_TYPES: Mapping[str, Any] = MappingProxyType(
    {
        name: msgspec.defstruct(f"_{name.title()}Column", [("values", list[kind | None])], array_like=True)  # type: ignore[valid-type]
        for name, kind in (
            ("confidence", Probability),
            ("tokens", Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]),
            ("duration", Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]),
        )
    }
)


def own_kind(field: str, fields: Collection[str]) -> type | None:
    """The kind of value that the column of a field may hold instead of their texts, which then mean the same.

    The numbers of steps are that only where there is a ``state``, too; else they may be names.
    """
    return None if field == "step" and "state" not in fields else _OWN_KINDS.get(field)


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
    """The rows with values in the ``CONVERTED`` columns; of one in which some text or number is none, the texts."""
    columns = {name: _values(name, cells) if name in CONVERTED else cells for name, cells in block.columns.items()}
    return block._replace(columns=columns)


def _values(name: str, cells: list[Any]) -> list[Any]:
    try:
        if name == "error":
            return _truth_values(cells)
        if isinstance(cells[0], str):
            return _numbers(name, cells)
        numbers = _in_bounds(name, cells)
        if 0 in numbers:  # -0.0 is 0, as its text is
            return [None if number is None else number + 0 for number in numbers]
        return numbers
    except msgspec.ValidationError:
        return as_texts(cells)


def _truth_values(cells: list[Any]) -> list[bool]:
    values = {cell: step_value("error", cell) if isinstance(cell, str) else cell is True for cell in set(cells)}
    return [values[cell] for cell in cells]


def _numbers(name: str, texts: list[str]) -> list[Any]:
    """A column of texts as numbers: plain ones all at once."""
    try:
        numbers = _in_bounds(name, texts if "" not in texts else [text or "null" for text in texts], strict=False)
    except msgspec.ValidationError:
        pass  # it may be written in a way that is read one by one
    else:
        if "-" not in "".join(texts):  # of "-0.0" the sign counts
            return numbers
    return _in_bounds(name, [step_value(name, text) for text in texts])


def _in_bounds(name: str, cells: list[Any], *, strict: bool = True) -> list[Any]:
    values: list[Any] = msgspec.convert([cells], _COLUMN_TYPES[name], strict=strict).values
    return values
