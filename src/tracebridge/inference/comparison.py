"""Two agents: differences of pass rate, R(d) and mean run length, with intervals, paired where tasks are the same.

Runs of one task are not independent, and agents that attempted the same tasks share their difficulty. So tasks are
resampled, whole, and the same tasks for both agents, with intervals that are widened for there being few; Newcombe's
interval is for independent runs. All differences are second minus first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr

from tracebridge.errors import NothingToCheckError, UsageError
from tracebridge.inference.differences import (
    ALIKE,
    Difference,
    Resamples,
    interval_of_difference,
    mover,
    resampled_difference,
    wilson_of,
)
from tracebridge.inference.intervals import Interval, equal_tailed, require_level, wilson
from tracebridge.inference.regression import DEFAULT_DEALS
from tracebridge.inference.run_table import RunTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.inference.task_counts import TaskCounts
    from tracebridge.traces.model import Trace

DEFAULT_REPLICATES = 2_000

_BLOCK_NUMBERS = 4_000_000


# ---------------------------------------------------------------- pass rates


def compare_pass_rates(first: tuple[int, int], second: tuple[int, int], *, level: float = 0.95) -> Difference:
    """Newcombe's hybrid score interval (1998, Statistics in Medicine 17, 873-890, method 10) for independent runs.

    Args:
        first, second: successes and runs of each agent.

    Raises:
        UsageError: for counts that do not fit, or a level outside (0, 1).
    """
    require_level(level)
    score, other = (wilson(*counts, level) for counts in (first, second))
    p, q = first[0] / first[1], second[0] / second[1]
    interval = mover(p, score, q, other, method="Newcombe hybrid score, independent runs")
    return Difference(first=p, second=q, difference=q - p, interval=interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskComparison:
    """Two agents on the tasks that both attempted.

    Attributes:
        difference: of the means over tasks of the pass rate, with the interval of resampled tasks.
        p_value: of equal reliabilities within every task. test: how it was found: McNemar's exact test where each agent
            has one trial a task, else outcomes dealt anew within tasks. deals: how often; None for the exact test.
        n_tasks: common tasks. n_better, n_worse: those where the second agent's rate is higher, lower.
        n_only_first, n_only_second: tasks of one agent alone, which say nothing here.
    """

    difference: Difference
    p_value: float
    test: str
    deals: int | None
    n_tasks: int
    n_better: int
    n_worse: int
    n_only_first: int
    n_only_second: int


def compare_tasks(
    first: TaskCounts,
    second: TaskCounts,
    *,
    level: float = 0.95,
    replicates: int = DEFAULT_REPLICATES,
    seed: int = 0,
) -> TaskComparison:
    """Compare pass rates on the same tasks, each task counting once.

    Raises:
        NothingToCheckError: if no task is common.
    """
    places = [{task: i for i, task in enumerate(counts.tasks)} for counts in (first, second)]
    common = [task for task in first.tasks if task in places[1]]
    if not common:
        raise NothingToCheckError("no task was attempted by both agents")
    (c, n), (other_c, other_n) = (
        (np.array([counts.successes[place[t]] for t in common]), np.array([counts.trials[place[t]] for t in common]))
        for counts, place in zip((first, second), places, strict=True)
    )
    rates, other_rates = c / n, other_c / other_n
    gains = other_rates - rates
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(common), np.full(len(common), 1 / len(common)), size=replicates) / len(common)
    means = [float(rates.mean()), float(other_rates.mean())]
    interval = interval_of_difference(
        means,
        [drawn @ rates, drawn @ other_rates],
        [partial(wilson_of, mean, len(common), "common tasks", level) for mean in means],
        Resamples(
            units=[len(common)] * 2,
            noun="common task",
            level=level,
            method="percentile bootstrap of common tasks",
            most=1.0,
        ),
    )
    better, worse = int(np.sum(gains > 0)), int(np.sum(gains < 0))
    if np.all(n == 1) and np.all(other_n == 1):
        test, deals = "McNemar, exact", None
        p_value = min(1.0, 2 * float(bdtr(min(better, worse), better + worse, 0.5)))
    else:
        test, deals = "outcomes dealt anew within tasks", DEFAULT_DEALS
        dealt = rng.hypergeometric(c + other_c, n + other_n - c - other_c, n, size=(DEFAULT_DEALS, len(common)))
        null = ((c + other_c - dealt) / other_n - dealt / n).mean(axis=1)
        # Rounding must not tell apart deals that are alike.
        p_value = (1 + int(np.sum(np.abs(null) >= abs(gains.mean()) - 1e-12))) / (1 + DEFAULT_DEALS)
    return TaskComparison(
        difference=Difference(
            first=means[0],
            second=means[1],
            difference=float(gains.mean()),
            interval=interval,
        ),
        p_value=p_value,
        test=test,
        deals=deals,
        n_tasks=len(common),
        n_better=better,
        n_worse=worse,
        n_only_first=len(first.tasks) - len(common),
        n_only_second=len(second.tasks) - len(common),
    )


# ---------------------------------------------------------------- figures of the chains


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentComparison:
    """Differences of the chains of two agents, by figure.

    The chains are maximum-likelihood fits without prior, so that their R_inf and mean time are the pass rate and the
    mean run length where no run is censored.

    Attributes:
        reliability: of R_inf. within_budget: of R(d). mean_time: of MTTA, in steps. d: the budget.
        resampled: ``tasks`` or ``runs``. n_units: how many of them each agent has. n_common: tasks that both agents
            attempted, drawn together.
    """

    reliability: Difference
    within_budget: Difference
    mean_time: Difference
    d: int
    resampled: str
    n_units: tuple[int, int]
    n_common: int


def compare_agents(
    first: ChainFit,
    first_runs: Iterable[Trace],
    second: ChainFit,
    second_runs: Iterable[Trace],
    *,
    d: int,
    level: float = 0.95,
    replicates: int = DEFAULT_REPLICATES,
    seed: int = 0,
) -> AgentComparison:
    """Compare the chains of two agents, each over its own states; the fits give states and censoring policy.

    Tasks are resampled where every run names one, and otherwise runs; a task of both agents is drawn for both.

    Raises:
        UsageError: for a negative budget, or a fit that knows no states of steps.
        FitError: if runs are not those that their chain was fitted to.
    """
    if d < 0 or replicates < 1:
        raise UsageError(f"a budget of {d} steps and {replicates} replicates cannot be")
    tables = [RunTable.of(fit, runs) for fit, runs in ((first, first_runs), (second, second_runs))]
    by_task = all(table.tasks is not None for table in tables)
    units = [
        table.tasks if by_task and table.tasks is not None else tuple(f"{side}:{i}" for i in range(table.n_runs))
        for side, table in enumerate(tables)
    ]
    resampling = _Resampling.of(units[0], units[1])
    rng = np.random.default_rng(seed)
    point = [table.figures(np.ones((1, table.n_runs)), d)[0] for table in tables]
    draws: list[list[NDArray[np.float64]]] = [[], []]
    together = max(1, _BLOCK_NUMBERS // sum(table.n_runs for table in tables))
    for begin in range(0, replicates, together):
        weights = resampling.draw(rng, min(together, replicates - begin))
        for found, table, weight in zip(draws, tables, weights, strict=True):
            found.append(table.figures(weight, d))
    drawn = [np.concatenate(parts) for parts in draws]
    what = "tasks" if by_task else "runs"
    numbers = [len(set(names)) for names in units]
    sides = [_FixedFigures(table, own, what, d, level, rng) for table, own in zip(tables, units, strict=True)]
    differences = []
    for i in range(3):
        points = [float(found[i]) for found in point]
        own = [partial(side.interval, i, figure) for side, figure in zip(sides, points, strict=True)]
        most = 1.0 if i < 2 else math.inf
        resamples = Resamples(
            units=numbers, noun=what.removesuffix("s"), level=level, method=f"percentile bootstrap of {what}", most=most
        )
        differences.append(resampled_difference(points, [draws[:, i] for draws in drawn], own, resamples))
    return AgentComparison(
        reliability=differences[0],
        within_budget=differences[1],
        mean_time=differences[2],
        d=d,
        resampled=what,
        n_units=(numbers[0], numbers[1]),
        n_common=resampling.n_common,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _FixedFigures:
    """Intervals of figures of one agent that are the same in all resamples.

    A probability of 0 or 1 gets Wilson's score interval, each unit with a run that ended counting once. Any other
    figure, and the mean time, is drawn from the posterior of the chain, its counts scaled to the number of units, for
    runs of one task may add nothing to the first: that errs on the wide side.
    """

    table: RunTable
    units: Sequence[str]
    what: str
    d: int
    level: float
    rng: np.random.Generator

    def interval(self, figure: int, point: float) -> Interval:
        """Of R_inf (0), R(d) (1) or the mean time (2), which is ``point`` in all resamples."""
        ended = len({unit for unit, end in zip(self.units, self.table.ended().tolist(), strict=True) if end})
        share = round(point)
        if figure < 2 and ended and abs(point - share) <= ALIKE:
            return wilson_of(share, ended, self.what, self.level)
        draws = self.table.posterior(self.rng, len(set(self.units)) / self.table.n_runs, self.d)[:, figure]
        return equal_tailed(draws, self.level, "posterior of a prior of mass one a row")[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Resampling:
    """Bootstrap weights of the runs of two agents, by units that are drawn whole, and together where both have them.

    Attributes:
        units: the unit of each run, for both agents. strata: units of both agents, of the first and of the second
            alone; each is drawn from by itself, so that no agent is left without runs.
    """

    units: tuple[NDArray[np.int64], NDArray[np.int64]]
    strata: tuple[NDArray[np.int64], ...]
    n_common: int

    @classmethod
    def of(cls, first: Sequence[str], second: Sequence[str]) -> _Resampling:
        mine, other = set(first), set(second)
        position = {name: i for i, name in enumerate(sorted(mine | other))}
        groups = (mine & other, mine - other, other - mine)
        codes = [np.array([position[name] for name in names], dtype=np.int64) for names in (first, second)]
        strata = tuple(np.array(sorted(position[name] for name in group), dtype=np.int64) for group in groups)
        return cls((codes[0], codes[1]), strata, len(groups[0]))

    def draw(self, rng: np.random.Generator, size: int) -> list[NDArray[np.float64]]:
        """For each agent the weights of its runs, shape (size, n_runs)."""
        weights = np.zeros((size, sum(map(len, self.strata))))
        for members in self.strata:
            if n := len(members):
                weights[:, members] = rng.multinomial(n, np.full(n, 1 / n), size=size)
        return [weights[:, code] for code in self.units]
