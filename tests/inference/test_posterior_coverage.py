"""Posterior intervals cover what they claim to, on chains that the model describes; `benchmarks` has the full study."""

from dataclasses import replace

import numpy as np
import pytest

from tracebridge.chain import MarkovChain, RewardStructure
from tracebridge.closedform import long_run_reliability, mean_time_to_absorption, reliability
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.inference.intervals import equal_tailed
from tracebridge.inference.planning import simulated_counts
from tracebridge.inference.posterior import ChainPosterior
from tracebridge.inference.scenarios import SCENARIOS, Moment
from tracebridge.inference.uncertainty import draw_properties
from tracebridge.pctl import parse_properties

PROPERTIES = 'P=? [ F "success" ]; P=? [ F<=5 "success" ]; R{"steps"}=? [ F "absorbed" ]'
CORPORA, DRAWS = 200, 400


def truth_of(scenario) -> MarkovChain:
    m = scenario.n_states
    every = np.arange(m)
    rows = scenario.law(Moment(time=0, before=every, state=every, stay=every, kind=np.zeros(m)))
    return MarkovChain(
        states=(*scenario.states, "success", "failure"),
        transitions=np.vstack([rows / rows.sum(axis=1, keepdims=True), np.eye(m + 2)[m:]]),
        initial=np.append(scenario.start, [0, 0]),
        labels={"absorbed": np.arange(m + 2) >= m},
        rewards={"steps": RewardStructure(state=(np.arange(m + 2) < m).astype(float))},
    )


def full_posterior(chain: MarkovChain) -> ChainPosterior:
    """No run yet: every state and both absorbers may follow, with a total mass of one a row; the start is known."""
    n = chain.n_states
    transient = ~chain.absorbing
    P = np.where(transient[:, None], 1 / n, np.eye(n))
    blank = replace(chain, transitions=P, rationals=None)
    concentrations = np.where(np.repeat(transient, np.diff(blank.transitions.indptr)), 1 / n, 0.0)
    return ChainPosterior(chain=blank, concentrations=concentrations, start=None)


@pytest.mark.parametrize("name", ["N1", "N2"])
def test_intervals_cover_the_truth_as_often_as_they_say(name):
    chain = truth_of(SCENARIOS[name])
    truth = long_run_reliability(chain), reliability(chain, 5), mean_time_to_absorption(chain).overall
    stack = ChainStack(chain, np.repeat(chain.transitions.data[:, None], CORPORA, axis=1), chain.initial[:, None])
    counts, _ = simulated_counts(stack, 50, np.random.default_rng(1))
    before = full_posterior(chain)
    rows, columns = chain.transitions.tocoo().coords
    left = rows < SCENARIOS[name].n_states  # rows of the posterior's chain have all entries, in order
    place = before.chain.transitions.indptr[rows[left]] + columns[left]
    properties = parse_properties(PROPERTIES).properties
    covered = np.zeros((CORPORA, len(properties)))
    for corpus in range(CORPORA):
        after = before.concentrations.copy()
        after[place] += counts[left, corpus]
        outcomes = draw_properties(properties, replace(before, concentrations=after).draws(DRAWS, corpus), DRAWS)
        intervals = [equal_tailed(outcome.values, 0.95, "posterior")[0] for outcome in outcomes]
        covered[corpus] = [value in interval for value, interval in zip(truth, intervals, strict=True)]
    # the standard error of a coverage of 95 % over 200 corpora is 1.5 %; the figures of one corpus go together
    assert covered.mean(axis=0).min() >= 0.90
    assert 0.93 - 0.015 <= covered.mean() <= 0.97 + 0.015
