"""The four-block fixture whose metrics are known, written down by hand."""

from __future__ import annotations

from tracebridge.confidence.table import ConfidenceTable
from tracebridge.studies.broadcast_notation import Block, Run, build_table

T0 = (
    Block("c90:4 w80:5 i1"),
    Block("w85:7 c85:9 c70:9"),
    Block("i95 c60:2 w60:3"),
    Block("i1 i1 i1"),
)


def hand_table() -> ConfidenceTable:
    """Four blocks of three agents, a run each."""
    return build_table([Run(blocks=[block], cluster=k) for k, block in enumerate(T0)])
