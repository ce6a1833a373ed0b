"""TaskCounts: successes and trials of each task, which is all that repeated trials are judged by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import NothingToCheckError, UsageError
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.traces.model import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCounts:
    """Successes and completed trials of each task.

    Attributes:
        tasks: unique names, ascending. successes, trials: of each task; a task has one trial at least.
        n_censored: runs left out because their end was not seen. n_without_task: runs left out that name no task.

    Raises:
        UsageError: for counts that do not fit.
    """

    tasks: tuple[str, ...]
    successes: tuple[int, ...]
    trials: tuple[int, ...]
    n_censored: int = 0
    n_without_task: int = 0

    def __post_init__(self) -> None:
        if not len(self.tasks) == len(self.successes) == len(self.trials):
            raise UsageError("each task has a number of successes and a number of trials")
        if list(self.tasks) != sorted(set(self.tasks)):
            raise UsageError("tasks are unique and in ascending order")
        for task, c, n in zip(self.tasks, self.successes, self.trials, strict=True):
            if n < 1 or not 0 <= c <= n:
                raise UsageError(f"task {task!r} has {c} successes in {n} trials")

    @classmethod
    def from_traces(cls, traces: Iterable[Trace]) -> TaskCounts:
        """Count runs by their task; censored runs, and runs that name no task, are left out and counted."""
        found: dict[str, list[int]] = {}
        censored = without = 0
        for trace in traces:
            if trace.outcome is Outcome.CENSORED:
                censored += 1
            elif trace.task_id is None:
                without += 1
            else:
                count = found.setdefault(trace.task_id, [0, 0])
                count[0] += trace.outcome is Outcome.SUCCESS
                count[1] += 1
        tasks = tuple(sorted(found))
        return cls(
            tasks=tasks,
            successes=tuple(found[task][0] for task in tasks),
            trials=tuple(found[task][1] for task in tasks),
            n_censored=censored,
            n_without_task=without,
        )

    def with_trials(self, k: int) -> TaskCounts:
        """Only the tasks with k trials or more."""
        kept = [i for i, n in enumerate(self.trials) if n >= k]
        return TaskCounts(
            tasks=tuple(self.tasks[i] for i in kept),
            successes=tuple(self.successes[i] for i in kept),
            trials=tuple(self.trials[i] for i in kept),
            n_censored=self.n_censored,
            n_without_task=self.n_without_task,
        )


@dataclass(frozen=True, slots=True, eq=False)
class TaskTable:
    """Distinct pairs of successes and trials, and how many tasks have them; each of shape (G,)."""

    c: NDArray[np.int64]
    n: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, counts: TaskCounts) -> TaskTable:
        """The distinct pairs, in ascending order. Raises NothingToCheckError for no task."""
        if not counts.tasks:
            raise NothingToCheckError("there is no completed trial of a named task")
        pairs, weights = np.unique(np.array([counts.successes, counts.trials]).T, axis=0, return_counts=True)
        return cls(pairs[:, 0], pairs[:, 1], weights.astype(np.float64))
