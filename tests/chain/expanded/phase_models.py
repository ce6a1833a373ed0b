"""Random models with hidden phases, runs drawn from them, and the sums over all paths of phases, term by term."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from hypothesis import strategies as st

from tracebridge.chain.expanded import side_by_side
from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.states.model_form import ModelForm
from tracebridge.states.run_paths import RunPaths

OUTCOMES = ("success", "failure", "censored")

forms = st.builds(
    ModelForm,
    previous=st.booleans(),
    dwell=st.integers(1, 2),
    clock=st.sampled_from([(0,), (0, 2)]),
    phases=st.integers(2, 3),
    phase_kind=st.sampled_from(["left-to-right", "full"]),
    by_category=st.booleans(),
    group=st.none() | st.just("g"),
)
runs = st.lists(st.tuples(st.text("abc", max_size=5), st.sampled_from(OUTCOMES)), min_size=1, max_size=5)


def corpus_of(form: ModelForm, paths: list[tuple[str, str]]) -> RunPaths:
    groups = None if form.group is None else [f"g{i % 2}" for i in range(len(paths))]
    return RunPaths.of_names(paths, states="abc", groups=groups)


def random_model(form: ModelForm, states: tuple[str, ...], groups: tuple[str, ...], seed: int) -> ExpandedModel:
    """All probabilities positive that may be; left-to-right models start in the first phase."""
    rng = np.random.default_rng(seed)
    m, n_phases, n_groups = len(states), form.phases, max(1, len(groups))
    shape = (n_groups, len(form.bins), form.dwell, m + 1 if form.previous else 1)
    start = rng.dirichlet(np.ones(n_groups * n_phases * (m + 2))).reshape(n_groups, n_phases, m + 2)
    advance = rng.dirichlet(np.ones(n_phases), (n_phases, m if form.by_category else 1))
    if form.phase_kind == "left-to-right":
        start[:, 0], start[:, 1:] = start.sum(axis=1), 0
        allowed = np.eye(n_phases) + np.eye(n_phases, k=1)
        advance = advance * allowed[:, np.newaxis]
        advance /= advance.sum(axis=-1, keepdims=True)
    return ExpandedModel(
        form=form,
        states=states,
        groups=groups,
        start=start,
        rows=rng.dirichlet(np.full(m + 2, 0.7), (n_phases, int(np.prod(shape)), m)),
        advance=np.broadcast_to(advance, (n_phases, m, n_phases)),
        class_weights=rng.dirichlet(np.ones(form.classes)),
        class_tilts=rng.normal(size=form.classes) if form.classes > 1 else np.zeros(1),
    )


def phase_paths(
    model: ExpandedModel, paths: RunPaths, run: int, of_class: int, first: int | None = None
) -> dict[tuple[int, ...], float]:
    """The joint probability of what is known of a run of a class and each path of phases, straight from the model.

    A censored run went on after its last step. With ``first``, of its first so many steps, whatever comes after them.
    """
    m = model.n_states
    begin, end = int(paths.offsets[run]), int(paths.offsets[run + 1])
    end = end if first is None else begin + first
    codes, group = paths.codes[begin:end].tolist(), int(paths.groups[run]) if model.form.group else 0
    contexts = model.space.of_paths(paths.codes, paths.offsets, paths.groups if model.form.group else None)[begin:end]
    rows, outcome = model.rows_of_class(of_class), int(paths.outcomes[run])
    if not codes:
        return {(): float(model.start[group, :, m + outcome].sum()) if outcome < 2 else 1.0}
    found = {}
    for phases in product(range(model.form.phases), repeat=len(codes)):
        p = model.start[group, phases[0], codes[0]]
        for i, (z, g, c) in enumerate(zip(phases, contexts, codes, strict=True)):
            if i + 1 < len(codes):
                p *= rows[z, g, c, codes[i + 1]] * model.advance[z, c, phases[i + 1]]
            elif first is None:
                p *= rows[z, g, c, m + outcome] if outcome < 2 else rows[z, g, c, :m].sum()
        found[phases] = float(p)
    return found


@contextmanager
def short_runs_in_pieces(wanted: bool = True) -> Iterator[None]:
    """Runs of three steps or more are cut into pieces of one step, or two, as long runs are into longer ones."""
    with pytest.MonkeyPatch.context() as patch:
        if wanted:
            patch.setattr(side_by_side, "_LONG", 3)
        yield


def drawn_runs(model: ExpandedModel, n_runs: int, seed: int, longest: int = 10_000) -> RunPaths:
    """Runs of a model with phases alone, drawn step by step; those that do not end are cut after ``longest`` steps."""
    rng = np.random.default_rng(seed)
    m, n_phases = model.n_states, model.form.phases
    first = rng.choice(n_phases * (m + 2), size=n_runs, p=model.start[0].ravel())
    phase, code = np.divmod(first, m + 2)
    steps: list[list[int]] = [[] for _ in range(n_runs)]
    rows, advance = model.rows[:, 0].cumsum(axis=-1), model.advance.cumsum(axis=-1)
    for _ in range(longest):
        active = np.flatnonzero(code < m)
        if not len(active):
            break
        for run in active.tolist():
            steps[run].append(int(code[run]))
        z, c = phase[active], code[active]
        phase[active] = np.minimum((rng.random((len(active), 1)) > advance[z, c]).sum(axis=1), n_phases - 1)
        code[active] = np.minimum((rng.random((len(active), 1)) > rows[z, c]).sum(axis=1), m + 1)
    names = model.states
    ended = np.where(code < m, 2, code - m)
    return RunPaths.of_names(
        [([names[i] for i in path], OUTCOMES[o]) for path, o in zip(steps, ended.tolist(), strict=True)], states=names
    )
