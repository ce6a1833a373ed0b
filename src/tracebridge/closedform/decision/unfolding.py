"""A decision process unfolded over what is left of its budgets: with that in its states, bounds on rewards are none.

Where choices spend rewards, the best choice depends on what has been spent. In the unfolded process it depends on the
state alone, so that operators with bounds on rewards become operators without a bound. As in chains, a reward is spent
when its state is left, or with the choice (Hartmanns, Junges, Katoen and Quatmann, Multi-cost bounded tradeoff analysis
in MDP, Journal of Automated Reasoning 64, 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.graph import reachable
from tracebridge.chain.rational import RationalMatrix
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform.budget import level_after, levels_below
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.budget import Budget

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]

#: No more transitions than this are unfolded.
MAX_TRANSITIONS = 5_000_000

#: The labels and the reward structure of an unfolded process.
OPEN, GOAL, COLLECTED = "open", "goal", "collected"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnfoldedProcess:
    """The process, and for each state of the one that was unfolded where it is with its whole budget, shape (n,)."""

    process: DecisionProcess
    whole: Indices


def unfolded(
    process: DecisionProcess,
    dimensions: Sequence[Budget],
    *,
    left: Mask,
    right: Mask,
    gains: Sequence[Fraction] | None = None,
) -> UnfoldedProcess:
    """Unfold as far as ``left U right`` needs it.

    Args:
        dimensions: the bounds, none of them empty, with what each choice spends.
        left, right: shape (n,). gains: what each choice collects, as long as no budget is exceeded by it.

    Returns:
        A process with the labels `GOAL`, the states of ``right`` with all bounds satisfied, and `OPEN`, the others of
        ``left`` that exceed no budget; and with the gains as the reward `COLLECTED`.

    Raises:
        UnsupportedError: that would be too large.
    """
    n, m = process.n_states, process.n_choices
    spent = np.stack([np.minimum(budget.cost, budget.top + 1) for budget in dimensions], axis=1)
    different, kind = np.unique(spent, axis=0, return_inverse=True)
    costs = [tuple(row) for row in different.tolist()]
    levels = levels_below(dimensions, costs)
    if len(levels) * max(process.transitions.nnz, m) > MAX_TRANSITIONS:
        raise UnsupportedError(
            f"the bounds unfold a decision process of {process.transitions.nnz} transitions {len(levels)} times, into "
            f"more than {MAX_TRANSITIONS:,}"
        )
    position = {level: i for i, level in enumerate(levels)}
    fits = [all(budget.fits(left) for budget, left in zip(dimensions, level, strict=True)) for level in levels]
    goal = np.append(np.concatenate([right & fit for fit in fits]), False)
    open_ = np.append(np.tile(left, len(levels)), False) & ~goal
    lost = len(levels) * n
    # where each choice leads at each level: an earlier level, or beyond all budgets
    following = [[level_after(dimensions, level, cost) for cost in costs] for level in levels]
    shift = np.array([[-1 if to is None else position[to] * n for to in row] for row in following], dtype=np.int64)
    layers = _Layers(process, shift[:, kind.reshape(-1)], lost)
    whole = (len(levels) - 1) * n + np.arange(n)
    top = np.zeros(lost + 1, dtype=np.bool_)
    top[whole] = True
    kept = np.flatnonzero(reachable(layers.edges(), top, through=open_))
    rows = np.flatnonzero(np.isin(layers.owner, kept))
    count = np.bincount(layers.owner[rows], minlength=lost + 1)[kept]
    made = DecisionProcess(
        states=tuple(map(str, kept.tolist())),
        actions=tuple([("",) * size for size in count.tolist()]),
        transitions=layers.rows(rows, kept, open_),
        initial=np.append(1.0, np.zeros(len(kept) - 1)),
        labels={OPEN: open_[kept], GOAL: goal[kept]},
        rewards=_collected(gains, layers, rows, len(kept)),
    )
    return UnfoldedProcess(process=made, whole=np.searchsorted(kept, whole))


def _collected(
    gains: Sequence[Fraction] | None, layers: _Layers, rows: Indices, n_states: int
) -> dict[str, RewardStructure]:
    if gains is None:
        return {}
    of_rows = [gains[choice] if within else Fraction(0) for choice, within in layers.choice_of(rows)]
    return {COLLECTED: RewardStructure.from_fractions([0] * n_states, of_rows)}


class _Layers:
    """The choices of the process once a level, and last one that stays where every budget is exceeded."""

    def __init__(self, process: DecisionProcess, shift: NDArray[np.int64], lost: int) -> None:
        """``shift``: the place of the first state that a choice leads to, -1 for the lost one; shape (levels, m)."""
        self._process = process
        self._shift = shift.reshape(-1)
        self._lost = lost
        n, levels = process.n_states, shift.shape[0]
        self.owner = np.append(
            np.repeat(np.arange(levels) * n, process.n_choices) + np.tile(process.state_of_choice, levels), lost
        )

    def choice_of(self, rows: Indices) -> list[tuple[int, bool]]:
        """The choice of the process that each row is, and whether it exceeds no budget; the last row is none."""
        m = self._process.n_choices
        within = np.append(self._shift >= 0, False)[rows]
        return list(zip((rows % m).tolist(), within.tolist(), strict=True))

    def edges(self) -> csr_array:
        """Which state may follow which."""
        sizes, columns, _ = self._entries(np.arange(len(self.owner)), np.ones(self._lost + 1, dtype=np.bool_))
        sources = np.repeat(self.owner, sizes)
        size = self._lost + 1
        return csr_array((np.ones(len(columns)), (sources, columns)), shape=(size, size))

    def rows(self, rows: Indices, kept: Indices, open_: Mask) -> RationalMatrix | csr_array:
        """These rows over the states that are kept; states that are not open stay where they are."""
        sizes, columns, sources = self._entries(rows, open_)
        place = np.full(self._lost + 1, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        indices = place[columns]
        held = self._process.rationals
        if held is None:
            data = np.where(sources < 0, 1.0, self._process.transitions.data[sources])
            return csr_array((data, indices, indptr), shape=(len(rows), len(kept)))
        tops: NDArray[Any] = np.ones(len(sources), dtype=object)
        inside = sources >= 0
        tops[inside] = held.numerators.astype(object)[sources[inside]]
        moving = inside[indptr[:-1]]
        bottoms: NDArray[Any] = np.ones(len(rows), dtype=object)
        bottoms[moving] = held.denominators.astype(object)[rows[moving] % self._process.n_choices]
        return RationalMatrix(indptr, indices, tops, bottoms, len(kept))

    def _entries(self, rows: Indices, open_: Mask) -> tuple[Indices, Indices, Indices]:
        """Of each row how many entries it has; of each entry its column, and its place in the process, -1 for none."""
        matrix = self._process.transitions
        m = self._process.n_choices
        shift = np.append(self._shift, -1)[rows]
        choice = rows % m
        moving = (shift >= 0) & open_[self.owner[rows]]
        sizes = np.where(moving, np.diff(matrix.indptr)[choice], 1)
        ends = np.cumsum(sizes)
        row_of_entry = np.repeat(np.arange(len(rows)), sizes)
        offset = np.arange(int(ends[-1])) - np.repeat(ends - sizes, sizes)
        moves = moving[row_of_entry]
        sources = np.where(moves, matrix.indptr[choice][row_of_entry] + offset, -1)
        stays = np.where(open_[self.owner[rows]], self._lost, self.owner[rows])
        columns = np.where(moves, shift[row_of_entry] + matrix.indices[np.maximum(sources, 0)], stays[row_of_entry])
        return sizes, columns, sources
