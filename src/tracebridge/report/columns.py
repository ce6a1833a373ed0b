"""Tables in columns of plain text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from tracebridge.report.markdown import printable


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in columns of plain text, indented."""
    shown = [[printable(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        ("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip() for row in shown
    ]
