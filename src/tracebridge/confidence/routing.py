"""Did the router pick the right candidate? Ratios over blocks, each with its own denominator.

With V the valid polls of a block, C the correct and W the wrong ones among them, and sigma the selected poll:

====================================  ==============================================  ==================================
metric                                counts                                          among
====================================  ==============================================  ==================================
CRA                                   sigma in C                                      blocks with sigma in V
HRWP                                  sigma in C                                      blocks with C not empty
MCR                                   sigma in W and C not empty                      blocks with sigma in V and |V| > 1
PCCA                                  share of pairs (C, W) in order, ties half       blocks with C and W not empty
CTR                                   pairs (C, W) with equal scores                  pairs (C, W) of one block
pairwise resolution                   pairs (C, W) in order, ties half                pairs (C, W) of one block
selected-invalid rate                 sigma not in V                                  blocks with a selection
routeable but selected invalid        sigma not in V                                  ... and V not empty
unroutable rate                       V is empty                                      blocks with a poll
top-tie rate                          several polls, valid or not, share the maximum  blocks with a poll
====================================  ==============================================  ==================================

A selected invalid poll of a block with C not empty is a miss of HRWP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.audit_tally import RatioTally, tally

if TYPE_CHECKING:
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.table import Codes, Numbers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairCounts:
    """Pairs of a correct and a wrong valid candidate of one block, per block (B,).

    Attributes:
        pairs: how many there are. ordered: in how many the correct one has the higher score. tied: equal scores.
    """

    pairs: Numbers
    ordered: Numbers
    tied: Numbers


def pair_counts(pools: BlockPools, score: Numbers) -> PairCounts:
    """The pairs of every mixed block under scores (N,); none where a valid candidate has no label.

    The work is that of sorting the polls, however many pairs they make.
    """
    polls, n_blocks = pools.table.polls, len(pools.n_polls)
    rows = np.flatnonzero(polls.valid & pools.mixed[polls.block])
    rows = rows[np.lexsort((score[rows], polls.block[rows]))]
    block = polls.block[rows]
    starts = np.ones(len(rows), dtype=np.bool_)
    starts[1:] = (np.diff(block) > 0) | (score[rows][1:] != score[rows][:-1])
    level = np.cumsum(starts) - 1  # the polls of one block with one score
    right = pools.correct[rows] == 1
    n_right, n_wrong = (np.bincount(level, weights=kind, minlength=1) for kind in (right, ~right))
    block = block[starts]
    n_right, n_wrong = n_right[: len(block)], n_wrong[: len(block)]
    before = np.cumsum(n_wrong) - n_wrong
    below = before - before[np.searchsorted(block, block)]
    return PairCounts(
        pairs=np.where(pools.mixed, pools.n_correct * (pools.n_valid - pools.n_correct), 0).astype(np.float64),
        ordered=np.bincount(block, weights=n_right * below, minlength=n_blocks).astype(np.float64),
        tied=np.bincount(block, weights=n_right * n_wrong, minlength=n_blocks).astype(np.float64),
    )


def selection_tallies(pools: BlockPools) -> tuple[RatioTally, ...]:
    """What the selections amount to: CRA, HRWP, MCR and the rates of invalid selections; units are blocks."""
    trace = pools.table.blocks.trace
    selected, valid, correct = pools.has_selection, pools.selected_valid, pools.selected_correct
    invalid, hit, unknown = selected & ~valid, correct == 1, selected & (correct < 0)
    solvable, routeable = pools.solvable, pools.n_valid > 0
    eligible = valid & (pools.n_valid > 1)
    return (
        tally("CRA", "selected valid blocks", numerator=hit, denominator=valid, dropped=unknown, trace=trace),
        tally(
            "HRWP",
            "possible-hit blocks",
            numerator=hit,
            denominator=selected & (solvable == 1),
            dropped=selected & routeable & ((solvable < 0) | ((solvable == 1) & unknown)),
            trace=trace,
        ),
        tally(
            "MCR",
            "eligible blocks",
            numerator=(correct == 0) & (solvable == 1),
            denominator=eligible,
            dropped=eligible & ~pools.labelled,
            trace=trace,
        ),
        tally("selected_invalid_rate", "selected blocks", numerator=invalid, denominator=selected, trace=trace),
        tally(
            "routeable_selected_invalid_rate",
            "selected routeable blocks",
            numerator=invalid,
            denominator=selected & routeable,
            trace=trace,
        ),
    )


def pool_tallies(pools: BlockPools) -> tuple[RatioTally, ...]:
    """What the pools are like, whatever was selected: unroutable and top-tie rate; units are blocks."""
    trace, asked = pools.table.blocks.trace, pools.n_polls > 0
    on_top = pools.score == pools.maxima(pools.score)[pools.table.polls.block]
    n_top = np.bincount(pools.table.polls.block[on_top], minlength=len(asked))
    return (
        tally("unroutable_rate", "polled blocks", numerator=pools.n_valid == 0, denominator=asked, trace=trace),
        tally("top_tie_rate", "polled blocks", numerator=n_top > 1, denominator=asked, trace=trace),
    )


def alignment_tallies(pools: BlockPools, score: Numbers | None = None) -> tuple[RatioTally, ...]:
    """Whether scores (N,), those stated by default, put correct candidates first: PCCA, CTR and pairwise resolution."""
    trace = pools.table.blocks.trace
    counts = pair_counts(pools, pools.score if score is None else score)
    won = counts.ordered + counts.tied / 2
    share = np.divide(won, counts.pairs, out=np.zeros_like(won), where=counts.pairs > 0)
    unknown = (pools.n_valid > 1) & ~pools.labelled
    pairs = "correct-wrong pairs"
    return (
        tally("PCCA", "mixed blocks", numerator=share, denominator=counts.pairs > 0, dropped=unknown, trace=trace),
        tally("CTR", pairs, numerator=counts.tied, denominator=counts.pairs, dropped=unknown, trace=trace),
        tally("pairwise_resolution", pairs, numerator=won, denominator=counts.pairs, dropped=unknown, trace=trace),
    )


def routing_tallies(pools: BlockPools) -> tuple[RatioTally, ...]:
    """All routing metrics of a corpus, in the order of the table above."""
    found = {t.name: t for t in (*selection_tallies(pools), *pool_tallies(pools), *alignment_tallies(pools))}
    order = ("CRA", "HRWP", "MCR", "PCCA", "CTR", "pairwise_resolution", "selected_invalid_rate")
    return tuple(found[name] for name in (*order, *(name for name in found if name not in order)))


def counts_of_blocks(pools: BlockPools) -> dict[str, int]:
    """How many blocks, polls and candidates of each kind there are."""

    def total(mask: Codes | Numbers) -> int:
        return int(mask.sum())

    return {
        "blocks": len(pools.n_polls),
        "blocks_without_poll": int((pools.n_polls == 0).sum()),
        "blocks_without_selection": int((~pools.has_selection).sum()),
        "polls": total(pools.n_polls),
        "valid_polls": total(pools.n_valid),
        "correct_polls": total(pools.n_correct),
        "routeable_blocks": int((pools.n_valid > 0).sum()),
        "solvable_blocks": int((pools.solvable == 1).sum()),
        "mixed_blocks": int(pools.mixed.sum()),
        "blocks_with_unlabelled_candidates": int((~pools.labelled).sum()),
    }
