"""The delta method against posterior draws, and the ranking."""

from __future__ import annotations

import numpy as np
import pytest
from tests.inference.test_robust_guarantee import fit_of

from tracebridge.checking.gradient import property_gradient
from tracebridge.checking.run import resolve_for
from tracebridge.inference.posterior import ChainPosterior
from tracebridge.inference.transition_effects import transition_effects
from tracebridge.inference.uncertainty import draw_properties
from tracebridge.pctl import parse_properties

TEXT = """
"rate": P=? [ F "success" ];
"soon": P=? [ F<=3 "success" ];
"steps": R{"steps"}=? [ F "absorbed" ];
"cube": pow(P=? [ F "success" ], 3);
"""


@pytest.fixture(scope="module")
def fit():
    return fit_of([("ab", "success", 900), ("aab", "failure", 500), ("ba", "success", 200), ("b", "failure", 400)])


def test_the_delta_method_gives_the_deviation_of_posterior_draws(fit):
    properties = resolve_for(fit.chain, parse_properties(TEXT), {}).properties
    draws = 4_000
    stacks = ChainPosterior.of_fit(fit).draws(draws, seed=3)
    for property_, drawn in zip(properties, draw_properties(properties, stacks, draws), strict=True):
        effects = transition_effects(property_gradient(fit.chain, property_), fit)
        # the standard deviation of 4,000 draws is known to 1.1 %; beyond that, curvature
        assert effects.deviation == pytest.approx(drawn.values.std(), rel=0.05)
        shares = [each.variance_share for each in effects.transitions]
        assert sum(shares) + effects.start_share == pytest.approx(1, rel=1e-12)


def test_deviations_are_those_of_beta_distributions_and_orders_are_what_they_say(fit):
    (property_,) = resolve_for(fit.chain, parse_properties('P=? [ F "success" ]'), {}).properties
    effects = transition_effects(property_gradient(fit.chain, property_), fit)
    posterior = ChainPosterior.of_fit(fit)
    row = slice(*fit.chain.transitions.indptr[:2].tolist())
    total = posterior.concentrations[row].sum()
    expected = {
        fit.chain.states[j]: np.sqrt(a / total * (1 - a / total) / (total + 1))
        for j, a in zip(
            fit.chain.transitions.indices[row].tolist(), posterior.concentrations[row].tolist(), strict=True
        )
    }
    found = {each.target: each.deviation for each in effects.transitions if each.source == fit.chain.states[0]}
    assert found == pytest.approx(expected, rel=1e-12)
    slopes = [abs(each.slope) for each in effects.transitions]
    spreads = [each.spread for each in effects.by_spread()]
    assert slopes == sorted(slopes, reverse=True)
    assert spreads == sorted(spreads, reverse=True)
    of_state = {each.source: each.state_share for each in effects.transitions}
    assert sum(of_state.values()) + effects.start_share == pytest.approx(1, rel=1e-12)


def test_without_counts_there_is_no_deviation(fit):
    (property_,) = resolve_for(fit.chain, parse_properties('P=? [ F "success" ]'), {}).properties
    effects = transition_effects(property_gradient(fit.chain, property_))
    assert effects.deviation is effects.start_share is None
    assert effects.by_spread() == ()
    assert all(each.spread is each.variance_share is None for each in effects.transitions)


def test_transitions_say_how_often_runs_took_them(fit):
    (property_,) = resolve_for(fit.chain, parse_properties('P=? [ F "success" ]'), {}).properties
    effects = transition_effects(property_gradient(fit.chain, property_), fit)
    names = {fit.chain.states[i]: "ab"[i] for i in range(2)} | {"success": "S", "failure": "F"}
    found = {names[each.source] + names[each.target]: each.times_seen for each in effects.transitions}
    assert {pair: times for pair, times in found.items() if times} == {
        "aa": 500,
        "ab": 900 + 500,
        "aS": 200,
        "ba": 200,
        "bS": 900,
        "bF": 500 + 400,
    }
    assert 0 in found.values()  # those of the prior alone
    assert transition_effects(property_gradient(fit.chain, property_)).transitions[0].times_seen is None
