"""The empirical curve of success beside the chain's, and how far runs whose end was not seen could move a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any

from tracebridge.chain.censoring_bounds import censoring_extremes
from tracebridge.chain.expanded.censoring import censoring_extremes_of
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.chain.survival import aalen_johansen
from tracebridge.checking.result import number_to_json
from tracebridge.closedform import long_run_reliability, mean_time_to_absorption, reliability
from tracebridge.errors import TracebridgeError

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.survival import LengthCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class EmpiricalPoint:
    """``R(d)`` without a chain.

    Attributes:
        d: the budget. value: by Aalen and Johansen. lower, upper: its 95 % score interval. All None beyond the last
            step at which some run was seen.
    """

    d: int
    value: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CensoringBounds:
    """A number of the fit if every censored run failed with its last step, and if every one succeeded."""

    all_fail: float
    all_succeed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCurve:
    """What the runs say without the chain, and what the censored ones could change.

    Attributes:
        points: one a budget; none for a chain whose start was given, for these runs start elsewhere.
        n_runs, n_censored: under the policy of the fit.
        bounds: of ``R_inf`` and each ``R(d)`` by name, and of ``MTTA``, whose two are equal and a lower bound; empty
            without a censored run. missing: why there are none although runs are censored.
    """

    points: tuple[EmpiricalPoint, ...]
    n_runs: int
    n_censored: int
    bounds: dict[str, CensoringBounds]
    missing: str | None = None

    def to_records(self) -> list[dict[str, Any]]:
        """One record a budget: ``d``, ``value``, ``lower``, ``upper``."""
        return [{"d": each.d, "value": each.value, "lower": each.lower, "upper": each.upper} for each in self.points]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "method": "Aalen-Johansen, score interval at the effective number of runs, level 0.95",
            "n_runs": self.n_runs,
            "n_censored": self.n_censored,
            "R": {
                str(point.d): {
                    "value": None if point.value is None else number_to_json(point.value),
                    "lower": None if point.lower is None else number_to_json(point.lower),
                    "upper": None if point.upper is None else number_to_json(point.upper),
                }
                for point in self.points
            },
            "if_all_censored": {
                name: {"fail": number_to_json(bound.all_fail), "succeed": number_to_json(bound.all_succeed)}
                for name, bound in self.bounds.items()
            },
            "missing": self.missing,
        }


def observed_curve(fit: ChainFit | ExpandedFit, lengths: LengthCounts, budgets: Sequence[int]) -> ObservedCurve:
    """The empirical curve at these budgets, and the extremes of censoring.

    Args:
        fit: the fit, whose policy says what censored runs count as. lengths: of all its runs, as they were seen.
        budgets: each d, ascending.
    """
    counts = lengths.under(fit.policy)
    points: list[EmpiricalPoint] = []
    if counts.n_runs and budgets and isinstance(fit.start, str):
        curves = aalen_johansen(counts)
        columns = [curves.at(budgets).tolist(), *(end.tolist() for end in curves.interval(budgets))]
        points = [
            EmpiricalPoint(d=d, value=_known(value), lower=_known(lower), upper=_known(upper))
            for d, value, lower, upper in zip(budgets, *columns, strict=True)
        ]
    bounds: dict[str, CensoringBounds] = {}
    missing = None
    n_censored = lengths.runs_by_outcome()["censored"]
    if n_censored:
        try:
            extremes = _extremes(fit)
            bounds = _bounds(*extremes, budgets)
        except TracebridgeError as error:
            missing = str(error)
    return ObservedCurve(
        points=tuple(points), n_runs=counts.n_runs, n_censored=n_censored, bounds=bounds, missing=missing
    )


def _known(value: float) -> float | None:
    return None if isnan(value) else float(value)


def _extremes(fit: ChainFit | ExpandedFit) -> tuple[MarkovChain, MarkovChain]:
    """The chains if all censored runs failed with their last step, and if all succeeded."""
    if isinstance(fit, ExpandedFit):
        chains = censoring_extremes_of(fit)
        return chains[0], chains[1]
    extremes = censoring_extremes(fit)
    return extremes.all_fail.chain, extremes.all_succeed.chain


def _bounds(all_fail: MarkovChain, all_succeed: MarkovChain, budgets: Sequence[int]) -> dict[str, CensoringBounds]:
    measures: dict[str, Callable[[MarkovChain], float]] = {"R_inf": lambda chain: float(long_run_reliability(chain))}
    measures |= {f"R({d})": partial(_within, d=d) for d in budgets}
    measures["MTTA"] = lambda chain: float(mean_time_to_absorption(chain).overall)
    return {
        name: CensoringBounds(all_fail=measure(all_fail), all_succeed=measure(all_succeed))
        for name, measure in measures.items()
    }


def _within(chain: MarkovChain, *, d: int) -> float:
    return float(reliability(chain, d))
