"""When the runs of a corpus began, as far as they say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from tracebridge.traces.readers.instants import INSTANT_PATTERN

# Checked where they are decoded: by tallies that come back from a file, and by the schema of results.
Instant = Annotated[str, Meta(pattern=INSTANT_PATTERN)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDates:
    """The span of time in which runs began; two of them add up.

    Attributes:
        n_runs: runs that say when they began.
        first, last: the earliest and the latest instant, as ``2026-01-02T03:04:05Z``; None without such a run.

    Raises:
        ValueError: for what no runs can say.
    """

    n_runs: Annotated[int, Meta(ge=0, lt=2**60)] = 0
    first: Instant | None = None
    last: Instant | None = None

    def __post_init__(self) -> None:
        if self.n_runs == 0:
            if (self.first, self.last) != (None, None):
                raise ValueError("runs without dates have a first or a last date")
        elif self.first is None or self.last is None or not self.first <= self.last:
            raise ValueError(f"the dates of {self.n_runs} runs are from {self.first!r} to {self.last!r}")

    def including(self, began: str) -> RunDates:
        """These dates with that of one more run."""
        first, last = min(self.first or began, began), max(self.last or began, began)
        return RunDates(n_runs=self.n_runs + 1, first=first, last=last)

    def __add__(self, other: RunDates) -> RunDates:
        if not isinstance(other, RunDates):
            return NotImplemented
        ends = [each for each in (self.first, other.first, self.last, other.last) if each is not None]
        return RunDates(n_runs=self.n_runs + other.n_runs, first=min(ends, default=None), last=max(ends, default=None))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"n_runs": self.n_runs, "first": self.first, "last": self.last}


def dates_text(dates: Mapping[str, Any], n_runs: int) -> str:
    """What ``RunDates.to_dict`` says of ``n_runs`` runs, for a reader."""
    n_dated, first, last = dates["n_runs"], dates["first"], dates["last"]
    if not n_dated or first is None or last is None:
        return "not recorded"
    span = f"at {first}" if first == last else f"from {first} to {last}"
    return span if n_dated == n_runs else f"{span} ({n_dated} of {n_runs} runs; of the others it is not recorded)"
