"""When a run began, in one form whatever its source writes: ISO 8601 in UTC, whole seconds, ``2026-01-02T03:04:05Z``.

The fraction of a second is cut off. A text without an offset is taken as UTC: it is the clock of the machine that ran,
whose zone is not on record. What cannot be read is None, never a guess: a date without a time of day, a time that does
not exist, and the beginning of 1970 or before, which is how programs write a time that they do not know.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

STARTED = "started"
"""The attribute of a run that says when it began."""

INSTANT_PATTERN = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
"""The form of an instant. All are of one width, so that the order of the texts is that of time."""

_NANOSECONDS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})[T ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?)"
    r"(?:Z|(?P<sign>[+-])(?P<hours>[0-9]{2})(?::?(?P<minutes>[0-5][0-9]))?)?"
)
_SHORTEST, _LONGEST = len("2026-01-02T03:04"), 64


def instant(value: object) -> str | None:
    """The instant that an ISO 8601 text names: date, ``T`` or a space, time of day, and the offset if there is one."""
    if not isinstance(value, str) or not _SHORTEST <= len(value) <= _LONGEST:
        return None
    found = _ISO.fullmatch(value.strip().upper())
    if found is None:
        return None
    try:
        local = datetime.fromisoformat(f"{found['day']}T{found['time'][:8]}+00:00")
        offset = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
        return _written(local + offset if found["sign"] == "-" else local - offset)
    except (ValueError, OverflowError):  # no such day or hour; or beyond the years 1 to 9999
        return None


def instant_of_seconds(value: object) -> str | None:
    """The instant that is so many seconds after the beginning of 1970 in UTC."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return _written(_EPOCH + timedelta(seconds=value // 1))
    except (ValueError, OverflowError):  # not a number; or beyond the year 9999
        return None


def instant_of_nanoseconds(value: int) -> str | None:
    """The instant that is so many nanoseconds after the beginning of 1970 in UTC."""
    return instant_of_seconds(value // _NANOSECONDS)


def first_instant(values: Iterable[object]) -> str | None:
    """The instant of the first text that names one."""
    return next((found for value in values if value is not None and (found := instant(value)) is not None), None)


def started(at: str | None) -> dict[str, str]:
    """The attributes that say that a run began at an instant; none where it is not known."""
    return {} if at is None else {STARTED: at}


def _written(at: datetime) -> str | None:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z") if at > _EPOCH else None
