"""RunPaths: whole runs over named categories, for models that need to know more of a run than its transitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import ModelError
from tracebridge.states.features import OUTCOMES
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.states.abstraction import Abstraction
    from tracebridge.traces.model import Trace

    Integers = NDArray[np.integer]

SUCCESS, FAILURE, CENSORED = (OUTCOMES.index(o) for o in (Outcome.SUCCESS, Outcome.FAILURE, Outcome.CENSORED))

_BATCH_RUNS = 4_096


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunPaths:
    """Runs laid end to end: run r visits ``codes[offsets[r]:offsets[r + 1]]``. Four bytes a step.

    Attributes:
        states: m unique category names, ascending; all of them, also those that no run visits.
        codes: positions in ``states``, int32, shape (n_steps,).
        offsets: int64, shape (n_runs + 1,), from 0 to n_steps.
        outcomes: positions in `OUTCOMES`, int8, shape (n_runs,).
        tasks: the task of each run, numbered from 0; -1 where it is not known; int64, shape (n_runs,).
        task_names: names of the tasks, ascending.
        groups: a value of a covariate for each run, numbered from 0; int64, shape (n_runs,); zeros without one.
        group_names: names of the values, ascending, ``""`` for runs without the covariate; no names without a group.

    Raises:
        ModelError: for arrays that break this.
    """

    states: tuple[str, ...]
    codes: NDArray[np.int32]
    offsets: NDArray[np.int64]
    outcomes: NDArray[np.int8]
    tasks: NDArray[np.int64]
    task_names: tuple[str, ...] = ()
    groups: NDArray[np.int64]
    group_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n_runs, m = len(self.outcomes), len(self.states)
        offsets = self.offsets
        if list(self.states) != sorted(set(self.states)) or "" in self.states:
            raise ModelError("paths need unique state names, ascending and not empty")
        if offsets.shape != (n_runs + 1,) or offsets[0] != 0 or offsets[-1] != len(self.codes):
            raise ModelError(f"offsets of {n_runs} runs must go from 0 to the {len(self.codes)} steps")
        if (np.diff(offsets) < 0).any():
            raise ModelError("offsets of runs must not descend")
        limits = (
            ("codes", m, 0),
            ("outcomes", len(OUTCOMES), 0),
            ("tasks", len(self.task_names), -1),
            ("groups", max(1, len(self.group_names)), 0),
        )
        for name, above, least in limits:
            values = getattr(self, name)
            if name != "codes" and values.shape != (n_runs,):
                raise ModelError(f"{name} of {n_runs} runs have shape {values.shape}")
            if len(values) and (values.min() < least or values.max() >= above):
                raise ModelError(f"{name} must lie between {least} and {above - 1}")
            values.flags.writeable = False
        offsets.flags.writeable = False

    @classmethod
    def of_names(
        cls,
        paths: Iterable[tuple[Sequence[str], Outcome | str]],
        *,
        tasks: Sequence[str | None] | None = None,
        groups: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
    ) -> RunPaths:
        """Runs given as category names in order and an outcome; ``states`` adds categories that no run visits."""
        runs = [(tuple(path), OUTCOMES.index(Outcome(outcome))) for path, outcome in paths]
        names = sorted({name for path, _ in runs for name in path} | set(states or ()))
        position = {name: i for i, name in enumerate(names)}
        codes = [position[name] for path, _ in runs for name in path]
        return cls.of_codes(
            names,
            np.array(codes, dtype=np.int32),
            np.concatenate([[0], np.cumsum([len(path) for path, _ in runs])]).astype(np.int64),
            np.array([outcome for _, outcome in runs], dtype=np.int8),
            tasks=tasks,
            groups=groups,
        )

    @classmethod
    def of_codes(
        cls,
        states: Sequence[str],
        codes: Integers,
        offsets: Integers,
        outcomes: Integers,
        *,
        tasks: Sequence[str | None] | None = None,
        groups: Sequence[str] | None = None,
    ) -> RunPaths:
        """Runs as arrays over ``states``, in whatever order these are, with the task and the group of each run."""
        order = sorted(range(len(states)), key=states.__getitem__)
        position = np.empty(len(states), dtype=np.int32)
        position[order] = np.arange(len(states))
        task_codes, task_names = _numbered(tasks, len(outcomes), missing=None)
        group_codes, group_names = _numbered(groups, len(outcomes), missing=0)
        return cls(
            states=tuple(states[i] for i in order),
            codes=position[codes].astype(np.int32) if len(codes) else np.empty(0, dtype=np.int32),
            offsets=np.array(offsets, dtype=np.int64),
            outcomes=np.array(outcomes, dtype=np.int8),
            tasks=task_codes,
            task_names=task_names,
            groups=group_codes,
            group_names=group_names,
        )

    @classmethod
    def of_traces(
        cls, abstraction: Abstraction, traces: Iterable[Trace], *, group: Callable[[Trace], str] | None = None
    ) -> RunPaths:
        """Runs through a map from steps to states, in one pass.

        Raises:
            FitError: for a step that the map has no state for.
        """
        names = abstraction.space.names
        codes, lengths, outcomes = [], [], []
        tasks: list[str | None] = []
        groups: list[str] | None = None if group is None else []
        source = iter(traces)
        while batch := list(islice(source, _BATCH_RUNS)):
            runs = abstraction.encode_runs(batch)
            codes.append(abstraction.paths(runs))
            lengths.append(np.diff(runs.offsets))
            outcomes.append(runs.outcomes)
            tasks += runs.task_ids
            if group is not None and groups is not None:
                groups += map(group, batch)
        empty = np.empty(0, dtype=np.int64)
        return cls.of_codes(
            names,
            np.concatenate([empty, *codes]),
            np.concatenate([[0], np.cumsum(np.concatenate([empty, *lengths]))]),
            np.concatenate([empty, *outcomes]),
            tasks=tasks,
            groups=groups,
        )

    # ------------------------------------------------------------ reading

    @property
    def n_runs(self) -> int:
        """All runs, those without a step included."""
        return len(self.outcomes)

    @property
    def n_steps(self) -> int:
        """All steps."""
        return len(self.codes)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of each run, shape (n_runs,)."""
        return np.diff(self.offsets)

    @property
    def n_groups(self) -> int:
        """Values of the group, 1 without one."""
        return max(1, len(self.group_names))

    @property
    def following(self) -> NDArray[np.int64]:
        """What followed each step: a category, m for success, m + 1 for failure, m + 2 where it was not seen."""
        lengths = self.lengths
        after = np.empty(self.n_steps, dtype=np.int64)
        after[:-1] = self.codes[1:]
        after[self.offsets[1:][lengths > 0] - 1] = len(self.states) + self.outcomes[lengths > 0].astype(np.int64)
        return after

    @property
    def blocks(self) -> NDArray[np.int64]:
        """What is split and drawn together, shape (n_runs,): the task of each run, or the run itself without one."""
        alone = self.tasks < 0
        blocks = self.tasks.copy()
        blocks[alone] = len(self.task_names) + np.arange(int(alone.sum()))
        return blocks

    # ------------------------------------------------------------ other runs

    def take(self, runs: Integers) -> RunPaths:
        """These runs, in this order; a run may stand several times. Names stay as they are."""
        runs = np.asarray(runs, dtype=np.int64)
        lengths = self.lengths[runs]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        place = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1] - self.offsets[runs], lengths)
        return replace(
            self,
            codes=self.codes[place],
            offsets=offsets,
            outcomes=self.outcomes[runs],
            tasks=self.tasks[runs],
            groups=self.groups[runs],
        )

    def under(self, policy: str) -> RunPaths:
        """The runs under a censoring policy; see `TransitionCounts.under`."""
        if policy == "drop":
            return self.take(np.flatnonzero(self.outcomes != CENSORED))
        if policy == "failure":
            outcomes = np.where(self.outcomes == CENSORED, FAILURE, self.outcomes).astype(np.int8)
            return replace(self, outcomes=outcomes)
        return self


def _numbered(
    values: Sequence[str | None] | None, n_runs: int, *, missing: int | None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if values is None:
        return np.full(n_runs, -1 if missing is None else missing, dtype=np.int64), ()
    names = tuple(sorted({value for value in values if value is not None}))
    number = {name: i for i, name in enumerate(names)}
    return np.array([-1 if value is None else number[value] for value in values], dtype=np.int64), names
