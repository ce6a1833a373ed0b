"""Two agents: differences of pass rate, R(d) and mean run length, with intervals, paired where tasks are the same.

Runs of one task are not independent, and agents that attempted the same tasks share their difficulty. So tasks are
resampled, whole, and the same tasks for both agents; Newcombe's interval is for independent runs. All differences are
second minus first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import binom

from tracebridge.errors import NothingToCheckError, UsageError
from tracebridge.inference.intervals import Interval, equal_tailed, require_level, wilson
from tracebridge.inference.run_counts import RunCounts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.inference.task_counts import TaskCounts
    from tracebridge.traces.model import Trace

DEFAULT_REPLICATES = 2_000

_DEALS = 9_999
_BLOCK_NUMBERS = 4_000_000
_NOTHING_LEFT = 1e-18  # mass of a state that no figure would show


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
    difference = q - p
    return Difference(
        first=p,
        second=q,
        difference=difference,
        interval=Interval(
            lower=difference - float(np.hypot(q - other.lower, score.upper - p)),
            upper=difference + float(np.hypot(other.upper - q, p - score.lower)),
            level=level,
            method="Newcombe hybrid score, independent runs",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskComparison:
    """Two agents on the tasks that both attempted.

    Attributes:
        difference: of the means over tasks of the pass rate, with the interval of resampled tasks.
        p_value: of equal reliabilities within every task. test: how it was found: McNemar's exact test where each agent
            has one trial a task, else outcomes dealt anew within tasks.
        n_tasks: common tasks. n_better, n_worse: those where the second agent's rate is higher, lower.
        n_only_first, n_only_second: tasks of one agent alone, which say nothing here.
    """

    difference: Difference
    p_value: float
    test: str
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
    gains = other_c / other_n - c / n
    rng = np.random.default_rng(seed)
    chosen = np.stack([gains[rng.integers(len(gains), size=len(gains))].mean() for _ in range(replicates)])
    better, worse = int(np.sum(gains > 0)), int(np.sum(gains < 0))
    if np.all(n == 1) and np.all(other_n == 1):
        test = "McNemar, exact"
        p_value = min(1.0, 2 * float(binom.cdf(min(better, worse), better + worse, 0.5)))
    else:
        test = "outcomes dealt anew within tasks"
        dealt = rng.hypergeometric(c + other_c, n + other_n - c - other_c, n, size=(_DEALS, len(common)))
        null = ((c + other_c - dealt) / other_n - dealt / n).mean(axis=1)
        # Rounding must not tell apart deals that are alike.
        p_value = (1 + int(np.sum(np.abs(null) >= abs(gains.mean()) - 1e-12))) / (1 + _DEALS)
    return TaskComparison(
        difference=Difference(
            first=float((c / n).mean()),
            second=float((other_c / other_n).mean()),
            difference=float(gains.mean()),
            interval=equal_tailed(chosen, level, "percentile bootstrap of common tasks")[0],
        ),
        p_value=p_value,
        test=test,
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
        resampled: ``tasks`` or ``runs``. n_common: tasks that both agents attempted, drawn together.
    """

    reliability: Difference
    within_budget: Difference
    mean_time: Difference
    d: int
    resampled: str
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
    tables = [_RunTable.of(fit, runs) for fit, runs in ((first, first_runs), (second, second_runs))]
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
    method = f"percentile bootstrap of {'tasks' if by_task else 'runs'}"
    differences = [
        _difference(float(point[0][i]), float(point[1][i]), drawn[0][:, i], drawn[1][:, i], level, method)
        for i in range(3)
    ]
    return AgentComparison(
        reliability=differences[0],
        within_budget=differences[1],
        mean_time=differences[2],
        d=d,
        resampled="tasks" if by_task else "runs",
        n_common=resampling.n_common,
    )


def _difference(
    first: float,
    second: float,
    of_first: NDArray[np.float64],
    of_second: NDArray[np.float64],
    level: float,
    method: str,
) -> Difference:
    difference = second - first
    with np.errstate(invalid="ignore"):  # infinite mean times of both; said below
        draws = of_second - of_first
    alike = [bool((part == part[0]).all()) for part in (of_first, of_second)]
    if sum(alike) == 1:  # as with nothing but successes: what that agent might do else is not in the interval
        method += f"; too narrow, for all resamples of {'the first' if alike[0] else 'the second'} are alike"
    if lost := int(np.sum(np.isnan(draws))):
        reason = f"it is undefined in {lost} of {len(draws)} replicates: no end of some runs of either was seen there"
        return Difference(first=first, second=second, difference=difference, interval=None, reason=reason)
    interval, _ = equal_tailed(draws, level, method)
    return Difference(first=first, second=second, difference=difference, interval=interval)


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


@dataclass(frozen=True, slots=True, eq=False)
class _RunTable:
    """Each run's passages over m states, for the runs that count.

    Attributes:
        cells: CSR, shape (n_runs, (m + 1) (m + 2)); see `RunCounts`. tasks: of each run; None if some run names none.
    """

    m: int
    cells: csr_array
    tasks: tuple[str, ...] | None

    @property
    def n_runs(self) -> int:
        return int(self.cells.shape[0])

    @classmethod
    def of(cls, fit: ChainFit, traces: Iterable[Trace]) -> _RunTable:
        runs = RunCounts.of_traces(fit, traces)
        m = len(runs.states)
        kept = np.flatnonzero(np.diff(runs.table.indptr))
        named = bool(np.all(runs.tasks[kept] >= 0))
        tasks = tuple(runs.task_names[task] for task in runs.tasks[kept].tolist()) if named else None
        return cls(m=m, cells=csr_array(runs.table[kept].astype(np.float64)), tasks=tasks)

    def figures(self, weights: NDArray[np.float64], d: int) -> NDArray[np.float64]:
        """R_inf, R(d) and the mean time for runs with these weights, shape (B, n_runs); shape (B, 3).

        NaN without a run, infinite where a run may never end.
        """
        together = max(1, _BLOCK_NUMBERS // self.cells.shape[1])
        parts = [self._figures(part, d) for part in _blocks(weights, together)]
        return np.concatenate(parts)

    def _figures(self, weights: NDArray[np.float64], d: int) -> NDArray[np.float64]:
        m, B = self.m, len(weights)
        counts = np.asarray(self.cells.T @ weights.T).T.reshape(B, m + 1, m + 2)
        starts, counts = counts[:, m], counts[:, :m]
        with np.errstate(invalid="ignore"):
            starts = starts / starts.sum(axis=1, keepdims=True)
        totals = counts.sum(axis=2, keepdims=True)
        rows = counts / np.where(totals > 0, totals, 1.0)
        Q, success = rows[:, :, :m], rows[:, :, m]
        ends = _closure(rows[:, :, m:].sum(axis=2) > 0, Q)
        Q = Q * ends[:, :, None]  # runs that get where no end was seen stay there, and the rest can be solved
        solved = np.linalg.solve(np.eye(m) - Q, np.stack([success, np.ones((B, m))], axis=2))
        ever, steps = np.einsum("bi,bik->kb", starts[:, :m], solved)
        reached = _closure(starts[:, :m] > 0, Q.transpose(0, 2, 1))
        within, v = starts[:, m].copy(), starts[:, :m]
        for _ in range(d):
            within += np.einsum("bi,bi->b", v, success)
            v = np.einsum("bi,bij->bj", v, Q)
            if not np.any(v > _NOTHING_LEFT):
                break
        steps = np.where(np.any(reached & ~ends, axis=1), np.inf, steps)
        return np.column_stack([ever + starts[:, m], within, steps])


def _closure(marked: NDArray[np.bool_], Q: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The marked states and those that lead to them by Q, shape (B, m)."""
    while True:
        more = marked | (np.einsum("bij,bj->bi", Q, marked.astype(np.float64)) > 0)
        if np.array_equal(more, marked):
            return marked
        marked = more


def _blocks(weights: NDArray[np.float64], together: int) -> Iterator[NDArray[np.float64]]:
    for begin in range(0, len(weights), together):
        yield weights[begin : begin + together]
