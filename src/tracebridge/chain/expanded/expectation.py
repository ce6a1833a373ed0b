"""What models with hidden phases make of runs: the expected numbers of all that happened, given what was seen.

The E-step of Baum and Welch (Rabiner, 1989), for many corpora side by side, each under its own model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.forward import first_phases, forward
from tracebridge.chain.expanded.kernels import kernel
from tracebridge.chain.expanded.pieces import hand_back
from tracebridge.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tracebridge.chain.expanded.kernels import Backward
    from tracebridge.chain.expanded.side_by_side import ObservedBatch, SideBySide
    from tracebridge.chain.expanded.workspace import Workspace
    from tracebridge.states.model_form import ModelForm

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseCounts:
    """Expected numbers for b corpora, given all that was seen of each run.

    Attributes:
        starts: of first steps by group, phase and category, shape (b, G, Z, m).
        rows: of what was seen to follow steps, by phase and context, shape (b, Z, C, m, m + 2).
        survivors: of last steps of runs that were cut, which went on unseen, by the same, shape (b, Z, C, m).
        changes: of phases of consecutive steps, by the category that is left, shape (b, Z, m, Z).
        log_likelihood: of all runs with a step, given their groups and first categories, shape (b,).
    """

    starts: Floats
    rows: Floats
    survivors: Floats
    changes: Floats
    log_likelihood: Floats


def expected_counts(
    form: ModelForm,
    batches: Iterable[ObservedBatch],
    start: Floats,
    rows: Floats,
    advance: Floats,
    workspace: Workspace,
) -> PhaseCounts:
    """Expected numbers under models, by the forward and the backward pass.

    Args:
        batches: all runs, see `observed_batches`.
        start: shape (b, G, Z, m + 2). rows: shape (b, Z, C, m, m + 2). advance: shape (b, Z, m, Z).
        workspace: for arrays over phases and steps.

    Raises:
        ModelError: for a run that is impossible under its model.
    """
    b, n_phases, n_contexts, m, n_next = rows.shape
    n_groups = start.shape[1]
    starts = np.zeros((b, n_groups, n_phases, m))
    counts = np.zeros_like(rows)
    survivors = np.zeros(rows.shape[:-1])
    changes = np.zeros_like(advance)
    log_likelihood = np.zeros(b)
    for batch in batches:
        part = batch.corpora
        size = part.stop - part.start
        step = kernel(form, batch, rows, advance, workspace)
        phases, onward, scale = forward(step, batch, first_phases(start[part])[:, batch.first], workspace)
        if not scale.min(initial=1) > 0:
            raise ModelError(f"a run is impossible under the probabilities of {form} that its phases are sought with")
        after = np.divide(onward, scale, out=workspace.array("after", *onward.shape))
        backward = step.reversed(phases, onward, workspace)
        posterior, after = _smoothed(backward, batch, phases, after)
        leaving = batch.leaving.copy()
        leaving[batch.last] = size * m
        moved = backward.changes(after, leaving, size * m)
        changes[part] += moved.reshape(n_phases, n_phases, size, m).transpose(2, 0, 3, 1)
        for z in range(n_phases):
            first = np.bincount(batch.first, posterior[z, batch.layout.firsts], size * n_groups * m)
            starts[part, :, z] += first.reshape(size, n_groups, m)
        cut_in = batch.event[batch.cut] // n_next
        cut_phases = posterior[:, batch.cut]
        posterior[:, batch.cut] = 0
        cells = n_contexts * m * n_next
        for z in range(n_phases):
            followed = np.bincount(batch.event, posterior[z], size * cells)
            counts[part, z] += followed.reshape(size, n_contexts, m, n_next)
            cut = np.bincount(cut_in, cut_phases[z], size * n_contexts * m)
            survivors[part, z] += cut.reshape(size, n_contexts, m)
        corpus = batch.event // cells
        log_likelihood[part] += np.bincount(corpus, np.log(scale), size)
    return PhaseCounts(starts=starts, rows=counts, survivors=survivors, changes=changes, log_likelihood=log_likelihood)


def _smoothed(backward: Backward, batch: ObservedBatch, phases: Floats, after: Floats) -> tuple[Floats, Floats]:
    """The probabilities of the phase at and after each step given the whole run, in place of those given its past.

    These are shares of shares, from the last step back: they neither overflow nor drift, however long a run is (the
    smoother of Rauch, Tung and Striebel, 1965, for finitely many phases).
    """
    layout = batch.layout
    _pass_back(backward, layout, phases, after)
    if len(layout.following):  # then this holds for the last pieces of runs alone
        hand_back(layout, backward, phases, after)
        _pass_back(backward, layout, phases, after)
    return phases, after


def _pass_back(backward: Backward, layout: SideBySide, phases: Floats, after: Floats) -> None:
    """Pieces by themselves: the phases after their last steps are given."""
    for _, going_on, here in reversed(layout.advances()):
        phases[:, here] = backward.back(after[:, here], here)
        after[:, going_on] = phases[:, here]
    first = slice(0, len(layout.run_of_piece))
    phases[:, first] = backward.back(after[:, first], first)
