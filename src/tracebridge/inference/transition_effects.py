"""Which transitions a property hangs on, and which of them its uncertainty comes from.

To first order, a probability that grows by e while the others of its row shrink in proportion moves the property by
``slope * e`` (see `tracebridge.closedform.gradient`). The rows of a fit are independent Dirichlet distributions with
concentrations ``a_ij`` that sum to ``A_i``, and so is the start; hence by the delta method

    variance of the property = sum over rows i of  sum_j p_ij (g_ij - mean_i)^2 / (A_i + 1)   and the start's,

with the free gradient g and its mean under the row. The sum over j is one over entries, which gives each transition its
share of the variance. An entry by itself has the standard deviation ``sqrt(p (1 - p) / (A_i + 1))``, and given its
value the others of its row are on the average in the proportions they were: so slope times deviation is how far the
property moves, on the average, when this entry is one deviation off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from tracebridge.inference.posterior import ChainPosterior

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.closedform.gradient import EntryGradient

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionEffect:
    """What one transition does to one number.

    Attributes:
        source, target: names of states. probability: of the transition.
        slope: the change of the number for each unit of probability that the transition gains from the other
            successors, in proportion.
        times_seen: how often runs took it; None without counts. Where it is 0, the probability is the prior's.
        deviation: the posterior standard deviation of the probability; None without counts, 0 where it is fixed.
        variance_share: the part of the posterior variance of the number that comes from this transition; None without
            counts, or where there is no variance.
        state_share: the same for all transitions of the source: what more visits to it would lessen.
    """

    source: str
    target: str
    probability: float
    slope: float
    times_seen: int | None = None
    deviation: float | None = None
    variance_share: float | None = None
    state_share: float | None = None

    @property
    def spread(self) -> float | None:
        """Slope times deviation, without its sign."""
        return None if self.deviation is None else abs(self.slope) * self.deviation

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "source": self.source,
            "target": self.target,
            "probability": self.probability,
            "slope": self.slope,
            "times_seen": self.times_seen,
            "deviation": self.deviation,
            "spread": self.spread,
            "variance_share": self.variance_share,
            "state_share": self.state_share,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionEffects:
    """All transitions that can move, with what they do to one number.

    Attributes:
        value: the number.
        transitions: by size of the slope, the largest first; ties in the order of the chain. A transition that is alone
            in its row is left out.
        deviation: the posterior standard deviation of the number by the delta method; None without counts.
        start_share: the part of its variance that comes from the initial distribution; None as `variance_share`.
    """

    value: float
    transitions: tuple[TransitionEffect, ...]
    deviation: float | None = None
    start_share: float | None = None

    def by_spread(self) -> tuple[TransitionEffect, ...]:
        """By slope times deviation, the largest first; nothing without counts."""
        known = [each for each in self.transitions if each.spread is not None]
        return tuple(sorted(known, key=lambda each: -(each.spread or 0.0)))

    def to_dict(self, limit: int | None = None) -> dict[str, Any]:
        """A JSON document; with a limit, only the first of each order."""
        return {
            "value": self.value,
            "deviation": self.deviation,
            "start_share": self.start_share,
            "n_transitions": len(self.transitions),
            "by_slope": [each.to_dict() for each in self.transitions[:limit]],
            "by_spread": [each.to_dict() for each in self.by_spread()[:limit]],
        }


def transition_effects(gradient: EntryGradient, fit: ChainFit | None = None) -> TransitionEffects:
    """The transitions of a chain by what they do to a number.

    Args:
        gradient: of the number. fit: the fit whose chain it is, for the posterior; None for a chain without counts.
    """
    chain, slopes = gradient.chain, gradient.along_simplex
    P = chain.transitions
    sizes = np.diff(P.indptr)
    sources = np.repeat(np.arange(chain.n_states), sizes)
    times_seen: Sequence[int | None] = [None] * P.nnz
    deviations: Sequence[float | None] = [None] * P.nnz
    shares: Sequence[float | None] = deviations
    state_shares: Sequence[float | None] = [None] * chain.n_states
    deviation = start_share = None
    if fit is not None:
        times_seen = _times_seen(fit)[sources, P.indices].tolist()
        posterior = ChainPosterior.of_fit(fit)
        entry_variances, of_entries, of_start = _variances(gradient, posterior)
        deviations = np.sqrt(entry_variances).tolist()
        variance = float(of_entries.sum() + of_start)
        deviation = math.sqrt(variance)
        if variance > 0:
            shares, start_share = (of_entries / variance).tolist(), of_start / variance
            state_shares = (np.add.reduceat(of_entries, P.indptr[:-1]) / variance).tolist()
    movable = np.flatnonzero(np.isfinite(slopes))
    order = movable[np.argsort(-np.abs(slopes[movable]), kind="stable")]
    return TransitionEffects(
        value=gradient.value,
        transitions=tuple(
            TransitionEffect(
                source=chain.states[sources[k]],
                target=chain.states[P.indices[k]],
                probability=float(P.data[k]),
                slope=float(slopes[k]),
                times_seen=times_seen[k],
                deviation=deviations[k],
                variance_share=shares[k],
                state_share=state_shares[sources[k]],
            )
            for k in order.tolist()
        ),
        deviation=deviation,
        start_share=start_share,
    )


def _times_seen(fit: ChainFit) -> csr_array:
    """How often runs went from one state of the chain to another: integers of shape (states, states)."""
    rows = fit.counts.under(fit.policy)
    position = {name: i for i, name in enumerate(fit.chain.states)}
    places = np.array([position.get(name, -1) for name in (*rows.states, "success", "failure")])
    counts = rows.counts.tocoo()
    i, j = places[counts.coords[0]], places[counts.coords[1]]
    known = (i >= 0) & (j >= 0)
    return csr_array((counts.data[known], (i[known], j[known])), shape=fit.chain.transitions.shape)


def _variances(gradient: EntryGradient, posterior: ChainPosterior) -> tuple[Floats, Floats, float]:
    """The variance of each entry, and the parts of the number's that come from the entries and from the start."""
    P = gradient.chain.transitions
    totals = np.repeat(np.add.reduceat(posterior.concentrations, P.indptr[:-1]), np.diff(P.indptr))
    weights = np.where(posterior.concentrations > 0, P.data / (totals + 1), 0.0)
    of_start = 0.0
    if posterior.start is not None:
        total = float(posterior.start.sum())
        drawn = posterior.start > 0
        shares, values = posterior.start[drawn] / total, gradient.initial[drawn]
        of_start = float(shares @ (values - shares @ values) ** 2) / (total + 1)
    return weights * (1 - P.data), weights * gradient.centred**2, of_start
