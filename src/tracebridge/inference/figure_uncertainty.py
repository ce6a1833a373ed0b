"""Intervals of the headline numbers of a fitted chain: what properties can ask for, and times that they cannot.

The probability of success, within budgets too, the mean time and the steps per failure are properties, and get what
properties get. The median and the standard deviation of the number of steps follow, for each of the first draws, from
the curves of success and of runs that have not ended, step by step until hardly any run is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.inference.bootstrap import DEFAULT_RESAMPLES
from tracebridge.inference.intervals import Interval, equal_tailed
from tracebridge.inference.posterior import DEFAULT_DRAWS, ChainPosterior
from tracebridge.inference.second_opinion import second_opinions
from tracebridge.inference.step_count_intervals import horizon_interval
from tracebridge.inference.uncertainty import DEFAULT_LEVEL, property_uncertainty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.closedform.batched.chain_stack import ChainStack
    from tracebridge.inference.run_counts import RunCounts

    Floats = NDArray[np.float64]

#: The figures of time are evaluated on so many of the draws, the first ones.
TIME_DRAWS = 500

#: Curves are followed until at most this share of runs has not ended, or for so many multiplications.
_LEFT = 1e-9
_MAX_WORK = 2 * 10**9

_TEXTS = {
    "R_inf": 'P=? [ F "success" ]',
    "MTTA": 'R{"steps"}=? [ F "absorbed" ]',
    "steps_per_failure": 'R{"steps"}=? [ F "absorbed" ] / (1 - P=? [ F "success" ])',
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FigureUncertainty:
    """What the data say about one headline number.

    Attributes:
        posterior: the interval from posterior draws; None where some draws have no number.
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
    fit: ChainFit,
    budgets: Sequence[int],
    *,
    runs: RunCounts | None = None,
    draws: int = DEFAULT_DRAWS,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    level: float = DEFAULT_LEVEL,
    horizon_gap: Fraction,
) -> dict[str, FigureUncertainty]:
    """Intervals of ``R_inf``, ``MTTA``, ``steps_per_failure``, ``R(d)``, ``horizon``, ``median``, ``deviation``.

    Args:
        fit: a fit all of whose runs end. budgets: each d of ``R(d)``.
        runs: for the bootstrap; without it there is none. draws: of the posterior.
        resamples: of the bootstrap; 0 for no second opinion. seed: of both. level: of the intervals.
        horizon_gap: the horizon is the first d with R_inf - R(d) at most this.
    """
    asked = {**_TEXTS, **{f"R({d})": f'P=? [ F<={d} "success" ]' for d in budgets}}
    known = property_uncertainty(fit, _file_of(asked), draws=draws, seed=seed, level=level)
    found = {name: FigureUncertainty(posterior=each.interval) for name, each in zip(asked, known, strict=True)}
    if resamples:
        opinions = second_opinions(fit, _file_of(_TEXTS), runs=runs, resamples=resamples, seed=seed, level=level)
        for name, opinion in zip(_TEXTS, opinions, strict=True):
            found[name] = replace(found[name], others=opinion.intervals)
    gap = horizon_interval(fit, float(horizon_gap), draws=draws, seed=seed, level=level)
    found["horizon"] = FigureUncertainty(posterior=gap)
    number = min(draws, TIME_DRAWS)
    parts = [time_figures(stack) for stack in ChainPosterior.of_fit(fit).draws(number, seed)]
    method = f"posterior of the {fit.prior} prior, equal-tailed, {number} draws"
    for name in ("median", "deviation"):
        values = np.concatenate([part[name] for part in parts])
        defined = not np.isnan(values).any()
        found[name] = FigureUncertainty(posterior=equal_tailed(values, level, method)[0] if defined else None)
    return found


def _file_of(formulas: Mapping[str, str]) -> str:
    return "\n".join(f'"{name}": {formula};' for name, formula in formulas.items())


def time_figures(stack: ChainStack) -> dict[str, Floats]:
    """Median of the steps to success, and standard deviation of the steps to the end, shape (draws,) each.

    NaN in draws in which runs go on for too long to follow them.
    """
    chain, draws = stack.chain, stack.draws
    active = ~chain.absorbing
    success = np.asarray(chain.label("success"), dtype=np.float64)[:, None]
    reached = np.broadcast_to(success, (chain.n_states, draws))
    going = np.broadcast_to(active[:, None].astype(np.float64), (chain.n_states, draws))
    curve, tail = [_at_start(stack, reached)], [_at_start(stack, going)]
    most = max(1, _MAX_WORK // max(1, 2 * draws * chain.transitions.nnz))
    while tail[-1].max() > _LEFT and len(curve) <= most:
        reached, going = stack.iterate(reached, 1, active), stack.iterate(going, 1, active)
        curve.append(_at_start(stack, reached))
        tail.append(_at_start(stack, going))
    successes, left = np.array(curve), np.array(tail)
    ended = left[-1] <= _LEFT
    limit = successes[-1]
    steps = np.arange(len(left), dtype=np.float64)[:, None]
    mean, square = left.sum(axis=0), ((2 * steps + 1) * left).sum(axis=0)
    return {
        "median": np.where(ended & (limit > 0), np.argmax(successes >= limit / 2, axis=0), np.nan),
        "deviation": np.where(ended, np.sqrt(np.maximum(square - mean**2, 0.0)), np.nan),
    }


def _at_start(stack: ChainStack, values: Floats) -> Floats:
    return np.broadcast_to(stack.mean_at_start(values), (stack.draws,))
