"""What the audit of confidence looks like: reliability, risk against coverage, routers, tiers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.report.plot import COLOURS, diagonal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from tracebridge.confidence.calibration import ReliabilityBins
    from tracebridge.confidence.metric_value import MetricValue
    from tracebridge.confidence.ranking import RiskCoverage


def plot_reliability(axes: Axes, bins: Mapping[str, ReliabilityBins]) -> Axes:
    """Accuracy against mean confidence in each bin that has answers; the area of a mark is the bin's share."""
    diagonal(axes)
    for colour, (name, held) in zip(COLOURS, bins.items(), strict=False):
        rows = [row for row in held.to_records() if row["n"]]
        total = sum(row["n"] for row in rows)
        points = [(row["mean_confidence"], row["accuracy"]) for row in rows]
        x, y = zip(*points, strict=True) if points else ((), ())
        axes.plot(x, y, color=colour, linewidth=1, label=name)
        axes.scatter(x, y, s=[6 + 300 * row["n"] / total for row in rows], color=colour, alpha=0.5, linewidths=0)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="mean confidence of the bin", ylabel="share that is correct")
    axes.legend(loc="upper left")
    return axes


def plot_risk_coverage(axes: Axes, curves: Mapping[str, RiskCoverage]) -> Axes:
    """The share of wrong answers among the most confident ones, against how many are answered."""
    for colour, (name, curve) in zip(COLOURS, curves.items(), strict=False):
        axes.step(curve.coverage, curve.risk, where="pre", color=colour, linewidth=1.2, label=name)
    axes.set(xlim=(0, 1), ylim=(0, None), xlabel="coverage", ylabel="risk: share of wrong answers")
    axes.legend(loc="lower right")
    return axes


def plot_bars(axes: Axes, values: Sequence[MetricValue], names: Sequence[str], *, xlabel: str) -> Axes:
    """Values as horizontal bars with their intervals; what is undefined has a word in place of a bar."""
    places = np.arange(len(values))[::-1]
    for place, value in zip(places.tolist(), values, strict=True):
        if value.status == "undefined":
            axes.text(0, place, " undefined", va="center", fontsize=8)
            continue
        axes.barh(place, value.value, height=0.62, color=COLOURS[0], alpha=0.75)
        if not math.isnan(value.lower):
            axes.plot([value.lower, value.upper], [place, place], color="black", linewidth=1.2)
    axes.set(xlabel=xlabel, yticks=places, yticklabels=list(names), ylim=(-0.6, len(values) - 0.4))
    return axes
