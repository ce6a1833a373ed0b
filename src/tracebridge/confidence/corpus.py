"""A corpus of deliberations in memory, with its one scale and all that is to be known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracebridge.confidence.tabulate import tabulate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.confidence.broadcast import BroadcastTrace
    from tracebridge.confidence.table import ConfidenceTable, ScoreScale
    from tracebridge.confidence.tabulate import ClusterKey
    from tracebridge.confidence.visible_speaks import Visibility
    from tracebridge.errors import Problem
    from tracebridge.traces.corpus import TraceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceCorpus:
    """Deliberations in the order of their files and records.

    Attributes:
        traces: at least one, all on one scale.
        scale: that scale, and how it is known.
        files: the files they came from, label files last.
        findings: what is to be known about what was kept: scores without a meaning, missing or contradicting labels,
            keys and columns that are not read, names that stand for several problems.
        problems: what was wrong with the records that were skipped.
        n_skipped: how many records, labels or whole files were skipped.
    """

    traces: tuple[BroadcastTrace, ...]
    scale: ScoreScale
    files: tuple[TraceFile, ...] = ()
    findings: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    n_skipped: int = 0

    def __len__(self) -> int:
        return len(self.traces)

    def __iter__(self) -> Iterator[BroadcastTrace]:
        return iter(self.traces)

    @property
    def is_selection_derived(self) -> bool:
        """Whether some selection was computed by the router's rule, and not observed."""
        return any(
            block.selection is not None and block.selection.derived for trace in self.traces for block in trace.blocks
        )

    def table(
        self,
        *,
        cluster_key: ClusterKey = "cluster_id",
        require_parse_ok: bool = True,
        visibility: Visibility = "all_prior",
    ) -> ConfidenceTable:
        """The corpus as columns; see :func:`tracebridge.confidence.tabulate.tabulate`."""
        table = tabulate(self.traces, cluster_key=cluster_key, require_parse_ok=require_parse_ok, visibility=visibility)
        return replace(table, scale=self.scale)
