"""What shells complete of arguments and options: words that are looked for when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completing(words: Callable[[], Iterable[str]], *, or_a_file: bool = False) -> Completion:
    """What shells complete of a parameter that takes these words among others; they are looked for when asked for."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        files = [CompletionItem(incomplete, type="file")] if or_a_file else []
        return files + [CompletionItem(word) for word in words() if word.startswith(incomplete)]

    return complete


def known_formats() -> Iterable[str]:
    """The names of the formats of traces, those of plug-ins among them."""
    from tracebridge.traces import known_readers

    return known_readers()
