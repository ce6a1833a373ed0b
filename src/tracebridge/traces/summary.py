"""What a corpus holds, counted in one pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import compress, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tracebridge.errors import NothingToCheckError
from tracebridge.traces.model import Outcome
from tracebridge.traces.readers.instants import STARTED, instant
from tracebridge.traces.run_dates import RunDates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracebridge.traces.model import Trace

MAX_NAMES = 10_000
_name_of = attrgetter("name")
_error_of = attrgetter("error")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCount:
    """How often a step occurs, and how often with an error."""

    n: int
    n_errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """Counts over a corpus.

    Attributes:
        n_runs: runs.
        n_steps: steps of all runs.
        outcomes: runs by outcome, in the order success, failure, censored.
        terminations: runs by termination reason; those that have none are not in it.
        length_min: steps of the shortest run.
        length_median: the median number of steps, the mean of the middle two for an even number of runs.
        length_mean: steps per run.
        length_max: steps of the longest run.
        lengths: runs by number of steps.
        steps: by step name, the most frequent first.
        n_other_names_steps: steps whose names came after the first 10,000 different ones, counted together.
        n_tasks: different tasks.
        runs_per_task: tasks by their number of runs.
        n_without_task: runs that name no task.
        models: runs by model; those that name none are not in it.
        dates: when runs began, by their attribute ``started``; those of which it is no instant are not in it.
    """

    n_runs: int
    n_steps: int
    outcomes: Mapping[str, int]
    terminations: Mapping[str, int]
    length_min: int
    length_median: float
    length_mean: float
    length_max: int
    lengths: Mapping[int, int]
    steps: Mapping[str, StepCount]
    n_other_names_steps: int
    n_tasks: int
    runs_per_task: Mapping[int, int]
    n_without_task: int
    models: Mapping[str, int]
    dates: RunDates

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "schema_version": 1,
            "n_runs": self.n_runs,
            "n_steps": self.n_steps,
            "outcomes": dict(self.outcomes),
            "terminations": dict(self.terminations),
            "length": {
                "min": self.length_min,
                "median": self.length_median,
                "mean": self.length_mean,
                "max": self.length_max,
            },
            "lengths": {str(length): runs for length, runs in self.lengths.items()},
            "steps": {name: {"n": count.n, "n_errors": count.n_errors} for name, count in self.steps.items()},
            "n_other_names_steps": self.n_other_names_steps,
            "n_tasks": self.n_tasks,
            "runs_per_task": {str(runs): tasks for runs, tasks in self.runs_per_task.items()},
            "n_without_task": self.n_without_task,
            "models": dict(self.models),
            "dates": self.dates.to_dict(),
        }


class TraceTally:
    """Counts traces as they pass by, on their way to something else.

    Memory is bounded by the tasks, by 10,000 step names, and by the different run lengths (of which there are at most
    about the square root of twice the number of steps).
    """

    def __init__(self) -> None:
        self._outcomes: Counter[Outcome] = Counter()
        self._terminations: Counter[str] = Counter()
        self._lengths: Counter[int] = Counter()
        self._steps: Counter[str] = Counter()  # by name, in the order of first occurrence
        self._errors: Counter[str] = Counter()
        self._tasks: Counter[str] = Counter()
        self._models: Counter[str] = Counter()
        self._dates = RunDates()
        self._n_other = 0

    def add(self, trace: Trace) -> Trace:
        """Count a trace, and hand it on."""
        self._outcomes[trace.outcome] += 1
        self._lengths[len(trace.steps)] += 1
        if trace.termination is not None:
            self._terminations[trace.termination] += 1
        if trace.task_id is not None:
            self._tasks[trace.task_id] += 1
        if trace.model is not None:
            self._models[trace.model] += 1
        if (began := instant(trace.attributes.get(STARTED))) is not None:
            self._dates = self._dates.including(began)
        names = list(map(_name_of, trace.steps))
        self._steps.update(names)  # counts in C: this is on the way of every step
        self._errors.update(compress(names, map(_error_of, trace.steps)))
        if len(self._steps) > 2 * MAX_NAMES:
            self._keep_first_names()
        return trace

    def _keep_first_names(self) -> None:
        """Forget all names but the first `MAX_NAMES`; one that is forgotten stays behind them if it comes again."""
        for name in list(islice(self._steps, MAX_NAMES, None)):
            self._n_other += self._steps.pop(name)
            self._errors.pop(name, None)

    def update(self, later: TraceTally) -> None:
        """Count what another tally has counted, after what this one has.

        The names that are kept are those of one pass over both, unless the later one forgot some of its own: it does
        beyond 20,000 different ones.
        """
        for mine, other in zip(self._counters(), later._counters(), strict=True):
            mine.update(other)
        self._dates += later._dates
        self._n_other += later._n_other
        if len(self._steps) > 2 * MAX_NAMES:
            self._keep_first_names()

    @property
    def n_runs(self) -> int:
        """The traces counted so far."""
        return self._outcomes.total()

    @property
    def n_steps(self) -> int:
        """The steps of the traces counted so far."""
        return self._steps.total() + self._n_other

    def to_dict(self) -> dict[str, Any]:
        """JSON values; names stand in the order of their first occurrence."""
        return {
            "outcomes": {outcome.value: n for outcome, n in self._outcomes.items()},
            "terminations": dict(self._terminations),
            "lengths": {str(length): n for length, n in self._lengths.items()},
            "steps": dict(self._steps),
            "errors": dict(+self._errors),
            "tasks": dict(self._tasks),
            "models": dict(self._models),
            "dates": self._dates.to_dict(),
            "n_other": self._n_other,
        }

    @classmethod
    def from_dict(cls, data: Any) -> TraceTally:
        """Read `to_dict`'s values.

        Raises:
            msgspec.ValidationError: for other types, or a count below one.
            ValueError: for counts that no traces can have.
        """
        document = msgspec.convert(data, _Tally)
        tally = cls()
        tally._outcomes.update(document.outcomes)
        tally._terminations.update(document.terminations)
        tally._lengths.update({int(length): n for length, n in document.lengths.items()})
        tally._steps.update(document.steps)
        tally._errors.update(document.errors)
        tally._tasks.update(document.tasks)
        tally._models.update(document.models)
        tally._dates = document.dates
        tally._n_other = document.n_other
        n_runs = tally.n_runs
        if tally._lengths.total() != n_runs or sum(k * n for k, n in tally._lengths.items()) != tally.n_steps:
            raise ValueError("runs by length, runs by outcome and steps by name do not add up")
        if any(counter.total() > n_runs for counter in (tally._terminations, tally._tasks, tally._models)):
            raise ValueError("more runs have a reason, a task or a model than there are")
        if tally._dates.n_runs > n_runs:
            raise ValueError("more runs have a date than there are")
        if any(n > tally._steps[name] for name, n in document.errors.items()):
            raise ValueError("a step has more errors than occurrences")
        return tally

    def _counters(self) -> tuple[Counter[Any], ...]:
        return (
            self._outcomes,
            self._terminations,
            self._lengths,
            self._steps,
            self._errors,
            self._tasks,
            self._models,
        )

    def summary(self) -> TraceSummary:
        """The counts so far.

        Raises:
            NothingToCheckError: no trace has been counted.
        """
        self._keep_first_names()
        lengths = self._lengths
        n_runs = self._outcomes.total()
        if not n_runs:
            raise NothingToCheckError("there is no run to summarise")
        n_steps = sum(length * runs for length, runs in lengths.items())
        return TraceSummary(
            n_runs=n_runs,
            n_steps=n_steps,
            outcomes={outcome.value: self._outcomes[outcome] for outcome in Outcome},
            terminations=_by_frequency(self._terminations),
            length_min=min(lengths),
            length_median=(_kth_length(lengths, (n_runs - 1) // 2) + _kth_length(lengths, n_runs // 2)) / 2,
            length_mean=n_steps / n_runs,
            length_max=max(lengths),
            lengths=dict(sorted(lengths.items())),
            steps={name: StepCount(n=n, n_errors=self._errors[name]) for name, n in _by_frequency(self._steps).items()},
            n_other_names_steps=self._n_other,
            n_tasks=len(self._tasks),
            runs_per_task=dict(sorted(Counter(self._tasks.values()).items())),
            n_without_task=n_runs - self._tasks.total(),
            models=_by_frequency(self._models),
            dates=self._dates,
        )


_Positive = Annotated[int, msgspec.Meta(ge=1, lt=2**60)]


class _Tally(msgspec.Struct, forbid_unknown_fields=True):
    outcomes: dict[Outcome, _Positive]
    terminations: dict[str, _Positive]
    lengths: dict[Annotated[str, msgspec.Meta(pattern="^[0-9]{1,15}$")], _Positive]
    steps: dict[str, _Positive]
    errors: dict[str, _Positive]
    tasks: dict[str, _Positive]
    models: dict[str, _Positive]
    dates: RunDates
    n_other: Annotated[int, msgspec.Meta(ge=0, lt=2**60)]


def summarize(traces: Iterable[Trace]) -> TraceSummary:
    """Count a corpus in one pass, in the memory that :class:`TraceTally` takes.

    Raises:
        NothingToCheckError: there is no run.
    """
    tally = TraceTally()
    for trace in traces:
        tally.add(trace)
    return tally.summary()


def _by_frequency(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _kth_length(lengths: Mapping[int, int], k: int) -> int:
    """The k-th smallest run length, from 0."""
    for length, runs in sorted(lengths.items()):
        if k < runs:
            return length
        k -= runs
    raise IndexError(k)
