"""What other routers would have achieved on the same polls: expected success of a block under random ties.

Over the routeable blocks (a poll is valid) whose valid candidates all have a label. With J the polls that a rule ties
on, a block's success is the mean correctness over J:

- ``runtime_argmax``: the recorded selection; an invalid one has no success,
- ``first_listed_argmax``: the highest score of all polls, the first of equals, replayed; needs no recorded selection,
- ``top_confidence_tie_random``: J has the highest scores of the valid polls (or of all polls, where invalid ones fail),
- ``random_valid``: J has all valid polls,
- ``majority_vote``: clusters of equal answers, the largest tie; the mean over these of a cluster's mean correctness,
- ``confidence_weighted_vote``: the same with a cluster's sum of scores in place of its size,
- ``oracle`` and ``worst``: the best and the worst valid candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from tracebridge.confidence.audit_tally import RatioTally, tally
from tracebridge.confidence.routing_pools import at_rows
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.table import Codes, Numbers

#: Among which polls the top confidence is sought.
CandidateSet = Literal["valid", "all"]

ROUTEABLE_BLOCKS = "routeable blocks"
RUNTIME = "runtime_argmax"
ORACLE = "oracle"

_WEIGHT_DECIMALS = 9  # sums of fractions in another order differ by rounding, and no more than that


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RouteableBlocks:
    """The blocks that every rule is compared on (R), with their valid polls (V) in their order.

    Attributes:
        pools: of all blocks.
        block: (R,) rows of the blocks.
        dropped: (B,) routeable blocks left out because a valid candidate has no label.
        poll: (V,) rows of the valid polls. home: (V,) their blocks, as positions in ``block``, non-decreasing.
        correct: (V,) 0 or 1.
    """

    pools: BlockPools
    block: Codes
    dropped: NDArray[np.bool_]
    poll: Codes
    home: Codes
    correct: Numbers

    @property
    def first(self) -> Codes:
        """(R,) where in ``poll`` each block begins."""
        return np.searchsorted(self.home, np.arange(len(self.block)))

    def mean(self, chosen: NDArray[np.bool_]) -> Numbers:
        """(R,) the mean correctness of the chosen valid polls (V,), some in every block."""
        return self._sums(self.correct * chosen) / self._sums(chosen)

    def highest(self, values: Numbers) -> NDArray[np.bool_]:
        """(V,) which valid polls have the highest value of their block."""
        if not len(values):
            return np.zeros(0, dtype=np.bool_)
        return np.asarray(values == np.maximum.reduceat(values, self.first)[self.home])

    def _sums(self, values: NDArray[np.generic]) -> Numbers:
        return np.bincount(self.home, weights=values, minlength=len(self.block)).astype(np.float64)


def routeable_blocks(pools: BlockPools) -> RouteableBlocks:
    """The blocks to compare routers on."""
    routeable = pools.n_valid > 0
    counted = routeable & pools.labelled
    polls = pools.table.polls
    rows = np.flatnonzero(polls.valid & counted[polls.block])
    return RouteableBlocks(
        pools=pools,
        block=np.flatnonzero(counted),
        dropped=routeable & ~pools.labelled,
        poll=rows,
        home=(np.cumsum(counted) - 1)[polls.block[rows]],
        correct=pools.correct[rows].astype(np.float64),
    )


def router_successes(blocks: RouteableBlocks, *, candidate_set: CandidateSet = "valid") -> dict[str, Numbers]:
    """By rule, the expected success of every block, shape (R,); NaN where no selection is recorded.

    Raises:
        UsageError: an unknown candidate set.
    """
    pools = blocks.pools
    score = pools.score[blocks.poll]
    return {
        RUNTIME: _of_polls(blocks, pools.selected[blocks.block]),
        "first_listed_argmax": _of_polls(blocks, pools.first_of_highest(pools.score)[blocks.block]),
        "top_confidence_tie_random": _top_confidence(blocks, candidate_set),
        "random_valid": blocks.mean(np.ones(len(score), dtype=np.bool_)),
        "majority_vote": _vote(blocks, np.ones(len(score))),
        "confidence_weighted_vote": _vote(blocks, score),
        ORACLE: (pools.n_correct[blocks.block] > 0).astype(np.float64),
        "worst": (pools.n_correct[blocks.block] == pools.n_valid[blocks.block]).astype(np.float64),
    }


def success_by_value(blocks: RouteableBlocks, value: Numbers) -> Numbers:
    """(R,) the expected success of routing to the highest of so many values (V,), such as learned probabilities."""
    return blocks.mean(blocks.highest(value))


def router_tallies(blocks: RouteableBlocks, successes: Mapping[str, Numbers]) -> tuple[RatioTally, ...]:
    """By rule, its success, its gap to the oracle and its gain over the recorded selection, on the same blocks.

    Units are all blocks of the corpus. Gaps and gains are differences block by block, so that their intervals are
    paired; a rule has none to itself.
    """
    tallies = []
    for rule, success in successes.items():
        columns = {"success": success}
        if rule != ORACLE:
            columns["gap_to_oracle"] = successes[ORACLE] - success
        if rule != RUNTIME:
            columns["gain_over_observed"] = success - successes[RUNTIME]
        for name, above in columns.items():
            known = ~np.isnan(above)
            tallies.append(
                tally(
                    f"{name}[{rule}]",
                    ROUTEABLE_BLOCKS,
                    numerator=_at(blocks, np.where(known, above, 0.0)),
                    denominator=_at(blocks, known),
                    dropped=blocks.dropped | (_at(blocks, ~known) > 0),
                    trace=blocks.pools.table.blocks.trace,
                    bounds=(-1.0 if name.startswith("gain") else 0.0, 1.0),
                )
            )
    return tuple(tallies)


def _at(blocks: RouteableBlocks, values: NDArray[np.generic]) -> Numbers:
    """Values of the routeable blocks (R,) among all blocks (B,); zero elsewhere."""
    spread = np.zeros(len(blocks.dropped))
    spread[blocks.block] = values
    return spread


def _of_polls(blocks: RouteableBlocks, poll: Codes) -> Numbers:
    """(R,) the success of one given poll a block; an invalid one has none."""
    return np.where(poll >= 0, at_rows(blocks.pools.correct, poll, UNKNOWN) == 1, np.nan)


def _top_confidence(blocks: RouteableBlocks, candidate_set: CandidateSet) -> Numbers:
    if candidate_set not in get_args(CandidateSet):
        raise UsageError(f"candidates can be one of {', '.join(get_args(CandidateSet))}, not {candidate_set!r}")
    pools = blocks.pools
    if candidate_set == "valid":
        return success_by_value(blocks, pools.score[blocks.poll])
    block = pools.table.polls.block
    top = pools.score == pools.maxima(pools.score)[block]
    n_blocks = len(pools.n_polls)
    n_top = np.bincount(block[top], minlength=n_blocks)
    n_right = np.bincount(block[top & (pools.correct == 1)], minlength=n_blocks)
    return n_right[blocks.block] / n_top[blocks.block]


def _vote(blocks: RouteableBlocks, weight: Numbers) -> Numbers:
    """(R,) the success of the answer with most weight, where equal weights share the turn."""
    if not len(weight):
        return np.zeros(len(blocks.block))
    table = blocks.pools.table
    keys, cluster = np.unique(blocks.home * len(table.answers) + table.polls.answer[blocks.poll], return_inverse=True)
    home = keys // len(table.answers)
    size = np.bincount(cluster)
    total = np.round(np.bincount(cluster, weights=weight), _WEIGHT_DECIMALS)
    right = np.bincount(cluster, weights=blocks.correct) / size
    first = np.searchsorted(home, np.arange(len(blocks.block)))
    top = total == np.maximum.reduceat(total, first)[home]
    n_top = np.bincount(home[top], minlength=len(blocks.block))
    return np.bincount(home[top], weights=right[top], minlength=len(blocks.block)) / n_top
