"""Random models of every kind of form, for tests: all probabilities positive that the form allows."""

from __future__ import annotations

import numpy as np

from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.states.expansion import ContextSpace
from tracebridge.states.model_form import parse_model

FORMS = [
    "first-order",
    "order2",
    "dwell3",
    "clock:0,2,3",
    "phases:3",
    "phases:2:shared",
    "phases:3:full",
    "classes:2",
    "group:model",
    "order2+dwell2+clock:0,1,4",
    "group:model+order2+clock:0,1+phases:2+classes:2",
    "dwell2+clock:0,3+phases:2:full-shared+classes:3",
]


def random_model(name: str, *, m: int = 3, n_groups: int = 2, seed: int = 0) -> ExpandedModel:
    """A model of the form with m categories, and groups where it has some; ends are likely enough for short runs."""
    draw = np.random.default_rng(seed)
    form = parse_model(name)
    groups = tuple(f"g{i}" for i in range(n_groups)) if form.group else ()
    size = ContextSpace(form=form, n_states=m, n_groups=max(1, len(groups))).size
    phases, classes = form.phases, form.classes
    start = draw.dirichlet(np.ones(max(1, len(groups)) * phases * (m + 2))).reshape(-1, phases, m + 2)
    if form.phase_kind == "left-to-right":
        start[:, 1:] = 0
    moves = draw.dirichlet(np.ones(phases), size=(phases, m))
    if form.phase_kind == "left-to-right":
        following, own = np.arange(phases), np.arange(phases)[:, None]
        moves *= ((following == own) | (following == own + 1))[:, None, :]
    if not form.by_category:
        moves[:] = moves[:, :1]
    return ExpandedModel(
        form=form,
        states=tuple("abcdefghij"[:m]),
        groups=groups,
        start=start / start.sum(),
        rows=draw.dirichlet(np.ones(m + 2), size=(phases, size, m)),
        advance=moves / moves.sum(axis=-1, keepdims=True),
        class_weights=draw.dirichlet(np.ones(classes)) if classes > 1 else np.ones(1),
        class_tilts=draw.normal(size=classes) if classes > 1 else np.zeros(1),
    )
