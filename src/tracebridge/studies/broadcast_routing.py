"""Routing on a corpus with the published margins: metrics, routers, and metrics under constructed scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracebridge.confidence.audit_tally import tally_intervals
from tracebridge.confidence.bootstrap import Resampling
from tracebridge.confidence.learned_router import learned_probabilities
from tracebridge.confidence.null_construction import METRICS, noisy_oracle, permutation_null
from tracebridge.confidence.router import routeable_blocks, router_successes, success_by_value
from tracebridge.confidence.routing import routing_tallies
from tracebridge.studies.broadcast_published import CONSTRUCTIONS, ROUTERS, ROUTING, prints_as
from tracebridge.studies.result import Table
from tracebridge.studies.statement import fixed, mean

if TYPE_CHECKING:
    import numpy as np

    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.studies.replication import Replication
    from tracebridge.studies.result import Cell
    from tracebridge.studies.statement import Statement

#: How far a metric under constructed scores may be from the printed one, which is an estimate itself.
TOLERANCE = 0.006
#: How far ends of intervals may be: how problems are alike is not published, and the order of scores is not modelled.
INTERVAL_TOLERANCE = 0.015
_INTERVALS = 1_000


def routing_tables(pools: BlockPools, seed: int) -> tuple[list[Table], list[Statement]]:
    """Table 6: every metric with its denominator, and its interval by cluster bootstrap."""
    tallies = {each.name: each for each in routing_tallies(pools) if each.name in ROUTING}
    intervals = tally_intervals(list(tallies.values()), pools.table, Resampling(replicates=_INTERVALS, seed=seed))
    rows: list[tuple[Cell, ...]] = []
    interval_rows: list[tuple[Cell, ...]] = []
    alike, distances = 0, []
    for (name, counted), found in zip(tallies.items(), intervals, strict=True):
        printed, lower, upper, denominator = ROUTING[name]
        value, ends = counted.value, found.interval
        alike += prints_as(value.value, printed) and value.denominator == denominator
        distances += [abs(ends.lower - lower), abs(ends.upper - upper)]
        effect = _design_effect(printed, lower, upper, denominator)
        effects = (effect, found.design_effect) if name in _OF_BLOCKS else (None, None)
        rows.append((name, printed, value.value, denominator, int(value.denominator), value.denominator_name))
        interval_rows.append((name, lower, ends.lower, upper, ends.upper, *effects))
    columns = ("metric", "paper", "ours", "denominator", "ours", "it counts")
    interval_columns = ("metric", "lower", "ours", "upper", "ours", "design effect", "ours")
    return [
        Table(title="Table 6: routing", columns=columns, rows=tuple(rows)),
        Table(
            title="Table 6: 95 % intervals by cluster bootstrap, and the design effects that they imply",
            columns=interval_columns,
            rows=tuple(interval_rows),
        ),
    ], [
        fixed("Table 6: metrics with the printed value and denominator, of 6", alike, lower=6),
        fixed("Table 6: largest distance of an end of an interval from the printed one", max(distances),
              upper=INTERVAL_TOLERANCE),
    ]  # fmt: skip


#: Metrics that are shares of blocks, whose variance without clusters is the binomial one.
_OF_BLOCKS = ("CRA", "HRWP", "MCR", "selected_invalid_rate")


def _design_effect(share: float, lower: float, upper: float, n: int) -> float:
    """How many times the binomial variance an interval implies."""
    return float(((upper - lower) / 2 / 1.959964) ** 2 * n / (share * (1 - share)))


def router_table(pools: BlockPools, seed: int) -> tuple[Table, list[Statement]]:
    """Table 1: expected success of a block by router."""
    blocks = routeable_blocks(pools)
    success = {name: float(values.mean()) for name, values in router_successes(blocks).items()}
    success["learned"] = float(success_by_value(blocks, learned_probabilities(blocks, seed=seed)).mean())
    oracle = success["oracle"]
    rows: list[tuple[Cell, ...]] = []
    alike, between = 0, 0
    for name, (printed, gap) in ROUTERS.items():
        if name != "learned":
            alike += prints_as(success[name], printed) and prints_as(oracle - success[name], gap, 2)
        between += success["worst"] <= success[name] <= oracle
        rows.append((name, printed, success[name], gap, oracle - success[name]))
    rows += [(name, None, success[name], None, oracle - success[name]) for name in ("oracle", "worst")]
    columns = ("router", "paper", "ours", "gap to oracle", "ours")
    fixed_rules = [success[name] for name in ROUTERS if name != "learned"]
    return Table(title="Table 1: expected success of a routeable block", columns=columns, rows=tuple(rows)), [
        fixed("Table 1: fixed routers with the printed success, of 5", alike, lower=5),
        fixed("Table 1: routers between the worst and the oracle, of 6", between, lower=6),
        fixed("Table 1: points between the best and the worst fixed router, 1.1 as printed",
              round(100 * (max(fixed_rules) - min(fixed_rules)), 1), lower=1.0, upper=1.2),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConstructedScores:
    """Scores to route by: an oracle of so much noise, or, without one, those that there are in a random order."""

    pools: BlockPools
    sigma: float | None


def routed(scores: ConstructedScores, rng: np.random.Generator) -> list[float]:
    """The metrics of one replicate, in the order of `METRICS`."""
    seed = int(rng.integers(2**63))
    if scores.sigma is None:
        found = permutation_null(scores.pools, replicates=1, seed=seed)
    else:
        found = noisy_oracle(scores.pools, scores.sigma, replicates=1, seed=seed)
    return [found.mean[name] for name in METRICS]


def construction_table(pools: BlockPools, replication: Replication) -> tuple[Table, list[Statement]]:
    """Table 15: the permutation null and the noisy oracles."""
    found = replication.of_each(routed, [ConstructedScores(pools=pools, sigma=sigma) for sigma in CONSTRUCTIONS])
    rows: list[tuple[Cell, ...]] = []
    statements = []
    for (sigma, printed), replicates in zip(CONSTRUCTIONS.items(), found, strict=True):
        name = "permutation null" if sigma is None else f"noisy oracle, {sigma:.2f}"
        for metric, (value, deviation), ours in zip(METRICS, printed, zip(*replicates, strict=True), strict=True):
            rows.append((name, metric, value, sum(ours) / len(ours), deviation, _deviation(ours)))
            if len(ours) > 1:
                statements.append(
                    mean(f"Table 15, {name}: {metric}", ours, "replicates", lower=value - TOLERANCE,
                         upper=value + TOLERANCE)
                )  # fmt: skip
    columns = ("construction", "metric", "paper", "ours", "std. deviation", "ours")
    return Table(title="Table 15: metrics under constructed scores", columns=columns, rows=tuple(rows)), statements


def _deviation(values: tuple[float, ...]) -> float | None:
    if len(values) < 2:
        return None
    middle = sum(values) / len(values)
    return float((sum((value - middle) ** 2 for value in values) / (len(values) - 1)) ** 0.5)
