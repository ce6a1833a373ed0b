"""Do runs differ by task, model, trial or any other attribute? Permutation tests, which hold whatever the chain is.

If an attribute does not matter, its values could as well be dealt out anew: over the runs, or, where runs of one task
belong together, over whole tasks if the attribute belongs to the task, or within each task if it differs inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.inference.deviance import deviance
from tracebridge.inference.event_counts import EventCounts
from tracebridge.inference.null_distribution import NullDistribution, holm
from tracebridge.inference.path_tables import CENSORED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.inference.corpus_counts import PathCounts
    from tracebridge.inference.run_sample import RunSample

_BLOCK_EVENTS = 1_000_000
_UNITS = ("runs", "whole tasks", "runs within each task")


@dataclass(frozen=True, slots=True, kw_only=True)
class Permutation:
    """How the values of a covariate may be dealt out anew.

    Attributes:
        over: what is permuted, in words.
        units: the unit of each run; all runs of a unit keep one value. shape (n_runs,), codes from 0.
        strata: the stratum of each unit; values move within strata only. shape (n_units,).
    """

    over: str
    units: NDArray[np.int64]
    strata: NDArray[np.int64]

    def draw(self, values: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """The value of each run after one permutation; ``values`` is that of each unit, shape (n_units,)."""
        by_stratum = np.argsort(self.strata, kind="stable")
        shuffled = np.lexsort((rng.random(len(self.strata)), self.strata))
        moved = np.empty_like(values)
        moved[by_stratum] = values[shuffled]
        return moved[self.units]

    @property
    def is_idle(self) -> bool:
        """No permutation changes anything: every stratum is a single unit."""
        return len(np.unique(self.strata)) == len(self.strata)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CovariateTest:
    """A covariate's test before any adjustment.

    Attributes:
        covariate: its name. n_runs, n_values: runs that have a value, and distinct values.
        over: what was permuted. p: of the larger of both standardised statistics; None if nothing can differ.
        p_path, p_outcome: of what follows a state, and of the outcome, each against the value.
        nats_path: information about what follows that the value adds to the state, per event, bias removed.
        nats_outcome: about the outcome, per completed run.
        events: (value, state, next), of one corpus. values: the distinct values in the order of the codes.
    """

    covariate: str
    n_runs: int
    n_values: int
    over: str
    p: float | None
    p_path: float | None
    p_outcome: float | None
    nats_path: float
    nats_outcome: float
    events: EventCounts
    values: tuple[str, ...]


def permutation_of(covariate: str, values: Sequence[str], tasks: Sequence[str]) -> Permutation:
    """The permutations under which a covariate that does not matter leaves the law of the corpus as it is.

    Args:
        covariate: ``task_id`` is dealt out over the runs. values, tasks: of each run; an empty task is none.
    """
    n_runs = len(values)
    units = np.arange(n_runs)
    groups = [task or f"\0{i}" for i, task in enumerate(tasks)]  # a run without a task is a task of its own
    _, group = np.unique(np.array(groups, dtype=object), return_inverse=True)
    group = group.reshape(-1)
    n_groups = int(group.max(initial=-1)) + 1
    if covariate == "task_id" or n_groups == n_runs:
        return Permutation(over=_UNITS[0], units=units, strata=np.zeros(n_runs, dtype=np.int64))
    inside: dict[int, set[str]] = {}
    for task, value in zip(group.tolist(), values, strict=True):
        inside.setdefault(task, set()).add(value)
    if any(len(found) > 1 for found in inside.values()):
        return Permutation(over=_UNITS[2], units=units, strata=group)
    return Permutation(over=_UNITS[1], units=group, strata=np.zeros(n_groups, dtype=np.int64))


def differing_covariates(
    paths: PathCounts, covariates: Sequence[str], *, replicates: int, seed: int
) -> dict[str, float]:
    """The p-values of covariates, adjusted for testing all of them; those that cannot be tested are left out.

    Args:
        paths: counts with a sample of runs that knows the covariates. replicates, seed: of the permutations.
    """
    if paths.sample is None:
        return {}
    children = np.random.SeedSequence(seed, spawn_key=(7,)).spawn(len(covariates))
    found = {}
    for covariate, child in zip(covariates, children, strict=True):
        test = covariate_test(paths.sample, covariate, paths.states, replicates=replicates, seed=child)
        if test.p is not None:
            found[covariate] = test.p
    return dict(zip(found, holm([*found.values()]), strict=True))


def covariate_test(
    sample: RunSample, covariate: str, states: Sequence[str], *, replicates: int, seed: np.random.SeedSequence
) -> CovariateTest:
    """Test one covariate of the sample; runs without a value are left out.

    Args:
        sample: the runs. covariate: one of its covariates. states: all states, ascending.
        replicates: permutations. seed: decides them.
    """
    place = sample.covariates.index(covariate)
    runs = [run for run in sample.runs if run.values[place]]
    words = [run.values[place] for run in runs]
    values = tuple(sorted(set(words)))
    code = {value: i for i, value in enumerate(values)}
    n, m = len(values), len(states)
    position = {name: i for i, name in enumerate((*states, "success", "failure"))}
    triples = [
        (r, position[state], position[after], count)
        for r, run in enumerate(runs)
        for state, after, count in run.transitions
    ]
    run_of, state, after, count = np.array(triples, dtype=np.int64).reshape(-1, 4).T
    ended = np.array([run.outcome for run in runs], dtype=np.int64)
    completed = np.flatnonzero(ended != CENSORED)

    def tables(assigned: NDArray[np.int64]) -> tuple[EventCounts, EventCounts]:
        """Paths and outcomes by value, a corpus for each row of ``assigned``, shape (g, n_runs)."""
        g = len(assigned)
        context = np.arange(g)[:, None] * n + assigned
        paths = (context[:, run_of] * m + state) * (m + 2) + after
        outcomes = context[:, completed] * 3 + 1 + ended[completed]  # one state, left for success or for failure
        return (
            EventCounts.of_keys(paths.ravel(), np.tile(count, g), n_corpora=g, n_contexts=max(n, 1), n_states=m),
            EventCounts.of_keys(outcomes.ravel(), n_corpora=g, n_contexts=max(n, 1), n_states=1),
        )

    permutation = permutation_of(covariate, words, [run.task for run in runs])
    assigned = np.array([code[word] for word in words], dtype=np.int64)
    by_unit = np.zeros(len(permutation.strata), dtype=np.int64)
    by_unit[permutation.units] = assigned
    paths, outcomes = tables(assigned[None])
    observed = [deviance(table) for table in (paths, outcomes)]
    null = None
    if 1 < n < len(runs) and not permutation.is_idle:
        rng = np.random.default_rng(seed)
        together = max(1, _BLOCK_EVENTS // max(len(triples), 1))
        drawn = []
        for first in range(0, replicates, together):
            dealt = [permutation.draw(by_unit, rng) for _ in range(min(together, replicates - first))]
            drawn.append(np.column_stack([deviance(table).z for table in tables(np.array(dealt))]))
        null = NullDistribution(observed=np.array([item.z[0] for item in observed]), replicates=np.concatenate(drawn))
    return CovariateTest(
        covariate=covariate,
        n_runs=len(runs),
        n_values=n,
        over=permutation.over,
        p=None if null is None else null.p,
        p_path=None if null is None else float(null.p_values[0]),
        p_outcome=None if null is None else float(null.p_values[1]),
        nats_path=float(observed[0].nats[0]),
        nats_outcome=float(observed[1].nats[0]),
        events=paths,
        values=values,
    )
