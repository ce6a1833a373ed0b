"""The smallest effects that a test would show: what stands behind "nothing was found"."""

from __future__ import annotations

import math

from scipy.special import ndtri

#: An effect that is resolved is seen with at least this probability.
POWER = 0.8


def detectable_gap(critical: float, n_runs: int) -> float:
    """A gap that is beyond ``critical`` with probability `POWER`, observed with the spread of at most n completed runs.

    The observed share has a standard deviation of at most ``1 / (2 sqrt(n))`` around the truth, and the refitted chain
    follows the runs; so this errs on the large side. At most 1.
    """
    return min(1.0, critical + float(ndtri(POWER)) / (2 * math.sqrt(max(n_runs, 1))))


def detectable_nats(critical: float, deviation: float, n_events: int) -> float:
    """Information per event whose standardised deviance is beyond ``critical`` with probability `POWER`.

    Information k adds ``x = 2 n k`` to the mean of G2 and ``4 x`` to its variance (the non-central chi-square law), so
    that x solves ``x - critical d = u sqrt(d^2 + 4 x)``, d its deviation under the null and u the normal quantile.
    Infinite without an event.
    """
    if n_events == 0:
        return math.inf
    u = float(ndtri(POWER))
    needed = critical * deviation
    half = needed + 2 * u * u
    x = half + math.sqrt(max(half * half - needed * needed + (u * deviation) ** 2, 0.0))
    return x / (2 * n_events)
