"""What the texts in the columns of a flat trace file say of steps."""

from __future__ import annotations

import sys
from functools import lru_cache
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tracebridge.traces.model import Count, Probability, Seconds
from tracebridge.traces.problems import shown
from tracebridge.traces.readers.row_block import RowBlock

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

BLANK_WORDS = frozenset({"", "nan", "none", "null", "na", "n/a"})
CONVERTED = ("error", "confidence", "tokens", "duration")
"""The fields of a step that are no texts."""

_ERROR_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NUMBER_TYPES: Mapping[str, Any] = MappingProxyType({"confidence": Probability, "tokens": Count, "duration": Seconds})
BOUNDS: Mapping[str, float] = MappingProxyType({"confidence": 1, "tokens": 2**63 - 1, "duration": sys.float_info.max})
"""Numbers from 0 to these are known to be right; what is larger is looked into."""

# A column at once. Structs, because msgspec looks through their types once, and through that of a list each time.
_COLUMN_TYPES: Mapping[str, Any] = MappingProxyType(
    {
        name: msgspec.defstruct(
            f"_{name.title()}Column",
            [("values", list[Annotated[kind, msgspec.Meta(ge=0, le=BOUNDS[name])] | None])],  # type: ignore[valid-type]
            array_like=True,
        )
        for name, kind in (("confidence", float), ("tokens", int), ("duration", float))
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


def own_values(name: str, cells: Sequence[Any], fields: Collection[str]) -> Sequence[Any] | None:
    """A column of what may stand for texts in it, as a block holds it; None if some of it must be read as a text.

    That is the truth values and numbers of steps, None for no value; and where there are states, step numbers.
    """
    if name in BOUNDS:
        try:
            numbers = _in_bounds(name, cells)
        except (msgspec.ValidationError, OverflowError):
            return None
        if 0 in numbers:  # -0.0 is 0, as its text is
            return [None if number is None else number + 0 for number in numbers]
        return numbers
    if name == "error" and (kinds := set(map(type, cells))) <= {bool, NoneType}:
        return [cell is True for cell in cells] if NoneType in kinds else cells
    return cells if name == "step" and "state" in fields and set(map(type, cells)) == {int} else None


def with_values(block: RowBlock) -> RowBlock:
    """The rows with values in the ``CONVERTED`` columns; of one in which some text is no value, the texts."""
    columns = {
        name: _values(name, cells) if name in CONVERTED and isinstance(cells[0], str) else cells
        for name, cells in block.columns.items()
    }
    return block._replace(columns=columns)


def _values(name: str, texts: Sequence[str]) -> Sequence[Any]:
    try:
        if name == "error":
            values = {text: step_value("error", text) for text in set(texts)}
            return [values[text] for text in texts]
        return _numbers(name, texts)
    except msgspec.ValidationError:
        return texts


def _numbers(name: str, texts: Sequence[str]) -> Sequence[Any]:
    """A column of texts as numbers: plain ones all at once."""
    try:
        numbers = _in_bounds(name, texts if "" not in texts else [text or "null" for text in texts], strict=False)
    except msgspec.ValidationError:
        pass  # it may be written in a way that is read one by one
    else:
        if "-" not in "".join(texts):  # of "-0.0" the sign counts
            return numbers
    return _in_bounds(name, [step_value(name, text) for text in texts])


def _in_bounds(name: str, cells: Sequence[Any], *, strict: bool = True) -> list[Any]:
    values: list[Any] = msgspec.convert([cells], _COLUMN_TYPES[name], strict=strict).values
    return values
