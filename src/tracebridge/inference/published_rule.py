"""The goodness-of-fit test of the literature, as printed, beside what is known about it.

Tran-Truong and Le, "Measuring the Unmeasurable: Markov Chain Reliability for LLM Agents", arXiv:2604.24579, algorithm
2: accept if the AIC prefers the first order to the second, and a two-sample Kolmogorov-Smirnov test does not tell the
times to success of the runs from those of the chain, which is fitted with a Laplace prior to the same runs. The order
comparison uses the events after the first of each run in both orders, exits included, and maximum likelihood. The test
compares with 8,000 simulated runs; here their distribution function is taken from the chain, and only their number
enters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc, xlogy

from tracebridge.inference.deviance import deviance
from tracebridge.inference.misfit import context_tables
from tracebridge.inference.path_tables import FAILURE, SUCCESS
from tracebridge.inference.smoothed_chain import SmoothedChain

if TYPE_CHECKING:
    from tracebridge.inference.path_tables import PathTables

SIMULATED_RUNS = 8_000
#: The published test rejects where p is at most this.
KS_LEVEL = 0.05

_GAP_STEPS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperProfile:
    """What the published rule says about a corpus.

    Attributes:
        accepted: ``ks_p`` above .05 and ``delta_aic`` above 0; None if there is no success to compare times of.
        delta_aic: AIC of the second order minus that of the first, with ``df_full``; positive prefers the first.
        delta_aic_support: the same with ``df_support``.
        g2: likelihood ratio of the two orders. n_events: events after the first of each run.
        df_full: parameters that the second order has more, (m^2 - m)(m + 1). df_support: those of observed contexts and
            observed successors only. chi2_p: of g2 with df_support; None without any.
        largest_g2: 2 N H, above which g2 cannot be: H is the entropy of what follows a state, in nats.
        aic_is_vacuous: largest_g2 is below 2 df_full, so that the rule accepts any dependence on the previous state.
        ks_distance, ks_p: between times to success of the runs and the chain; None without a success.
        n_success: successes. ks_resolution: the smallest distance that the test rejects, 1.36 / sqrt(n_success) for
            large numbers.
        gap: the largest difference of R(d) to the share of all runs that succeeded by d, over d of 0..50; a censored
            run counts as no success. None where no run was seen to end.
    """

    accepted: bool | None
    delta_aic: float
    delta_aic_support: float
    g2: float
    n_events: int
    df_full: int
    df_support: int
    chi2_p: float | None
    largest_g2: float
    aic_is_vacuous: bool
    ks_distance: float | None
    ks_p: float | None
    n_success: int
    ks_resolution: float | None
    gap: float | None


def paper_profile(tables: PathTables) -> PaperProfile:
    """Apply the published rule to the only corpus."""
    m = tables.n_states
    table = context_tables(tables)["previous state"]
    pooled = table.pooled()
    g2 = float(deviance(table).g2.sum())
    df_full = (m * m - m) * (m + 1)
    successors = np.bincount(pooled.states, minlength=m)
    contexts = np.bincount(np.unique(table.keys // (m + 2)) % m, minlength=m)
    df_support = int((np.maximum(contexts - 1, 0) * np.maximum(successors - 1, 0)).sum())
    counts = pooled.counts.astype(np.float64)
    totals = np.bincount(pooled.states, weights=counts, minlength=m)
    largest = 2 * float(xlogy(totals, totals).sum() - xlogy(counts, counts).sum())

    longest = int(tables.longest[0])
    chain = SmoothedChain(tables, mass=m + 2)
    curve = chain.end_curves(max(longest, _GAP_STEPS))[0, SUCCESS]
    ends = tables.ends[0]
    successes = ends[SUCCESS].astype(np.float64)
    n_success = int(successes.sum())
    distance = p = resolution = None
    if n_success:
        from scipy.stats import kstwo  # takes half a second to import, which most verbs need not wait for

        fitted = curve[: longest + 1] / chain.long_run()[SUCCESS]
        distance = float(np.abs(np.cumsum(successes) / n_success - fitted).max())
        size = n_success * SIMULATED_RUNS / (n_success + SIMULATED_RUNS)
        p = float(kstwo.sf(distance, np.round(size)))
        resolution = float(kstwo.isf(KS_LEVEL, np.round(size)))
    observed = np.cumsum(successes) / max(int(ends.sum()), 1)
    seen = np.pad(observed, (0, max(0, _GAP_STEPS - longest)), mode="edge")[: _GAP_STEPS + 1]
    delta = 2 * df_full - g2
    return PaperProfile(
        accepted=None if p is None else p > KS_LEVEL and delta > 0,
        delta_aic=delta,
        delta_aic_support=2 * df_support - g2,
        g2=g2,
        n_events=int(table.totals[0]),
        df_full=df_full,
        df_support=df_support,
        chi2_p=float(chdtrc(df_support, g2)) if df_support else None,
        largest_g2=largest,
        aic_is_vacuous=largest < 2 * df_full,
        ks_distance=distance,
        ks_p=p,
        n_success=n_success,
        ks_resolution=resolution,
        gap=float(np.abs(curve[: _GAP_STEPS + 1] - seen).max()) if ends[[SUCCESS, FAILURE]].any() else None,
    )
