"""What a ratio metric adds up: one numerator and one denominator a unit, so that any subset and interval follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.bootstrap import ratio_intervals
from tracebridge.confidence.metric_value import MetricValue, ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.bootstrap import Bounds, ClusterInterval, Resampling
    from tracebridge.confidence.table import Codes, ConfidenceTable, Numbers

_CELLS = 2**23  # of the matrices that are made of tallies at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatioTally:
    """A metric that is a ratio of sums over units (blocks, pairs, polls); U of them.

    Attributes:
        name: of the metric. denominator_name: what is counted below.
        numerator, denominator: (U,) what each unit adds; zero where it is no case of the metric.
        dropped: (U,) the unit may be a case, and a label that would tell is missing.
        trace: (U,) the rows of the traces that the units are from.
        bounds: between which the ratio lies whatever the corpus.
    """

    name: str
    denominator_name: str
    numerator: Numbers
    denominator: Numbers
    dropped: NDArray[np.bool_]
    trace: Codes
    bounds: Bounds = (0.0, 1.0)

    @property
    def value(self) -> MetricValue:
        """The ratio over all units, without an interval."""
        return ratio(
            self.name,
            float(self.numerator.sum()),
            float(self.denominator.sum()),
            self.denominator_name,
            int(self.dropped.sum()),
        )

    def within(self, traces: NDArray[np.bool_]) -> RatioTally:
        """The tally of the units of some traces, as a mask (T,)."""
        kept = traces[self.trace]
        return replace(
            self,
            numerator=self.numerator[kept],
            denominator=self.denominator[kept],
            dropped=self.dropped[kept],
            trace=self.trace[kept],
        )


def tally(
    name: str,
    denominator_name: str,
    *,
    numerator: NDArray[np.generic],
    denominator: NDArray[np.generic],
    trace: Codes,
    dropped: NDArray[np.bool_] | None = None,
    bounds: Bounds = (0.0, 1.0),
) -> RatioTally:
    """A tally of counts or indicators; whoever is dropped, or outside the denominator, adds nothing above either.

    By default it is a share; say the ``bounds`` of any other ratio.
    """
    left_out = np.zeros(len(trace), dtype=np.bool_) if dropped is None else dropped
    below = np.where(left_out, 0.0, denominator.astype(np.float64))
    above = np.where(below != 0, numerator.astype(np.float64), 0.0)
    return RatioTally(
        name=name,
        denominator_name=denominator_name,
        numerator=above,
        denominator=below,
        dropped=left_out,
        trace=trace,
        bounds=bounds,
    )


def tally_intervals(
    tallies: Sequence[RatioTally], table: ConfidenceTable, resampling: Resampling
) -> tuple[ClusterInterval, ...]:
    """The cluster bootstrap interval of each tally. Tallies of the same units take one product of matrices together."""
    cluster = table.traces.cluster
    single: list[list[int]] = []
    groups: list[list[int]] = []
    for i, counted in enumerate(tallies):
        # Of a metric that one cluster alone has, all replicates are alike: it gets no interval, and so goes by itself.
        if len(np.unique(cluster[counted.trace[counted.denominator != 0]])) < 2:
            single.append([i])
            continue
        together = max(1, _CELLS // max(len(counted.trace), 1))
        fitting = (group for group in groups if len(group) < together and _same_units(tallies[group[0]], counted))
        group = next(fitting, None)
        if group is None:
            groups.append([i])
        else:
            group.append(i)
    found: dict[int, ClusterInterval] = {}
    for group in (*single, *groups):
        intervals = ratio_intervals(
            np.column_stack([tallies[i].numerator for i in group]),
            np.column_stack([tallies[i].denominator for i in group]),
            cluster[tallies[group[0]].trace],
            table.n_clusters,
            resampling=resampling,
            bounds=[tallies[i].bounds for i in group],
        )
        found.update(zip(group, intervals, strict=True))
    return tuple(found[i] for i in range(len(tallies)))


def metric_values(
    tallies: Sequence[RatioTally], table: ConfidenceTable, resampling: Resampling
) -> tuple[MetricValue, ...]:
    """The value of each tally, with its cluster bootstrap interval where it has a value."""
    return with_intervals(tallies, tally_intervals(tallies, table, resampling))


def with_intervals(tallies: Sequence[RatioTally], intervals: Sequence[ClusterInterval]) -> tuple[MetricValue, ...]:
    """The value of each tally, with its interval where it has a value."""
    values = (counted.value for counted in tallies)
    return tuple(
        interval.attached_to(value) if value.status == "ok" else value
        for value, interval in zip(values, intervals, strict=True)
    )


def _same_units(one: RatioTally, other: RatioTally) -> bool:
    return one.trace is other.trace or np.array_equal(one.trace, other.trace)
