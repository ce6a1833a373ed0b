"""Intervals that owe nothing to a prior, beside those of the posterior, each with the name of its method.

The bootstrap answers for every property. The probability of success, within a budget or not, and the mean time have a
delta-method interval from the gradient of the unsmoothed chain; the pass rate, which that chain's probability of
success equals, has Wilson's, which stays sensible where no failure was seen and the others have width zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.chain.stuck import stuck_as_outcome
from tracebridge.checking.result import number_to_json
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.closedform.batched.operators import evaluate_stacked
from tracebridge.closedform.bounds import number_of_steps
from tracebridge.closedform.sensitivity import mean_time_gradient, reliability_gradient
from tracebridge.errors import EngineError, UsageError
from tracebridge.inference.batched_evaluation import TIE, PropertyDraws
from tracebridge.inference.bootstrap import DEFAULT_RESAMPLES, Bootstrap, Unit, unsmoothed_chain
from tracebridge.inference.intervals import Interval, equal_tailed, normal, wilson
from tracebridge.inference.uncertainty import DEFAULT_LEVEL, draw_properties, resolved_properties
from tracebridge.pctl import ast

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.inference.run_counts import RunCounts
    from tracebridge.pctl.ast import Property, PropertyFile


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
    fit: ChainFit,
    properties: PropertyFile | Path | str,
    *,
    runs: RunCounts | None = None,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    level: float = DEFAULT_LEVEL,
    constants: Mapping[str, Fraction | bool] | None = None,
) -> list[SecondOpinion]:
    """Bootstrap, delta-method and Wilson intervals for every property of a file, in its order.

    Args:
        fit: the fitted chain; its counts, censoring policy and start matter, its prior and support do not.
        properties: a property file, the path of one, or the text of one.
        runs: what each run adds to the counts; without it there is no bootstrap. Where every run has a task, tasks are
            drawn again as well.
        resamples: how many corpora of each kind. seed: of the resamples. level: of the intervals.
        constants: values for constants of the file.

    Raises:
        PropertyError: the file cannot be read, or a property does not fit the chain.
        UsageError: for a fit with weights together with ``runs``. FitError: the runs are not those of the fit.
    """
    if not 0 < level < 1:
        raise UsageError(f"a level lies between 0 and 1, not {level!r}")
    resolved = resolved_properties(fit, properties, constants)
    unsmoothed = unsmoothed_chain(fit)
    known = [each for each in resolved if not _never_seen(unsmoothed, each)]
    drawn: dict[str, list[PropertyDraws | EngineError]] = {}
    if runs is not None:
        has_tasks = len(runs.task_names) > 1 and bool((runs.tasks >= 0).all())
        units: tuple[Unit, ...] = ("trace", "task") if has_tasks else ("trace",)
        for unit in units:
            stacks = Bootstrap.of_runs(fit, runs, unit).resamples(resamples, seed)
            drawn[f"{unit} bootstrap, percentile"] = draw_properties(known, stacks, resamples, tie=TIE)
    place = {id(each): i for i, each in enumerate(known)}
    opinions = []
    for property_ in resolved:
        intervals, satisfied, notes = [], {}, []
        if missing := _never_seen(unsmoothed, property_):
            notes.append(f'without a prior nothing is known of "{missing[0]}", which no run visits')
            opinions.append(SecondOpinion(property=property_, intervals=(), satisfied={}, notes=tuple(notes)))
            continue
        for method, outcomes in drawn.items():
            outcome = outcomes[place[id(property_)]]
            if isinstance(outcome, EngineError):
                notes.append(f"{method}: {outcome}")
                continue
            if outcome.holds is not None:
                satisfied[method] = float(outcome.holds.mean())
            if outcome.values is not None and not np.isnan(outcome.values).all():
                defined = outcome.values[~np.isnan(outcome.values)]
                intervals.append(equal_tailed(defined, level, method)[0])
        intervals += _analytic(fit, property_, level)
        opinions.append(
            SecondOpinion(property=property_, intervals=tuple(intervals), satisfied=satisfied, notes=tuple(notes))
        )
    return opinions


def _never_seen(chain: MarkovChain, property_: Property) -> list[str]:
    """The labels of a property that a chain does not have."""
    labels = (node.name for node in ast.walk(property_.formula) if isinstance(node, ast.Label))
    return [name for name in labels if not chain.has_label(name)]


def _analytic(fit: ChainFit, property_: Property, level: float) -> list[Interval]:
    """Delta method and Wilson, where the property is about a number that has them."""
    match property_.formula:
        case ast.Probability(path=ast.Eventually(operand=ast.Label("success"), bound=bound, reward_bounds=())) as asked:
            if asked.condition is not None:
                return []
            budget = _budget(bound)
            if bound is not None and budget is None:
                return []
            found = [delta_interval(fit, asked, budget, level)]
            score = wilson_of_pass_rate(fit, level) if bound is None else None
            return found if score is None else [*found, score]
        case ast.Reward(path=ast.ReachReward(ast.Label("absorbed")), structure="steps", condition=None) as asked:
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


def wilson_of_pass_rate(fit: ChainFit, level: float = DEFAULT_LEVEL) -> Interval | None:
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
