"""The tiers of difficulty: what is printed of them, and whether ranking and calibration part on the corpus too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.confidence_quality import confidence_quality
from tracebridge.confidence.routing import routing_tallies
from tracebridge.studies.broadcast_population import PROBLEMS_PER_CLUSTER
from tracebridge.studies.broadcast_published import (
    CLUSTERS,
    TIER_METRICS,
    TIER_SIZES,
    TIERS,
    TRACES,
    VALID_02_09,
    VALID_PAIRS,
    prints_as,
)
from tracebridge.studies.result import Table
from tracebridge.studies.statement import equals, fixed

if TYPE_CHECKING:
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.studies.result import Cell
    from tracebridge.studies.statement import Statement

#: Fractions that denominators known from elsewhere single out: 116 problems of tier 01; 47 pairs of tier 03, and 173 of
#: tiers 01 and 10, of which 10 has 54.
FRACTIONS = {
    ("01", "HRWP"): (115, 116),
    ("01", "PSDR"): (1, 119),
    ("03", "PSDR"): (8, 47),
    ("03", "NPCS given D"): (-2, 8),
}
#: Of tier 10, which is not on the page: what is left of the divergent pairs and of all.
TIER_10_PSDR = (5, 54)
#: A tier of 20 problems.
SMALL = "03"
#: Tiers with hundreds of mixed blocks.
MIDDLE = ("4", "5", "6")
#: Deliberations go to tiers by the share of their solvable blocks and noise: about what is printed comes out, no more.
TOLERANCE = 0.08


def tier_tables(pools: BlockPools) -> tuple[list[Table], list[Statement]]:
    """Table 10 as printed, and the metrics of Fig. 3 on the corpus."""
    rows: list[tuple[Cell, ...]] = []
    alike = 0
    for tier, printed in TIERS.items():
        found = []
        for metric, value in zip(TIER_METRICS, printed, strict=True):
            if (tier, metric) in FRACTIONS:
                k, n = FRACTIONS[tier, metric]
                alike += prints_as(k / n, value)
                found.append(f"{metric} = {k}/{n}")
        rows.append((tier, *printed, ", ".join(found) or None))
    k, n = TIER_10_PSDR
    rows.append(("10", *(k / n if metric == "PSDR" else None for metric in TIER_METRICS), f"PSDR = {k}/{n}, foretold"))
    table = Table(
        title="Table 10 as printed, and the fractions that fit",
        columns=("tier", *TIER_METRICS, "fractions"),
        rows=tuple(rows),
    )
    figure, statements = _figure(pools)
    shards = sum(math.ceil(size / PROBLEMS_PER_CLUSTER) for size in TIER_SIZES)
    of_tier_01 = FRACTIONS["01", "PSDR"][1]
    return [table, figure], [
        fixed(f"Table 10: fractions that are printed so, of {len(FRACTIONS)}", alike, lower=len(FRACTIONS)),
        equals("Tables 3, 10 and 17: valid pairs of tiers 01 and 10", of_tier_01 + n, VALID_PAIRS - VALID_02_09, 0),
        equals("Table 4: traces of all tiers", sum(TIER_SIZES), TRACES, 0),
        equals("Table 4: the 421 'problem clusters' are the shards of ten problems", shards, CLUSTERS, 0),
        *statements,
    ]


def _figure(pools: BlockPools) -> tuple[Table, list[Statement]]:
    """PCCA and ECE by tier."""
    corpus = pools.table
    alignment = next(each for each in routing_tallies(pools) if each.name == "PCCA")
    tier_of_poll = corpus.traces.tier[corpus.blocks.trace[corpus.polls.block]]
    rows: list[tuple[Cell, ...]] = []
    for code, name in enumerate(corpus.tiers):
        pcca = alignment.within(corpus.traces.tier == code).value
        polls = np.flatnonzero(corpus.polls.valid & (tier_of_poll == code))
        quality = confidence_quality(corpus.polls.confidence[polls], pools.correct[polls])
        printed = dict(zip(TIER_METRICS, TIERS.get(name.zfill(2), ()), strict=False))
        rows.append(
            (
                name.zfill(2),
                int(pcca.denominator),
                printed.get("PCCA"),
                pcca.value,
                len(polls),
                printed.get("ECE"),
                quality["ECE"].value,
                quality["accuracy"].value,
            )
        )
    columns = ("tier", "mixed blocks", "PCCA, paper", "ours", "candidates", "ECE, paper", "ours", "their accuracy")
    ece = {row[0]: float(row[6] or math.nan) for row in rows}
    distance = max(
        abs(ece[tier] - dict(zip(TIER_METRICS, printed, strict=True))["ECE"])
        for tier, printed in TIERS.items()
        if tier != SMALL
    )
    together = alignment.within(np.isin(corpus.traces.tier, [corpus.tiers.index(name) for name in MIDDLE])).value
    return Table(title="Fig. 3: ranking and calibration by tier", columns=columns, rows=tuple(rows)), [
        fixed("Fig. 3: ECE of tier 06 over that of tier 01", ece["06"] / ece["01"], lower=2),
        fixed(
            f"Table 10: largest distance of an ECE of tiers 01 to 06 but {SMALL}",
            distance,
            upper=TOLERANCE,
        ),
        fixed("Fig. 3: PCCA of tiers 04 to 06, where most mixed blocks are", together.value, lower=0.5),
    ]
