"""Intervals of routers on whole deliberations: each replicate is the process of the deliberations drawn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.confidence.random_deliberations import random_deliberations

from tracebridge.confidence.bootstrap import Resampling
from tracebridge.confidence.commitment import commitment_pairs
from tracebridge.confidence.deliberation import Deliberations
from tracebridge.confidence.deliberation_chain import DeliberationFigures, fit_deliberations
from tracebridge.confidence.router import routeable_blocks, router_successes
from tracebridge.confidence.routing_pools import block_pools
from tracebridge.confidence.routing_process import routing_process
from tracebridge.confidence.routing_uncertainty import router_intervals
from tracebridge.confidence.routing_values import router_values

RULES = ("top_confidence_tie_random", "random_valid", "oracle", "worst")


def model_of(table):
    pools = block_pools(table)
    deliberations = Deliberations.of(pools, commitment_pairs(table))
    blocks = routeable_blocks(pools)
    found = router_successes(blocks)
    routing = routing_process(pools, deliberations, action_set="valid", calls_per_poll_round=Fraction(3))
    return deliberations, routing, blocks, {rule: found[rule] for rule in RULES}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("options", [{}, {"censored": 0.3, "unselected": 0.1}, {"n_traces": 6, "unlabelled": 0.05}])
def test_the_sums_of_a_corpus_have_the_values_of_its_process(seed, options, monkeypatch):
    """The statistic that replicates are made of, at the corpus itself: that of the chain and of its schedulers.

    Small corpora have kinds of polls that were never selected, for which other pools stand in.
    """
    from tracebridge.confidence import routing_uncertainty as module

    deliberations, routing, blocks, successes = model_of(random_deliberations(seed, **options))
    seen = {}

    def totals(table, statistic, *_, **__):
        seen["values"] = statistic(np.asarray(table.sum(axis=0)).reshape(1, -1))[0]
        return ()

    monkeypatch.setattr(module, "totals_intervals", totals)
    router_intervals(routing, deliberations, blocks, successes, Resampling())
    chain = fit_deliberations(deliberations, calls_per_poll_round=Fraction(3), prior="none").chain
    observed = DeliberationFigures.of(chain)
    expected = [(observed.passes, observed.blocks)]
    expected += [(value.passes, value.blocks) for value in router_values(routing, blocks, successes)]
    passes, n_blocks, gain = seen["values"].reshape(-1, 3).T
    assert passes == pytest.approx([value[0] for value in expected], abs=1e-9)
    assert n_blocks == pytest.approx([value[1] for value in expected], rel=1e-9)
    assert gain == pytest.approx(passes - passes[0], abs=1e-12)


def test_intervals_hold_their_values_and_a_gain_is_paired():
    deliberations, routing, blocks, successes = model_of(random_deliberations(3, n_traces=120))
    observed, top, *_, worst = router_intervals(
        routing, deliberations, blocks, successes, Resampling(replicates=300, seed=1)
    )
    for found, value in zip(
        (top, worst),
        (v for v in router_values(routing, blocks, successes) if v.rule in (RULES[0], "worst")),
        strict=True,
    ):
        assert found.passes.interval.lower <= value.passes <= found.passes.interval.upper
        assert found.blocks.interval.lower <= value.blocks <= found.blocks.interval.upper
    assert observed.gain.interval.width == 0
    assert top.gain.standard_error < 0.6 * top.passes.standard_error
    assert worst.gain.interval.upper < 0


def test_intervals_cover_the_pass_rate_they_are_of():
    """The observed router's in 120 corpora of 40 deliberations: a coverage of .95 is found above .89."""
    population = random_deliberations(1_000, n_traces=6_000)
    truth = float(np.mean(population.traces.passed == 1))
    held = []
    for seed in range(120):
        deliberations, routing, blocks, _ = model_of(random_deliberations(seed, n_traces=40))
        found = router_intervals(routing, deliberations, blocks, {}, Resampling(replicates=200, seed=seed))[0]
        held.append(truth in found.passes.interval)
    assert np.mean(held) > 0.89
