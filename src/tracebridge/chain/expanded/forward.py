"""How runs go under models with hidden phases: their probabilities, and those of each next step given the run so far.

The scaled forward pass (Rabiner, "A tutorial on hidden Markov models", 1989) over all runs side by side. The filter
holds the phase before what follows a step is seen, so that its scale is the predictive probability of what followed.
Classes differ in how runs end alone: until its end, a run says nothing about its class, every class has its first
weight, and what follows a step is predicted by the weighted mean of the classes' rows.

A phase to which the run so far leaves a probability below the smallest number, about 1e-308, is given up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.kernels import Kernel, kernel
from tracebridge.chain.expanded.model import tilted
from tracebridge.chain.expanded.pieces import enter_pieces
from tracebridge.chain.expanded.side_by_side import ObservedBatch, observed_batches
from tracebridge.chain.expanded.workspace import Workspace
from tracebridge.errors import ModelError
from tracebridge.states.expansion import ContextSpace
from tracebridge.states.run_paths import CENSORED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tracebridge.chain.expanded.estimation import ModelStack
    from tracebridge.chain.expanded.model import ExpandedModel
    from tracebridge.states.model_form import ModelForm
    from tracebridge.states.run_paths import RunPaths

    Integers = NDArray[np.integer]
    Floats = NDArray[np.float64]

#: Numbers in one array over phases and steps: 4 MiB.
_BATCH_CELLS = 2**19


def log_likelihood(model: ExpandedModel, paths: RunPaths, *, given_first: bool = False) -> Floats:
    """The log-probability of what was seen of each run, shape (n_runs,); -inf for an impossible run.

    A censored run is known to have gone on after its last step, and not where to; one without a step has
    log-probability zero.

    Args:
        given_first: given the group and the first step, or the end of a run without a step.

    Raises:
        ModelError: for runs over other categories or groups than the model's.
    """
    _require_same_names(model, paths)
    start, rows = model.start[np.newaxis], _mean_rows(model)[np.newaxis]
    m, lengths = model.n_states, paths.lengths
    of_first = start.sum(axis=2)[0]
    result = np.zeros(paths.n_runs)
    groups = paths.groups if model.form.group is not None else np.zeros_like(paths.groups)
    with np.errstate(divide="ignore"):
        if not given_first:
            seen = (lengths > 0) | (paths.outcomes != CENSORED)
            first = m + paths.outcomes.astype(np.int64)
            first[lengths > 0] = paths.codes[paths.offsets[:-1][lengths > 0]]
            result[seen] = np.log(of_first[groups[seen], first[seen]])
        for batch, _, scale in _filters(model.form, start, rows, model.advance[np.newaxis], paths, None):
            runs = batch.layout.runs
            of_run = np.bincount(batch.layout.run_of_step, np.log(scale), len(runs))
            # After what is impossible nothing is defined.
            result[runs] += np.where(np.isnan(of_run), -np.inf, of_run)
    return result


def predictive(model: ExpandedModel, paths: RunPaths) -> Floats:
    """The probabilities of what follows each step, given the run up to it, shape (n_steps, m + 2).

    Where a run starts as no run of the model does, its first phase is as in runs of its group, or in all runs. With
    hidden phases, nothing is defined after what is impossible under the model: NaN.

    Raises:
        ModelError: for runs over other categories or groups than the model's.
    """
    _require_same_names(model, paths)
    rows = _mean_rows(model)[np.newaxis]
    return _predictive(model.form, model.start[np.newaxis], rows, model.advance[np.newaxis], paths, None)


def predictive_stack(stack: ModelStack, paths: RunPaths, corpora: Integers) -> Floats:
    """The same under many models, each for the runs of its corpus, shape (n_steps, m + 2).

    Args:
        corpora: the model of each run, from 0 to ``len(stack) - 1``, shape (n_runs,).

    Raises:
        ModelError: for runs over other categories or groups than the models', or other numbers of models.
    """
    _require_same_names(stack, paths)
    _require_corpora(corpora, paths.n_runs, len(stack))
    return _predictive(stack.form, stack.start, stack.rows, stack.advance, paths, corpora)


def filtered_phases(model: ExpandedModel, paths: RunPaths) -> Floats:
    """The probabilities of the phase at each step, given the run up to it, shape (n_steps, Z). NaN as `predictive`."""
    _require_same_names(model, paths)
    start, rows = model.start[np.newaxis], _mean_rows(model)[np.newaxis]
    result = np.empty((paths.n_steps, model.form.phases))
    for batch, phases, _ in _filters(model.form, start, rows, model.advance[np.newaxis], paths, None):
        result[batch.layout.steps] = phases.T
    return result


# ------------------------------------------------------------ the pass itself


def forward(kernel: Kernel, batch: ObservedBatch, first: Floats, workspace: Workspace) -> tuple[Floats, Floats, Floats]:
    """The scaled forward pass over a batch, in arrays of the workspace.

    Args:
        first: probabilities of the phase of the first steps, shape (Z, n).

    Returns:
        The probabilities of the phase at each step given the run up to it, shape (Z, S); the joint ones of what
        followed and of the phase after it, shape (Z, S); and their sums, the predictive probabilities of what followed,
        shape (S,). With hidden phases, all are NaN once the impossible has followed.
    """
    n_phases, n_steps = len(first), len(batch.layout.steps)
    if n_phases == 1:
        phases = np.ones((1, n_steps))
        onward = kernel.onward(phases, slice(None))
        return phases, onward, onward[0]
    phases, onward = (workspace.array(name, n_phases, n_steps) for name in ("phases", "onward"))
    scale = workspace.array("scale", n_steps)
    phases[:, batch.layout.firsts] = first
    here = slice(0, len(batch.layout.run_of_piece))
    with np.errstate(divide="ignore", invalid="ignore"):
        if len(batch.layout.following):
            enter_pieces(batch.layout, kernel, phases)
        for before, going_on, here in batch.layout.advances():
            onward[:, before] = kernel.onward(phases[:, before], before)
            np.add.reduce(onward[:, before], axis=0, out=scale[before])
            np.divide(onward[:, going_on], scale[going_on], out=phases[:, here])
        onward[:, here] = kernel.onward(phases[:, here], here)
        np.add.reduce(onward[:, here], axis=0, out=scale[here])
    return phases, onward, scale


def first_phases(start: Floats) -> Floats:
    """The probabilities of the first phase given group and first category, shape (Z, b * G * m).

    A category that no run of the group starts with has the group's probabilities, such a group those of all runs.

    Args:
        start: shape (b, G, Z, m + 2).
    """
    joint = np.moveaxis(start[..., :-2], 2, 0)
    result = np.zeros_like(joint)
    result[0] = 1
    of_group = joint.sum(axis=-1, keepdims=True)
    for level in (of_group.sum(axis=-2, keepdims=True), of_group, joint):
        total = level.sum(axis=0)
        result = np.where(total > 0, level / np.where(total > 0, total, 1), result)
    return result.reshape(len(result), -1)


def most_steps(form: ModelForm) -> int:
    """The steps of a batch of runs."""
    return _BATCH_CELLS // form.phases


def _filters(
    form: ModelForm, start: Floats, rows: Floats, advance: Floats, paths: RunPaths, corpora: Integers | None
) -> Iterator[tuple[ObservedBatch, Floats, Floats]]:
    space, workspace = ContextSpace(form=form, n_states=rows.shape[-2], n_groups=start.shape[1]), Workspace()
    for batch in observed_batches(space, paths, corpora, most_steps=most_steps(form)):
        first = first_phases(start[batch.corpora])[:, batch.first]
        phases, _, scale = forward(kernel(form, batch, rows, advance, workspace), batch, first, workspace)
        yield batch, phases, scale


def _predictive(
    form: ModelForm, start: Floats, rows: Floats, advance: Floats, paths: RunPaths, corpora: Integers | None
) -> Floats:
    n_next = rows.shape[-1]
    result = np.empty((paths.n_steps, n_next))
    for batch, phases, _ in _filters(form, start, rows, advance, paths, corpora):
        tables = np.moveaxis(rows[batch.corpora], 1, 0).reshape(form.phases, -1, n_next)
        row = batch.event // n_next
        expected = phases[0][:, np.newaxis] * tables[0][row]
        for z in range(1, form.phases):
            expected += phases[z][:, np.newaxis] * tables[z][row]
        result[batch.layout.steps] = expected
    return result


def _mean_rows(model: ExpandedModel) -> Floats:
    """The rows of the classes, weighted by these, shape (Z, C, m, m + 2)."""
    parts = zip(model.class_weights.tolist(), model.class_tilts.tolist(), strict=True)
    rows: Floats = np.sum([weight * tilted(model.rows, tilt) for weight, tilt in parts], axis=0)
    return rows


def _require_same_names(model: ExpandedModel | ModelStack, paths: RunPaths) -> None:
    if paths.states != model.states:
        raise ModelError(f"runs over {list(paths.states)!r:.500} under a model over {list(model.states)!r:.500}")
    if model.form.group is not None and paths.group_names != model.groups:
        raise ModelError(
            f"runs of the groups {list(paths.group_names)!r:.500}, the model's {list(model.groups)!r:.500}"
        )


def _require_corpora(corpora: Integers, n_runs: int, b: int) -> None:
    numbers = np.asarray(corpora)
    if numbers.shape != (n_runs,) or (n_runs and not 0 <= numbers.min() <= numbers.max() < b):
        raise ModelError(f"each of the {n_runs} runs needs the number of its model, from 0 to {b - 1}")
