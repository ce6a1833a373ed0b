from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.inference.draws_of_chains import first_draws, small_fit

from tracebridge.chain import TransitionCounts, WeightedCounts, fit_counts
from tracebridge.errors import UsageError
from tracebridge.inference.posterior import SMALLEST_PROBABILITY, ChainPosterior, _dirichlet


def concentration(posterior, source: str, target: str) -> float:
    chain = posterior.chain
    P = chain.transitions
    i, j = chain.index(source), chain.index(target)
    places = np.arange(P.indptr[i], P.indptr[i + 1])
    return float(posterior.concentrations[places[P.indices[places] == j]][0])


def test_a_concentration_is_count_plus_alpha():
    posterior = ChainPosterior.of_fit(small_fit())  # four states: alpha is 1/6
    assert concentration(posterior, "search", "answer") == pytest.approx(4 + 1 / 6, rel=1e-14)
    assert concentration(posterior, "search", "success") == pytest.approx(1 / 6, rel=1e-14)
    assert concentration(posterior, "success", "success") == 0


def test_weights_count_as_effective_runs():
    runs = [((("a",), "success", 3)), ((("a",), "failure", 1))]
    fit = fit_counts(WeightedCounts.from_paths(runs), prior="none")
    # (3 + 1)^2 / (9 + 1) = 1.6 runs, three quarters of them successes
    posterior = ChainPosterior.of_fit(fit)
    assert concentration(posterior, "a", "success") == pytest.approx(1.2)
    assert concentration(posterior, "a", "failure") == pytest.approx(0.4)


def test_the_start_is_treated_as_the_fit_treats_it():
    observed = ChainPosterior.of_fit(small_fit()).start
    assert observed is not None
    assert observed.sum() == 6  # counts alone
    smoothed = ChainPosterior.of_fit(small_fit(start="smoothed")).start
    np.testing.assert_allclose(smoothed[:4], observed[:4] + 0.25)
    fixed = small_fit(start={"plan": Fraction(1, 2), "search": Fraction(1, 2)})
    assert ChainPosterior.of_fit(fixed).start is None
    assert first_draws(fixed, 3).initial.shape == (6, 1)


def test_moments_of_draws_are_those_of_the_dirichlet_distribution():
    fit = small_fit()
    posterior = ChainPosterior.of_fit(fit)
    draws = 20_000
    entries = np.concatenate([stack.entries for stack in posterior.draws(draws, 5)], axis=1)
    np.testing.assert_allclose(np.add.reduceat(entries, fit.chain.transitions.indptr[:-1], axis=0), 1, rtol=1e-12)
    p = fit.chain.transitions.data
    totals = np.repeat(
        np.add.reduceat(posterior.concentrations, fit.chain.transitions.indptr[:-1]),
        np.diff(fit.chain.transitions.indptr),
    )
    sd = np.sqrt(p * (1 - p) / (totals + 1))
    assert np.abs(entries.mean(axis=1) - p).max() < 4.5 * (sd / np.sqrt(draws)).max()
    random = posterior.concentrations > 0
    np.testing.assert_allclose(entries.std(axis=1)[random], sd[random], rtol=0.06)


def test_a_pair_of_gamma_variables_is_beta_distributed():
    rng = np.random.default_rng(1)
    for a, b in ((0.05, 0.4), (3.0, 0.2), (2.0, 5.0)):
        x = _dirichlet(np.array([a, b]), np.array([0, 2]), 4_000, rng)[0]
        assert stats.kstest(x, stats.beta(a, b).cdf).pvalue > 1e-3


def test_tiny_concentrations_keep_every_edge():
    x = _dirichlet(np.full(1_000, 1e-3), np.array([0, 1_000]), 8, np.random.default_rng(0))
    assert x.min() >= SMALLEST_PROBABILITY
    np.testing.assert_allclose(x.sum(axis=0), 1, rtol=1e-12)


def test_chunks_and_the_number_of_draws_do_not_change_the_draws(monkeypatch):
    posterior = ChainPosterior.of_fit(small_fit())
    whole = first_draws(small_fit(), 300, seed=9)
    monkeypatch.setattr("tracebridge.inference.posterior._MOST_AT_A_TIME", 64)
    parts = list(posterior.draws(200, 9))
    assert len(parts) == 4
    np.testing.assert_array_equal(np.concatenate([part.entries for part in parts], axis=1), whole.entries[:, :200])
    np.testing.assert_array_equal(np.concatenate([part.initial for part in parts], axis=1), whole.initial[:, :200])
    assert not np.array_equal(first_draws(small_fit(), 64, seed=10).entries, whole.entries[:, :64])


def test_rows_without_a_count_or_a_prior_are_fixed():
    counts = TransitionCounts.from_paths([(("a", "b"), "censored"), (("a",), "success")])
    stack = first_draws(fit_counts(counts, prior="none"), 5)
    b = stack.chain.index("b")
    assert stack.chain.states[-1] == "stuck"
    np.testing.assert_array_equal(stack.entries[stack.chain.transitions.indptr[b]], 1.0)


def test_no_draw_is_refused():
    with pytest.raises(UsageError, match="at least one"):
        list(ChainPosterior.of_fit(small_fit()).draws(0, 1))
