"""What a record that cannot be read may have belonged to."""

from __future__ import annotations

from tracebridge.errors import Location, Problem
from tracebridge.traces.problems import escaped


class LostRecords:
    """Items or runs whose records stand in several lines, and that may have lost one: those beside an unreadable line.

    An item without one of its polls is another item, so that it is better left out than taken for whole.
    """

    def __init__(self) -> None:
        self._before: str | None = None
        self._lost: Location | None = None
        self._losers: dict[str, Location] = {}

    def add(self, place: Location) -> None:
        """A record cannot be read, nor whose it is."""
        if self._before is not None:
            self._losers.setdefault(self._before, place)
        self._lost = place

    def follows(self, name: str) -> None:
        """The next record that can be read is of this item or run."""
        if self._lost is not None:
            self._losers.setdefault(name, self._lost)
            self._lost = None
        self._before = name

    def problem(self, name: str) -> Problem | None:
        """Why an item or run may not be whole; None if nothing beside it was lost."""
        place = self._losers.get(name)
        if place is None:
            return None
        at = Location(path=place.path, line=place.line, record=escaped(name))
        return Problem(location=at, message="a record beside it cannot be read and may have been one of its own")
