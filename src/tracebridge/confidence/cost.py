"""What each way of working costs and how often it passes, beside a baseline: context, not an equal-compute frontier."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.confidence.audit_tally import RatioTally, metric_values, tally
from tracebridge.confidence.bootstrap import quotient, totals_intervals
from tracebridge.confidence.metric_value import MetricValue
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.bootstrap import Resampling
    from tracebridge.confidence.table import ConfidenceTable

    Floats = NDArray[np.float64]

DEFAULT_BASELINE = "single_agent"
QUANTITIES = ("pass_rate", "tokens", "calls", "wall")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeCost:
    """One mode.

    Attributes:
        mode: its name. n_traces: how many traces it has.
        metrics: pass rate, and mean tokens, calls and seconds of the traces that state them.
        ratios: the means of the latter three over those of the baseline.
    """

    mode: str
    n_traces: int
    metrics: tuple[MetricValue, ...]
    ratios: tuple[MetricValue, ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "mode": self.mode,
            "n_traces": self.n_traces,
            "metrics": [metric.to_dict() for metric in self.metrics],
            "ratios": [ratio.to_dict() for ratio in self.ratios],
        }


def cost_by_mode(
    table: ConfidenceTable, *, baseline: str | None = None, resampling: Resampling | None = None
) -> tuple[ModeCost, ...]:
    """The modes of a corpus in their order. The baseline is ``single_agent`` where there is one, unless it is named.

    Raises:
        UsageError: there is no mode of that name.
    """
    if baseline is not None and baseline not in table.modes:
        raise UsageError(f"there is no mode {baseline!r} to compare with; known: {', '.join(table.modes)}")
    baseline = baseline or DEFAULT_BASELINE
    tallies = {mode: _tallies(table, code) for code, mode in enumerate(table.modes)}
    found = []
    for code, mode in enumerate(table.modes):
        if resampling is None:
            metrics = tuple(counted.value for counted in tallies[mode])
        else:
            metrics = metric_values(tallies[mode], table, resampling)
        found.append(
            ModeCost(
                mode=mode,
                n_traces=int((table.traces.mode == code).sum()),
                metrics=metrics,
                ratios=tuple(
                    _ratio(
                        f"{name}_ratio", above, tallies[baseline][k] if baseline in tallies else None, table, resampling
                    )
                    for k, (name, above) in enumerate(zip(QUANTITIES, tallies[mode], strict=True))
                    if k > 0
                ),
            )
        )
    return tuple(found)


def _tallies(table: ConfidenceTable, mode: int) -> tuple[RatioTally, ...]:
    traces = table.traces
    member, every = traces.mode == mode, np.arange(len(traces.mode))
    rows = [("pass_rate", "judged traces", np.where(traces.passed >= 0, traces.passed, np.nan))]
    rows += [(name, f"traces that state {name}", getattr(traces, name)) for name in QUANTITIES[1:]]
    return tuple(
        tally(
            name,
            among,
            numerator=np.nan_to_num(value),
            denominator=member & ~np.isnan(value),
            dropped=member & np.isnan(value),
            trace=every,
            bounds=(0.0, 1.0 if name == QUANTITIES[0] else math.inf),
        )
        for name, among, value in rows
    )


def _ratio(
    name: str, above: RatioTally, below: RatioTally | None, table: ConfidenceTable, resampling: Resampling | None
) -> MetricValue:
    """The ratio of two means, with an interval from clusters drawn for both modes at once, as they share problems."""
    n_traces = float(above.denominator.sum())
    if below is None:
        return MetricValue.undefined(
            name,
            f"there is no mode {DEFAULT_BASELINE} to compare with",
            denominator=n_traces,
            denominator_name=above.denominator_name,
            n_dropped=int(above.dropped.sum()),
        )
    sums = np.column_stack([above.numerator, above.denominator, below.numerator, below.denominator])

    def ratio_of_means(totals: Floats) -> Floats:
        a, m, b, n = totals.T
        return quotient(quotient(a, m), quotient(b, n))[:, None]

    value = float(ratio_of_means(sums.sum(axis=0)[None, :])[0, 0])
    dropped = int(above.dropped.sum())
    if math.isnan(value):
        return MetricValue.undefined(
            name,
            f"{above.name} is not stated for this mode, or not for the baseline, or zero there",
            denominator=n_traces,
            denominator_name=above.denominator_name,
            n_dropped=dropped,
        )
    found = MetricValue(
        name=name,
        value=value,
        numerator=math.nan,
        denominator=n_traces,
        denominator_name=above.denominator_name,
        n_dropped=dropped,
    )
    if resampling is None:
        return found
    (interval,) = totals_intervals(
        sums,
        ratio_of_means,
        table.traces.cluster,
        table.n_clusters,
        resampling=resampling,
        bounds=[(0.0, math.inf)],
    )
    return interval.attached_to(found)
