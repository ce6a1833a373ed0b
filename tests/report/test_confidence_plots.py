"""Plots of the audit: the same bytes for the same numbers, and nothing of the input that a browser would act on."""

import math

import numpy as np
import pytest

from tracebridge.confidence.calibration import ReliabilityBins
from tracebridge.confidence.metric_value import MetricValue
from tracebridge.confidence.ranking import ConfidenceRanking
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.report.confidence_folder import csv_text
from tracebridge.report.confidence_plots import plot_bars, plot_reliability, plot_risk_coverage
from tracebridge.report.plot import Figure

HOSTILE = "<img onerror=x> $x_2$ &amp;"


def answers():
    rng = np.random.default_rng(0)
    confidence = rng.integers(1, 101, 300) / 100
    return RatedAnswers.of(confidence, (rng.random(300) < confidence).astype(int))


def values():
    ok = MetricValue(
        name="a", value=0.5, numerator=5, denominator=10, denominator_name="b", lower=0.4, upper=0.6, level=0.95
    )
    return [ok, MetricValue.undefined("u", "there are none", denominator=0, denominator_name="b")]


PLOTS = {
    "reliability": lambda axes: plot_reliability(axes, {HOSTILE: ReliabilityBins.of(answers())}),
    "risk": lambda axes: plot_risk_coverage(axes, {HOSTILE: ConfidenceRanking.of(answers()).risk_coverage()}),
    "bars": lambda axes: plot_bars(axes, values(), [HOSTILE, "u"], xlabel="x"),
    "nothing": lambda axes: plot_reliability(axes, {HOSTILE: ReliabilityBins.of(RatedAnswers.of([], []))}),
}


@pytest.mark.parametrize("name", PLOTS)
def test_the_same_numbers_give_the_same_bytes_and_names_are_text(name):
    drawn = []
    for _ in range(2):
        figure = Figure()
        PLOTS[name](figure.axes)
        drawn.append(figure.svg())
    assert drawn[0] == drawn[1]
    assert "&lt;img onerror=x&gt; $x_2$ &amp;amp;" in drawn[0]
    assert "<img" not in drawn[0]
    assert "http://www.w3.org" in drawn[0]  # the namespace
    assert "<script" not in drawn[0]


def test_what_is_undefined_has_no_bar():
    figure = Figure()
    plot_bars(figure.axes, values(), ["a", "u"], xlabel="x")
    assert [bar.get_width() for bar in figure.axes.patches] == [0.5]
    assert [text.get_text().strip() for text in figure.axes.texts] == ["undefined"]


def test_csv_keeps_every_column_and_no_formula():
    text = csv_text([{"a": "=1+1", "b": math.nan}, {"c": 1.5, "a": "-x"}])
    assert text == "a,b,c\n'=1+1,NaN,\n'-x,,1.5\n"
    assert csv_text([]) == "\n"
