"""Intervals of the headline numbers of a fitted chain: what properties can ask for, and times that they cannot.

The probability of success, within budgets too, the mean time and the steps per failure are properties, and get what
properties get. For each of the first draws the median of the number of steps to success follows from its curve, step by
step up to half of its limit, and the standard deviation of the number of steps from two systems of linear equations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.inference.bootstrap import DEFAULT_RESAMPLES
from tracebridge.inference.expanded.posterior import FitDraws
from tracebridge.inference.identification import is_unvaried
from tracebridge.inference.intervals import Interval, equal_tailed
from tracebridge.inference.posterior import DEFAULT_DRAWS
from tracebridge.inference.second_opinion import second_opinions
from tracebridge.inference.step_count_intervals import horizon_interval
from tracebridge.inference.uncertainty import DEFAULT_LEVEL, property_uncertainty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.chain.fit import ChainFit
    from tracebridge.closedform.batched.chain_stack import ChainStack
    from tracebridge.inference.resampling_units import ResamplingUnits

    Floats = NDArray[np.float64]

#: The figures of time are evaluated on so many of the draws, the first ones.
TIME_DRAWS = 500

#: The curve of success is followed for so many multiplications.
_MAX_WORK = 10**9

_TEXTS = {
    "R_inf": 'P=? [ F "success" ]',
    "MTTA": 'R{"steps"}=? [ F "absorbed" ]',
    "steps_per_failure": 'R{"steps"}=? [ F "absorbed" ] / (1 - P=? [ F "success" ])',
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FigureUncertainty:
    """What the data say about one headline number.

    Attributes:
        posterior: the interval from posterior draws; None where some draws have no number, or where a chain without a
            prior has the same in all of them.
        others: intervals by other methods, see `SecondOpinion`; none for ``R(d)``, beside which the observed curve is
            the second opinion, nor for what no property can ask for.
    """

    posterior: Interval | None
    others: tuple[Interval, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "posterior": None if self.posterior is None else self.posterior.to_dict(),
            "others": [each.to_dict() for each in self.others],
        }


def figure_uncertainty(
    fit: ChainFit | ExpandedFit,
    budgets: Sequence[int],
    *,
    runs: ResamplingUnits | None = None,
    draws: int = DEFAULT_DRAWS,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    level: float = DEFAULT_LEVEL,
    horizon_gap: Fraction,
    source: FitDraws | None = None,
) -> dict[str, FigureUncertainty]:
    """Intervals of ``R_inf``, ``MTTA``, ``steps_per_failure``, ``R(d)``, ``horizon``, ``median``, ``deviation``.

    Args:
        fit: a fit all of whose runs end. budgets: each d of ``R(d)``.
        runs: for the bootstrap; without it there is none. draws: of the posterior.
        resamples: of the bootstrap; 0 for no second opinion. seed: of both. level: of the intervals.
        horizon_gap: the horizon is the first d with R_inf - R(d) at most this.
        source: see `property_uncertainty`.
    """
    asked = {**_TEXTS, **{f"R({d})": f'P=? [ F<={d} "success" ]' for d in budgets}}
    source = source or FitDraws.of_fit(fit)
    known = property_uncertainty(fit, _file_of(asked), draws=draws, seed=seed, level=level, source=source)
    found = {name: FigureUncertainty(posterior=each.interval) for name, each in zip(asked, known, strict=True)}
    if resamples:
        opinions = second_opinions(fit, _file_of(_TEXTS), runs=runs, resamples=resamples, seed=seed, level=level)
        for name, opinion in zip(_TEXTS, opinions, strict=True):
            found[name] = replace(found[name], others=opinion.intervals)
    gap = horizon_interval(fit, float(horizon_gap), draws=draws, seed=seed, level=level, source=source)
    found["horizon"] = FigureUncertainty(posterior=gap)
    number = source.number(min(draws, TIME_DRAWS))
    parts = [time_figures(stack) for stack in source.draws(number, seed)]
    method = f"{source.method}, {number} draws"
    for name in ("median", "deviation"):
        values = np.concatenate([part[name] for part in parts])
        defined = not np.isnan(values).any()
        found[name] = FigureUncertainty(posterior=equal_tailed(values, level, method)[0] if defined else None)
    return {name: _varied(fit, each) for name, each in found.items()}


def _varied(fit: ChainFit | ExpandedFit, found: FigureUncertainty) -> FigureUncertainty:
    unvaried = found.posterior is not None and is_unvaried(fit, found.posterior)
    return replace(found, posterior=None) if unvaried else found


def _file_of(formulas: Mapping[str, str]) -> str:
    return "\n".join(f'"{name}": {formula};' for name, formula in formulas.items())


def time_figures(stack: ChainStack) -> dict[str, Floats]:
    """Median of the steps to success, and standard deviation of the steps to the end, shape (draws,) each.

    The median is NaN in draws without a success, or with one so late that it takes too long to follow the curve.
    """
    chain, draws = stack.chain, stack.draws
    active = ~chain.absorbing
    success = np.asarray(chain.label("success"), dtype=np.float64)[:, None]
    nothing = np.zeros((chain.n_states, 1))
    half = _at_start(stack, stack.solve(active, success)) / 2
    time = stack.solve(active, nothing, gain=np.ones(chain.n_states))
    square = stack.solve(active, nothing, gain=np.maximum(2 * time - 1, 0.0))  # 1 + 2 P time = 2 time - 1
    mean, mean_square = _at_start(stack, time), _at_start(stack, square)
    reached: Floats = np.broadcast_to(success, (chain.n_states, draws))
    most = max(1, _MAX_WORK // max(1, draws * chain.transitions.nnz))
    median, d = np.full(draws, np.nan), 0
    while (waiting := np.isnan(median) & (half > 0)).any() and d <= most:
        median[waiting & (_at_start(stack, reached) >= half)] = d
        reached, d = stack.iterate(reached, 1, active), d + 1
    return {"median": median, "deviation": np.sqrt(np.maximum(mean_square - mean**2, 0.0))}


def _at_start(stack: ChainStack, values: Floats) -> Floats:
    return np.broadcast_to(stack.mean_at_start(values), (stack.draws,))
