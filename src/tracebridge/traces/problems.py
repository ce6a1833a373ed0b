"""What is wrong with, or worth knowing about, the trace files: collected while they are read, with a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.errors import Location, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence


class ProblemLog:
    """Problems (a record cannot be used) and notes (it can, but the user should know).

    The first ``limit`` of each are kept; all of them are counted.

    Attributes:
        problems: in the order found.
        notes: in the order found.
        n_problems: how many problems there were, kept or not.
        n_notes: how many notes there were, kept or not.
        n_skipped: how many records or whole files the problems made unusable.
    """

    __slots__ = ("limit", "n_notes", "n_problems", "n_skipped", "notes", "problems")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []
        self.n_problems = 0
        self.n_notes = 0
        self.n_skipped = 0

    def refuse(self, problems: Problem | Sequence[Problem]) -> None:
        """Count one record as unusable, for one or more reasons."""
        found = [problems] if isinstance(problems, Problem) else problems
        self.n_skipped += 1
        self.n_problems += len(found)
        self.problems.extend(found[: self.limit - len(self.problems)])

    def note(self, note: Problem) -> None:
        """Remember a remark on a record or file that stays usable."""
        self.n_notes += 1
        if len(self.notes) < self.limit:
            self.notes.append(note)

    def update(self, later: ProblemLog) -> None:
        """Add what another log has found, after what this one has."""
        self.problems.extend(later.problems[: self.limit - len(self.problems)])
        self.notes.extend(later.notes[: self.limit - len(self.notes)])
        self.n_problems += later.n_problems
        self.n_notes += later.n_notes
        self.n_skipped += later.n_skipped

    def listing(self) -> list[Problem]:
        """The kept problems and, as the last entry, how many more there were."""
        beyond = self.n_problems - len(self.problems)
        if not beyond:
            return list(self.problems)
        more = Problem(location=Location(), message=f"and {counted(beyond, 'more problem')}")
        return [*self.problems, more]


def counted(number: int, noun: str) -> str:
    """``1 run``, ``2 runs``: a number and the noun it counts, whose plural ends in ``s``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def escaped(text: str, limit: int = 60) -> str:
    """A name as a message shows it: on one line, what does not print escaped, cut."""
    if len(text) <= limit and text.isprintable():
        return text
    printable = text[:limit]
    if not printable.isprintable():
        printable = "".join(char if char.isprintable() else repr(char)[1:-1] for char in printable)
    return printable if len(text) <= limit else printable + "…"


def shown(value: object, limit: int = 60) -> str:
    """A value as a message shows it: on one line, control characters escaped, cut; of a container only its type."""
    if isinstance(value, str):
        return f"'{escaped(value, limit)}'"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    return repr(value) if isinstance(value, int | float) else f"a {type(value).__name__}"
