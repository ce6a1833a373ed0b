"""Classes of tasks in a chain: what repeated trials of a task share, so that pass^k follows from the chain.

Tasks are of K kinds, and all tasks of a kind have one pass rate: a mixture of binomials, fitted to the outcomes alone
(see `tracebridge.inference.task_mixtures`). A run keeps the class of its task from start to end. In the chain of a
class the odds of success against failure are multiplied by one factor wherever runs end, which leaves their way and
their length as they are; the factor is the one that makes R_inf the pass rate of the class.

Then pass^k is ``sum_k w_k R_k(d)^k`` over classes of weight w_k, and not ``R(d)^k``. On an exported chain it is asked
for by `pass_hat_k_property`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import splu
from scipy.special import expit, logsumexp, xlog1py, xlogy

from tracebridge.chain.expanded.naming import TASK_CLASS
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.closedform.firstpassage import reliability
from tracebridge.closedform.fundamental import long_run_reliability
from tracebridge.closedform.repeated import correlated_pass_hat_k
from tracebridge.errors import EngineError, FitError, UsageError
from tracebridge.inference.task_counts import TaskCounts, TaskTable
from tracebridge.inference.task_mixtures import class_limit, fit_mixtures
from tracebridge.states.run_paths import CENSORED, SUCCESS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.model import ExpandedModel
    from tracebridge.states.run_paths import RunPaths

    Floats = NDArray[np.float64]

#: Classes unless the caller names a number.
DEFAULT_CLASSES = 2

#: A class that always or never succeeded has the odds of its runs multiplied or divided by ``exp`` of this, so that no
#: end of a run becomes impossible.
LARGEST_TILT = 15.0

FOLDS = 5


# ---------------------------------------------------------------- how many, and which


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassChoice:
    """How many classes of tasks predict the trials of tasks that were left out.

    Attributes:
        classes: one more class is taken as long as it gains more than one standard error.
        gains: of the mean held-out log-likelihood of a task, by the second class, the third, ...
        errors: standard errors of these over tasks.
    """

    classes: int
    gains: tuple[float, ...]
    errors: tuple[float, ...]


def task_counts(paths: RunPaths) -> TaskCounts:
    """Successes and completed trials of each task; censored runs, and runs that name no task, are left out."""
    named, completed = paths.tasks >= 0, paths.outcomes != CENSORED
    used = named & completed
    trials = np.bincount(paths.tasks[used], minlength=len(paths.task_names))
    successes = np.bincount(paths.tasks[used & (paths.outcomes == SUCCESS)], minlength=len(paths.task_names))
    kept = np.flatnonzero(trials)
    return TaskCounts(
        tasks=tuple(paths.task_names[i] for i in kept),
        successes=tuple(successes[kept].tolist()),
        trials=tuple(trials[kept].tolist()),
        n_censored=int((~completed).sum()),
        n_without_task=int((completed & ~named).sum()),
    )


def choose_classes(paths: RunPaths, *, most: int | None = None, folds: int = FOLDS, seed: int = 0) -> ClassChoice:
    """Choose the number of classes by cross-validation over tasks.

    Args:
        most: at most so many; K classes need ``2 K - 1`` trials of a task (Teicher 1963), whatever is asked for.
        folds: parts that the tasks are dealt out to. seed: of the deal.

    Raises:
        UsageError: for a limit below one, or less than two folds.
    """
    if folds < 2:
        raise UsageError(f"cross-validation needs two folds or more, not {folds}")
    counts = task_counts(paths)
    tasks = len(counts.tasks)
    if tasks < folds:
        return ClassChoice(classes=1, gains=(), errors=())
    table = TaskTable.of(counts)
    limit = class_limit(table, most)
    place = _places(table, counts)
    fold = np.random.default_rng(seed).permutation(tasks) % folds
    kept = np.zeros((folds, len(table.c)))
    np.add.at(kept, (np.arange(folds)[:, None], place), fold != np.arange(folds)[:, None])
    held_out = np.empty((limit, tasks))
    for k, mixtures in enumerate(fit_mixtures(table, kept, limit)):
        held_out[k] = _log_likelihoods(table, mixtures.w, mixtures.p)[fold, place]
    gained = np.diff(held_out, axis=0)
    gains, errors = gained.mean(axis=1), gained.std(axis=1, ddof=1) / np.sqrt(tasks)
    short = np.flatnonzero(gains <= errors)
    return ClassChoice(
        classes=int(short[0]) + 1 if len(short) else limit,
        gains=tuple(gains.tolist()),
        errors=tuple(errors.tolist()),
    )


def class_rates(paths: RunPaths, k: int, samples: Floats | None = None) -> tuple[Floats, Floats]:
    """Weights and pass rates of k classes of tasks, pass rates ascending; shape (samples, k) both.

    Args:
        k: the number of classes.
        samples: how often each named task stands in each of several samples, shape (samples, tasks); without it there
            is one sample, in which each stands once.

    Raises:
        FitError: no task has the ``2 k - 1`` completed trials that k classes take, or there are fewer different tasks.
    """
    counts = task_counts(paths)
    _require_trials(counts, k)
    table = TaskTable.of(counts)
    if samples is None:
        weights = table.weights[None]
    else:
        position = {name: i for i, name in enumerate(paths.task_names)}
        of_counted = samples[:, [position[task] for task in counts.tasks]].astype(np.float64)
        weights = np.zeros((len(samples), len(table.c)))
        np.add.at(weights.T, _places(table, counts), of_counted.T)
        weights[~weights.any(axis=1)] = table.weights  # such a sample tells nothing of classes
    mixture = fit_mixtures(table, weights, k, quick=samples is not None)[-1]
    order = np.argsort(mixture.p, axis=1, kind="stable")
    return np.take_along_axis(mixture.w, order, axis=1), np.take_along_axis(mixture.p, order, axis=1)


def _require_trials(counts: TaskCounts, k: int) -> None:
    if k < 1:
        raise UsageError(f"there is one class of tasks at least, not {k}")
    if k == 1 and counts.tasks:
        return
    most = max(counts.trials, default=0)
    if most < 2 * k - 1:
        raise FitError(
            f"{k} classes of tasks need a task with {2 * k - 1} completed trials or more, and the most that one has is "
            f"{most}: collect more trials of each task, or leave classes:{k} out"
        )
    if class_limit(TaskTable.of(counts), k) < k:
        raise FitError(f"{k} classes of tasks cannot be told apart: there are too few different tasks")


def _places(table: TaskTable, counts: TaskCounts) -> NDArray[np.int64]:
    """Where each task stands in the table, shape (tasks,)."""
    width = int(table.n.max()) + 1
    keys = table.c * width + table.n
    return np.asarray(np.searchsorted(keys, np.array(counts.successes) * width + np.array(counts.trials)))


def _log_likelihoods(table: TaskTable, w: Floats, p: Floats) -> Floats:
    """Of each pair of the table under each mixture, shape (mixtures, pairs); w and p have shape (mixtures, K).

    A pass rate of zero or one would exclude what other tasks show: half a trial of the other kind is added to all.
    """
    margin = 0.5 / (float(table.weights @ table.n) + 1)
    rates = np.clip(p, margin, 1 - margin)[:, None, :]
    c, misses = table.c[None, :, None], (table.n - table.c)[None, :, None]
    with np.errstate(divide="ignore"):
        parts = np.log(w)[:, None, :] + xlogy(c, rates) + xlog1py(misses, -rates)
    return np.asarray(logsumexp(parts, axis=2))


# ---------------------------------------------------------------- in the chain


def with_classes(model: ExpandedModel, paths: RunPaths, k: int | None = None) -> ExpandedModel:
    """A model with classes of tasks.

    Args:
        model: fitted to the runs; classes that it has are replaced. paths: the runs, under their policy.
        k: the number of classes; by default the one of the model's form, or else two. Pass rates ascend with the class.

    Raises:
        FitError: the trials of a task are too few for so many classes.
    """
    number = k if k is not None else model.form.classes if model.form.classes > 1 else DEFAULT_CLASSES
    plain = without_classes(model)
    weights, rates = class_rates(paths, number)
    if number == 1:
        return plain
    ends = Endings.of(plain)
    return replace(
        plain,
        form=replace(plain.form, classes=number),
        class_weights=weights[0] / weights[0].sum(),
        class_tilts=np.array([ends.tilt(rate) for rate in rates[0].tolist()]),
    )


def without_classes(model: ExpandedModel) -> ExpandedModel:
    """The same model with all tasks alike."""
    form = replace(model.form, classes=1)
    return replace(model, form=form, class_weights=np.ones(1), class_tilts=np.zeros(1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Endings:
    """Where runs of a model without classes end, from which R_inf follows for every tilt.

    A tilt does not change which states runs visit, nor how often: it only shares out their ends anew.

    Attributes:
        at_once: the probability of a success without a step, which no tilt changes.
        success, failure: of ending so from each state, shape (n,); they sum to one with both ends without a step.
    """

    at_once: float
    success: Floats
    failure: Floats

    @classmethod
    def of(cls, model: ExpandedModel) -> Endings:
        """Of a model with one class. Raises as `of_entries`."""
        structure = ExpandedStructure.of_model(model)
        entries = structure.entries(model.rows, model.advance, model.class_tilts)
        initial = structure.initial(model.start, model.class_weights)
        return cls.of_entries(structure, entries, initial)

    @classmethod
    def of_entries(cls, structure: ExpandedStructure, entries: Floats, initial: Floats) -> Endings:
        """Of probabilities in the order of a structure, shape (n_transitions,), and starts, shape (n + 2,).

        Raises:
            EngineError: from some state runs end so seldom that doubles cannot tell how often it is visited.
        """
        n = structure.n_states - 2
        exits = structure.indptr[1 : n + 1] - 2  # a state's last two transitions are to success and to failure
        P = csr_array((entries, structure.indices, structure.indptr), shape=(n + 2, n + 2))
        system = csc_array(eye_array(n) - P[:n, :n].T)
        try:
            visits = np.maximum(splu(system).solve(initial[:n]), 0.0)
        except RuntimeError as error:  # singular as far as doubles can tell
            raise EngineError("runs of the model go on for too long to tell where they end") from error
        return cls(at_once=float(initial[n]), success=visits * entries[exits], failure=visits * entries[exits + 1])

    def reliability(self, tilt: float) -> float:
        """R_inf of the tilted model."""
        ending = self.success + self.failure
        with np.errstate(divide="ignore", invalid="ignore"):
            share = expit(np.log(self.success) - np.log(self.failure) + tilt)
        return self.at_once + float(np.where(ending > 0, ending * share, 0.0).sum())

    def tilt(self, rate: float) -> float:
        """The tilt whose R_inf is this rate, or the nearest within `LARGEST_TILT`; R_inf ascends with it."""
        low, high = self.reliability(-LARGEST_TILT), self.reliability(LARGEST_TILT)
        if rate <= low or low == high:
            return -LARGEST_TILT
        if rate >= high:
            return LARGEST_TILT
        return float(brentq(lambda tilt: self.reliability(tilt) - rate, -LARGEST_TILT, LARGEST_TILT, xtol=1e-13))


# ---------------------------------------------------------------- pass^k


def class_reliabilities(model: ExpandedModel, d: int | None = None) -> Floats:
    """R(d) of a run of each class, R_inf without a d; shape (K,)."""
    plain = without_classes(model)
    structure = ExpandedStructure.of_model(plain)
    chains = (structure.chain(replace(plain, rows=model.rows_of_class(k))) for k in range(model.form.classes))
    return np.array([float(long_run_reliability(c) if d is None else reliability(c, d)) for c in chains])


def pass_hat_k(model: ExpandedModel, k: int, d: int | None = None) -> float:
    """``sum_k w_k R_k(d)^k``: all of k trials of a task drawn at random succeed, each within d steps if d is given.

    Trials of a task share its class and nothing else. Without classes this is ``R(d)^k``.

    Raises:
        UsageError: for a k below one.
    """
    return float(correlated_pass_hat_k(class_reliabilities(model, d).tolist(), model.class_weights.tolist(), k))


def pass_hat_k_property(model: ExpandedModel, k: int, d: int | None = None) -> str:
    """The property that asks the exported chain of a model for pass^k.

    The class is fixed at the start, so the probability to be in a class until success is that of the class and a
    success, and divided by the weight of the class it is the reliability of its runs.

    Raises:
        UsageError: for a k below one.
    """
    if isinstance(k, bool) or k < 1:
        raise UsageError(f"a number of trials is one or more, not {k!r}")
    bound = "" if d is None else f"<={d}"
    if model.form.classes == 1:
        return f'pow(P=? [ F{bound} "success" ], {k})'
    at_once = 'P=? [ F<=0 "success" ]' if model.start[:, :, -2:].any() else None
    parts = []
    for number in range(model.form.classes):
        inside = f"{TASK_CLASS}={number}"
        if at_once is None:
            weight = f"P=? [ F<=0 {inside} ]"
            reliable = f'P=? [ {inside} U{bound} "success" ] / {weight}'
        else:  # runs without a step are of all classes
            weight = f'P=? [ F<=0 ({inside} & !"absorbed") ] / P=? [ F<=0 !"absorbed" ]'
            reliable = f'{at_once} + (P=? [ {inside} U{bound} "success" ] - {at_once}) / ({weight})'
        parts.append(f"{weight} * pow({reliable}, {k})")
    return " + ".join(parts)
