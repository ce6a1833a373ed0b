"""Deliberations as chains: what the chain says is what the audit says."""

import math

import numpy as np
import pytest
from tests.confidence.random_deliberations import random_deliberations

from tracebridge.chain import AbsorbingChain
from tracebridge.closedform import expected_visits, long_run_reliability
from tracebridge.confidence.commitment import commitment_pairs
from tracebridge.confidence.deliberation import STATES, Deliberations
from tracebridge.confidence.deliberation_chain import (
    DeliberationFigures,
    admissible_transitions,
    fit_deliberations,
)
from tracebridge.confidence.routing_pools import block_pools
from tracebridge.traces import Outcome

SEEDS = range(12)


def deliberations_of(table):
    return Deliberations.of(block_pools(table), commitment_pairs(table))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_chain_says_what_the_audit_counts(seed):
    """Flow balance: without a prior expected visits are mean visits, so that ratios of visits are ratios of counts."""
    table = random_deliberations(seed)
    pairs, selected = commitment_pairs(table), table.blocks.selected
    valid, correct = table.polls.valid[selected], table.polls.correct[selected] == 1
    chain = fit_deliberations(deliberations_of(table), calls_per_poll_round=3, prior="none").chain
    figures = DeliberationFigures.of(chain)
    assert figures.candidate_routing_accuracy == pytest.approx((valid & correct).sum() / valid.sum(), abs=1e-12)
    assert figures.divergence_rate == pytest.approx(pairs.divergent.mean(), abs=1e-12)
    assert figures.commitment_shift == pytest.approx(pairs.shift.mean(), abs=1e-12)
    assert figures.blocks == pytest.approx(len(selected) / len(table.traces.identifier), abs=1e-12)
    assert figures.passes == pytest.approx((table.traces.passed == 1).mean(), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_from_codes_are_counts_from_names(seed):
    """The same corpus by way of traces of named steps, which everything else takes."""
    from tracebridge.chain import TransitionCounts

    table = random_deliberations(seed, censored=0.2, unselected=0.1, unlabelled=0.02)
    deliberations = deliberations_of(table)
    traces = list(deliberations.traces())
    by_name = TransitionCounts.from_paths(([step.name for step in trace.steps], trace.outcome) for trace in traces)
    assert deliberations.transition_counts().to_dict() == by_name.to_dict()
    assert {step.name for trace in traces for step in trace.steps} <= set(STATES)
    assert [trace.task_id for trace in traces] == [f"c{i // 2}" for i in range(len(traces))]


@pytest.mark.parametrize("seed", SEEDS)
def test_smoothing_stays_within_the_protocol(seed):
    table = random_deliberations(seed, n_traces=6)
    deliberations = deliberations_of(table)
    graph = admissible_transitions(deliberations)
    chain = fit_deliberations(deliberations, calls_per_poll_round=3, prior="laplace").chain
    sources, targets = chain.transitions.tocoo().coords
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        name, following = chain.states[source], chain.states[target]
        if name not in ("success", "failure"):
            assert graph.may_follow(name, following)
            phase = name.split("_")[0]
            assert following.split("_")[0] in {"poll": ["route"], "route": ["speak"]}.get(
                phase, ["poll", "success", "failure"]
            )
    assert not any(name.endswith("_n") or name in ("speak_uc", "speak_uw") for name in graph.successors) or (
        "speak_uc" in deliberations.transition_counts().states or "speak_uw" in deliberations.transition_counts().states
    )


def test_a_deliberation_is_cut_before_a_block_whose_labels_are_missing():
    whole = random_deliberations(3, n_traces=60)
    table = random_deliberations(3, n_traces=60, unlabelled=0.1)
    cut = deliberations_of(table)
    assert deliberations_of(whole).n_cut == 0
    lost = np.unique(table.blocks.trace[table.polls.block[table.polls.valid & (table.polls.correct == -1)]])
    assert cut.n_cut == len(lost) > 0
    assert [row for row, outcome in enumerate(cut.outcomes) if outcome is Outcome.CENSORED] == lost.tolist()
    for row in lost.tolist():
        kept = cut.blocks[(table.blocks.trace[cut.blocks]) == row]
        of_trace = np.flatnonzero(table.blocks.trace == row)
        assert kept.tolist() == of_trace[: len(kept)].tolist()
        assert len(kept) < len(of_trace)


def test_calls_and_blocks_are_rewards():
    table = random_deliberations(1)
    chain = fit_deliberations(deliberations_of(table), calls_per_poll_round=3, prior="none").chain
    form = AbsorbingChain(chain=chain)
    visits = expected_visits(form)
    n_blocks = len(table.blocks.trace) / len(table.traces.identifier)
    for reward, expected in (("blocks", n_blocks), ("calls", 4 * n_blocks)):
        earned = float(visits @ chain.rewards[reward].state[form.transient])
        assert math.isclose(earned, expected, rel_tol=1e-12)
    assert math.isclose(float(long_run_reliability(chain, target="pass")), (table.traces.passed == 1).mean())
