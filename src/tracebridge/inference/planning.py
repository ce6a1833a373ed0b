"""How many more runs until an undecided property is decided: the posterior predictive.

A future corpus is drawn from one draw of the posterior: what the chain may be, and then what so many runs of it would
do. With the real counts it makes a new posterior, to which the rule of `property_uncertainty` is applied. The share of
futures in which the rule decides is the answer. Runs of one draw move together: how many stand where is all that
matters, and the passages from a state are multinomial, so that no path is drawn.

Futures are as independent and as Markov as the model says, and their runs are seen to their end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.checking.result import Verdict
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.errors import EngineError, UsageError
from tracebridge.inference.batched_evaluation import TIE, PropertyDraws, one_by_one
from tracebridge.inference.posterior import ChainPosterior
from tracebridge.inference.uncertainty import (
    DEFAULT_LEVEL,
    credible_level,
    decided,
    draw_properties,
    resolved_properties,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.pctl.ast import Property, PropertyFile

    Counts = NDArray[np.int64]

#: Futures are as large as the corpus times these.
DEFAULT_FACTORS = (1, 2, 4, 8, 16)

#: Futures for each size, and draws of the posterior in each of them.
DEFAULT_FUTURES = 100
DEFAULT_DRAWS = 400

#: A run of a future that goes on beyond so many steps is cut there: its passages until then count.
MOST_STEPS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What more runs would bring.

    Attributes:
        n_more: how many more runs. factor: times the corpus.
        satisfied, violated: the probability that the property would then be decided so.
        futures: how many were drawn.
    """

    n_more: int
    factor: float
    satisfied: float
    violated: float
    futures: int

    @property
    def decided(self) -> float:
        """The probability that it would be decided."""
        return self.satisfied + self.violated

    @property
    def error(self) -> float:
        """The Monte-Carlo standard error of that probability.

        At the proportion that two more futures of each kind would give (Agresti and Coull 1998), so that futures which
        all agree do not look certain.
        """
        n = self.futures + 4
        share = (self.decided * self.futures + 2) / n
        return math.sqrt(max(share * (1 - share), 0.0) / n)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        names = ("n_more", "factor", "satisfied", "violated", "decided", "error", "futures")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """How the prospect of a decision grows with the number of runs.

    Attributes:
        property: the property. level: what the rule asks for. verdict: that of the data at hand.
        outlooks: by size, ascending; empty for a property that is decided. seed: of all draws.
        reason: why there is no outlook.
    """

    property: Property
    level: float
    verdict: Verdict
    outlooks: tuple[Outlook, ...]
    seed: int
    reason: str | None = None

    def enough(self, probability: float = 0.8) -> int | None:
        """The smallest of the numbers of runs that decides with at least this probability; None if none does."""
        return next((each.n_more for each in self.outlooks if each.decided >= probability), None)

    def __repr__(self) -> str:
        shown = ", ".join(f"{each.n_more} more: {each.decided:.2f}" for each in self.outlooks)
        return f"<Plan for {self.property.name or self.property.text}, {self.verdict}: {shown}>"

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "name": self.property.name,
            "formula": self.property.text,
            "level": self.level,
            "verdict": str(self.verdict),
            "outlooks": [each.to_dict() for each in self.outlooks],
            "enough_at_0.8": self.enough(),
            "seed": self.seed,
            "reason": self.reason,
        }


def plan_runs(
    fit: ChainFit,
    properties: PropertyFile | Path | str,
    *,
    factors: Sequence[float] = DEFAULT_FACTORS,
    futures: int = DEFAULT_FUTURES,
    draws: int = DEFAULT_DRAWS,
    seed: int = 0,
    level: float = DEFAULT_LEVEL,
    constants: Mapping[str, Fraction | bool] | None = None,
) -> list[Plan]:
    """A plan for every property of a file that has a truth value; queries are left out.

    Args:
        fit: the fitted chain. properties: a property file, the path of one, or the text of one.
        factors: sizes of futures, times the corpus, positive. futures: how many of each size.
        draws: of the posterior, in each future and for the data at hand. seed: of everything.
        level: of the rule where a property does not give its own. constants: values for constants of the file.

    Raises:
        PropertyError: the file cannot be read, or a property does not fit the chain.
        UsageError: for a level, a factor or a number that is none.
    """
    if not 0.5 <= level < 1 or futures < 1 or draws < 1 or not all(0 < factor < math.inf for factor in factors):
        raise UsageError("planning needs a level of at least 0.5, and positive factors, futures and draws")
    resolved = resolved_properties(fit, properties, constants)
    posterior = ChainPosterior.of_fit(fit)
    points = draw_properties(resolved, [ChainStack.of_chain(fit.chain)], 1, tie=TIE)
    now = draw_properties(resolved, posterior.draws(draws, seed), draws)
    plans: dict[int, Plan] = {}
    for i, (each, at_hand, point) in enumerate(zip(resolved, now, points, strict=True)):
        rule = credible_level(each) or level
        if isinstance(at_hand, EngineError) or isinstance(point, EngineError):
            error = at_hand if isinstance(at_hand, EngineError) else point
            plan = Plan(
                property=each, level=rule, verdict=Verdict.UNSUPPORTED, outlooks=(), seed=seed, reason=str(error)
            )
        elif at_hand.holds is None:
            continue
        else:
            plan = Plan(property=each, level=rule, verdict=_verdict(at_hand, point, rule), outlooks=(), seed=seed)
        plans[i] = plan
    for i, plan in plans.items():
        if plan.verdict is Verdict.UNDECIDED and (slow := one_by_one(plan.property.formula)):
            plans[i] = replace(plan, reason=f"futures are not drawn: {slow[0]} is evaluated one chain at a time")
    open_ = [i for i, plan in plans.items() if plan.verdict is Verdict.UNDECIDED and plan.reason is None]
    if open_:
        looked = _outlooks(fit, posterior, [plans[i] for i in open_], sorted(factors), (futures, draws), seed)
        for i, outlooks in zip(open_, looked, strict=True):
            plans[i] = replace(plans[i], outlooks=outlooks)
    return list(plans.values())


def _verdict(outcome: PropertyDraws, point: PropertyDraws, level: float) -> Verdict:
    assert outcome.holds is not None  # noqa: S101 - asked for properties with a truth value only
    assert outcome.fails is not None  # noqa: S101
    assert point.holds is not None  # noqa: S101
    assert point.fails is not None  # noqa: S101
    at_point = bool(point.holds[0]) if point.holds[0] or point.fails[0] else None
    return decided(float(outcome.holds.mean()), float(outcome.fails.mean()), at_point, level)[0]


def _outlooks(
    fit: ChainFit,
    posterior: ChainPosterior,
    plans: Sequence[Plan],
    factors: Sequence[float],
    numbers: tuple[int, int],
    seed: int,
) -> list[tuple[Outlook, ...]]:
    """The outlooks of each plan; all properties and sizes see the same truths."""
    futures, draws = numbers
    properties = [plan.property for plan in plans]
    rows = fit.row_counts()
    n_now = int(fit.counts.under(fit.policy).starts.sum())
    weight = float(int(rows.starts.sum()) * rows.unit / n_now)  # a future run says as much as one at hand on average
    truths = list(posterior.draws(futures, seed))
    looked: list[list[Outlook]] = [[] for _ in plans]
    for k, factor in enumerate(factors):
        n_more = max(1, round(factor * n_now))
        tally = [dict.fromkeys(Verdict, 0) for _ in plans]
        children = np.random.SeedSequence(seed, spawn_key=(2**31, k)).spawn(len(truths))
        future = 0
        for truth, child in zip(truths, children, strict=True):
            entries, starts = simulated_counts(truth, n_more, np.random.default_rng(child))
            for j in range(truth.draws):
                later = _updated(posterior, entries[:, j], starts[:, j], weight)
                outcomes = draw_properties(properties, later.draws(draws, seed + 1 + future), draws)
                points = draw_properties(properties, [later.mean()], 1, tie=TIE)
                future += 1
                for plan, outcome, point, counted in zip(plans, outcomes, points, tally, strict=True):
                    if not isinstance(outcome, EngineError) and not isinstance(point, EngineError):
                        counted[_verdict(outcome, point, plan.level)] += 1
        for mine, counted in zip(looked, tally, strict=True):
            shares = counted[Verdict.SATISFIED] / futures, counted[Verdict.VIOLATED] / futures
            mine.append(Outlook(n_more=n_more, factor=factor, satisfied=shares[0], violated=shares[1], futures=futures))
    return [tuple(outlooks) for outlooks in looked]


def simulated_counts(stack: ChainStack, n_runs: int, rng: np.random.Generator) -> tuple[Counts, Counts]:
    """What so many runs of each chain do: passages by entry, shape (entries, draws), and starts, shape (n, draws).

    Runs stop in absorbing states, whose own entries count nothing, or after `MOST_STEPS`.
    """
    P, n, draws = stack.chain.transitions, stack.chain.n_states, stack.draws
    absorbing = stack.chain.absorbing
    initial = np.broadcast_to(stack.initial, (n, draws)).T
    starts = rng.multinomial(n_runs, initial / initial.sum(axis=1, keepdims=True))  # (draws, n)
    standing = np.where(absorbing, 0, starts)
    counts = np.zeros((draws, P.nnz), dtype=np.int64)
    spans = [slice(int(P.indptr[i]), int(P.indptr[i + 1])) for i in range(n)]
    shares = [stack.entries[span].T / stack.entries[span].T.sum(axis=1, keepdims=True) for span in spans]
    for _ in range(MOST_STEPS):
        occupied = np.flatnonzero(standing.any(axis=0))
        if not len(occupied):
            break
        arriving = np.zeros_like(standing)
        for i in occupied.tolist():
            moved = rng.multinomial(standing[:, i], shares[i])
            counts[:, spans[i]] += moved
            arriving[:, P.indices[spans[i]]] += moved
        standing = np.where(absorbing, 0, arriving)
    return counts.T, starts.T


def _updated(posterior: ChainPosterior, entries: Counts, starts: Counts, weight: float) -> ChainPosterior:
    """The posterior after more runs of this weight; what is fixed stays so."""
    rows, start = posterior.concentrations, posterior.start
    return replace(
        posterior,
        concentrations=np.where(rows > 0, rows + weight * entries, 0.0),
        start=None if start is None else np.where(start > 0, start + weight * starts, 0.0),
    )
