"""Statements: inside the bounds they hold, outside of them chance decides, and it is the right chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.errors import UsageError
from tracebridge.studies.statement import FAILURE_CHANCE, Statement, equals, fixed, mean, mean_share, rate, spread


def test_a_number_without_chance_holds_or_fails():
    assert fixed("x", 1.0, upper=1).verdict == "holds"
    assert fixed("x", 1.0000001, upper=1).verdict == "fails"
    assert equals("x", 0.3, 0.1 + 0.2, 1e-15).verdict == "holds"
    assert fixed("x", math.nan, lower=0).verdict == "fails"
    assert fixed("x", math.nan, upper=0).verdict == "fails"


def test_the_chance_of_a_share_is_the_binomial_tail():
    """By hand: at p = .5, 10 of 10 has chance 2^-10, and 9 or more of 10 has 11 / 1024."""
    assert rate("x", 10, 10, "coins", upper=0.5).chance == pytest.approx(1 / 1024)
    assert rate("x", 1, 10, "coins", lower=0.5).chance == pytest.approx(11 / 1024)
    assert rate("x", 10, 10, "coins", upper=0.5).verdict == "fails"
    assert rate("x", 9, 10, "coins", upper=0.5).verdict == "within error"
    assert rate("x", 5, 10, "coins", upper=0.5).verdict == "holds"
    assert rate("x", 0, 400, "corpora", upper=0.07).standard_error == pytest.approx(math.sqrt(0.07 * 0.93 / 400))


def test_the_chance_of_a_mean_is_the_tail_of_t():
    """By hand: 0, 2 against at most 0 has t = 1 with one degree of freedom, a Cauchy variable: chance 1/4."""
    found = mean("x", [0.0, 2.0], "halves", upper=0)
    assert (found.measured, found.standard_error) == (1.0, 1.0)
    assert found.chance == pytest.approx(0.25)
    assert mean("x", [1.0, 1.0], "halves", upper=0).verdict == "fails"


def test_the_chance_of_a_spread_is_that_of_chi_square():
    """By hand: two scores have an exponential sum of squares: chance exp(-s / 2)."""
    found = spread("x", np.array([2.0, 2.0]), "scores", lower=0.9, upper=1.0)
    assert (found.measured, found.chance) == (2.0, pytest.approx(math.exp(-4)))


def test_the_chance_of_a_mean_share_is_at_most_that_of_coins():
    """Four that agree: the standard error at .5 is 1/4, so that 1 is two of them away."""
    found = mean_share("x", np.ones(4), "runs", upper=0.5)
    assert (found.measured, found.standard_error) == (1.0, 0.25)
    assert found.chance == pytest.approx(0.022750, abs=1e-6)
    assert mean_share("x", np.ones(9), "runs", upper=0.5).chance == pytest.approx(0.00135, abs=1e-5)
    assert mean_share("x", np.ones(16), "runs", upper=0.5).verdict == "fails"
    assert mean_share("x", np.array([0.5, 1 / 3]), "runs", upper=0.5).verdict == "holds"
    with pytest.raises(UsageError, match="between 0 and 1"):
        mean_share("x", np.array([1.5]), "runs", upper=0.5)


def test_a_true_statement_fails_as_rarely_as_it_says():
    rng = np.random.default_rng(0)
    studies = 20_000
    counts = rng.binomial(60, 0.5, size=studies)
    failed = {int(c) for c in range(61) if rate("x", c, 60, "coins", upper=0.5).verdict == "fails"}
    share = np.isin(counts, list(failed)).mean()
    assert 0 < share <= FAILURE_CHANCE + 4 * math.sqrt(FAILURE_CHANCE / studies)


@given(st.integers(0, 50), st.integers(1, 50), st.floats(0, 1), st.floats(0, 1))
def test_more_room_never_makes_a_statement_worse(count, number, first, second):
    count = min(count, number)
    order = ["fails", "within error", "holds"]
    narrow, wide = (rate("x", count, number, "runs", upper=b) for b in sorted((first, second)))
    assert order.index(narrow.verdict) <= order.index(wide.verdict)


def test_bounds_are_shown_as_they_are():
    assert rate("x", 1, 2, "runs", upper=0.07).bound == "at most 0.07"
    assert rate("x", 1, 2, "runs", lower=0.97).bound == "at least 0.97"
    assert rate("x", 1, 2, "runs", lower=0.02, upper=0.1).bound == "0.02 to 0.1"
    assert equals("x", 9, 9, 0).bound == "9"
    assert equals("x", 24 / 79, 24 / 79, 1e-12).bound == "0.303797 ± 1e-12"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fixed("x", 1.0), "needs a bound"),
        (lambda: fixed("x", 1.0, lower=2, upper=1), "nothing between"),
        (lambda: rate("x", 3, 2, "runs", upper=1), "no share"),
        (lambda: rate("x", 0, 0, "runs", upper=1), "no share"),
        (lambda: mean("x", [1.0], "runs", upper=1), "two replicates"),
    ],
)
def test_what_is_no_statement_is_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_the_document_has_the_verdict():
    document = rate("size", 9, 10, "coins", upper=0.5).to_dict()
    assert document["verdict"] == "within error"
    assert document["sample"] == "10 coins"
    assert set(document) == {*Statement.__dataclass_fields__, "verdict"}
