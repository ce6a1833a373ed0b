"""The interval of a difference of two agents from resamples of both, also where a figure is the same in all of them.

An agent whose figure is the same in every resample, as with nothing but successes, would add nothing to the width of
such an interval, and both together would leave it without any. It gets an interval of its own, and the two are put
together by MOVER (Zou and Donner 2008, Statistics in Medicine 27, 1693-1702), of which Newcombe's is a case. Where both
vary, but their difference is the same in every task, tasks with another one may exist that were not seen: so many as
Wilson's interval of none among those seen allows, with any difference. For single trials that end alike this is Tango's
score interval (1998, Statistics in Medicine 17, 891-908).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.inference.few_units import resampled_interval
from tracebridge.inference.intervals import Interval, wilson
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Figures that differ by no more, relative to those above one, differ by rounding.
ALIKE = 1e-9


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
class Resamples:
    """What was resampled: how many units of each agent, and the largest value of a figure, whose least is 0."""

    units: Sequence[int]
    noun: str
    level: float
    method: str
    most: float

    def interval(self, draws: NDArray[np.float64], point: float, side: int) -> Interval:
        """Of the figure of one agent."""
        return self._interval(draws, point, self.units[side], least=0.0)

    def of_differences(self, draws: NDArray[np.float64], point: float) -> Interval:
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


def resampled_difference(
    points: Sequence[float],
    drawn: Sequence[NDArray[np.float64]],
    own: Sequence[Callable[[], Interval]],
    resamples: Resamples,
) -> Difference:
    """The difference of two figures; without an interval where it is undefined in a resample.

    Args:
        points, drawn, own: see `interval_of_difference`. resamples: what was drawn again.
    """
    first, second = points
    difference = second - first
    lost = int(np.sum(np.isnan(_differences(drawn))))
    interval, reason = None, None
    if lost:
        reason = (
            f"it is undefined in {lost} of {len(drawn[0])} replicates: no end of some runs of either was seen there"
        )
    else:
        interval = interval_of_difference(points, drawn, own, resamples)
    return Difference(first=first, second=second, difference=difference, interval=interval, reason=reason)


def _differences(drawn: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):  # infinite mean times of both are told
        return drawn[1] - drawn[0]


def interval_of_difference(
    points: Sequence[float],
    drawn: Sequence[NDArray[np.float64]],
    own: Sequence[Callable[[], Interval]],
    resamples: Resamples,
) -> Interval:
    """Of resampled differences; by MOVER if these, or the figure of an agent, are the same in all resamples.

    Args:
        points: the figure of each agent. drawn: in the resamples, shape (B,) each. own: its interval if all are alike.
    """
    fixed = [_is_fixed(draws, point) for point, draws in zip(points, drawn, strict=True)]
    differences, difference = _differences(drawn), points[1] - points[0]
    if not any(fixed):
        if not _is_fixed(differences, difference):
            return resamples.of_differences(differences, difference)
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
    return bool(np.isfinite(point) and np.abs(draws - point).max() <= ALIKE * max(1.0, abs(point)))


def wilson_of(share: float, number: float, what: str, level: float) -> Interval:
    """Wilson's interval of a share of so many units; ``what`` is their plural."""
    found = wilson(share * number, number, level)
    return replace(found, method=f"Wilson score of {counted(int(number), what.removesuffix('s'))}")
