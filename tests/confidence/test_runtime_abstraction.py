"""What a monitor sees: block by block from the definition, and no gold label in it."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.confidence.random_deliberations import random_deliberations

from tracebridge.chain import fit_chain
from tracebridge.closedform import long_run_reliability
from tracebridge.confidence.commitment import commitment_pairs
from tracebridge.confidence.routing_pools import block_pools
from tracebridge.confidence.runtime_abstraction import AGREEMENTS, BANDS, MARKS, RuntimeView

SEEDS = range(6)


def view_of(table, calibrated=lambda values: values):
    return RuntimeView.of(block_pools(table), commitment_pairs(table), calibrated)


@pytest.mark.parametrize("seed", SEEDS)
def test_states_are_what_the_blocks_show(seed):
    table = random_deliberations(seed, n_traces=15, unselected=0.1)
    polls, states = table.polls, view_of(table).states
    pairs = commitment_pairs(table)
    diverged = set(table.speaks.block[pairs.speak[pairs.divergent]].tolist())
    for block, state in enumerate(states):
        rows = list(range(*table.blocks.first_poll[block : block + 2].tolist()))
        chosen = int(table.blocks.selected[block])
        p = polls.confidence[chosen] if chosen >= 0 else None
        band = "blank" if p is None else "low" if p < 1 / 3 else "middle" if p < 2 / 3 else "high"
        answers = Counter(int(polls.answer[row]) for row in rows if polls.valid[row])
        n, most = sum(answers.values()), max(answers.values(), default=0)
        agreement = "nobody" if not n else "unanimous" if most == n else "majority" if 2 * most > n else "split"
        scores = [polls.score[row] for row in rows]
        marks = [scores.count(max(scores)) > 1, chosen >= 0 and not polls.valid[chosen], block in diverged, False]
        assert state == "_".join([band, agreement, *(mark for mark, on in zip(MARKS, marks, strict=True) if on)])


@pytest.mark.parametrize("seed", SEEDS)
def test_labels_of_correctness_do_not_enter(seed):
    table = random_deliberations(seed)
    blind = replace(table, polls=replace(table.polls, correct=np.full_like(table.polls.correct, -1)))
    pools, pairs = block_pools(table), commitment_pairs(table)
    assert RuntimeView.of(block_pools(blind), pairs).states == RuntimeView.of(pools, pairs).states


@pytest.mark.parametrize("seed", SEEDS)
def test_the_chain_passes_as_often_as_the_corpus(seed):
    table = random_deliberations(seed, n_traces=60)
    view = view_of(table)
    fit = fit_chain(view.traces(), prior="none", k_max=256, vocabulary=view.vocabulary())
    assert float(long_run_reliability(fit.chain)) == pytest.approx((table.traces.passed == 1).mean(), abs=1e-12)
    blocks = sum(fit.chain.label(band) for band in BANDS)
    assert blocks.max() == 1  # every state has one band
    assert (sum(fit.chain.label(name) for name in AGREEMENTS) == blocks).all()


def test_what_gold_says_of_what_a_monitor_sees():
    table = random_deliberations(1, n_traces=200)
    rows = view_of(table).correctness()
    assert sum(row["blocks"] for row in rows) == len(table.blocks.trace)
    selected = table.blocks.selected
    valid = table.polls.valid[selected]
    correct = sum(row["p_correct"] * row["n"] for row in rows if row["n"])
    assert correct == pytest.approx((valid & (table.polls.correct[selected] == 1)).sum())
    assert all(row["n"] == 0 for row in rows if "unparsed" in row["state"])


def test_bands_are_of_calibrated_confidence():
    table = random_deliberations(2)
    assert {state.split("_")[0] for state in view_of(table, lambda p: 0 * p).states} == {"low"}
    assert {state.split("_")[0] for state in view_of(table, lambda p: 0 * p + 1).states} == {"high"}
