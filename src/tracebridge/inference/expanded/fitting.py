"""Fit a form of chain to runs, choosing by cross-validation what the form leaves open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.estimation import estimate
from tracebridge.chain.expanded.first_order_base import runs_of_base
from tracebridge.chain.expanded.fit import fit_expanded
from tracebridge.inference.expanded.clock_bins import with_bins
from tracebridge.inference.expanded.cross_validation import FOLDS, KAPPAS, ModelChoice, choose_model, cross_validate
from tracebridge.inference.expanded.task_classes import with_classes
from tracebridge.states.model_form import ClockFamily, ModelForm

if TYPE_CHECKING:
    from tracebridge.chain import ChainFit
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.states.run_paths import RunPaths

#: The clock and kappa of a corpus with too few tasks or runs for cross-validation.
_DEFAULT_CLOCK: ClockFamily = "log"
_DEFAULT_KAPPA = 1.0


def fit_model(
    base: ChainFit,
    paths: RunPaths,
    form: ModelForm,
    *,
    kappa: float | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda message: None,
) -> ExpandedFit:
    """Fit a form to the runs behind a first-order fit.

    Args:
        base: see `fit_expanded`. paths: the same runs, under the base's policy; in any order.
        form: a clock that is to be chosen, or of a family, gets its bins from the runs.
        kappa: mass of the prior around coarser rows; chosen by cross-validation if None.
        seed: of the folds and of the restarts for phases. progress: told what is being done.

    Raises:
        UsageError, ModelError, FitError: as `fit_expanded`, `choose_model` and `with_classes` do.
    """
    paths = runs_of_base(base, paths)
    remarks = []
    if len(np.unique(paths.blocks)) < FOLDS:
        remarks.append(f"fewer than {FOLDS} tasks or runs: nothing was chosen by cross-validation")
        form = with_bins(replace(form, clock=_DEFAULT_CLOCK) if form.clock == "chosen" else form, paths)
        chosen = _DEFAULT_KAPPA if kappa is None else kappa
    else:
        kappas = KAPPAS if kappa is None else (kappa,)
        choice = choose_model(paths, form, kappas=kappas, seed=seed, progress=progress)
        remarks.append(_remark(choice, form, paths, seed))
        form, chosen = choice.form, choice.kappa
    progress(f"fitting {form}")
    model = estimate(paths, replace(form, classes=1), chosen, seed)
    if form.classes > 1:
        model = with_classes(model, paths, form.classes)
    return fit_expanded(base, paths, form, kappa=chosen, seed=seed, model=model, remarks=remarks)


def _remark(choice: ModelChoice, asked: ModelForm, paths: RunPaths, seed: int) -> str:
    """What was chosen, and what the form gains over the first-order chain on runs that neither was fitted to."""
    n_blocks = len(np.unique(paths.blocks))
    blocks = "tasks" if paths.task_names else "runs"
    chosen = []
    if isinstance(asked.clock, str):
        bins = ",".join(map(str, choice.form.bins))
        families = list(dict.fromkeys(str(score.form.clock) for score in choice.tried if asked.clock == "chosen"))
        among = f", the best of {', '.join(families)}" if len(families) > 1 else ""
        chosen.append(f"the clock {bins} ({choice.score.form.clock}{among})")
    kappas = sorted({score.kappa for score in choice.tried if score.form == choice.score.form})
    if len(kappas) > 1:
        chosen.append(f"kappa {choice.kappa:g} of {', '.join(f'{kappa:g}' for kappa in kappas)}")
    (plain,) = cross_validate(paths, ModelForm(), seed=seed)
    gain, error = choice.score.gain_over(plain)
    what = f" chose {' and '.join(chosen)}" if chosen else ""
    return (
        f"{FOLDS}-fold cross-validation over {n_blocks} {blocks}{what}: held-out log-likelihood given the first step "
        f"{choice.score.mean:.2f} nats a run, {gain:+.2f} (standard error {error:.2f}) to the first-order chain"
    )
