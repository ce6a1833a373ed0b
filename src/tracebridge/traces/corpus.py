"""A corpus of traces in memory, with what there is to know about the files it came from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracebridge.html_table import html_table
from tracebridge.traces.model import Outcome, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracebridge.errors import Problem
    from tracebridge.traces.ending_counts import EndingCount


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """A file that was read.

    Attributes:
        path: the file's name, below the folder that was given if one was; with more of its path where that is needed
            to tell it apart from another file, and with bytes and characters that do not print escaped.
        format: the name of its format.
        sha256: of the stored bytes, as ``sha256sum`` gives it. n_bytes: how many these are.
        n_records: the traces that were taken from it.
    """

    path: str
    format: str
    sha256: str
    n_bytes: int
    n_records: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "path": self.path,
            "format": self.format,
            "bytes": self.n_bytes,
            "sha256": self.sha256,
            "n_records": self.n_records,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSet:
    """Traces in the order of their files and records.

    Attributes:
        traces: at least one.
        files: the files they came from.
        problems: what was wrong with the records that were skipped.
        notes: what the user should know about the records that were kept.
        n_skipped: how many records, or whole files, were skipped.
        endings: for each reason that runs ended for, what their sources say and what they count as.
    """

    traces: tuple[Trace, ...]
    files: tuple[TraceFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    n_skipped: int = 0
    endings: Mapping[str, EndingCount] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.traces)

    def __iter__(self) -> Iterator[Trace]:
        return iter(self.traces)

    def outcomes(self) -> dict[str, int]:
        """How many runs ended in success, failure and censored, in this order."""
        counts = Counter(trace.outcome for trace in self.traces)
        return {outcome.value: counts[outcome] for outcome in Outcome}

    def to_records(self) -> list[dict[str, Any]]:
        """One row a run, for a data frame."""
        return [
            {
                "trace_id": trace.trace_id,
                "task_id": trace.task_id,
                "trial": trace.trial,
                "model": trace.model,
                "outcome": trace.outcome.value,
                "termination": trace.termination,
                "n_steps": len(trace.steps),
                "n_errors": sum(step.error for step in trace.steps),
                "source": trace.source,
            }
            for trace in self.traces
        ]

    def to_dict(self) -> dict[str, Any]:
        """Where the corpus came from, without the traces themselves (``write_traces`` writes those)."""
        return {
            "schema_version": 1,
            "n_traces": len(self.traces),
            "outcomes": self.outcomes(),
            "files": [file.to_dict() for file in self.files],
            "problems": [str(problem) for problem in self.problems],
            "notes": [str(note) for note in self.notes],
            "n_skipped": self.n_skipped,
            "endings": {reason: count.to_dict() for reason, count in self.endings.items()},
        }

    def __repr__(self) -> str:
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes().items())
        return f"<TraceSet of {len(self.traces)} runs: {outcomes}; {self.n_skipped} skipped>"

    def _repr_html_(self) -> str:
        columns = ("trace_id", "task_id", "trial", "outcome", "termination", "n_steps", "n_errors")
        rows = [[record[column] for column in columns] for record in self.to_records()]
        return html_table(columns, rows, caption=repr(self)[1:-1], noun="runs")
