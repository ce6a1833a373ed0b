"""Which column or key of a file of polls is which field."""

from __future__ import annotations

import difflib
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from tracebridge.errors import UsageError
from tracebridge.traces.readers.columns import NO_COLUMN, split_cells
from tracebridge.traces.sniff import plain_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

POLL_COLUMNS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "item": ("item", "item_id", "question_id", "trace_id", "problem_uid", "id"),
        "agent": ("agent", "agent_id", "model", "sender"),
        "candidate": ("candidate", "candidate_answer", "answer", "prediction"),
        "confidence": ("confidence", "stated_confidence", "confidence_level", "score"),
        "correct": ("correct", "is_correct", "grade"),
        "parse_ok": ("parse_ok", "parse_succeeded"),
        "gold": ("gold", "gold_answer", "reference"),
        "problem": ("problem_uid", "problem", "problem_id"),
        "problem_text": ("problem_text", "question"),
        "cluster": ("cluster_id", "cluster"),
        "tier": ("tier", "difficulty", "level"),
        "benchmark": ("benchmark", "dataset"),
    }
)
"""The fields of a poll, and the names that stand for them when no mapping names another."""

ITEM_FIELDS = ("gold", "problem", "problem_text", "cluster", "tier", "benchmark")
"""The fields that belong to the item, and are the same for all of its polls."""

_DELIMITERS = ",;\t|"


def find_poll_columns(names: Collection[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """The column of each field that has one; a column that the mapping names serves no other field."""
    alike: dict[str, str] = {}
    for column in names:
        alike.setdefault(plain_name(column), column)

    def find(column: str) -> str | None:
        return column if column in names else alike.get(plain_name(column))

    taken = {find(column) for column in mapping.values()}
    columns: dict[str, str] = {}
    for name, usual in POLL_COLUMNS.items():
        if name in mapping:
            candidates = [] if mapping[name] == NO_COLUMN else [find(mapping[name])]
        else:
            candidates = [column for column in map(find, usual) if column not in taken]
        found = next((column for column in candidates if column is not None and column not in columns.values()), None)
        if found is not None:
            columns[name] = found
    return columns


def split_poll_header(line: str, mapping: Mapping[str, str]) -> tuple[list[str], str]:
    """The column names in a header line, and the delimiter: the one that makes the most of them known fields."""
    splits = [(split_cells(line, delimiter), delimiter) for delimiter in _DELIMITERS]
    return max(splits, key=lambda split: (len(find_poll_columns(split[0], mapping)), len(split[0])))


def check_poll_mapping(mapping: Mapping[str, str]) -> None:
    """Refuse a mapping of fields to columns that names an unknown field, or one column twice.

    Raises:
        UsageError: with the field that was probably meant, or all of them.
    """
    for name in mapping:
        if name not in POLL_COLUMNS:
            close = difflib.get_close_matches(name, POLL_COLUMNS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the fields are {', '.join(POLL_COLUMNS)}"
            raise UsageError(f"{name!r} is no field of a poll; {hint}")
    for column, count in Counter(mapping.values()).items():
        if count > 1 and column != NO_COLUMN:
            raise UsageError(f"the column {column!r} is mapped to {count} fields")
