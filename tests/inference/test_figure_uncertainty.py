"""Intervals of headline numbers: of times draw by draw against the closed forms, of the rest against properties."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tracebridge.chain import AbsorbingChain
from tracebridge.closedform import absorption_time_variance, first_passage_quantile
from tracebridge.inference import SCENARIOS, ChainPosterior, property_uncertainty
from tracebridge.inference.figure_uncertainty import figure_uncertainty, time_figures


def test_times_of_draws_are_those_of_their_chains() -> None:
    fit, _ = SCENARIOS["N2"].fitted(60, seed=1)
    stack = next(iter(ChainPosterior.of_fit(fit).draws(8, 0)))
    found = time_figures(stack)
    for draw in range(stack.draws):
        form = AbsorbingChain(chain=stack.chain_at(draw))
        assert found["median"][draw] == first_passage_quantile(form, Fraction(1, 2), given_success=True)
        deviation = float(absorption_time_variance(form).overall) ** 0.5
        assert found["deviation"][draw] == pytest.approx(deviation, rel=1e-6)


def test_figures_that_are_properties_have_the_intervals_of_properties() -> None:
    fit, _ = SCENARIOS["F1"].fitted(100, seed=2)
    found = figure_uncertainty(fit, [3], draws=500, resamples=50, seed=4, horizon_gap=Fraction(1, 100))
    (within,) = property_uncertainty(fit, 'P=? [ F<=3 "success" ];', draws=500, seed=4)
    assert found["R(3)"].posterior == within.interval
    assert {each.method for each in found["R_inf"].others} == {"delta method", "Wilson score"}
    for name in ("R_inf", "MTTA", "steps_per_failure", "horizon", "median", "deviation"):
        ends = found[name].posterior
        assert ends is not None, name
        assert ends.lower < ends.upper
    assert found["R(3)"].to_dict()["others"] == []


def test_successes_that_are_too_late_to_follow_have_no_median(monkeypatch: pytest.MonkeyPatch) -> None:
    fit, _ = SCENARIOS["F1"].fitted(100, seed=2)
    stack = next(iter(ChainPosterior.of_fit(fit).draws(3, 0)))
    whole = time_figures(stack)["median"]
    monkeypatch.setattr("tracebridge.inference.figure_uncertainty._MAX_WORK", 1)  # one step
    found = time_figures(stack)
    assert whole.max() > 1
    assert np.array_equal(found["median"], np.where(whole > 1, np.nan, whole), equal_nan=True)
    assert np.isfinite(found["deviation"]).all()
