"""Intervals of transition probabilities: their numbers, and what the chain made of them contains."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tracebridge.chain import TransitionCounts, WeightedCounts, fit_counts
from tracebridge.errors import UsageError
from tracebridge.inference.interval_entries import interval_chain_of_fit
from tracebridge.inference.posterior import ChainPosterior

PATHS = [(("a", "b"), "success")] * 6 + [(("a",), "failure")] * 3 + [(("a", "b", "b"), "failure")] * 2


def fit(**options):
    return fit_counts(TransitionCounts.from_paths(PATHS), **options)


def bounds(chain, source, target):
    i, j = chain.states.index(source), chain.states.index(target)
    return chain.lower.toarray()[i, j], chain.upper.toarray()[i, j]


def test_credible_entries_are_beta_quantiles():
    # Laplace over a, b, success, failure: a has the concentrations 1, 9, 1, 4
    chain = interval_chain_of_fit(fit(prior="laplace"), level=0.9, together="entry")
    for target, own in (("b", 9), ("failure", 4), ("success", 1)):
        expected = stats.beta(own, 15 - own).ppf([0.05, 0.95])
        np.testing.assert_allclose(bounds(chain, "a", target), expected, rtol=1e-10)


@pytest.mark.parametrize(("together", "share"), [("row", 4), ("chain", 8)])
def test_bonferroni_shares_the_error(together, share):
    chain = interval_chain_of_fit(fit(prior="laplace"), level=0.9, together=together)
    expected = stats.beta(9, 6).ppf([0.05 / share, 1 - 0.05 / share])
    np.testing.assert_allclose(bounds(chain, "a", "b"), expected, rtol=1e-10)


def test_clopper_pearson_entries_are_binomial():
    chain = interval_chain_of_fit(fit(prior="none"), method="clopper-pearson", level=0.95, together="entry")
    # a: 8 of 11 to b; b: 6 of 10 to success
    for source, target, k, n in (("a", "b", 8, 11), ("b", "success", 6, 10), ("a", "failure", 3, 11)):
        expected = stats.binomtest(k, n).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose(bounds(chain, source, target), expected, rtol=1e-10)


def test_an_entry_that_was_never_seen_may_vanish():
    chain = interval_chain_of_fit(fit(prior="laplace"), method="clopper-pearson", level=0.95, together="entry")
    expected = max(stats.binomtest(0, 11).proportion_ci(0.95, method="exact").high, 1 / 15)
    assert bounds(chain, "a", "success") == (0, pytest.approx(expected, rel=1e-10))


@pytest.mark.parametrize("method", ["credible", "clopper-pearson"])
@pytest.mark.parametrize("prior", ["none", "mass-one", "jeffreys", 1e-6, 5.0])
def test_the_fitted_chain_lies_inside_and_a_higher_level_is_wider(method, prior):
    fitted = fit(prior=prior)
    narrow, wide = (interval_chain_of_fit(fitted, method=method, level=level) for level in (0.5, 0.99))
    assert narrow.contains(fitted.chain)
    assert (wide.lower.data <= narrow.lower.data).all()
    assert (wide.upper.data >= narrow.upper.data).all()
    assert np.array_equal(narrow.absorbing, fitted.chain.absorbing)


def test_a_row_box_has_its_level():
    # Draws of row a under the posterior: the share inside its box is at least the level, with 4,000 draws
    # (standard error 0.5 %, four of which are allowed).
    fitted = fit(prior="laplace")
    chain = interval_chain_of_fit(fitted, level=0.9)
    entries = np.concatenate([stack.entries for stack in ChainPosterior.of_fit(fitted).draws(4_000, seed=1)], axis=1)
    row = slice(*chain.upper.indptr[:2])
    inside = (chain.lower.data[row, None] <= entries[row]) & (entries[row] <= chain.upper.data[row, None])
    assert 0.88 <= inside.all(axis=0).mean() <= 0.98


def test_options_are_checked():
    for options in ({"method": "wald"}, {"together": "column"}, {"level": 1.0}):
        with pytest.raises(UsageError):
            interval_chain_of_fit(fit(), **options)
    weighted = fit_counts(WeightedCounts.from_paths([(("a",), "success", 3), (("a",), "failure", 1)]))
    with pytest.raises(UsageError, match="have weights"):
        interval_chain_of_fit(weighted, method="clopper-pearson")
    assert interval_chain_of_fit(weighted).contains(weighted.chain)
