"""What the headline numbers would be under other choices of what runs count as: as JSON, and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tracebridge.checking.result import number_to_json
from tracebridge.report.markdown import bullets, escape, table
from tracebridge.report.table import format_number

if TYPE_CHECKING:
    from tracebridge.inference.ending_choices import EndingChoice, EndingChoices, HeadlineNumbers

#: Properties that have a column; the results document has all.
MAX_COLUMNS = 5

_MEANING = {"failure": "failures", "censored": "censored", "drop": "left out"}


def ending_choices_to_dict(choices: EndingChoices) -> dict[str, Any]:
    """A JSON document; values of properties are in their order, and none where a fit is missing."""
    return {
        "present": _numbers(choices.present),
        "choices": [
            {
                "reason": each.reason,
                "failed": each.failed,
                "censored": each.censored,
                "counted_as": each.treatment,
                "numbers": _numbers(each.numbers),
            }
            for each in choices.choices
        ],
        "notes": list(choices.notes),
    }


def ending_choices_markdown(choices: EndingChoices, names: list[str]) -> Iterator[str]:
    """The table, and what was left out; ``names`` are those of the properties."""
    has_values = any(each.values for each in (choices.present, *(each.numbers for each in choices.choices)))
    shown = names[: MAX_COLUMNS if has_values else 0]
    yield (
        "Whether a run that was cut failed is a choice. What the numbers of the first-order chain would be if the runs "
        "that ended so were counted otherwise (a success is no matter of choice):"
    )
    rows = [["as it is", "", "", *_cells(choices.present, len(shown))]]
    rows += [
        [_reason(each), _runs(each), _MEANING[each.treatment], *_cells(each.numbers, len(shown))]
        for each in choices.choices
    ]
    yield table(["runs that ended by", "runs", "counted as", "pass rate", "R_inf", "MTTA", *shown], rows)
    lines = list(choices.notes)
    if len(names) > len(shown) > 0:
        lines.append(f"the other {len(names) - len(shown)} properties are in results.json")
    tried = (choices.present, *(each.numbers for each in choices.choices))
    lines += [f"none: {reason}" for reason in dict.fromkeys(each.missing for each in tried) if reason is not None]
    yield bullets(map(escape, lines))


def _numbers(numbers: HeadlineNumbers) -> dict[str, Any]:
    return {
        "pass_rate": None if numbers.pass_rate is None else str(number_to_json(numbers.pass_rate)),
        "R_inf": None if numbers.reliability is None else number_to_json(numbers.reliability),
        "MTTA": None if numbers.mean_time is None else number_to_json(numbers.mean_time),
        "properties": [
            value if value is None or isinstance(value, bool) else number_to_json(value) for value in numbers.values
        ],
        "missing": numbers.missing,
    }


def _reason(choice: EndingChoice) -> str:
    if choice.reason is None:
        return "all censored runs"
    return choice.reason or "(no reason given)"


def _runs(choice: EndingChoice) -> str:
    parts = [f"{choice.failed} failed"] if choice.failed else []
    parts += [f"{choice.censored} censored"] if choice.censored else []
    return ", ".join(parts)


def _cells(numbers: HeadlineNumbers, columns: int) -> list[str]:
    rate = "no run" if numbers.pass_rate is None else f"{float(numbers.pass_rate):.4f}"
    if numbers.reliability is None or numbers.mean_time is None:
        return [rate, "none", "none", *[""] * columns]
    values = list(numbers.values[:columns]) or [None] * columns
    return [rate, *map(_cell, (numbers.reliability, numbers.mean_time, *values))]


def _cell(value: float | bool | None) -> str:
    if value is None:
        return ""
    return ("true" if value else "false") if isinstance(value, bool) else format_number(value, 4)
