"""What the headline numbers would be if runs that were cut, or failed for a reason, counted as something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracebridge.checking.result import number_from_json
from tracebridge.report.ending_choices import MAX_COLUMNS
from tracebridge.report.html.data_table import Cell, Column, DataTable
from tracebridge.report.html.recorded_numbers import number_text

Document = Mapping[str, Any]

_MEANING = {"failure": "failures", "censored": "censored", "drop": "left out"}


def ending_choice_table(choices: Document, properties: Sequence[str]) -> DataTable:
    """The numbers as they are, and one row a choice.

    Args:
        choices: of the results. properties: names, in the order of the results; the first few have a column.
    """
    tried = [choices["present"], *(each["numbers"] for each in choices["choices"])]
    shown = properties[: MAX_COLUMNS if any(each["properties"] for each in tried) else 0]
    columns = [
        Column("runs that ended by"),
        Column("runs"),
        Column("counted as"),
        *(Column(head, numeric=True) for head in ("pass rate", "R_inf", "MTTA", *shown)),
    ]
    rows = [[Cell("as it is"), Cell(""), Cell(""), *_numbers(choices["present"], len(shown))]]
    rows += [
        [
            Cell("all censored runs" if each["reason"] is None else each["reason"] or "(no reason given)"),
            Cell(_runs(each)),
            Cell(_MEANING[each["counted_as"]]),
            *_numbers(each["numbers"], len(shown)),
        ]
        for each in choices["choices"]
    ]
    return DataTable(
        caption="Headline numbers of the first-order chain under other choices of what runs count as",
        columns=columns,
        rows=rows,
    )


def ending_choice_remarks(choices: Document) -> list[str]:
    """What was left out, and why there are no numbers under a choice."""
    tried = [choices["present"], *(each["numbers"] for each in choices["choices"])]
    missing = [f"none: {each['missing']}" for each in tried if each["missing"]]
    return [*choices["notes"], *dict.fromkeys(missing)]


def _runs(choice: Document) -> str:
    return ", ".join(f"{choice[kind]} {kind}" for kind in ("failed", "censored") if choice[kind])


def _numbers(numbers: Document, n_properties: int) -> list[Cell]:
    rate = numbers["pass_rate"]
    first = Cell("no run") if rate is None else Cell(f"{float(number_from_json(rate)):.4f}")
    if numbers["R_inf"] is None or numbers["MTTA"] is None:
        return [first, Cell("none"), Cell("none"), *[Cell("")] * n_properties]
    values = list(numbers["properties"][:n_properties]) or [None] * n_properties
    return [first, *map(_cell, [numbers["R_inf"], numbers["MTTA"], *values])]


def _cell(value: float | str | bool | None) -> Cell:
    if value is None:
        return Cell("")
    return Cell(str(value).lower() if isinstance(value, bool) else number_text(value))
