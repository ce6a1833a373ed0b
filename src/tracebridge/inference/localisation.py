"""Where a corpus departs from its chain: the states that add most to a deviance, and the cells that stand out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.inference.deviance import Deviance, cells

if TYPE_CHECKING:
    from tracebridge.inference.event_counts import EventCounts

#: Cells with smaller expectations are not named: a single event would stand out.
_LEAST_EXPECTED = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StateShare:
    """What one state adds to a statistic.

    Attributes:
        statistic: its name. state: the state.
        share: of the sum of what states add beyond their expectation, over those that add any; 0 to 1.
        z: standardised deviance of this state alone.
        nats: information about what follows this state that the context adds, per step in it.
    """

    statistic: str
    state: str
    share: float
    z: float
    nats: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A cell in which more or fewer events were seen than the state alone predicts.

    Attributes:
        statistic: the name of the statistic or covariate. context: the previous state, the bin of steps, the half or
            the covariate's value. state: the state. following: what followed it.
        observed: events. expected: as the state alone predicts. residual: standardised (adjusted), positive where more
            were seen; beyond about 3 it is hardly chance.
    """

    statistic: str
    context: str
    state: str
    following: str
    observed: int
    expected: float
    residual: float


def state_shares(name: str, found: Deviance, states: Sequence[str], *, limit: int) -> list[StateShare]:
    """The states that add most to the deviance of the only corpus, most first; those that add nothing are left out."""
    excess = found.g2[0] - found.mean[0]
    added = np.maximum(excess, 0.0)
    order = np.argsort(-added, kind="stable")[:limit]
    steps = np.maximum(found.n_by_state[0], 1)
    return [
        StateShare(
            statistic=name,
            state=states[i],
            share=float(added[i] / added.sum()),
            z=float(found.z_by_state[0, i]),
            nats=float(excess[i] / (2 * steps[i])),
        )
        for i in order.tolist()
        if added[i] > 0
    ]


def departures(
    name: str, table: EventCounts, states: Sequence[str], contexts: Sequence[str], *, limit: int
) -> list[Departure]:
    """The cells of the only corpus with the largest residuals, largest first."""
    following = (*states, "success", "failure")
    found: list[Departure] = []
    for cell, counts in cells(table):
        scale = np.sqrt(cell.expected * cell.freedom)
        named = (cell.expected >= _LEAST_EXPECTED) & (scale > 0)
        residuals = np.where(named, (counts - cell.expected) / np.where(scale > 0, scale, 1.0), 0.0)
        found += [
            Departure(
                statistic=name,
                context=contexts[cell.context[i]],
                state=states[cell.row[i]],
                following=following[cell.following[i]],
                observed=int(counts[i]),
                expected=float(cell.expected[i]),
                residual=float(residuals[i]),
            )
            for i in np.argsort(-np.abs(residuals), kind="stable")[:limit].tolist()
            if named[i]
        ]
    return sorted(found, key=lambda departure: -abs(departure.residual))[:limit]
