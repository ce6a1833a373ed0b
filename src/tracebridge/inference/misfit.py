"""How far corpora are from a first-order chain with fixed probabilities, which is refitted to each of them.

``first passage``: the largest gap between the fitted chain's and the observed probability to have ended in success, or
in failure, within d steps (cause-specific sub-distributions, the observed ones after Aalen and Johansen).
``previous state``, ``step time``, ``dwell``: standardised deviance of what follows a state against that context.
``between halves``: of a held-out corpus only, the same against the half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.inference.deviance import Deviance, deviance
from tracebridge.inference.event_counts import EventCounts
from tracebridge.inference.path_tables import CENSORED, FAILURE, STEP_BINS, SUCCESS
from tracebridge.inference.smoothed_chain import SmoothedChain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tracebridge.inference.path_tables import PathTables

FIRST_PASSAGE = "first passage"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurveGap:
    """The largest gap between observed and fitted curves, of g corpora.

    Attributes:
        step: where it is, shape (g,). outcome: 0 for success, 1 for failure, shape (g,).
        observed, fitted: the two probabilities there, shape (g,).
    """

    step: NDArray[np.int64]
    outcome: NDArray[np.int64]
    observed: NDArray[np.float64]
    fitted: NDArray[np.float64]

    @property
    def size(self) -> NDArray[np.float64]:
        """The gap without its sign, shape (g,)."""
        return np.abs(self.observed - self.fitted)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Misfit:
    """The statistics of g corpora.

    Attributes:
        gap: of the curves. deviances: by name of the context.
    """

    gap: CurveGap
    deviances: Mapping[str, Deviance]

    @property
    def names(self) -> tuple[str, ...]:
        """The statistics in the order of ``values``."""
        return (FIRST_PASSAGE, *self.deviances)

    @property
    def values(self) -> NDArray[np.float64]:
        """All statistics, shape (g, number of statistics); large is bad."""
        return np.column_stack([self.gap.size, *(item.z for item in self.deviances.values())])


def misfit(tables: PathTables, *, fitted_to: PathTables | None = None) -> Misfit:
    """The statistics of each corpus against the chain fitted to it, or to another corpus that it is held out from.

    Args:
        tables: the corpora to judge.
        fitted_to: as many other corpora over the same states to fit the chains to.
    """
    chain = SmoothedChain(tables if fitted_to is None else fitted_to)
    return Misfit(
        gap=curve_gap(tables, chain),
        deviances={name: deviance(table) for name, table in context_tables(tables, fitted_to=fitted_to).items()},
    )


def context_tables(tables: PathTables, *, fitted_to: PathTables | None = None) -> dict[str, EventCounts]:
    """The events by each context; first steps, which have no previous state, are left out of that table."""
    later = tables.previous.contexts < tables.n_states
    found = {"previous state": tables.previous.where(later), "step time": tables.clock, "dwell": tables.dwell}
    if fitted_to is not None:
        found["between halves"] = _two_halves(fitted_to.clock.pooled(), tables.clock.pooled())
    return found


def context_names(name: str, states: tuple[str, ...]) -> tuple[str, ...]:
    """What the context codes of a table stand for."""
    if name == "previous state":
        return (*states, "")
    return ("first half", "held-out half") if name == "between halves" else STEP_BINS


def _two_halves(first: EventCounts, second: EventCounts) -> EventCounts:
    cells = first.n_states * (first.n_states + 2)

    def half(events: EventCounts, side: int) -> NDArray[np.int64]:
        return (events.corpora * 2 + side) * cells + events.keys % cells

    return EventCounts.of_keys(
        np.concatenate([half(first, 0), half(second, 1)]),
        np.concatenate([first.counts, second.counts]),
        n_corpora=first.n_corpora,
        n_contexts=2,
        n_states=first.n_states,
    )


def curve_gap(tables: PathTables, chain: SmoothedChain) -> CurveGap:
    """The largest gap of each corpus up to the length of its longest run."""
    observed = aalen_johansen(tables)
    return largest_gap(observed, chain.end_curves(observed.shape[2] - 1), tables.longest)


def largest_gap(observed: NDArray[np.float64], fitted: NDArray[np.float64], longest: NDArray[np.int64]) -> CurveGap:
    """The largest gap of curves of shape (g, 2, steps + 1), each pair up to its own ``longest``, shape (g,)."""
    g, _, width = observed.shape
    within = np.arange(width) <= longest[:, None]
    sizes = np.where(within[:, None, :], np.abs(observed - fitted), 0.0).reshape(g, -1)
    place = np.argmax(sizes, axis=1)
    which = np.arange(g)
    return CurveGap(
        step=place % width,
        outcome=place // width,
        observed=observed.reshape(g, -1)[which, place],
        fitted=fitted.reshape(g, -1)[which, place],
    )


def aalen_johansen(tables: PathTables) -> NDArray[np.float64]:
    """Estimates of the probability to have ended by step d in success and in failure, shape (g, 2, longest + 1).

    A run cut at d is at risk, and known to have gone on, at step d; one cut before its first step does not count.
    Without cut runs these are plain frequencies.
    """
    return aalen_johansen_of_ends(tables.ends)


def aalen_johansen_of_ends(ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """The same of runs by outcome and length, shape (g, 3, longest + 1)."""
    ended = ends[:, [SUCCESS, FAILURE]].astype(np.float64)
    cut = ends[:, CENSORED].astype(np.float64)
    cut[:, 0] = 0.0
    leaving = ended.sum(axis=1) + cut
    at_risk = np.cumsum(leaving[:, ::-1], axis=1)[:, ::-1]
    hazard = ended / np.maximum(at_risk, 1.0)[:, None]
    surviving = np.cumprod(1.0 - hazard.sum(axis=1), axis=1)
    before = np.concatenate([np.ones((len(surviving), 1)), surviving[:, :-1]], axis=1)
    return np.asarray(np.cumsum(before[:, None] * hazard, axis=2))
