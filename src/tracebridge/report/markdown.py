"""Pieces of GitHub-flavoured Markdown; whatever comes from the input is shown literally."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tracebridge.html_table import visible


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with escaped cells."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(escape(cell) if cell != "---" else cell for cell in line) + " |" for line in lines
    )


def escape(text: str) -> str:
    """Text from the input as Markdown shows it literally, on one line; also GitHub's, with its links and formulas."""
    return re.sub(r"([\\`*_\[\]<>|#~$&]|:(?=//)|(?<=www)\.)", r"\\\1", printable(text))


def code(text: str) -> str:
    """Text from the input as code within a line, its backquotes as apostrophes."""
    return f"`{printable(text).replace('`', chr(39))}`"


def printable(text: str) -> str:
    """The text on one line, with control characters made visible."""
    return visible(text)


def bullets(items: Iterable[str]) -> str:
    """A list of items that are Markdown already."""
    return "\n".join(f"- {item}" for item in items)
