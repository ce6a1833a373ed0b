"""Where runs depart from a richer chain: the states that add most to a table, and the cells that stand out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.inference.expanded.statistics import (
    TABLES,
    EventTable,
    ModelMisfit,
    event_tables,
    without_first_steps,
)
from tracebridge.inference.localisation import Departure, StateShare
from tracebridge.inference.path_tables import STEP_BINS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracebridge.chain.expanded.estimation import ModelStack
    from tracebridge.states.run_paths import RunPaths

_ENDS = ("success", "failure")
_SHOWN_STATES = 5
_SHOWN_CELLS = 5
#: Cells with smaller expectations are not named: a single event would stand out.
_LEAST_EXPECTED = 1.0


def chain_departures(
    names: Sequence[str], stack: ModelStack, judged: RunPaths, observed: ModelMisfit, drawn: ModelMisfit
) -> tuple[tuple[StateShare, ...], tuple[Departure, ...]]:
    """The states and cells of these tables that depart most from the chain."""
    shares: list[StateShare] = []
    cells: list[Departure] = []
    names = [name for name in names if name in TABLES]
    tables = event_tables(stack, judged, np.zeros(judged.n_runs, dtype=np.int64)) if names else {}
    states = judged.states
    for name in names:
        table, others = observed.tables[name], drawn.tables[name]
        excess = table.g2_by_state[0] - others.g2_by_state.mean(axis=0)
        spread = others.g2_by_state.std(axis=0)
        added = np.maximum(excess, 0.0)
        for i in np.argsort(-added, kind="stable")[:_SHOWN_STATES].tolist():
            if added[i] > 0:
                shares.append(
                    StateShare(
                        statistic=name,
                        state=states[i],
                        share=float(added[i] / added.sum()),
                        z=float(excess[i] / spread[i]) if spread[i] else 0.0,
                        nats=float(excess[i] / (2 * max(float(table.n_by_state[0, i]), 1.0))),
                    )
                )
        cells += _cells(name, without_first_steps(name, tables[name]), states)
    return tuple(shares), tuple(cells)


def _cells(name: str, table: EventTable, states: tuple[str, ...]) -> list[Departure]:
    observed, expected = table.observed[0], table.expected[0]
    share = expected / np.maximum(expected.sum(axis=-1, keepdims=True), _LEAST_EXPECTED)
    variance = expected * (1 - share)
    named = (expected >= _LEAST_EXPECTED) & (variance > 0)
    residuals = np.where(named, (observed - expected) / np.sqrt(np.where(named, variance, 1.0)), 0.0)
    contexts = states if name == TABLES[0] else STEP_BINS
    following = (*states, *_ENDS)
    found = []
    for place in np.argsort(-np.abs(residuals), axis=None, kind="stable")[:_SHOWN_CELLS]:
        u, c, x = (int(i) for i in np.unravel_index(place, residuals.shape))
        if named[u, c, x]:
            found.append(
                Departure(
                    statistic=name,
                    context=contexts[u],
                    state=states[c],
                    following=following[x],
                    observed=int(observed[u, c, x]),
                    expected=float(expected[u, c, x]),
                    residual=float(residuals[u, c, x]),
                )
            )
    return found
