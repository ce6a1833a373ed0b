"""What is wrong with a model: problems without a place in a file, of which the first are shown and the rest counted."""

from __future__ import annotations

from collections.abc import Sequence

from tracebridge.errors import Location, ModelError, Problem

_SHOWN = 20


def problem(message: str, hint: str | None = None) -> Problem:
    """A problem of a model in memory; the message names the state."""
    return Problem(location=Location(), message=message, hint=hint)


def refuse_if_any(problems: Sequence[Problem]) -> None:
    """Raise the problems, if there are any.

    Raises:
        ModelError: with the first of them, and the number of the others.
    """
    if problems:
        extra = len(problems) - _SHOWN
        more = [problem(f"and {extra} more problems")] if extra > 0 else []
        raise ModelError([*problems[:_SHOWN], *more])
