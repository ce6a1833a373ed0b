"""How well forms of chains foretell runs that they were not fitted to: cross-validation over whole tasks.

A score of the path is the log-probability of what follows each step of a held-out run, given its group and its first
step, so that forms with and without a group are on one scale; a score of timing, that of its length and outcome. For
both, a run that was cut is known to have gone on after its last step. Runs of a task are held out together (Stone 1974
on the method; Roberts et al., Ecography 40, 2017, on blocks), and standard errors are over tasks, or over runs where
tasks are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.estimation import estimate, space_of
from tracebridge.chain.expanded.forward import log_likelihood
from tracebridge.errors import ModelError, NothingToCheckError, UsageError
from tracebridge.inference.expanded.clock_bins import possible_families, with_bins
from tracebridge.inference.expanded.timing_score import timing_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.model import ExpandedModel
    from tracebridge.inference.expanded.scope import Scope
    from tracebridge.states.model_form import ModelForm
    from tracebridge.states.run_paths import RunPaths

    Codes = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: Masses of the prior around the row of the coarser context that are compared.
KAPPAS = (1.0, 4.0, 16.0, 64.0)

FOLDS = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOutScore:
    """Log-likelihoods of runs under a form that was fitted to the other folds.

    Attributes:
        form: as it was asked for: where its clock is a family, each fold had bins of its own.
        kappa: mass of the prior around coarser rows.
        log_likelihoods: nats, of each run given its first step, shape (n_runs,).
        timings: nats, of the time and the kind of the end of each run, shape (n_runs,); see `timing_scores`.
        blocks: what was held out together, shape (n_runs,): the task of each run, or the run.
    """

    form: ModelForm
    kappa: float
    log_likelihoods: Floats
    timings: Floats
    blocks: Codes

    @property
    def mean(self) -> float:
        """Of the paths, nats a run."""
        return self.mean_of("path")

    @property
    def standard_error(self) -> float:
        """Of `mean`, over blocks."""
        return _standard_error(self.log_likelihoods, self.blocks)

    def of(self, scope: Scope) -> Floats:
        """The scores of runs in a scope, shape (n_runs,)."""
        return self.timings if scope == "timing" else self.log_likelihoods

    def mean_of(self, scope: Scope) -> float:
        """The mean of the scores in a scope, nats a run."""
        return float(self.of(scope).mean())

    def gain_over(self, other: HeldOutScore, scope: Scope = "path") -> tuple[float, float]:
        """The mean of run-wise differences to another score of the same runs, and its standard error over blocks."""
        if not np.array_equal(self.blocks, other.blocks):
            raise ModelError("scores of other runs cannot be compared")
        difference = self.of(scope) - other.of(scope)
        return float(difference.mean()), _standard_error(difference, self.blocks)


def folds_of(paths: RunPaths, n_folds: int = FOLDS, seed: int = 0) -> Codes:
    """The fold of each run, from 0 to n_folds - 1, shape (n_runs,): whole blocks, as many in each fold as can be.

    Raises:
        UsageError: for fewer than two folds.
        NothingToCheckError: for fewer blocks than folds.
    """
    if n_folds < 2:
        raise UsageError(f"cross-validation takes two folds or more, not {n_folds}")
    blocks, block_of_run = np.unique(paths.blocks, return_inverse=True)
    if len(blocks) < n_folds:
        raise NothingToCheckError(f"{len(blocks)} tasks or runs cannot be held out in {n_folds} folds")
    fold_of_block = np.empty(len(blocks), dtype=np.int64)
    fold_of_block[np.random.default_rng(seed).permutation(len(blocks))] = np.arange(len(blocks)) % n_folds
    result: Codes = fold_of_block[block_of_run]
    return result


def cross_validate(
    paths: RunPaths,
    form: ModelForm,
    kappas: Iterable[float] = (1.0,),
    *,
    n_folds: int = FOLDS,
    seed: int = 0,
) -> list[HeldOutScore]:
    """Score a form, once for each kappa.

    Args:
        paths: under their censoring policy.
        form: its clock has bins, or is of a family, of which the bins are then made in each fold from the runs that are
            not held out. Classes of tasks play no part.
        n_folds, seed: see `folds_of`.

    Raises:
        UsageError: for a kappa that is not above 0, a clock that is to be chosen, or a group that runs do not have.
        NothingToCheckError: for fewer blocks than folds, or no known start in the others of a fold.
        FitError: for too many contexts, or a family without bins.
    """
    kappas = [float(kappa) for kappa in kappas]
    if form.clock == "chosen":
        raise UsageError("the family of the clock is to be chosen: score each, or let choose_model choose")
    plain = replace(form, classes=1)
    fold_of_run = folds_of(paths, n_folds, seed)
    with_bins(plain, paths)  # refuses what is too large before anything is fitted
    found = np.zeros((2, len(kappas), paths.n_runs))
    for fold in range(n_folds):
        held = np.flatnonzero(fold_of_run == fold)
        fitted, judged = paths.take(np.flatnonzero(fold_of_run != fold)), paths.take(held)
        resolved = with_bins(plain, fitted, bounded=False)
        if resolved.phases > 1:
            found[:, :, held] = _phase_scores(fitted, judged, resolved, kappas, seed)
        else:
            found[:, :, held] = _context_scores(fitted, judged, resolved, kappas)
    blocks = paths.blocks
    return [
        HeldOutScore(form=form, kappa=kappa, log_likelihoods=values, timings=timings, blocks=blocks)
        for kappa, values, timings in zip(kappas, *found, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelChoice:
    """What `choose_model` chose.

    Attributes:
        form: with the bins of its clock, from all runs. kappa: the mass of the prior.
        score: of the choice. tried: all scores, in the order in which they were made.
    """

    form: ModelForm
    kappa: float
    score: HeldOutScore
    tried: tuple[HeldOutScore, ...]


def choose_model(
    paths: RunPaths,
    form: ModelForm,
    *,
    kappas: Sequence[float] = KAPPAS,
    n_folds: int = FOLDS,
    seed: int = 0,
    scope: Scope = "path",
    progress: Callable[[str], None] = lambda message: None,
) -> ModelChoice:
    """Choose kappa and, where the form leaves it open, the clock, by the mean of held-out log-likelihoods.

    Of kappas the smallest is taken whose score is within one standard error of the best: it smooths least, and a chain
    that smooths much is not what the runs are drawn from. The clock is the one with the best score in ``scope``; that
    of a form with hidden phases is chosen without these, which are slower to fit by orders of magnitude. A form of
    which no row has a coarser one has no kappa: it is 1.

    Raises:
        As `cross_validate`.
    """
    tried: list[HeldOutScore] = []
    if form.clock == "chosen":
        visible = replace(form, phases=1)
        for family in possible_families(paths):
            progress(f"cross-validation of clock:{family}")
            tried += cross_validate(paths, replace(visible, clock=family), kappas, n_folds=n_folds, seed=seed)
        if not tried:
            raise NothingToCheckError("no run has a step: there is no clock to choose")
        form = replace(form, clock=max(tried, key=lambda score: score.mean_of(scope)).form.clock)
    asked = replace(form, classes=1)
    if not any(score.form == asked for score in tried):
        has_kappa = asked.has_context or asked.phases > 1
        progress(f"cross-validation of {asked}")
        tried += cross_validate(paths, asked, kappas if has_kappa else (1.0,), n_folds=n_folds, seed=seed)
    chosen = _least_smooth([score for score in tried if score.form == asked])
    return ModelChoice(form=with_bins(form, paths), kappa=chosen.kappa, score=chosen, tried=tuple(tried))


def _least_smooth(scores: Sequence[HeldOutScore]) -> HeldOutScore:
    """The score of the smallest kappa that is within one standard error of the best."""
    best = max(scores, key=lambda score: score.mean)
    for score in sorted(scores, key=lambda score: score.kappa):
        gain, error = best.gain_over(score)
        if gain <= error:
            return score
    return best


def _context_scores(fitted: RunPaths, judged: RunPaths, form: ModelForm, kappas: Sequence[float]) -> Floats:
    """Scores of paths and of timing for each kappa, (2, kappas, runs); no forward pass is needed without phases."""
    space = space_of(fitted, form)
    m = space.n_states
    row = space.of_paths(judged.codes, judged.offsets, judged.groups) * m + judged.codes
    following = judged.following
    seen, cut = np.flatnonzero(following < m + 2), np.flatnonzero(following == m + 2)
    known = np.empty(judged.n_steps)
    runs = np.repeat(np.arange(judged.n_runs), judged.lengths)
    found = np.empty((2, len(kappas), judged.n_runs))
    for i, kappa in enumerate(kappas):
        model = estimate(fitted, form, kappa)
        rows = model.rows.reshape(-1, m + 2)
        known[seen], known[cut] = rows[row[seen], following[seen]], rows[row[cut], :m].sum(axis=1)
        found[0, i] = np.bincount(runs, weights=np.log(known), minlength=judged.n_runs)
        found[1, i] = timing_scores(model, judged)
    return found


def _phase_scores(fitted: RunPaths, judged: RunPaths, form: ModelForm, kappas: Sequence[float], seed: int) -> Floats:
    """Scores of paths and of timing for each kappa, (2, kappas, runs); every fit starts from the one before."""
    from tracebridge.chain.expanded.phases import fit_phases

    warm: ExpandedModel | None = None
    found = np.empty((2, len(kappas), judged.n_runs))
    for i, kappa in enumerate(kappas):
        warm = fit_phases(fitted, form, kappa=kappa, restarts=1, seed=seed, warm=warm).model
        found[0, i] = log_likelihood(warm, judged, given_first=True)
        found[1, i] = timing_scores(warm, judged)
    return found


def _standard_error(values: Floats, blocks: Codes) -> float:
    """Of the mean over runs, by the sums of deviations over blocks (the linearised ratio estimator)."""
    _, block_of_run = np.unique(blocks, return_inverse=True)
    sums = np.bincount(block_of_run, weights=values - values.mean())
    n_blocks = len(sums)
    if n_blocks < 2:
        return float("nan")
    return float(np.sqrt(n_blocks / (n_blocks - 1) * (sums**2).sum()) / len(values))
