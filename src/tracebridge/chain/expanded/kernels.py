"""What phases do in one step of a batch of runs: the probability of what followed and of the phase after it.

``K_s[z, z'] = A[z, g_s, c_s, x_s] * B[z, c_s, z']`` for each step s. Where a run was cut, A is summed over all
categories x: it is known that the run went on, and not where to. Left to right, K has two diagonals, and only these are
held and multiplied; in any order, the changes of phase are looked up for the steps of one time at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tracebridge.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.side_by_side import ObservedBatch
    from tracebridge.chain.expanded.workspace import Workspace
    from tracebridge.states.model_form import ModelForm

    Codes = NDArray[np.int64]
    Floats = NDArray[np.float64]


#: Below this a probability is no divisor: nothing overflows, and what it would divide is smaller still.
_SMALLEST = 1e-290

_SUMS_AGREE = 1e-9


class Kernel(Protocol):
    """One matrix K over Z phases for each of the S steps of a batch: from the phase at the step to the one after it."""

    def onward(self, weights: Floats, steps: slice) -> Floats:
        """Weights of phases at these n steps, shape (..., Z, n), times their K: weights of the phases after them."""

    def reversed(self, phases: Floats, onward: Floats, workspace: Workspace) -> Backward:
        """From the phase after each step to the one at it, given the probabilities of the phases at the steps.

        Args:
            phases: shape (Z, S). onward: what `onward` makes of them, shape (Z, S); lost.
        """


class Backward(Protocol):
    """Shares by Bayes' rule: of the phase at a step given the one after it, ``phases[z] * K[z, z'] / onward[z']``."""

    def back(self, after: Floats, steps: slice) -> Floats:
        """Probabilities of the phase at these n steps from those after them, shape (..., Z, n)."""

    def changes(self, after: Floats, leaving: Codes, cells: int) -> Floats:
        """Expected numbers of changes of phase by cell, shape (Z, Z, cells), and at ``[z, z]`` of none.

        Args:
            after: probabilities of the phase after each step, shape (Z, S).
            leaving: the cell of each step, shape (S,), or ``cells`` where the change does not count.
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeftToRight:
    """A phase stays, or goes one on: both diagonals of K, ``stay`` of shape (Z, S) and ``move`` of (Z - 1, S)."""

    stay: Floats
    move: Floats

    def onward(self, weights: Floats, steps: slice) -> Floats:
        """See `Kernel.onward`."""
        result = weights * self.stay[:, steps]
        result[..., 1:, :] += weights[..., :-1, :] * self.move[:, steps]
        return result

    def reversed(self, phases: Floats, onward: Floats, workspace: Workspace) -> LeftToRightBackward:
        """See `Kernel.reversed`."""
        np.maximum(onward, _SMALLEST, out=onward)
        stay = np.multiply(self.stay, phases, out=workspace.array("back stay", *self.stay.shape))
        stay /= onward
        move = np.multiply(self.move, phases[:-1], out=workspace.array("back move", *self.move.shape))
        move /= onward[1:]
        return LeftToRightBackward(stay=stay, move=move)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeftToRightBackward:
    """Shares of both diagonals, of the same shapes."""

    stay: Floats
    move: Floats

    def back(self, after: Floats, steps: slice) -> Floats:
        """See `Backward.back`."""
        result = after * self.stay[:, steps]
        result[..., :-1, :] += after[..., 1:, :] * self.move[:, steps]
        return result

    def changes(self, after: Floats, leaving: Codes, cells: int) -> Floats:
        """See `Backward.changes`."""
        n_phases = len(after)
        result = np.zeros((n_phases, n_phases, cells))
        for z in range(n_phases):
            result[z, z] = np.bincount(leaving, self.stay[z] * after[z], cells + 1)[:cells]
        for z in range(n_phases - 1):
            result[z, z + 1] = np.bincount(leaving, self.move[z] * after[z + 1], cells + 1)[:cells]
        return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Full:
    """A phase goes anywhere.

    Attributes:
        followed: A of what is known to have followed each step, shape (Z, S).
        moves: B by corpus and category, shape (Z, Z, cells). leaving: the cell of each step, shape (S,).
    """

    followed: Floats
    moves: Floats
    leaving: Codes

    def onward(self, weights: Floats, steps: slice) -> Floats:
        """See `Kernel.onward`."""
        moves = self.moves.take(self.leaving[steps], axis=2, mode="clip")
        weights = weights * self.followed[:, steps]
        result: Floats = np.einsum("...yn,yzn->...zn", weights, moves)
        return result

    def reversed(self, phases: Floats, onward: Floats, workspace: Workspace) -> FullBackward:
        """See `Kernel.reversed`."""
        weights = np.multiply(phases, self.followed, out=workspace.array("weights", *phases.shape))
        return FullBackward(kernel=self, weights=weights, divisor=np.maximum(onward, _SMALLEST, out=onward))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FullBackward:
    """Shares in factors: ``weights[z] * B[z, z'] / divisor[z']``, both of shape (Z, S)."""

    kernel: Full
    weights: Floats
    divisor: Floats

    def back(self, after: Floats, steps: slice) -> Floats:
        """See `Backward.back`."""
        moves = self.kernel.moves.take(self.kernel.leaving[steps], axis=2, mode="clip")
        result: Floats = np.einsum("...zn,yzn->...yn", after / self.divisor[:, steps], moves)
        result *= self.weights[:, steps]
        return result

    def changes(self, after: Floats, leaving: Codes, cells: int) -> Floats:
        """See `Backward.changes`."""
        order = np.argsort(leaving, kind="stable")
        ends = np.searchsorted(leaving[order], np.arange(cells), side="right").tolist()
        weights, values = self.weights[:, order], (after / self.divisor)[:, order]
        result = np.empty(self.kernel.moves.shape)
        begin = 0
        for cell, end in enumerate(ends):
            result[:, :, cell] = weights[:, begin:end] @ values[:, begin:end].T
            begin = end
        result *= self.kernel.moves
        return result


def kernel(
    form: ModelForm, batch: ObservedBatch, rows: Floats, advance: Floats, workspace: Workspace
) -> LeftToRight | Full:
    """K of every step of a batch, in arrays of the workspace.

    Args:
        rows: A of the corpora, shape (b, Z, C, m, m + 2). advance: B of the corpora, shape (b, Z, m, Z).

    Raises:
        ModelError: if phases that go left to right do anything else.
    """
    n_phases, n_steps = form.phases, len(batch.event)
    n_next = rows.shape[-1]
    tables = np.moveaxis(rows[batch.corpora], 1, 0).reshape(n_phases, -1)
    followed = workspace.array("followed", n_phases, n_steps)
    _look_up(tables, batch.event, followed)
    cut_rows = tables.reshape(n_phases, -1, n_next)[:, batch.event[batch.cut] // n_next]
    followed[:, batch.cut] = cut_rows[..., :-2].sum(axis=-1)
    # From (corpus, z, category, z') to (z, z', corpus and category).
    moves = np.ascontiguousarray(np.moveaxis(advance[batch.corpora], (1, 3), (0, 1)))
    moves = moves.reshape(n_phases, n_phases, moves[0, 0].size)
    if form.phase_kind == "full":
        return Full(followed=followed, moves=moves, leaving=batch.leaving)
    phases = np.arange(n_phases)
    staying, moving = moves[phases, phases], moves[phases[:-1], phases[1:]]
    if abs(staying.sum() + moving.sum() - moves.sum()) > _SUMS_AGREE * moves.size:
        raise ModelError(f"phases of {form} may stay or go one on, and no more")
    stay, move = workspace.array("stay", n_phases, n_steps), workspace.array("move", n_phases - 1, n_steps)
    _look_up(staying, batch.leaving, stay)
    _look_up(moving, batch.leaving, move)
    stay *= followed
    move *= followed[:-1]
    return LeftToRight(stay=stay, move=move)


def _look_up(tables: Floats, positions: Codes, out: Floats) -> None:
    for table, result in zip(tables, out, strict=True):
        # All positions are in range; "clip" spares the check and its buffer.
        np.take(table, positions, out=result, mode="clip")
