"""What reaches the terminal: tables and messages, always free of control characters that came from input."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

#: Tables fit this many columns.
WIDTH = 100


def clean(text: str) -> str:
    """The text with control characters made visible, so that input cannot drive the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def say(message: str) -> None:
    """A line for the reader, on standard error: it never mixes with a document on standard output."""
    click.echo(clean(message), err=True)


def emit(document: Any) -> None:
    """The JSON document of a verb, alone on standard output."""
    click.echo(json.dumps(document, indent=1, allow_nan=False))


def write(text: str) -> None:
    """Text that is the result of a verb, on standard output."""
    click.echo(clean(text), nl=not text.endswith("\n"))


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    styles: dict[str, str] | None = None,
) -> None:
    """A table of plain text on standard output; ``styles`` colours cells that hold exactly that text."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(clean(cell), style=(styles or {}).get(cell, "")) for cell in row))
    _console(sys.stdout).print(table)


def _console(stream: Any) -> Console:
    from rich.console import Console

    return Console(
        file=stream,
        width=min(WIDTH, _terminal_width(stream)),
        highlight=False,
        no_color=bool(os.environ.get("NO_COLOR")),  # set to nothing it asks for nothing
    )


def _terminal_width(stream: Any) -> int:
    if not stream.isatty():
        return WIDTH
    return os.get_terminal_size(stream.fileno()).columns or WIDTH  # a terminal without a size says zero


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """One changing line on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda message: None
        return
    from rich.text import Text

    with _console(sys.stderr).status("") as status:
        yield lambda message: status.update(Text(clean(message)))
