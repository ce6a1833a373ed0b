"""A Trace-Audit Card for people, in GitHub-flavoured Markdown; text from the input is shown literally."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracebridge.confidence.card import UNAVAILABLE
from tracebridge.confidence.card_fields import CARD_GROUPS, CARD_SCHEMA
from tracebridge.report import markdown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.confidence.card import AuditCard

_DIGITS = 4
_NAMING = ("name", "term", "mode", "sigma")


def card_markdown(card: AuditCard) -> str:
    """The card as Markdown: a table for each group, one line a field, tables within a field flattened."""
    lines = ["# Trace-Audit Card", "", f"Format {CARD_SCHEMA}. Undefined is undefined, never zero.", ""]
    for name, group in CARD_GROUPS.items():
        fields = card.groups.get(name, {})
        if not fields:
            continue
        rows = [
            [label, text, "" if place else field.meaning]
            for field in group.fields
            if fields.get(field.name) is not None
            for place, (label, text) in enumerate(_rows(field.name, fields[field.name]))
        ]
        lines += [f"## {group.heading}", "", markdown.table(["field", "value", "meaning"], rows), ""]
    return "\n".join(lines)


def _rows(label: str, value: Any) -> Iterator[tuple[str, str]]:
    """The lines of a value: one for a plain value, a metric or a list of plain values, else one for each part."""
    if isinstance(value, dict) and "value" in value:
        yield label, _metric(value)
    elif isinstance(value, dict) and UNAVAILABLE in value:
        yield label, f"unavailable: {value[UNAVAILABLE]}"
    elif isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _rows(f"{label} / {key}", item)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for name, item in zip(_names(value), value, strict=True):
            yield from _rows(f"{label} / {name}", item)
    elif isinstance(value, list):
        yield label, ", ".join(map(_plain, value)) or "none"
    else:
        yield label, _plain(value)


def _names(items: list[Any]) -> list[str]:
    """What tells the items of a list apart: a key that each of them has another value of, else their places."""
    for key in _NAMING:
        names = [_plain(item[key]) for item in items if isinstance(item, dict) and key in item]
        if len(set(names)) == len(items):
            return names
    return [str(place) for place in range(len(items))]


def _metric(metric: dict[str, Any]) -> str:
    units = f"n = {_plain(metric['n'])} {metric['denominator_name']}"
    if metric.get("n_dropped"):
        units += f", {_plain(metric['n_dropped'])} left out"
    if metric["value"] in (None, "NaN"):
        return f"undefined: {metric['reason']} ({units})"
    text = f"{metric['value']:.{_DIGITS}g}"
    ends = [metric.get("lower"), metric.get("upper")]
    if all(isinstance(end, int | float) for end in ends):
        text += f" [{ends[0]:.{_DIGITS}g}, {ends[1]:.{_DIGITS}g}]"
    return f"{text} ({'; '.join(part for part in (units, metric.get('reason')) if part)})"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
