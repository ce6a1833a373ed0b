"""Which column of a flat trace file is which field."""

from __future__ import annotations

import csv
import difflib
from collections import Counter
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from tracebridge.errors import UsageError
from tracebridge.traces.sniff import plain_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

COLUMNS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "run_id": ("run_id", "trace_id"),
        "step": ("step",),
        "state": ("state",),
        "outcome": ("outcome",),
        "termination": ("termination",),
        "task": ("task", "task_id"),
        "trial": ("trial",),
        "model": ("model",),
        "kind": ("kind",),
        "text": ("text",),
        "error": ("error",),
        "confidence": ("confidence",),
        "tokens": ("tokens",),
        "duration": ("duration",),
    }
)
"""The fields of a row, and the column names that stand for them when no mapping names another."""

ATTRIBUTE_PREFIX = "attributes."
"""A mapping of ``attributes.NAME`` to a column makes it the attribute NAME of runs; no column is one by itself."""

NO_COLUMN = "-"
"""What a mapping gives as the column of a field that is not to be read from any."""

_DELIMITERS = ",;\t|"


def find_columns(names: Collection[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """The column of each field that has one; a column that the mapping names serves no other field.

    Names are compared as :func:`~tracebridge.traces.sniff.plain_name` has them; one that is equal as it stands wins.
    """
    alike: dict[str, str] = {}
    for column in names:
        alike.setdefault(plain_name(column), column)
    present = set(names)

    def find(column: str) -> str | None:
        return column if column in present else alike.get(plain_name(column))

    taken = {find(column) for column in mapping.values()}
    columns: dict[str, str] = {}
    fields = dict(COLUMNS) | {name: () for name in mapping if _is_attribute(name)}
    for name, usual in fields.items():
        if name in mapping:
            candidates = [] if mapping[name] == NO_COLUMN else [find(mapping[name])]
        else:
            candidates = [column for column in map(find, usual) if column not in taken]
        found = next((column for column in candidates if column is not None), None)
        if found is not None and found not in columns.values():
            columns[name] = found
    return columns


@lru_cache(maxsize=256)
def columns_of_keys(keys: frozenset[str], mapping: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """As `find_columns` of the keys in order; many files have the same."""
    return MappingProxyType(find_columns(sorted(keys), dict(mapping)))


def absent_columns(fields: Collection[str], mapping: Mapping[str, str]) -> list[str]:
    """The columns that the mapping names and that are not there, where ``fields`` have one."""
    return [column for name, column in mapping.items() if name not in fields and column != NO_COLUMN]


def split_cells(line: str, delimiter: str) -> list[str]:
    """The stripped cells of one line, as far as it can be split; none where it cannot."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def split_header(line: str, mapping: Mapping[str, str]) -> tuple[list[str], str]:
    """The column names in a header line, and the delimiter: the one that makes the most of them known fields."""
    splits = [(split_cells(line, delimiter), delimiter) for delimiter in _DELIMITERS]
    return max(splits, key=lambda split: (len(find_columns(split[0], mapping)), len(split[0])))


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Refuse a mapping of fields to columns that names an unknown field, or one column twice.

    Raises:
        UsageError: with the field that was probably meant, or all of them.
    """
    for name in mapping:
        if name not in COLUMNS and not _is_attribute(name):
            close = difflib.get_close_matches(name, COLUMNS, n=1)
            hint = (
                f"did you mean {close[0]}?" if close else f"the fields are {', '.join(COLUMNS)}, {ATTRIBUTE_PREFIX}NAME"
            )
            raise UsageError(f"{name!r} is no field of a flat trace; {hint}")
    for column, count in Counter(mapping.values()).items():
        if count > 1 and column != NO_COLUMN:
            raise UsageError(f"the column {column!r} is mapped to {count} fields")


def _is_attribute(name: str) -> bool:
    return name.startswith(ATTRIBUTE_PREFIX) and len(name) > len(ATTRIBUTE_PREFIX)
