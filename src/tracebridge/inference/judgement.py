"""From what engines say about a chain to what the data say: the rule of ``//@ credible``, applied once.

The engines decide whether a property holds for the fitted chain, which is the point estimate; how sure that is, the
posterior says. A property with ``credible`` gets its verdict from both, every other keeps that of the engines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from tracebridge.agreement import Agreement, compare
from tracebridge.checking.result import Verdict
from tracebridge.checking.run import check
from tracebridge.inference.planning import Plan, plan_runs
from tracebridge.inference.posterior import DEFAULT_DRAWS
from tracebridge.inference.uncertainty import DEFAULT_LEVEL, PropertyUncertainty, decided, property_uncertainty

if TYPE_CHECKING:
    from pathlib import Path

    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.chain.fit import ChainFit
    from tracebridge.pctl.ast import PropertyFile

#: Where plans are a by-product: futures for each number of further runs, and the draws of the posterior in each future.
PLAN_FUTURES = 40
_PLAN_DRAWS = 200

#: The numbers of further runs are the corpus times 1, 4, 16, and so on, up to so many runs at least.
_PLAN_REACH = 1_000
_FEWEST_SIZES = 3


def judge(
    fit: ChainFit | ExpandedFit,
    properties: PropertyFile | Path | str,
    *,
    engines: Sequence[str] = ("closed-form", "storm"),
    exact: bool = False,
    constants: Mapping[str, Fraction | bool] | None = None,
    time_limit: float | None = None,
    draws: int = DEFAULT_DRAWS,
    seed: int = 0,
    level: float = DEFAULT_LEVEL,
) -> list[Agreement]:
    """`check` with every engine, `compare` them, and judge by the data: one agreement a property, with uncertainty.

    Args:
        fit: the fitted chain with its counts. properties: a property file, the path of one, or the text of one.
        engines, exact, constants, time_limit: see `check`. draws, seed, level: see `property_uncertainty`.

    Raises:
        PropertyError, NothingToCheckError, UsageError: as these do.
    """
    results = check(fit, properties, engines=engines, exact=exact, constants=constants, time_limit=time_limit)
    uncertainties = property_uncertainty(fit, properties, draws=draws, seed=seed, level=level, constants=constants)
    return judged(compare(results), uncertainties)


def judged(agreements: Sequence[Agreement], uncertainties: Sequence[PropertyUncertainty]) -> list[Agreement]:
    """Attach to each agreement the uncertainty of its property, and apply the rule where ``credible`` asks for it.

    Args:
        agreements, uncertainties: of the same properties, in the same order.

    Raises:
        ValueError: they are of different properties.
    """
    return [_judged(agreement, found) for agreement, found in zip(agreements, uncertainties, strict=True)]


def _judged(agreement: Agreement, found: PropertyUncertainty) -> Agreement:
    if agreement.property.name != found.property.name or agreement.property.formula != found.property.formula:
        raise ValueError(f"the uncertainty of {found.property.text!r} is not that of {agreement.property.text!r}")
    at_estimate = agreement.at_estimate
    if not found.credible or at_estimate not in {Verdict.SATISFIED, Verdict.VIOLATED}:
        return replace(agreement, uncertainty=found)
    verdict, reason = Verdict.UNDECIDED, found.reason
    if found.satisfied is not None and found.violated is not None:
        verdict, reason = decided(found.satisfied, found.violated, at_estimate is Verdict.SATISFIED, found.level)
    parts = [part for part in (agreement.reason_at_estimate, reason) if part]
    return replace(agreement, uncertainty=found, verdict=verdict, reason="; ".join(parts) or None)


def plans_of_undecided(
    fit: ChainFit,
    file: PropertyFile,
    agreements: Sequence[Agreement],
    *,
    futures: int = PLAN_FUTURES,
    seed: int = 0,
) -> list[Plan | None]:
    """How many more runs would decide each property that holds or fails for the fitted chain but not by the data.

    Args:
        fit: the fit. file: the properties, with their constants. agreements: of `judged`, one a property of the file.
        futures: for each number of further runs; 0 for no plan. seed: of all draws.

    Returns:
        One a property; None for those that are not open.
    """
    plans: list[Plan | None] = [None] * len(agreements)
    open_ = [i for i, agreement in enumerate(agreements) if _is_left_open(agreement)]
    if open_ and futures:
        chosen = replace(file, properties=tuple(file.properties[i] for i in open_))
        factors = _plan_factors(int(fit.counts.under(fit.policy).starts.sum()))
        found = plan_runs(fit, chosen, factors=factors, futures=futures, draws=_PLAN_DRAWS, seed=seed)
        for i, plan in zip(open_, found, strict=True):
            plans[i] = plan
    return plans


def _plan_factors(n_runs: int) -> list[int]:
    """Sizes of futures, times a corpus of so many runs."""
    factors = [4**i for i in range(_FEWEST_SIZES)]
    while factors[-1] * n_runs < _PLAN_REACH:
        factors.append(4 * factors[-1])
    return factors


def _is_left_open(agreement: Agreement) -> bool:
    if agreement.at_estimate not in {Verdict.SATISFIED, Verdict.VIOLATED} or agreement.uncertainty is None:
        return False
    return agreement.verdict is Verdict.UNDECIDED and agreement.uncertainty.satisfied is not None
