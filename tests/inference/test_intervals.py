import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tracebridge.errors import UsageError
from tracebridge.inference.intervals import equal_tailed, normal, wilson


@given(st.integers(1, 400), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_that_of_scipy(trials, data, level):
    successes = data.draw(st.integers(0, trials))
    expected = binomtest(successes, trials).proportion_ci(level, method="wilson")
    found = wilson(successes, trials, level)
    assert (found.lower, found.upper) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert found.method == "Wilson score"


def test_equal_tails_of_known_ranks():
    found, errors = equal_tailed(np.arange(1000.0)[::-1], 0.95, "m")
    # 2.5 % of the thousand draws 0..999 lie at or below 24, 97.5 % at or below 974
    assert (found.lower, found.upper) == (24, 974)
    # a rank has the standard error sqrt(1000 * .025 * .975) = 4.94
    assert errors == pytest.approx((5, 5), abs=0.6)


def test_quantile_errors_are_the_spread_of_quantiles():
    rng = np.random.default_rng(4)
    ends = np.array([[i.lower, i.upper] for i, _ in (equal_tailed(rng.normal(size=800), 0.9, "m") for _ in range(400))])
    _, errors = equal_tailed(rng.normal(size=800), 0.9, "m")
    # the standard error of a spread of 400 is 3.5 %, and one estimate of the density is noisy
    assert ends.std(axis=0) == pytest.approx(errors, rel=0.35)


def test_infinite_draws_are_ends_like_others():
    found, errors = equal_tailed(np.array([1.0, 2.0, np.inf, np.inf]), 0.5, "m")
    assert (found.lower, found.upper) == (1.0, np.inf)
    assert not any(np.isnan(errors))


def test_normal_is_cut_off_where_no_value_can_be():
    found = normal(0.98, 0.02, 0.95, "delta method", largest=1.0)
    assert found.lower == pytest.approx(0.98 - 1.959964 * 0.02, abs=1e-6)
    assert found.upper == 1.0


@pytest.mark.parametrize("level", [0.0, 1.0, float("nan")])
def test_a_level_is_a_share(level):
    with pytest.raises(UsageError, match="between 0 and 1"):
        wilson(1, 2, level)


def test_a_proportion_of_nothing_is_refused():
    with pytest.raises(UsageError, match="no proportion"):
        wilson(0, 0)
