"""Intervals that owe nothing to a prior, beside those of the posterior, each with the name of its method.

The bootstrap answers for every property, with intervals widened for there being few runs or tasks; that of a chain
which remembers more than its category refits its form, with the shrinkage of its rows. The probability of success,
within a budget or not, and the mean time have a delta-method interval from the gradient of the unsmoothed chain; the
pass rate, which that chain's probability of success equals, has Wilson's, which stays sensible where no failure was
seen and the others have width zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.chain.stuck import stuck_as_outcome
from tracebridge.checking.result import number_to_json
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.closedform.batched.operators import evaluate_stacked
from tracebridge.closedform.bounds import number_of_steps
from tracebridge.closedform.sensitivity import mean_time_gradient, reliability_gradient
from tracebridge.errors import EngineError, UsageError
from tracebridge.inference.batched_evaluation import TIE
from tracebridge.inference.bootstrap import DEFAULT_RESAMPLES, Bootstrap, unsmoothed_chain
from tracebridge.inference.expanded.posterior import no_draws, resampled_otherwise, runs_of
from tracebridge.inference.expanded.resampling import Resamples
from tracebridge.inference.few_units import few_units_text, resampled_interval
from tracebridge.inference.intervals import Interval, normal, wilson
from tracebridge.inference.uncertainty import DEFAULT_LEVEL, draw_properties, resolved_properties
from tracebridge.inference.value_range import value_range
from tracebridge.pctl import ast

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.inference.resampling_units import ResamplingUnits, Unit
    from tracebridge.pctl.ast import Property, PropertyFile

_NOUNS: Mapping[Unit, str] = {"trace": "run", "task": "task"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SecondOpinion:
    """What other methods than the posterior say about a property.

    Attributes:
        property: the property, resolved.
        intervals: of the number that it asks for or that its threshold is about, one a method.
        satisfied: the share of resamples in which it holds, by method; empty for a query.
        notes: methods that have no answer, and why.
    """

    property: Property
    intervals: tuple[Interval, ...]
    satisfied: Mapping[str, float]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shown = "; ".join(f"{each.method} {each.lower:.4g}..{each.upper:.4g}" for each in self.intervals)
        return f"<SecondOpinion on {self.property.name or self.property.text}: {shown}>"

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "name": self.property.name,
            "formula": self.property.text,
            "intervals": [each.to_dict() for each in self.intervals],
            "satisfied": {method: number_to_json(share) for method, share in self.satisfied.items()},
            "notes": list(self.notes),
        }


def second_opinions(
    fit: ChainFit | ExpandedFit,
    properties: PropertyFile | Path | str,
    *,
    runs: ResamplingUnits | None = None,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    level: float = DEFAULT_LEVEL,
    constants: Mapping[str, Fraction | bool] | None = None,
) -> list[SecondOpinion]:
    """Bootstrap, delta-method and Wilson intervals for every property of a file, in its order.

    Args:
        fit: the fitted chain; its counts, censoring policy and start matter, its prior and support do not. A chain that
            remembers more has no delta method, and no bootstrap but of the unit that its draws do not resample.
        properties: a property file, the path of one, or the text of one.
        runs: what is drawn again; without it there is no bootstrap of a first-order chain, others have their runs.
            Where every run has a task, tasks are drawn again as well.
        resamples: how many corpora of each kind; fewer of chains that are refitted. seed: of the resamples.
        level: of the intervals.
        constants: values for constants of the file.

    Raises:
        PropertyError: the file cannot be read, or a property does not fit the chain.
        UsageError: for a fit with weights together with ``runs``. FitError: the runs are not those of the fit.
    """
    if not 0 < level < 1:
        raise UsageError(f"a level lies between 0 and 1, not {level!r}")
    resolved = resolved_properties(fit, properties, constants)
    chain = fit.chain if isinstance(fit, ExpandedFit) else unsmoothed_chain(fit)
    known = [each for each in resolved if not _never_seen(chain, each)]
    drawn = [
        (each, draw_properties(known, each.stacks, each.number, tie=TIE))
        for each in _resampled(fit, runs, resamples, seed, level)
    ]
    estimates = draw_properties(known, [ChainStack.of_chain(chain)], 1, tie=TIE) if drawn else []
    place = {id(each): i for i, each in enumerate(known)}
    opinions = []
    for property_ in resolved:
        intervals, satisfied, notes = [], {}, []
        if missing := _never_seen(chain, property_):
            notes.append(f'without a prior nothing is known of "{missing[0]}", which no run visits')
            opinions.append(SecondOpinion(property=property_, intervals=(), satisfied={}, notes=tuple(notes)))
            continue
        missing_draws = no_draws(fit, property_.formula)
        if missing_draws and drawn:
            notes.append(missing_draws)
        for source, outcomes in () if missing_draws else drawn:
            outcome, estimate = outcomes[place[id(property_)]], estimates[place[id(property_)]]
            if isinstance(outcome, EngineError):
                notes.append(f"{source.method}: {outcome}")
                continue
            if outcome.holds is not None:
                satisfied[source.method] = float(outcome.holds.mean())
            if outcome.values is not None and not np.isnan(outcome.values).all():
                defined = outcome.values[~np.isnan(outcome.values)]
                known_value = None if isinstance(estimate, EngineError) else estimate.values
                intervals.append(source.interval(defined, known_value, property_.formula, level))
        intervals += _analytic(fit, property_, level)
        opinions.append(
            SecondOpinion(property=property_, intervals=tuple(intervals), satisfied=satisfied, notes=tuple(notes))
        )
    return opinions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Resampled:
    """A method of resampling: its name, what a unit is, how many there are, the chains that it gives, their number."""

    name: str
    unit: Unit
    units: int
    level: float
    stacks: Iterator[ChainStack]
    number: int

    @property
    def method(self) -> str:
        return f"{self.name}, percentile" + few_units_text(self.units, _NOUNS[self.unit], self.level)

    def interval(
        self, values: NDArray[np.float64], estimate: NDArray[np.float64] | None, formula: ast.Formula, level: float
    ) -> Interval:
        """Of values that are defined, about the estimate or, where that is not, about their median."""
        centre = float(np.median(values)) if estimate is None or np.isnan(estimate[0]) else float(estimate[0])
        least, most = value_range(formula)
        found = resampled_interval(values, centre, self.units, level, self.name, least=least, most=most)
        return replace(found, method=self.method)


def _resampled(
    fit: ChainFit | ExpandedFit, runs: ResamplingUnits | None, resamples: int, seed: int, level: float
) -> Iterator[_Resampled]:
    """Methods of resampling."""
    if isinstance(fit, ExpandedFit):
        paths = runs_of(fit)
        for source in resampled_otherwise(fit):
            number = source.number(resamples)
            by_task = isinstance(source.source, Resamples) and source.source.unit == "task"
            yield _Resampled(
                name=source.method,
                unit="task" if by_task else "trace",
                units=len(np.unique(paths.blocks)) if by_task else paths.n_runs,
                level=level,
                stacks=source.draws(number, seed),
                number=number,
            )
    elif runs is not None:
        kinds: tuple[Unit, ...] = ("trace",)
        if runs.tasks is not None and runs.tasks.n_items > 1:
            kinds = ("trace", "task")
        for unit in kinds:
            table = runs.of_kind(unit)
            dealt = f" in {table.n_units:,} random groups" if table.is_grouped else ""
            yield _Resampled(
                name=f"{unit} bootstrap{dealt}",
                unit=unit,
                units=table.n_units,
                level=level,
                stacks=Bootstrap.of_units(fit, runs, unit).resamples(resamples, seed),
                number=resamples,
            )


def _never_seen(chain: MarkovChain, property_: Property) -> list[str]:
    """The labels of a property that a chain does not have."""
    labels = (node.name for node in ast.walk(property_.formula) if isinstance(node, ast.Label))
    return [name for name in labels if not chain.has_label(name)]


def _analytic(fit: ChainFit | ExpandedFit, property_: Property, level: float) -> list[Interval]:
    """Delta method and Wilson, where the property is about a number that has them."""
    match property_.formula:
        case ast.Probability(path=ast.Eventually(operand=ast.Label("success"), bound=bound, reward_bounds=())) as asked:
            if asked.condition is not None:
                return []
            budget = _budget(bound)
            if bound is not None and budget is None:
                return []
            found = [] if isinstance(fit, ExpandedFit) else [delta_interval(fit, asked, budget, level)]
            # Runs from a start that was given need not pass as often as those that were observed.
            is_pass_rate = bound is None and isinstance(fit.start, str)
            score = wilson_of_pass_rate(fit, level) if is_pass_rate else None
            return found if score is None else [*found, score]
        case ast.Reward(path=ast.ReachReward(ast.Label("absorbed")), structure="steps", condition=None) as asked if (
            not isinstance(fit, ExpandedFit)
        ):
            return [delta_interval(fit, asked, None, level)]
    return []


def _budget(bound: ast.StepBound | None) -> int | None:
    if bound is None or bound.lower is not None or bound.upper is None:
        return None
    return number_of_steps(bound.upper) - bound.upper_strict


def delta_interval(fit: ChainFit, asked: ast.Probability | ast.Reward, budget: int | None, level: float) -> Interval:
    """The delta-method interval of R_inf, of ``R(budget)`` or of the mean time, of the unsmoothed chain.

    Rows are independent multinomial proportions: the variance is the sum over rows of that of the successors' worth,
    times the squared visits, over the row's count; the start adds its own part.
    """
    chain = stuck_as_outcome(unsmoothed_chain(fit))
    is_time = isinstance(asked, ast.Reward)
    gradient = mean_time_gradient(chain) if is_time else reliability_gradient(chain, d=budget)
    rows = fit.row_counts()
    unit = float(rows.unit)
    counts = dict(zip(rows.states, (np.asarray(rows.counts.sum(axis=1)).ravel() * unit).tolist(), strict=True))
    variance = sum(row.leverage**2 / counts[row.state] for row in gradient.ranking() if counts.get(row.state))
    if isinstance(fit.start, str):
        worth = _worth_of_states(chain, asked)
        support = np.flatnonzero(chain.initial)
        p, x = chain.initial[support], worth[support]
        variance += float(p @ (x - p @ x) ** 2) / (float(rows.starts.sum()) * unit)
    largest = math.inf if is_time else 1.0
    return normal(float(gradient.value), math.sqrt(variance), level, "delta method", largest=largest)


def _worth_of_states(chain: MarkovChain, asked: ast.Probability | ast.Reward) -> NDArray[np.float64]:
    def holds(operand: ast.Formula) -> NDArray[np.bool_]:
        assert isinstance(operand, ast.Label)  # noqa: S101 - only such properties have this interval
        return np.asarray(chain.label(operand.name))

    return np.asarray(evaluate_stacked(ChainStack.of_chain(chain), asked, holds)[:, 0])


def wilson_of_pass_rate(fit: ChainFit | ExpandedFit, level: float = DEFAULT_LEVEL) -> Interval | None:
    """Wilson's interval of the share of completed runs that succeed; with weights at their effective number.

    None where no run was completed.
    """
    counts = fit.counts
    completed = counts.success.n_runs + counts.failure.n_runs
    if fit.policy == "failure":
        completed += counts.censored.n_runs
    if not completed:
        return None
    if fit.weighted is None:
        return wilson(counts.success.n_runs, completed, level)
    trials = completed * float(fit.weighted.effective_runs) / counts.n_runs
    rate = fit.weighted.weighted.pass_rate(fit.policy)
    return wilson(float(rate or 0) * trials, trials, level)
