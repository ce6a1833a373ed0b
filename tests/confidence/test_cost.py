"""Cost by mode: means and ratios as they are published, and what is not stated."""

from __future__ import annotations

import math

import pytest

from tracebridge.confidence.bootstrap import Resampling
from tracebridge.confidence.cost import cost_by_mode
from tracebridge.errors import UsageError
from tracebridge.studies.broadcast_notation import Run, build_table

PUBLISHED = {"baseline_llm": (18.4, 9.69, 43.6), "single_agent": (48.1, 18.0, 74.3), "broadcast": (616.5, 134.6, 294.9)}


def runs() -> list[Run]:
    """Two traces of each mode around the published means."""
    return [
        Run(blocks=[], mode=mode, cluster=k, passed=k, usage=tuple(value * (1 + spread) for value in usage))  # type: ignore[arg-type]
        for mode, usage in PUBLISHED.items()
        for k, spread in enumerate((-0.1, 0.1))
    ]


def test_published_ratios() -> None:
    baseline, single, broadcast = cost_by_mode(build_table(runs()), resampling=Resampling(replicates=50))
    assert [round(ratio.value, 3) for ratio in broadcast.ratios] == [12.817, 7.478, 3.969]
    assert [ratio.value for ratio in single.ratios] == pytest.approx([1, 1, 1])
    assert [metric.value for metric in baseline.metrics] == pytest.approx([0.5, 18.4, 9.69, 43.6])
    # Both modes of a cluster are drawn together, and here they are proportional.
    assert broadcast.ratios[0].lower == pytest.approx(broadcast.ratios[0].upper)
    assert broadcast.metrics[1].lower < 616.5 < broadcast.metrics[1].upper


def test_what_is_not_stated_is_undefined() -> None:
    (cost,) = cost_by_mode(build_table([Run(blocks=[], passed=-1)]))
    assert all(math.isnan(metric.value) for metric in cost.metrics)
    assert cost.metrics[0].n_dropped == 1
    assert "no mode single_agent" in cost.ratios[0].reason
    two = [Run(blocks=[], mode="single_agent"), Run(blocks=[], mode="broadcast", usage=(1.0, math.nan, 2.0))]
    assert "not stated" in cost_by_mode(build_table(two))[1].ratios[0].reason


def test_an_unknown_baseline() -> None:
    with pytest.raises(UsageError, match=r"no mode 'solo'.*known: broadcast"):
        cost_by_mode(build_table([Run(blocks=[])]), baseline="solo")
