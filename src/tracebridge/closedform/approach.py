"""How fast reliability approaches its limit: geometric bounds, and a heuristic of the literature beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import connected_components

from tracebridge.closedform import directed
from tracebridge.closedform.absorbing_system import AbsorbingSystem, Chain, Scalar, absorbers_in, absorbing_form
from tracebridge.closedform.fundamental import long_run_split
from tracebridge.closedform.passage import ENTRY_STEPS, Passage
from tracebridge.closedform.step_counts import allowed_gap
from tracebridge.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from tracebridge.closedform.firstpassage import Target

_UNIT = 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricBound:
    """``R_inf - R(d) <= factor * rate**d`` for every d; rounded upwards.

    For any ``u > 0``, ``rate = max (Qu)_i / u_i`` (Collatz and Wielandt) and ``factor = (v.u) max(h / u)`` are such a
    bound. With u the Perron vector of an irreducible Q the rate is the spectral radius, and the bound is nearly tight.
    """

    factor: float
    rate: float

    def at(self, d: int) -> float:
        """The bound on ``R_inf - R(d)``."""
        return math.nextafter(self.factor * self.rate**d * (1 + 4 * _UNIT), math.inf)

    def horizon(self, gap: float) -> float:
        """The smallest d at which the bound is at most ``gap``; infinite if there is none."""
        if self.at(0) <= gap:
            return 0
        if gap <= 0 or self.rate >= 1:
            return math.inf
        d = 1 if self.rate == 0 else max(1, math.ceil(math.log(self.factor / gap) / -math.log(self.rate)))
        while self.at(d) > gap:
            d += 1
        while self.at(d - 1) <= gap:
            d -= 1
        return d


def perron_bound(chain: Chain, *, target: Target = "success") -> GeometricBound:
    """A geometric bound on the approach of R(d) to R_inf, from the Perron vector of Q on the states that matter.

    The vector comes from lazy power iteration, and the bound is a bound wherever the iteration stops. On a reducible
    Q it is valid, but not tight.
    """
    form = absorbing_form(chain)
    passage = Passage.into(form, absorbers_in(form, target), exact=False)
    if passage.size == 0:
        return GeometricBound(factor=0.0, rate=0.0)
    u = AbsorbingSystem(form, exact=False).solve(np.ones(len(form.transient)))[passage.positions]
    work = len(u) + len(passage.Q.rows)
    for _ in range(min(10_000, 1000 + ENTRY_STEPS // (10 * work))):
        ahead = passage.Q.right(u)
        ratios = ahead / u
        lazy = u + ahead  # half a step: periodic chains converge too
        lazy /= lazy.max()
        if np.ptp(ratios) <= 1e-14 * ratios.max() or lazy.min() < 1e-250:
            break
        u = lazy
    _, upper = passage.hitting_bounds()
    factor = float(passage.v @ u) * float((upper / u).max())
    rate = float((passage.Q.right(u) / u).max())
    once, per_step = 2 * (len(u) + 16) * _UNIT, 2 * passage.roundings_per_step * _UNIT
    return GeometricBound(factor=factor * (1 + once), rate=rate * (1 + per_step))


def horizon_bound(chain: Chain, gap: Scalar | int, *, target: Target = "success") -> float:
    """An upper bound on `horizon` from `perron_bound`; infinite where the bound never gets below ``gap``."""
    return perron_bound(chain, target=target).horizon(directed.down(allowed_gap(gap)))


def spectral_radius(chain: Chain) -> float:
    """The spectral radius of Q, class by class: exactly zero for a chain without cycles."""
    Q = absorbing_form(chain).Q
    count, component = connected_components(Q, directed=True, connection="strong")
    sizes = np.bincount(component, minlength=count)
    diagonal = Q.diagonal()
    radius = float(diagonal.max(initial=0.0))
    for c in np.flatnonzero(sizes > 1).tolist():
        members = np.flatnonzero(component == c)
        if len(members) > 2000:
            raise UnsupportedError(f"the spectral radius of a class of {len(members)} states: use perron_bound")
        block = Q[members][:, members].toarray()
        radius = max(radius, float(np.abs(np.linalg.eigvals(block)).max()))
    return radius


def paper_horizon_heuristic(chain: Chain, gap: Scalar | int, *, target: Target = "success") -> int:
    """``ceil(log(R_inf / gap) / -log rho)``: a paper heuristic, not a bound.

    This is what Table IV of the paper tabulates (not its eq. 14). It can fall short of the exact `horizon` and is
    here for comparison only. 0 where ``R_inf <= gap``, and for chains without cycles (rho = 0).
    """
    allowed = float(allowed_gap(gap))
    if allowed == 0:
        raise UsageError("the heuristic horizon needs a gap above zero")
    total = float(long_run_split(chain, target=target)[0])
    radius = spectral_radius(chain)
    if total <= allowed or radius == 0:
        return 0
    if radius >= 1:
        raise UnsupportedError("the spectral radius rounds to one: the heuristic has no value in doubles")
    return math.ceil(math.log(total / allowed) / -math.log(radius))
