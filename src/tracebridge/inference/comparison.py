"""Two agents: differences of pass rate, R(d) and mean run length, with intervals, paired where tasks are the same.

Runs of one task are not independent, and agents that attempted the same tasks share their difficulty. So tasks are
resampled, whole, and the same tasks for both agents, with intervals that are widened for there being few; Newcombe's
interval is for independent runs. All differences are second minus first.

An agent whose figure is the same in every resample, as with nothing but successes, would add nothing to the width of
such an interval, and both together would leave it without any. It gets an interval of its own, and the two are put
together by MOVER (Zou and Donner 2008, Statistics in Medicine 27, 1693-1702), of which Newcombe's is a case. Where both
vary, but their difference is the same in every task, tasks with another one may exist that were not seen: so many as
Wilson's interval of none among those seen allows, with any difference. For single trials that end alike this is Tango's
score interval (1998, Statistics in Medicine 17, 891-908).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr

from tracebridge.errors import NothingToCheckError, UsageError
from tracebridge.inference.few_units import resampled_interval
from tracebridge.inference.intervals import Interval, equal_tailed, require_level, wilson
from tracebridge.inference.regression import DEFAULT_DEALS
from tracebridge.inference.run_table import RunTable
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.inference.task_counts import TaskCounts
    from tracebridge.traces.model import Trace

DEFAULT_REPLICATES = 2_000

_BLOCK_NUMBERS = 4_000_000
_ALIKE = 1e-9  # figures that differ by no more, relative to those above one, differ by rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far two agents are apart in one figure.

    Attributes:
        first, second: the figure of each. difference: second minus first.
        interval: for the difference; None, with the ``reason``, where there is none.
    """

    first: float
    second: float
    difference: float
    interval: Interval | None
    reason: str | None = None


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


def mover(first: float, of_first: Interval, second: float, of_second: Interval, *, method: str) -> Interval:
    """The interval of ``second - first`` from those of two uncorrelated estimates (MOVER), each around its estimate."""
    difference = second - first
    return Interval(
        lower=difference - float(np.hypot(second - of_second.lower, of_first.upper - first)),
        upper=difference + float(np.hypot(of_second.upper - second, first - of_first.lower)),
        level=of_first.level,
        method=method,
    )


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
    interval = _interval_of_difference(
        means,
        [drawn @ rates, drawn @ other_rates],
        [partial(_wilson_of, mean, len(common), "common tasks", level) for mean in means],
        _Resamples(
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
        resamples = _Resamples(
            units=numbers, noun=what.removesuffix("s"), level=level, method=f"percentile bootstrap of {what}", most=most
        )
        differences.append(_difference(points, [draws[:, i] for draws in drawn], own, resamples))
    return AgentComparison(
        reliability=differences[0],
        within_budget=differences[1],
        mean_time=differences[2],
        d=d,
        resampled=what,
        n_units=(numbers[0], numbers[1]),
        n_common=resampling.n_common,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resamples:
    """What was resampled: how many units of each agent, and the largest value of a figure, whose least is 0."""

    units: Sequence[int]
    noun: str
    level: float
    method: str
    most: float

    def interval(self, draws: NDArray[np.float64], point: float, side: int) -> Interval:
        """Of the figure of one agent."""
        return self._interval(draws, point, self.units[side], least=0.0)

    def interval_of_difference(self, draws: NDArray[np.float64], point: float) -> Interval:
        """Of a difference, which is as unsure as the agent with fewer units."""
        return self._interval(draws, point, min(self.units), least=-self.most)

    def _interval(self, draws: NDArray[np.float64], point: float, units: int, *, least: float) -> Interval:
        bounds = {"least": least, "most": self.most}
        return resampled_interval(draws, point, units, self.level, self.method, noun=self.noun, **bounds)

    def interval_of_one_gain(self, gain: float) -> Interval:
        """Of a difference of probabilities that is the same in every task."""
        tasks = min(self.units)
        unseen = wilson(0, tasks, self.level)
        return replace(
            unseen,
            lower=(1 - unseen.upper) * gain - unseen.upper,
            upper=(1 - unseen.upper) * gain + unseen.upper,
            method=f"Wilson score of none of {counted(tasks, self.noun)} with another difference",
        )


def _difference(
    points: Sequence[float],
    drawn: Sequence[NDArray[np.float64]],
    own: Sequence[Callable[[], Interval]],
    resamples: _Resamples,
) -> Difference:
    first, second = points
    difference = second - first
    lost = int(np.sum(np.isnan(_differences(drawn))))
    interval, reason = None, None
    if lost:
        reason = (
            f"it is undefined in {lost} of {len(drawn[0])} replicates: no end of some runs of either was seen there"
        )
    else:
        interval = _interval_of_difference(points, drawn, own, resamples)
    return Difference(first=first, second=second, difference=difference, interval=interval, reason=reason)


def _differences(drawn: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):  # infinite mean times of both are told
        return drawn[1] - drawn[0]


def _interval_of_difference(
    points: Sequence[float],
    drawn: Sequence[NDArray[np.float64]],
    own: Sequence[Callable[[], Interval]],
    resamples: _Resamples,
) -> Interval:
    """Of resampled differences; by MOVER if these, or the figure of an agent, are the same in all resamples.

    Args:
        points: the figure of each agent. drawn: in the resamples, shape (B,) each. own: its interval if all are alike.
    """
    fixed = [_is_fixed(draws, point) for point, draws in zip(points, drawn, strict=True)]
    differences, difference = _differences(drawn), points[1] - points[0]
    if not any(fixed):
        if not _is_fixed(differences, difference):
            return resamples.interval_of_difference(differences, difference)
        if resamples.most == 1:
            return resamples.interval_of_one_gain(difference)
    sides = []
    for side, (point, draws) in enumerate(zip(points, drawn, strict=True)):
        found = own[side]() if fixed[side] else resamples.interval(draws, point, side)
        sides.append(replace(found, lower=min(found.lower, point), upper=max(found.upper, point)))
    words = " and ".join(f"{side.method} ({name})" for side, name in zip(sides, ("first", "second"), strict=True))
    return mover(points[0], sides[0], points[1], sides[1], method=f"MOVER of {words}")


def _is_fixed(draws: NDArray[np.float64], point: float) -> bool:
    """Whether a figure is the same in all resamples."""
    return bool(np.isfinite(point) and np.abs(draws - point).max() <= _ALIKE * max(1.0, abs(point)))


def _wilson_of(share: float, number: float, what: str, level: float) -> Interval:
    found = wilson(share * number, number, level)
    return replace(found, method=f"Wilson score of {counted(int(number), what.removesuffix('s'))}")


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
        if figure < 2 and ended and abs(point - share) <= _ALIKE:
            return _wilson_of(share, ended, self.what, self.level)
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
