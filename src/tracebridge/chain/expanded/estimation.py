"""The parameters of a form from runs: contexts in closed form, hidden phases by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.context_rows import (
    context_counts,
    require_kappa,
    shrunk_rows,
    start_counts,
    survivor_counts,
)
from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.errors import ModelError, NothingToCheckError, UsageError
from tracebridge.states.expansion import ContextSpace
from tracebridge.states.run_paths import CENSORED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.states.model_form import ModelForm
    from tracebridge.states.run_paths import RunPaths

    Floats = NDArray[np.float64]
    Integers = NDArray[np.integer]

#: Iterations from a warm start that refit the phases of a resampled corpus.
WARM_ITERATIONS = 6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelStack:
    """Models of one form side by side, one for each of b corpora; shapes as in `ExpandedModel`, b in front.

    Attributes:
        form, states, groups: of all models.
        start: shape (b, G, Z, m + 2). rows: shape (b, Z, C, m, m + 2). advance: shape (b, Z, m, Z).

    Raises:
        ModelError: for arrays of other lengths.
    """

    form: ModelForm
    states: tuple[str, ...]
    groups: tuple[str, ...]
    start: Floats
    rows: Floats
    advance: Floats

    def __post_init__(self) -> None:
        if not len(self.start) == len(self.rows) == len(self.advance):
            raise ModelError(
                f"a stack has {len(self.start)} starts, {len(self.rows)} tables of rows and {len(self.advance)} of "
                "changes of phase"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def model(self, i: int) -> ExpandedModel:
        """One of them. Raises ModelError if it breaks an invariant."""
        return ExpandedModel(
            form=self.form,
            states=self.states,
            groups=self.groups,
            start=self.start[i],
            rows=self.rows[i],
            advance=self.advance[i],
        )


def space_of(paths: RunPaths, form: ModelForm) -> ContextSpace:
    """The contexts of runs under a form.

    Raises:
        UsageError: the bins of the clock are not chosen, or the form has a group and the runs have none.
    """
    if form.group is not None and not paths.group_names:
        raise UsageError(f"model {form} needs the value of {form.group!r} of every run, and these runs have none")
    n_groups = 1 if form.group is None else paths.n_groups
    return ContextSpace(form=form.with_clock(form.bins), n_states=len(paths.states), n_groups=n_groups)


def estimate(paths: RunPaths, form: ModelForm, kappa: float = 1.0, seed: int = 0) -> ExpandedModel:
    """Fit the parameters of a form to runs.

    The start is as observed. Rows are posterior means, see `shrunk_rows`; with hidden phases they maximise a penalised
    likelihood, see `fit_phases`. Runs that were cut are known to have gone on after their last step, but in a form
    without contexts and phases, which is a first-order fit.

    Args:
        paths: under their censoring policy. form: with the bins of its clock chosen, and one class of tasks: classes
            come from repeated trials, see `tracebridge.inference.expanded.task_classes`.
        kappa: mass of the prior around the row of the coarser context. seed: of the restarts for phases.

    Raises:
        UsageError: for a form that is not so, or a kappa that is not above 0.
        NothingToCheckError: if no run has a known start.
        FitError: for too many contexts.
    """
    if form.phases > 1:
        from tracebridge.chain.expanded.phases import fit_phases

        _require_estimable(form, kappa)
        require_starts(paths)
        return fit_phases(paths, form, kappa=kappa, seed=seed).model
    return estimate_stack(paths, np.zeros(paths.n_runs, dtype=np.int64), 1, form, kappa).model(0)


def estimate_stack(
    paths: RunPaths,
    corpora: Integers,
    b: int,
    form: ModelForm,
    kappa: float = 1.0,
    warm: ExpandedModel | None = None,
    iterations: int = WARM_ITERATIONS,
) -> ModelStack:
    """Fit a form to b corpora side by side.

    Args:
        paths: the runs of all corpora. corpora: the corpus of each run, from 0 to b - 1, shape (n_runs,).
        form, kappa: as for `estimate`.
        warm: the model that phases are refitted from, by so many ``iterations``; not used without phases.

    Raises:
        UsageError, FitError: as `estimate` does, and for phases without a model to start from.
        NothingToCheckError: if no run of a corpus has a known start.
    """
    _require_estimable(form, kappa)
    space = space_of(paths, form)
    groups = () if form.group is None else paths.group_names
    starts = start_counts(space, paths, corpora, b)
    totals = starts.sum(axis=(1, 2))
    if not totals.all():
        raise NothingToCheckError(f"corpus {int(np.flatnonzero(totals == 0)[0])} of {b} has no run with a known start")
    if form.phases > 1:
        from tracebridge.chain.expanded.phases import em_stack

        if warm is None:
            raise UsageError("phases of many corpora are refitted from a model: pass it as warm")
        start, rows, advance = em_stack(paths, corpora, b, form, kappa, warm, iterations)
    else:
        # A form without contexts is a first-order fit, in which the last step of a run that was cut counts for nothing.
        cut = survivor_counts(space, paths, corpora, b) if form.has_context else None
        rows = shrunk_rows(space, context_counts(space, paths, corpora, b), kappa, survivors=cut)[:, np.newaxis]
        start = (starts / totals[:, np.newaxis, np.newaxis])[:, :, np.newaxis]
        advance = np.ones((b, 1, space.n_states, 1))
    return ModelStack(form=space.form, states=paths.states, groups=groups, start=start, rows=rows, advance=advance)


def require_starts(paths: RunPaths) -> None:
    """Raise NothingToCheckError if all runs were censored before their first step, or there is none."""
    lost = (paths.lengths == 0) & (paths.outcomes == CENSORED)
    if lost.all():
        raise NothingToCheckError("no run with a known start: all are censored without a step, or there is none")


def _require_estimable(form: ModelForm, kappa: float) -> None:
    require_kappa(kappa)
    if form.classes > 1:
        raise UsageError(
            f"the classes of {form} come from repeated trials of tasks: estimate it without them, then add them"
        )
