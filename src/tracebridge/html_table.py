"""Small tables and sentences in HTML, as a notebook shows objects: escaped, short, with no script and no style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape

#: Longer tables say how many rows are left out.
SHOWN_ROWS = 30

_LONGEST_CELL = 200
_DIGITS_OF_FRACTION = 12


def html_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    caption: str | None = None,
    noun: str = "rows",
    total: int | None = None,
) -> str:
    """A table of the first `SHOWN_ROWS` rows.

    Args:
        heads: of the columns. rows: texts, numbers, truth values; None is an empty cell. caption: above it.
        noun: what a row is, in the plural. total: how many there are, if ``rows`` are only the first of them.
    """
    above = "" if caption is None else f"<caption>{html_text(caption)}</caption>"
    head = "".join(f"<th>{html_text(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows[:SHOWN_ROWS])
    beyond = (len(rows) if total is None else total) - min(len(rows), SHOWN_ROWS)
    return f"<table>{above}<tr>{head}</tr>{body}</table>{f'<p>and {beyond} more {noun}</p>' if beyond > 0 else ''}"


def html_paragraph(text: str, notes: Iterable[str] = ()) -> str:
    """A sentence, and a list below it."""
    items = "".join(f"<li>{html_text(note)}</li>" for note in notes)
    return f"<p>{html_text(text)}</p>{f'<ul>{items}</ul>' if items else ''}"


def html_text(text: str) -> str:
    """Text as HTML shows it literally, with control characters made visible."""
    return escape(visible(text))


def visible(text: str) -> str:
    """The text on one line, with control characters as ``\\u{1b}``."""
    return "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in text)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Fraction):
        bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        if bits > 3 * _DIGITS_OF_FRACTION:
            return f"{float(value):.6g}" if bits < 1_000 else "a long fraction"
    text = str(value)
    return html_text(text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}…")
