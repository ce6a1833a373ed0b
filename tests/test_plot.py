"""Public figures: what they show is what the objects hold, on axes that are given or new, the same every time."""

from __future__ import annotations

import io
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from msgspec import structs

from tracebridge import (
    Step,
    Trace,
    assess,
    fit_chain,
    plot_calibration,
    plot_certificate,
    plot_chain,
    plot_reliability,
    reliability,
    write_traces,
)
from tracebridge.confidence.calibration import ReliabilityBins
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.errors import UsageError
from tracebridge.traces import Outcome

mpl.use("Agg")

NAME = "a$b$_{\x1b[31m<i>"


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.fixture(scope="module")
def runs():
    """Runs of two states, one with an awkward name; their length tells how they end."""
    steps = (Step(kind="tool", name="plan"), Step(kind="tool", name=NAME))
    return [
        Trace(
            trace_id=str(i),
            outcome=Outcome.SUCCESS if i % 3 else Outcome.FAILURE,
            steps=steps[: 1 + i % 2] * (1 + i % 3),
        )
        for i in range(60)
    ]


@pytest.fixture(scope="module")
def small(runs):
    return fit_chain(runs)


@pytest.fixture(scope="module")
def assessment(tmp_path_factory, runs):
    path = tmp_path_factory.mktemp("plot") / "runs.jsonl"
    write_traces(
        [structs.replace(run, steps=tuple(structs.replace(s, name=s.name[:3]) for s in run.steps)) for run in runs],
        path,
    )
    return assess([path], engines=["closed-form"], draws=50, resamples=0, replicates=19, futures=0)


def bytes_of(axes) -> bytes:
    target = io.BytesIO()
    axes.figure.savefig(target, format="png", dpi=30)
    return target.getvalue()


def test_the_curve_is_the_closed_form_and_the_recorded_bands(assessment, ax):
    assert plot_reliability(assessment, ax=ax) is ax
    lines = {line.get_label(): line for line in ax.get_lines()}
    d, values = lines["chain"].get_data()
    assert values[7] == pytest.approx(float(reliability(assessment.findings.fit.chain, 7)))
    recorded = assessment.document
    assert d[-1] == max(map(int, recorded["figures"]["R"]))
    seen = dict(zip(*lines["observed"].get_data(), strict=True))
    assert seen[5] == recorded["observed"]["R"]["5"]["value"]
    band = next(each for each in ax.collections if each.get_label() == "posterior")
    edges = band.get_paths()[0].vertices
    interval = recorded["figures"]["uncertainty"]["R(5)"]["posterior"]
    assert {interval["lower"], interval["upper"]} <= {y for x, y in edges if x == 5}


def test_a_bare_chain_has_a_curve_to_its_horizon(small, ax):
    plot_reliability(small.chain, ax=ax)
    values = ax.get_lines()[0].get_ydata()
    assert list(values) == sorted(values)
    assert ax.get_lines()[1].get_ydata()[0] - values[-1] <= 0.01
    with pytest.raises(UsageError, match="at least one step"):
        plot_reliability(small, ax=ax, last=0)


def test_every_state_is_drawn_with_its_visits(small, assessment, ax):
    plot_chain(small, ax=ax)
    texts = [text.get_text() for text in ax.texts]
    assert len(texts) == 4
    shown = next(text for text in texts if text.startswith("a$b$"))
    assert "\x1b" not in shown
    assert float(shown.rsplit("\n", 1)[1]) == pytest.approx(1.0, abs=0.03)  # every second run, twice on the average
    steps = tuple(Step(kind="tool", name=f"tool{i}") for i in range(9))
    many = fit_chain([Trace(trace_id=str(i), outcome=Outcome.SUCCESS, steps=steps[i % 3 :]) for i in range(12)])
    assert len(plot_chain(many, ax=Figure().add_subplot()).texts) == 9 + 2
    crowded = plot_chain(many, ax=Figure().add_subplot(), most=4)
    assert len(crowded.texts) == 4 + 2
    assert len(plot_chain(assessment, ax=Figure().add_subplot()).texts) == 4
    with pytest.raises(UsageError, match="two states"):
        plot_chain(small, most=1)


def test_the_certificate_shows_multiples_of_what_matters(assessment, ax):
    plot_certificate(assessment.certificate, ax=ax)
    widths = [bar.get_width() for bar in ax.patches]
    effects = assessment.certificate.effects
    expected = [max(s.effect, 0) / getattr(effects, s.unit) for s in assessment.certificate.statistics]
    assert widths == pytest.approx(expected)
    assert len(ax.get_yticklabels()) == len(expected)


def test_an_untested_chain_has_no_certificate_to_draw(ax):
    with pytest.raises(UsageError, match="no replicates"):
        plot_certificate(SimpleNamespace(certificate="no replicates were asked for"), ax=ax)


def test_calibration_shows_the_bins(ax):
    answers = RatedAnswers.of(np.array([0.1, 0.15, 0.9, 0.95]), np.array([0.0, 1.0, 1.0, 1.0]))
    plot_calibration({NAME: ReliabilityBins.of(answers)}, ax=ax)
    x, y = ax.get_lines()[1].get_data()
    assert list(zip(x, y, strict=True)) == [(pytest.approx(0.125), 0.5), (pytest.approx(0.925), 1.0)]
    assert plot_calibration(ReliabilityBins.of(answers), ax=Figure().add_subplot()).get_legend() is not None


def test_new_axes_are_made_and_the_same_numbers_give_the_same_bytes(small):
    from matplotlib import pyplot as plt

    for draw in (plot_chain, plot_reliability):
        axes = [draw(small) for _ in range(2)]
        assert axes[0] is not axes[1]
        assert bytes_of(axes[0]) == bytes_of(axes[1])
        for each in axes:
            plt.close(each.figure)
