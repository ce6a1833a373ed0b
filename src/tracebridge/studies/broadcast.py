"""The audit of confidence-routed broadcast: a corpus with the published margins, and all tables that can be rebuilt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.routing_pools import block_pools
from tracebridge.studies.broadcast_calibration import calibration_tables
from tracebridge.studies.broadcast_commitment import commitment_tables
from tracebridge.studies.broadcast_example import example_tables
from tracebridge.studies.broadcast_population import build_population
from tracebridge.studies.broadcast_printed import printed_tables
from tracebridge.studies.broadcast_routing import construction_table, router_table, routing_tables
from tracebridge.studies.broadcast_tiers import tier_tables
from tracebridge.studies.result import Findings

if TYPE_CHECKING:
    from tracebridge.studies.replication import Replication


def study(replication: Replication) -> Findings:
    """Rebuild the corpus, audit it, and hold the audit and the worked example against what is printed."""
    corpus = build_population(np.random.default_rng(replication.seed))
    pools = block_pools(corpus)
    routers, router_statements = router_table(pools, replication.seed)
    routing, routing_statements = routing_tables(pools, replication.seed)
    calibration, calibration_statements = calibration_tables(pools, replication.seed)
    commitment, commitment_statements = commitment_tables(corpus)
    tiers, tier_statements = tier_tables(pools)
    constructions, construction_statements = construction_table(pools, replication)
    printed, printed_statements = printed_tables()
    example, example_statements, example_notes = example_tables()
    return Findings(
        tables=(routers, *calibration, *commitment, *routing, *tiers, constructions, *printed, *example),
        statements=(
            *router_statements,
            *calibration_statements,
            *commitment_statements,
            *routing_statements,
            *tier_statements,
            *construction_statements,
            *printed_statements,
            *example_statements,
        ),
        not_reproduced=NOT_REPRODUCED,
        notes=(*_NOTES, *example_notes),
    )


#: What of the paper does not come out, or cannot.
NOT_REPRODUCED = (
    (
        "Table 20 against Table 6: 134.6 calls of a deliberation are printed, but 11,122 blocks in 4,181 "
        "deliberations allow 29.6 if a turn takes ten calls at most (three polls, an utterance, two rounds of "
        "three approvals) and a deliberation three evaluations. Either other calls are counted, such as summaries "
        "and retries, or the table is of another run than the audited traces; so its pass rate of .892 may be, on "
        "which the worked example rests"
    ),
    (
        "Table 16 against Table 3: on the residual pairs alone gpt-oss-120b finds 1776 + 311 = 2,087 divergent, "
        "but all divergent pairs are 1,927. The residual corpus is no part of the valid pairs, or its labels are "
        "others"
    ),
    (
        "Table 16 against Table 17: pair by pair gemma-4-31B-it finds fewer divergent than gpt-oss-120b (1,838 "
        "against 2,087), but under its labels there are more (2,418 against 1,921). Undecided pairs must have been "
        "counted as divergent, or the populations differ; which, the paper does not say"
    ),
    (
        "Table 1, learned router: its features and answers are not published; on this corpus it lands in the same "
        "band as the fixed rules"
    ),
    (
        "Table 10: without the denominators of the tiers only four fractions can be told, and tiers 07 to 10 are "
        "missing from the page. Commitment by tier is not rebuilt"
    ),
    (
        "Tables 4, 11, 12 and 18: coefficients need the traces, which are not published. Their odds ratios and "
        "p-values are rebuilt from printed digits"
    ),
    (
        "Tables 5 and 19: the page ends at the ECE, and three of four cells have no counts; Tables 7, 8, 9, 14 and "
        "21 are text"
    ),
)
_NOTES = (
    (
        "the corpus has the published margins and nothing else of the traces. Scores of mixed blocks solve in "
        "integers what Tables 1, 6 and 15 print, the other scores by least squares what Table 2 prints, and "
        "deliberations go to tiers and clusters by difficulty and noise, so that about the ECE of Table 10 and the "
        "interval of CRA come out. So these figures are possible together; that they come out is no test of the "
        "paper's data, but for those that nothing was fitted to: the noisy oracles, the null's PCCA, the learned "
        "router, and the other intervals"
    ),
    (
        "the printed interval of CRA is that of 4.1 times the binomial variance: correctness goes together within "
        "clusters"
    ),
    (
        "the 421 problem clusters are shards of ten problems: with the companion release's sizes of tiers, the sum "
        "of ceil(n / 10) is 421"
    ),
    ("the caption of Table 13 lays the surplus of flags almost entirely on peer-echo: it is 312 of 416, three in four"),
    (
        "Table 8 reads as four turns and then two rounds of approval, at least four blocks of a deliberation; "
        "there are 2.66: approval follows every turn and ends the round early"
    ),
    (
        "in the worked example pools do not depend on the past and the chances of an end are illustrative; "
        "trace-level figures of routers rest on selection-ignorability"
    ),
)
