"""A deliberation as a monitor sees it while it runs: one state a block, and no gold label in it.

A state is named by what is known when the block is over, such as ``high_majority_tie``: the band of the selected poll's
calibrated confidence (``low`` below 1/3, ``middle``, ``high`` from 2/3; ``blank`` without a confidence or selection),
how far the valid candidates agree (``unanimous``, ``majority``, ``split``, ``nobody``), and where they hold ``tie``
(several polls have the highest score), ``unparsed`` (the selected poll is not valid), ``diverged`` (something else was
spoken than was polled) and ``again`` (not the first round). Labels enter through the calibrator alone, fitted before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracebridge.chain import StateVocabulary
from tracebridge.confidence.routing_pools import at_rows
from tracebridge.confidence.table import UNKNOWN
from tracebridge.traces.model import Outcome, Step, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracebridge.confidence.commitment import CommitmentPairs
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.table import Numbers

BANDS: Final = ("low", "middle", "high", "blank")
AGREEMENTS: Final = ("unanimous", "majority", "split", "nobody")
MARKS: Final = ("tie", "unparsed", "diverged", "again")

N_STATES: Final = len(BANDS) * len(AGREEMENTS) * 2 ** len(MARKS)
"""How many states there can be."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuntimeView:
    """The deliberations of a corpus as a monitor sees them.

    Attributes:
        pools: of the corpus.
        states: (B,) the state of each block that was polled; empty for others.
    """

    pools: BlockPools
    states: tuple[str, ...]

    @classmethod
    def of(
        cls, pools: BlockPools, pairs: CommitmentPairs, calibrated: Callable[[Numbers], Numbers] = lambda values: values
    ) -> RuntimeView:
        """The view of a corpus.

        Args:
            pools, pairs: of one table. Divergence is that of the pairs, whose judge must be at hand at run time too.
            calibrated: from stated confidence to the probability of being correct.
        """
        table, selected = pools.table, pools.selected
        p = calibrated(at_rows(table.polls.confidence, selected, np.nan))
        band = np.where(np.isnan(p), BANDS.index("blank"), np.digitize(p, [1 / 3, 2 / 3]))
        agreement = _agreement(pools)
        diverged = np.zeros(len(selected), dtype=np.bool_)
        diverged[table.speaks.block[pairs.speak[pairs.divergent]]] = True
        marks = np.column_stack(
            [
                pools.top_tie,
                (selected != UNKNOWN) & ~pools.selected_valid,
                diverged,
                table.blocks.round > 0,
            ]
        )
        names = {
            (b, a, code): "_".join(
                [BANDS[b], AGREEMENTS[a], *(mark for place, mark in enumerate(MARKS) if code >> place & 1)]
            )
            for b in range(len(BANDS))
            for a in range(len(AGREEMENTS))
            for code in range(2 ** len(MARKS))
        }
        codes = zip(band.tolist(), agreement.tolist(), (marks @ (1 << np.arange(len(MARKS)))).tolist(), strict=True)
        polled = (pools.n_polls > 0).tolist()
        states = (names[key] if is_polled else "" for key, is_polled in zip(codes, polled, strict=True))
        return cls(pools=pools, states=tuple(states))

    def traces(self) -> Iterator[Trace]:
        """The deliberations as traces, a step a block; the task of each is its cluster."""
        table = self.pools.table
        first = np.searchsorted(table.blocks.trace, np.arange(len(table.traces.identifier) + 1)).tolist()
        steps = {name: Step(name=name, kind="block") for name in set(self.states) if name}
        outcome_of = {1: Outcome.SUCCESS, 0: Outcome.FAILURE, UNKNOWN: Outcome.CENSORED}
        passed = np.where(table.traces.censored, UNKNOWN, table.traces.passed).tolist()
        for row, name in enumerate(table.traces.identifier):
            yield Trace(
                trace_id=name,
                task_id=table.clusters[int(table.traces.cluster[row])],
                outcome=outcome_of[passed[row]],
                steps=tuple(steps[state] for state in self.states[first[row] : first[row + 1]] if state),
            )

    def vocabulary(self) -> StateVocabulary:
        """The parts of the names as propositions; one that is a whole name stands for itself."""
        seen = sorted({name for name in self.states if name})
        parts = [*BANDS, *AGREEMENTS, *MARKS]
        return StateVocabulary(labels={part: [name for name in seen if part in name.split("_")] for part in parts})

    def correctness(self) -> list[dict[str, object]]:
        """By state, how often its selected poll was correct: what the gold labels say of what a monitor sees.

        ``p_correct`` is NaN where no selected poll in the state is valid and labelled.
        """
        states, label = np.array(self.states), self.pools.selected_correct
        known = self.pools.selected_valid & (label != UNKNOWN)
        rows: list[dict[str, object]] = []
        for name in sorted(set(self.states) - {""}):
            here = states == name
            n = int((here & known).sum())
            correct = int((here & known & (label == 1)).sum())
            rows.append(
                {
                    "state": name,
                    "blocks": int(here.sum()),
                    "n": n,
                    "p_correct": correct / n if n else float("nan"),
                }
            )
        return rows


def _agreement(pools: BlockPools) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """(B,) codes of `AGREEMENTS`: all valid candidates are equal, more than half are, neither, or there is none."""
    polls = pools.table.polls
    rows = np.flatnonzero(polls.valid)
    pairs, count = np.unique(np.column_stack([polls.block[rows], polls.answer[rows]]), axis=0, return_counts=True)
    largest = np.zeros(len(pools.n_polls), dtype=np.int64)
    np.maximum.at(largest, pairs[:, 0], count)
    choices = [pools.n_valid == 0, largest == pools.n_valid, 2 * largest > pools.n_valid]
    return np.select(choices, [AGREEMENTS.index(name) for name in ("nobody", "unanimous", "majority")], 2)
