"""A deliberation as a path of states: poll, route, speak, poll, ... until it passes or fails.

Every block is three steps. ``poll_N``, ``poll_W``, ``poll_M``, ``poll_C`` say what its valid polls are worth: there
is none, all are wrong, mixed, all are correct. ``route_P_k`` says which kind of poll was selected from pool ``P``:
``w`` wrong, ``c`` correct, ``i`` invalid, ``n`` none. ``speak_s`` says what was spoken after it: see `SPEECHES`. Gold
labels are needed, so this abstraction is for audits after the fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tracebridge.chain import TransitionCounts
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import NothingToCheckError
from tracebridge.states.flow import RunFlow
from tracebridge.traces.model import Outcome, Step, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracebridge.confidence.commitment import CommitmentPairs
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.table import Codes

#: The valid polls of a block: none, all wrong, mixed, all correct.
POOLS: Final = ("N", "W", "M", "C")
#: The kinds of poll that may be selected from each pool.
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "N": ("i", "n"),
    "W": ("w", "i", "n"),
    "M": ("w", "c", "i", "n"),
    "C": ("c", "i", "n"),
}
#: What is spoken after a correct poll, a wrong one, and one that is invalid, missing or not judged: ``kc``, ``kw`` kept
#: correct, wrong; ``dc``, ``dw`` diverged and still correct, wrong; ``deg`` degraded (correct to wrong), ``imp``
#: improved; ``uc``, ``uw`` unpaired (no judged poll behind it), correct, wrong; ``none`` no answer.
SPEECHES: Final = ("kc", "kw", "dc", "dw", "deg", "imp", "uc", "uw", "none")
_STEPS_OF_A_BLOCK: Final = 3

POLLS: Final = tuple(f"poll_{pool}" for pool in POOLS)
ROUTES: Final = tuple(f"route_{pool}_{kind}" for pool in POOLS for kind in KINDS[pool])
SPEAKS: Final = tuple(f"speak_{speech}" for speech in SPEECHES)
STATES: Final = (*POLLS, *ROUTES, *SPEAKS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deliberations:
    """Deliberations as paths over states, laid end to end; every block is three steps.

    Attributes:
        states: their names; see `STATES`, and `refined`.
        codes: the states of all steps, indices into ``states``.
        offsets: (T + 1,) deliberation r is ``codes[offsets[r]:offsets[r + 1]]``.
        outcomes: (T,) success where it passed, failure where it ended without, censored where its end is not known or
            where it is cut before a block that cannot be placed.
        identifiers, clusters: (T,) the names of the deliberations and of their clusters.
        blocks: the table's row of each block, in the order of the paths.
        n_without_polls: blocks without a poll; they are no part of the paths.
        n_cut: deliberations that were cut before a block whose labels are missing.
    """

    states: tuple[str, ...]
    codes: Codes
    offsets: Codes
    outcomes: tuple[Outcome, ...]
    identifiers: tuple[str, ...]
    clusters: tuple[str, ...]
    blocks: Codes
    n_without_polls: int
    n_cut: int

    @classmethod
    def of(cls, pools: BlockPools, pairs: CommitmentPairs) -> Deliberations:
        """The deliberations of a corpus; the judge and the policies are those of its pools and pairs.

        Raises:
            NothingToCheckError: if nobody was polled.
        """
        table = pools.table
        trace, n_traces = table.blocks.trace, len(table.traces.identifier)
        polled = pools.n_polls > 0
        if not polled.any():
            raise NothingToCheckError("no agent was polled in any block")
        route, speech = _routes(pools), _speeches(pools, pairs)
        placed = (route != UNKNOWN) & (speech != UNKNOWN)
        steps = np.stack([block_pool_codes(pools), len(POLLS) + route, len(POLLS) + len(ROUTES) + speech], axis=1)
        first_unplaced = np.full(n_traces, len(trace))
        unplaced = np.flatnonzero(polled & ~placed)
        np.minimum.at(first_unplaced, trace[unplaced], unplaced)
        kept = np.flatnonzero(polled & (np.arange(len(trace)) < first_unplaced[trace]))
        cut = first_unplaced < len(trace)
        lengths = _STEPS_OF_A_BLOCK * np.bincount(trace[kept], minlength=n_traces)
        passed = np.where(table.traces.censored | cut, UNKNOWN, table.traces.passed)
        outcome_of = {1: Outcome.SUCCESS, 0: Outcome.FAILURE, UNKNOWN: Outcome.CENSORED}
        return cls(
            states=STATES,
            codes=steps[kept].ravel(),
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            outcomes=tuple(outcome_of[value] for value in passed.tolist()),
            identifiers=table.traces.identifier,
            clusters=tuple(table.clusters[code] for code in table.traces.cluster.tolist()),
            blocks=kept,
            n_without_polls=int((~polled).sum()),
            n_cut=int(cut.sum()),
        )

    def refined(self, poll_states: Sequence[str]) -> Deliberations:
        """The same with other poll states, given for each block of the corpus: ``poll_M_wc`` in place of ``poll_M``."""
        names = [poll_states[block] for block in self.blocks.tolist()]
        position = {name: len(self.states) + i for i, name in enumerate(sorted(set(names)))}
        codes = self.codes.copy()
        codes[::_STEPS_OF_A_BLOCK] = [position[name] for name in names]
        return replace(self, states=(*self.states, *position), codes=codes)

    def transition_counts(self) -> TransitionCounts:
        """The counts behind the chain of the deliberations; states that none visited are left out."""
        visited, codes = np.unique(self.codes, return_inverse=True)
        lengths = np.diff(self.offsets)
        flows = {}
        for outcome in Outcome:
            chosen = np.array([found is outcome for found in self.outcomes], dtype=np.bool_)
            offsets = np.concatenate([[0], np.cumsum(lengths[chosen])])
            flows[outcome.value] = RunFlow.from_paths(codes[np.repeat(chosen, lengths)], offsets, len(visited))
        return TransitionCounts(states=tuple(self.states[code] for code in visited.tolist()), **flows)

    def traces(self) -> Iterator[Trace]:
        """The deliberations as traces of named steps, for all that takes traces; the task of each is its cluster."""
        steps = [Step(name=name, kind="deliberation") for name in self.states]
        codes, offsets = self.codes.tolist(), self.offsets.tolist()
        for row, name in enumerate(self.identifiers):
            path = codes[offsets[row] : offsets[row + 1]]
            yield Trace(
                trace_id=name,
                task_id=self.clusters[row],
                outcome=self.outcomes[row],
                steps=tuple(steps[code] for code in path),
            )


def block_pool_codes(pools: BlockPools) -> Codes:
    """(B,) indices into `POOLS`; ``UNKNOWN`` where a valid poll lacks its label."""
    pool = np.select([pools.n_valid == 0, pools.n_correct == 0, pools.n_correct < pools.n_valid], [0, 1, 2], 3)
    return np.where(pools.labelled, pool, UNKNOWN)


def _routes(pools: BlockPools) -> Codes:
    """(B,) indices into `ROUTES`; ``UNKNOWN`` where the pool is."""
    kind = np.select([~pools.has_selection, ~pools.selected_valid], [3, 2], pools.selected_correct)
    code_of = np.full((len(POOLS) + 1, 4), UNKNOWN)
    for code, name in enumerate(ROUTES):
        _, pool_name, kind_name = name.split("_")
        code_of[POOLS.index(pool_name), "wcin".index(kind_name)] = code
    return np.asarray(code_of[block_pool_codes(pools), kind])


def _speeches(pools: BlockPools, pairs: CommitmentPairs) -> Codes:
    """(B,) indices into `SPEECHES`; ``UNKNOWN`` where an answer that is in no pair lacks its label."""
    code = {speech: i for i, speech in enumerate(SPEECHES)}
    speaks = pools.table.speaks
    spoken = np.select([speaks.answer == UNKNOWN, speaks.correct == UNKNOWN], [code["none"], UNKNOWN], code["uw"])
    spoken[(speaks.answer != UNKNOWN) & (speaks.correct == 1)] = code["uc"]
    kept = np.array([[code["kw"], code["imp"]], [code["deg"], code["kc"]]])  # by poll and spoken correctness
    moved = np.array([[code["dw"], code["imp"]], [code["deg"], code["dc"]]])
    z, x = pairs.poll_correct, pairs.spoken_correct
    spoken[pairs.speak] = np.where(pairs.divergent, moved[z, x], kept[z, x])
    result = np.full(len(pools.n_polls), code["none"])
    result[speaks.block] = spoken
    return result
