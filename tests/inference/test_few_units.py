"""Few units: the factor against Student's law, and what intervals of few tasks cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from tracebridge.errors import UsageError
from tracebridge.inference.few_units import few_units_factor, resampled_interval


@pytest.mark.parametrize(("units", "factor"), [(3, 2.689), (10, 1.217), (100, 1.017)])
def test_the_factor(units, factor):
    assert few_units_factor(units, 0.95) == pytest.approx(factor, abs=5e-4)
    expected = student.ppf(0.975, units - 1) / norm.ppf(0.975) * math.sqrt(units / (units - 1))
    assert few_units_factor(units, 0.95) == pytest.approx(expected)


def test_one_unit_tells_no_variation():
    assert few_units_factor(1, 0.95) == math.inf
    found = resampled_interval(np.array([0.3, 0.4]), 0.35, 1, 0.95, "percentile", least=0.0, most=1.0)
    assert (found.lower, found.upper) == (0.0, 1.0)
    assert found.method == "percentile (1 task: too few for a sure interval)"
    with pytest.raises(UsageError):
        few_units_factor(0, 0.95)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.floats(0, 1),
    st.integers(1, 50),
    st.sampled_from([0.5, 0.9, 0.95]),
)
def test_it_holds_the_estimate_and_the_percentiles_and_stays_in_the_range(draws, estimate, units, level):
    found = resampled_interval(np.array(draws), estimate, units, level, "m", least=0.0, most=1.0)
    assert 0 <= found.lower <= estimate <= found.upper <= 1
    tail = (1 - level) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail], method="inverted_cdf")
    assert found.lower <= lower + 1e-12
    assert found.upper >= upper - 1e-12


def test_infinite_ends_stay():
    found = resampled_interval(np.array([1.0, math.inf]), 2.0, 5, 0.95, "m", least=0.0)
    assert found.upper == math.inf
    assert found.lower == pytest.approx(2 / 2 ** few_units_factor(5, 0.95))


@given(
    st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=30),
    st.floats(1e-3, 1e6),
    st.integers(1, 50),
    st.floats(1e-3, 1e3),
)
def test_a_positive_figure_stays_positive_and_its_interval_keeps_to_the_unit_of_measurement(
    draws, estimate, units, unit
):
    def interval(scale):
        return resampled_interval(np.array(draws) * scale, estimate * scale, units, 0.95, "m", least=0.0)

    found, scaled = interval(1.0), interval(unit)
    assert 0 <= found.lower <= estimate <= found.upper
    assert found.lower > 0 or units == 1
    assert [scaled.lower, scaled.upper] == pytest.approx([found.lower * unit, found.upper * unit], rel=1e-6)


def test_an_estimate_on_its_bound_is_widened_away_from_it():
    found = resampled_interval(np.array([0.0, 1.0]), 0.0, 5, 0.95, "m", least=0.0)
    assert (found.lower, found.upper) == (0.0, pytest.approx(few_units_factor(5, 0.95)))


def test_coverage_over_three_tasks():
    """Means of three uniform task rates: a plain percentile interval covers .77 of them, a widened one .95."""
    rng = np.random.default_rng(1)
    rates = rng.random((1_000, 3))
    weights = rng.multinomial(3, np.full(3, 1 / 3), size=400) / 3
    plain = wide = 0
    for each in rates:
        draws = weights @ each
        low, high = np.quantile(draws, [0.025, 0.975])
        plain += low <= 0.5 <= high
        wide += 0.5 in resampled_interval(draws, each.mean(), 3, 0.95, "m", least=0.0, most=1.0)
    assert plain < 850  # the standard error of a share of 1,000 is below .015
    assert wide > 920
