"""Probabilities of models with hidden phases from the expected numbers of what happened: the penalised M-step.

Dirichlet priors, whose logarithms are added to the log-likelihood: of the row of a category in a phase around the
category's row over all phases, with mass kappa; of the change of phase, symmetric over the changes that are allowed,
with mass one; and, where runs may start in any phase, of the first phase given group and category, symmetric with mass
one. The row of a context is shrunk to the same phase's row in the coarser context, as `shrunk_rows` does. That a run
which was cut went on is part of the likelihood, as the probability of its last step's row to end no run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.context_rows import category_rows, context_levels, shrunk_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.expectation import PhaseCounts
    from tracebridge.states.expansion import ContextSpace
    from tracebridge.states.model_form import ModelForm

    Floats = NDArray[np.float64]

#: Total mass of the priors of a change of phase and of a first phase.
_PHASE_MASS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Probabilities:
    """Parameters of b models side by side, shapes as in `ExpandedModel` with b in front."""

    start: Floats
    rows: Floats
    advance: Floats


def maximised(space: ContextSpace, counts: PhaseCounts, observed_starts: Floats, kappa: float) -> Probabilities:
    """The probabilities at which the expected log-likelihood plus the logarithms of the priors is largest.

    Args:
        counts: expected numbers, for b corpora.
        observed_starts: shares of runs by group and first category or end, shape (b, G, m + 2); sum to one.
    """
    form = space.form
    n_phases = form.phases
    allowed = allowed_changes(form)
    prior = _PHASE_MASS * allowed / allowed.sum(axis=1, keepdims=True)
    changes = counts.changes if form.by_category else counts.changes.sum(axis=2, keepdims=True)
    changes = changes + prior[:, np.newaxis]
    advance = np.broadcast_to(changes / changes.sum(axis=-1, keepdims=True), counts.changes.shape)
    start = np.zeros((*observed_starts.shape[:2], n_phases, observed_starts.shape[-1]))
    if form.phase_kind == "full":
        by_phase = counts.starts + _PHASE_MASS / n_phases
        by_phase /= by_phase.sum(axis=2, keepdims=True)
        start[..., :-2] = by_phase * observed_starts[:, :, np.newaxis, :-2]
        start[:, :, 0, -2:] = observed_starts[..., -2:]
    else:
        start[:, :, 0] = observed_starts
    rows = shrunk_rows(space, counts.rows, kappa, survivors=counts.survivors, over_phases=True)
    return Probabilities(start=start, rows=rows, advance=advance)


def log_priors(space: ContextSpace, counts: PhaseCounts, found: Probabilities, kappa: float) -> Floats:
    """Logarithms of the priors' densities at what `maximised` found from ``counts``, shape (b,).

    Up to constants: a row counts ``-kappa`` times the Kullback-Leibler divergence to it from the row that it is shrunk
    to, so that contexts which were never seen count nothing. (With contexts and a kappa above one, `shrunk_rows` holds
    the ends of runs with less mass than this says.)
    """
    form = space.form
    parents = _parents(space, counts.rows, counts.survivors, kappa)
    result: Floats = kappa * (parents * np.log(found.rows / parents)).sum(axis=(1, 2, 3, 4))
    allowed = allowed_changes(form)
    prior = _PHASE_MASS * allowed / allowed.sum(axis=1, keepdims=True)
    advance = found.advance if form.by_category else found.advance[:, :, :1]
    logs = np.log(advance, out=np.zeros_like(advance), where=np.broadcast_to(prior[:, np.newaxis] > 0, advance.shape))
    result += (prior[:, np.newaxis] * logs).sum(axis=(1, 2, 3))
    if form.phase_kind == "full":
        start = found.start[..., :-2]
        total = start.sum(axis=2, keepdims=True)
        given_first = np.divide(start, total, out=np.ones_like(start), where=total > 0)
        result += _PHASE_MASS / form.phases * np.log(given_first).sum(axis=(1, 2, 3))
    return result


def allowed_changes(form: ModelForm) -> Floats:
    """One where a phase (row) may be followed by a phase (column), zero elsewhere, shape (Z, Z)."""
    if form.phase_kind == "full":
        return np.ones((form.phases, form.phases))
    return np.eye(form.phases) + np.eye(form.phases, k=1)


def _parents(space: ContextSpace, counts: Floats, survivors: Floats, kappa: float) -> Floats:
    """The rows that those of each category in each phase and context are shrunk to; they broadcast to ``counts``."""
    coarser = space.coarser()
    if coarser is None:
        return category_rows(counts.sum(axis=1, keepdims=True), survivors.sum(axis=1, keepdims=True)[..., np.newaxis])
    if coarser.size == space.size:
        return _parents(coarser, counts, survivors, kappa)
    coarse, coarse_cut = (
        context_levels(space, values)[1].reshape(*values.shape[:2], coarser.size, *values.shape[-2:])
        for values in (counts, survivors[..., np.newaxis])
    )
    rows = shrunk_rows(coarser, coarse, kappa, survivors=coarse_cut[..., 0], over_phases=True)
    return rows[:, :, space.coarse_codes(coarser)]
