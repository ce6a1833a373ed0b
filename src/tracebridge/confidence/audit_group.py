"""The metrics of the three axes for the whole corpus, one tier of difficulty, or one cell of a grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tracebridge.checking.result import number_to_json
from tracebridge.confidence.audit_tally import RatioTally, tally_intervals, with_intervals
from tracebridge.confidence.chance_calibration import chance_calibration
from tracebridge.confidence.confidence_quality import confidence_quality
from tracebridge.confidence.rated_answers import RatedAnswers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.bootstrap import Resampling
    from tracebridge.confidence.metric_value import MetricValue
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.table import Numbers

GroupKind = Literal["corpus", "tier", "cell"]

ECE_ISOTONIC = "ECE_isotonic"

AXES = ("routing", "routers", "calibration", "commitment", "divergence")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAudit:
    """What the audit says of some traces.

    Attributes:
        kind, name: of the group. n_traces: how many traces it has.
        routing: see `tracebridge.confidence.routing`. routers: success, gap to the oracle and gain over the recorded
            selection of each rule, see `tracebridge.confidence.router`.
        calibration: of the stated confidence of valid polls, what its ECE would be by chance
            (`tracebridge.confidence.chance_calibration`), and ``ECE_isotonic`` of the recalibrated one.
        commitment: see `tracebridge.confidence.commitment`. divergence: shares and shifts of the classes.
        design_effects: by metric (those of calibration excepted), its variance over clusters relative to that of
            independent units; NaN where it is not known.
    """

    kind: GroupKind
    name: str
    n_traces: int
    routing: tuple[MetricValue, ...]
    routers: tuple[MetricValue, ...]
    calibration: tuple[MetricValue, ...]
    commitment: tuple[MetricValue, ...]
    divergence: tuple[MetricValue, ...]
    design_effects: Mapping[str, float]

    def __getitem__(self, name: str) -> MetricValue:
        for _, metric in self:
            if metric.name == name:
                return metric
        raise KeyError(name)

    def __iter__(self) -> Iterator[tuple[str, MetricValue]]:
        for axis in AXES:
            for metric in getattr(self, axis):
                yield axis, metric

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        axes = {axis: [metric.to_dict() for metric in getattr(self, axis)] for axis in AXES}
        effects = {name: number_to_json(effect) for name, effect in self.design_effects.items()}
        return {"kind": self.kind, "name": self.name, "n_traces": self.n_traces, **axes, "design_effects": effects}

    def to_records(self) -> list[dict[str, Any]]:
        """One record a metric."""
        return [{"kind": self.kind, "group": self.name, "axis": axis, **metric.to_dict()} for axis, metric in self]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditTallies:
    """What is counted over the corpus once, and added up for every group.

    Attributes:
        pools: of the blocks. routing, routers, commitment, divergence: the tallies of these axes.
        recalibrated: (N,) the held-out isotonic confidence of each poll; NaN where there is none. not_recalibrated: why
            there is none at all; empty if there is some.
    """

    pools: BlockPools
    routing: Sequence[RatioTally]
    routers: Sequence[RatioTally]
    commitment: Sequence[RatioTally]
    divergence: Sequence[RatioTally]
    recalibrated: Numbers
    not_recalibrated: str

    def of_group(self, kind: GroupKind, name: str, traces: NDArray[np.bool_], resampling: Resampling) -> GroupAudit:
        """The metrics of some traces, given as a mask (T,)."""
        table = self.pools.table
        # Tallies of the same units stay together, so that one draw of clusters serves them all.
        kept = [tally.within(traces) for tally in (*self.routing, *self.routers, *self.commitment, *self.divergence)]
        intervals = tally_intervals(kept, table, resampling)
        values = iter(with_intervals(kept, intervals))
        routing, routers, commitment, divergence = (
            tuple(next(values) for _ in group)
            for group in (self.routing, self.routers, self.commitment, self.divergence)
        )
        return GroupAudit(
            kind=kind,
            name=name,
            n_traces=int(traces.sum()),
            routing=routing,
            routers=routers,
            calibration=self._calibration(traces, resampling),
            commitment=commitment,
            divergence=divergence,
            design_effects={
                counted.name: interval.design_effect for counted, interval in zip(kept, intervals, strict=True)
            },
        )

    def _calibration(self, traces: NDArray[np.bool_], resampling: Resampling) -> tuple[MetricValue, ...]:
        table, correct = self.pools.table, self.pools.correct
        polls = np.flatnonzero(table.polls.valid & traces[table.blocks.trace[table.polls.block]])
        cluster = table.cluster_of_block[table.polls.block[polls]]
        stated, mapped = (
            confidence_quality(
                confidence[polls],
                correct[polls],
                cluster_of_unit=cluster,
                n_clusters=table.n_clusters,
                resampling=resampling,
            )
            for confidence in (table.polls.confidence, self.recalibrated)
        )
        answers = RatedAnswers.of(table.polls.confidence[polls], correct[polls])
        by_chance = chance_calibration(answers, cluster[answers.kept], resampling=resampling)
        isotonic = replace(mapped["ECE"], name=ECE_ISOTONIC)
        if isotonic.status == "undefined" and self.not_recalibrated and answers.n:
            isotonic = replace(isotonic, reason=self.not_recalibrated)
        return (*stated.metrics.values(), *by_chance, isotonic)
