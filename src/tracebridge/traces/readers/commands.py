"""The name of a step that is a shell command."""

from __future__ import annotations

from tracebridge.traces.problems import escaped

_MAX_NAME = 100


def command_name(text: str) -> str | None:
    """The first word of a command, as it names a step; None where there is no word."""
    word = text.split(maxsplit=1)[:1]
    return escaped(word[0], _MAX_NAME) if word else None
