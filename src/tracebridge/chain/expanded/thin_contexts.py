"""Steps with a past that few runs had: what the chain says of them is what coarser pasts had to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.states.expansion import ContextSpace
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.states.model_form import ModelForm
    from tracebridge.states.run_paths import RunPaths

#: A step with a past that was seen less often is thin.
THIN_COUNT = 10

_NAMED = 3


def thin_context_note(paths: RunPaths, form: ModelForm) -> str | None:
    """How many steps with which pasts are thin, the most frequent of them with their counts; None if there are none.

    Args:
        paths: the runs of a fit. form: with the bins of its clock chosen.
    """
    if not form.has_context:
        return None
    space = ContextSpace(form=form, n_states=len(paths.states), n_groups=1 if form.group is None else paths.n_groups)
    m = space.n_states
    keys, counts = np.unique(
        space.of_paths(paths.codes, paths.offsets, paths.groups) * m + paths.codes, return_counts=True
    )
    thin = np.flatnonzero(counts < THIN_COUNT)
    if not len(thin):
        return None
    share = counts[thin].sum() / counts.sum()
    frequent = thin[np.argsort(-counts[thin], kind="stable")[:_NAMED]]
    named = [f"{_name(space, paths, int(keys[i]))} {counted(int(counts[i]), 'time')}" for i in frequent]
    more = ", ..." if len(thin) > _NAMED else ""
    return (
        f"{len(thin)} of {len(keys)} kinds of step with a past were seen fewer than {THIN_COUNT} times, {share:.1%} of "
        f"all steps ({'; '.join(named)}{more}): what follows them is mostly what follows the step after any past, and "
        "intervals are too narrow for what a rare past may change"
    )


def _name(space: ContextSpace, paths: RunPaths, key: int) -> str:
    """A category and what is remembered, as states are called (see `tracebridge.chain.expanded.naming`)."""
    context, category = divmod(key, space.n_states)
    parts, form = space.parts(np.array(context)), space.form
    words = []
    if form.previous:
        before = int(parts.previous)
        words.append("first" if before == space.n_states else f"previous {paths.states[before]}")
    if form.dwell > 1:
        words.append(f"stay {int(parts.dwell)}{'+' if parts.dwell == form.dwell - 1 else ''}")
    if form.has_clock:
        first, bins = int(parts.bin), form.bins
        last = f" to {bins[first + 1] - 1}" if first + 1 < len(bins) else "+"
        words.append(f"step {bins[first]}{last}")
    if form.group is not None and paths.group_names:
        words.append(f"group {paths.group_names[int(parts.group)]}")
    return f"{paths.states[category]} [{', '.join(words)}]"
