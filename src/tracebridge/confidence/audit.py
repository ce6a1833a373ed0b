"""The whole audit of confidence traces: routing, calibration and commitment, each with its own denominators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from tracebridge.confidence.audit_group import ECE_ISOTONIC, AuditTallies, GroupAudit
from tracebridge.confidence.audit_regressions import fit_regressions
from tracebridge.confidence.audit_tally import metric_values
from tracebridge.confidence.bootstrap import Resampling
from tracebridge.confidence.commitment import (
    CommitmentPairs,
    UndecidedPolicy,
    commitment_pairs,
    commitment_tallies,
)
from tracebridge.confidence.cost import cost_by_mode
from tracebridge.confidence.divergence_class import CLASSES, class_tallies, classify_divergences
from tracebridge.confidence.folds import tier_stratified_folds
from tracebridge.confidence.judge_agreement import compare_judges, judge_pairs
from tracebridge.confidence.learned_router import learned_probabilities
from tracebridge.confidence.null_construction import DEFAULT_REPLICATES, all_constructions
from tracebridge.confidence.recalibration import recalibration_table
from tracebridge.confidence.router import routeable_blocks, router_successes, router_tallies, success_by_value
from tracebridge.confidence.routing import counts_of_blocks, routing_tallies
from tracebridge.confidence.routing_pools import MissingLabel, block_pools
from tracebridge.confidence.routing_scores import COMPOSED, MARGIN, composed_scores, margin_scores
from tracebridge.confidence.table import ConfidenceTable
from tracebridge.errors import FitError, InputError, UsageError

if TYPE_CHECKING:
    from tracebridge.confidence.cluster_logit import ClusterLogit
    from tracebridge.confidence.confidence_quality import ConfidenceQuality
    from tracebridge.confidence.cost import ModeCost
    from tracebridge.confidence.divergence_class import DivergenceClasses
    from tracebridge.confidence.judge_agreement import JudgeAgreement
    from tracebridge.confidence.metric_value import MetricValue
    from tracebridge.confidence.null_construction import Construction
    from tracebridge.confidence.recalibration import Recalibration
    from tracebridge.confidence.router import RouteableBlocks
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.table import Numbers

SCHEMA_VERSION = 1

LEARNED = "learned"
ISOTONIC = "isotonic"
"""The router that goes by recalibrated confidence, held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeVariant:
    """Commitment under one judge and one policy for what that judge left undecided.

    Attributes:
        judge, undecided_policy: which. n_undecided: pairs that were left undecided.
        metrics: see `tracebridge.confidence.commitment`.
    """

    judge: str
    undecided_policy: UndecidedPolicy
    n_undecided: int
    metrics: tuple[MetricValue, ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "judge": self.judge,
            "undecided_policy": self.undecided_policy,
            "n_undecided": self.n_undecided,
            "metrics": [metric.to_dict() for metric in self.metrics],
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConfidenceAudit:
    """The audit of a corpus.

    Attributes:
        settings: what it was made with. counts: of traces, clusters, blocks, polls, pairs.
        corpus: the metrics of all traces. tiers, cells: those of each tier that has traces, and of each cell of the
            grid (actor model, benchmark, judge).
        recalibration: by calibrator, what was fitted and the held-out quality of its confidence; ``identity`` is the
            confidence as stated, with the reliability table behind its ECE.
        classes: where divergent answers come from.
        variants: commitment by judge and policy. agreements: of every two judges.
        constructions: the permutation null and the noisy oracles.
        regressions: outcome linkage (two models), pooled correctness, pooled divergence, adoption.
        costs: by mode. undefined: by section, why the corpus cannot fill it.
        score_routers: by rule, for routers that go by a score of valid polls, their success in each routeable block.
    """

    settings: Mapping[str, Any]
    counts: Mapping[str, int]
    corpus: GroupAudit
    tiers: tuple[GroupAudit, ...]
    cells: tuple[GroupAudit, ...]
    recalibration: Mapping[str, tuple[Recalibration, ConfidenceQuality]]
    classes: DivergenceClasses
    variants: tuple[JudgeVariant, ...]
    agreements: tuple[JudgeAgreement, ...]
    constructions: tuple[Construction, ...]
    regressions: tuple[ClusterLogit, ...]
    costs: tuple[ModeCost, ...]
    undefined: Mapping[str, str]
    score_routers: Mapping[str, Numbers]

    def __getitem__(self, name: str) -> MetricValue:
        """A metric of the whole corpus by its name."""
        return self.corpus[name]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document; the same corpus, settings and seed give the same."""
        return {
            "schema_version": SCHEMA_VERSION,
            "settings": dict(self.settings),
            "counts": dict(self.counts),
            "corpus": self.corpus.to_dict(),
            "tiers": [group.to_dict() for group in self.tiers],
            "cells": [group.to_dict() for group in self.cells],
            "recalibration": {
                name: {**fitted.to_dict(), "remarks": list(fitted.remarks), "held_out": quality.to_dict()}
                for name, (fitted, quality) in self.recalibration.items()
            },
            "divergence_flags": {
                "any": self.classes.n_any_flag,
                "surplus": self.classes.flag_surplus,
                "surplus_by_class": self.classes.surplus_by_class,
                "flagged": dict(zip(CLASSES, self.classes.flags.sum(axis=0).tolist(), strict=False)),
            },
            "judge_variants": [variant.to_dict() for variant in self.variants],
            "judge_agreement": [agreement.to_dict() for agreement in self.agreements],
            "constructions": [construction.to_dict() for construction in self.constructions],
            "regressions": [fit.to_dict() for fit in self.regressions],
            "costs": [cost.to_dict() for cost in self.costs],
            "undefined": dict(self.undefined),
        }

    def to_records(self) -> list[dict[str, Any]]:
        """One record a metric of the corpus, of each tier and of each cell."""
        return [record for group in (self.corpus, *self.tiers, *self.cells) for record in group.to_records()]


def audit_confidence(
    table: ConfidenceTable,
    *,
    replicates: int = 2_000,
    seed: int = 0,
    level: float = 0.95,
    judge: str | None = None,
    undecided_policy: UndecidedPolicy = "exclude",
    on_missing_label: MissingLabel = "drop",
    null_replicates: int = DEFAULT_REPLICATES,
    route_by: Mapping[str, Numbers] | None = None,
) -> ConfidenceAudit:
    """Audit a corpus: deterministic for its table and these settings.

    Args:
        table: the corpus as columns.
        replicates, seed, level: of the cluster bootstrap; the seed is also of folds and of null constructions.
        judge: whose verdicts on equivalence the commitment metrics follow; the first by default.
        undecided_policy: what a pair counts as that the judge left undecided.
        on_missing_label: what becomes of valid candidates without a label.
        null_replicates: of the permutation null and of each noisy oracle.
        route_by: by name scores of all polls, shape (N,), NaN where there is none: routers that select the highest of
            the valid polls, ties at random.

    Raises:
        UsageError: an unknown judge or policy, a level outside (0, 1), too few replicates.
        InputError: ``on_missing_label`` is ``error`` and a label is missing.
    """
    if not isinstance(table, ConfidenceTable):
        told = "as tracebridge.confidence.reading.read_confidence(paths).table() gives"
        raise UsageError(f"audit_confidence takes a ConfidenceTable, {told}, not a {type(table).__name__}")
    resampling = Resampling(replicates=replicates, seed=seed, level=level)
    undefined: dict[str, str] = {}
    pools = block_pools(table, on_missing_label=on_missing_label)
    pairs = commitment_pairs(table, judge=judge, undecided_policy=undecided_policy, on_missing_label=on_missing_label)
    classes = classify_divergences(table, pairs)
    recalibration, recalibrated = _recalibrated(pools, resampling, undefined)
    blocks = routeable_blocks(pools)
    routers = _score_routers(blocks, {ISOTONIC: recalibrated, **(route_by or {})}, seed, undefined)
    tallies = AuditTallies(
        pools=pools,
        routing=routing_tallies(pools),
        routers=router_tallies(blocks, {**router_successes(blocks), **routers}),
        commitment=commitment_tallies(pairs),
        divergence=class_tallies(classes),
        recalibrated=recalibrated,
        not_recalibrated=undefined.get(ECE_ISOTONIC, ""),
    )
    everything = np.ones(len(table.traces.identifier), dtype=np.bool_)
    regressions = fit_regressions(pools, pairs, level=level, seed=seed)
    undefined |= {fit.model: fit.reason for fit in regressions if fit.status == "undefined"}
    undefined |= _missing_sections(table, pairs)
    return ConfidenceAudit(
        settings={
            "replicates": replicates,
            "seed": seed,
            "level": level,
            "judge": pairs.judge,
            "undecided_policy": undecided_policy,
            "on_missing_label": on_missing_label,
            "null_replicates": null_replicates,
        },
        counts={
            "traces": len(everything),
            "problems": len(table.problems),
            "clusters": table.n_clusters,
            **counts_of_blocks(pools),
            "valid_pairs": len(pairs.speak),
            "divergent_pairs": int(pairs.divergent.sum()),
            "undecided_pairs": pairs.n_undecided,
            "unlabelled_pairs": pairs.n_unlabelled,
        },
        corpus=tallies.of_group("corpus", "all traces", everything, resampling),
        tiers=tuple(
            tallies.of_group("tier", name, table.traces.tier == code, resampling)
            for code, name in enumerate(table.tiers)
            if (table.traces.tier == code).any()
        ),
        cells=tuple(
            tallies.of_group("cell", " / ".join(cell), table.traces.cell == code, resampling)
            for code, cell in enumerate(table.cells)
            if len(table.cells) > 1
        ),
        recalibration=recalibration,
        classes=classes,
        variants=_variants(table, on_missing_label, resampling),
        agreements=tuple(
            compare_judges(table, first, second, resampling=resampling) for first, second in judge_pairs(table)
        ),
        constructions=all_constructions(pools, replicates=null_replicates, seed=seed),
        regressions=regressions,
        costs=cost_by_mode(table, resampling=resampling),
        undefined=undefined,
        score_routers=routers,
    )


def _score_routers(
    blocks: RouteableBlocks, route_by: Mapping[str, Numbers], seed: int, undefined: dict[str, str]
) -> dict[str, Numbers]:
    """Routers that select the valid poll with the highest score: by rule the success of each block, shape (R,).

    Those of given scores (N,), where there are any; the learned one, MARGIN's and the composed one, unless they cannot
    be had.
    """
    table = blocks.pools.table
    makers: dict[str, Callable[[], Numbers]] = {
        LEARNED: lambda: learned_probabilities(blocks, seed=seed),
        MARGIN: lambda: margin_scores(table)[blocks.poll],
        COMPOSED: lambda: composed_scores(table, seed=seed)[blocks.poll],
    }
    made = {}
    for name, make in makers.items():
        try:
            made[name] = make()
        except (FitError, InputError, UsageError) as error:
            undefined[f"{name}_router"] = str(error)
    made |= {name: values[blocks.poll] for name, values in route_by.items()}
    return {
        name: success_by_value(blocks, np.where(np.isnan(values), -np.inf, values))
        for name, values in made.items()
        if not np.isnan(values).all()
    }


def _recalibrated(
    pools: BlockPools, resampling: Resampling, undefined: dict[str, str]
) -> tuple[dict[str, tuple[Recalibration, ConfidenceQuality]], Numbers]:
    """The held-out recalibrations of the valid polls, and the isotonic confidence of every poll (N,)."""
    table, polls = pools.table, np.flatnonzero(pools.table.polls.valid)
    mapped = np.full(len(table.polls.valid), np.nan)
    trace = table.blocks.trace[table.polls.block[polls]]
    try:
        folds = tier_stratified_folds(
            table.traces.problem[trace],
            table.traces.tier[trace],
            group_names=table.problems,
            seed=resampling.seed,
        )
    except FitError as error:
        undefined["recalibration"] = undefined[ECE_ISOTONIC] = str(error)
        return {}, mapped
    found = recalibration_table(
        table.polls.confidence[polls],
        pools.correct[polls],
        folds,
        cluster_of_unit=table.traces.cluster[trace],
        n_clusters=table.n_clusters,
        resampling=resampling,
    )
    isotonic = found["isotonic"][0]
    if unfitted := [fitted.reason for fitted in isotonic.by_fold if fitted.status == "undefined"]:
        undefined[ECE_ISOTONIC] = f"nothing can be fitted to a half of the problems: there {unfitted[0]}"
    else:
        mapped[polls] = isotonic.confidence
    return {str(name): entry for name, entry in found.items()}, mapped


def _variants(
    table: ConfidenceTable, on_missing_label: MissingLabel, resampling: Resampling
) -> tuple[JudgeVariant, ...]:
    found = []
    for judge in table.judges:
        for policy in get_args(UndecidedPolicy):
            pairs = commitment_pairs(table, judge=judge, undecided_policy=policy, on_missing_label=on_missing_label)
            found.append(
                JudgeVariant(
                    judge=judge,
                    undecided_policy=policy,
                    n_undecided=pairs.n_undecided,
                    metrics=metric_values(commitment_tallies(pairs), table, resampling),
                )
            )
    return tuple(found)


def _missing_sections(table: ConfidenceTable, pairs: CommitmentPairs) -> dict[str, str]:
    traces, spoken = table.traces, len(table.speaks.block) > 0
    sections = (
        ("routing", bool((table.blocks.selected >= 0).any()), "nothing is recorded as selected"),
        ("commitment", spoken, "no answer was spoken in public"),
        ("commitment", len(pairs.speak) > 0 or not spoken, "there are no valid pairs"),
        ("judge_agreement", len(table.judges) > 1, "it takes two judges of the equivalence of answers"),
        ("tiers", bool((traces.tier >= 0).any()), "no trace has a tier"),
        ("cells", len(table.cells) > 1, "there is one cell"),
        (
            "costs",
            not all(np.isnan(column).all() for column in (traces.tokens, traces.calls, traces.wall)),
            "no trace states tokens, calls or time",
        ),
    )
    return {name: reason for name, present, reason in sections if not present}
