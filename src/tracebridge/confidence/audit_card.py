"""An audit as a Trace-Audit Card: its metrics, and what the traces and the user say of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracebridge.checking.result import number_to_json
from tracebridge.confidence.audit_group import ECE_ISOTONIC
from tracebridge.confidence.card import audit_card, unavailable
from tracebridge.confidence.card_facts import corpus_facts
from tracebridge.confidence.card_fields import CARD_GROUPS
from tracebridge.confidence.cluster_logit import DESCRIPTIVE
from tracebridge.confidence.divergence_class import CLASSES
from tracebridge.confidence.learned_router import N_FOLDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracebridge.confidence.audit import ConfidenceAudit
    from tracebridge.confidence.card import AuditCard
    from tracebridge.confidence.corpus import ConfidenceCorpus
    from tracebridge.confidence.table import ConfidenceTable

CALIBRATOR = "isotonic"
"""The recalibration that a card reports."""

NON_CAUSAL = (
    "Routers are compared on recorded polls, block by block; no deliberation was run again with another router. "
    "Associations with the outcome are of the same traces, and no effects."
)

_METRICS = {
    "routing": {
        "cra": "CRA",
        "hrwp": "HRWP",
        "mcr": "MCR",
        "pcca": "PCCA",
        "ctr": "CTR",
        "selected_invalid_rate": "selected_invalid_rate",
    },
    "calibration": {
        "accuracy": "accuracy",
        "mean_confidence": "mean confidence",
        "ece": "ECE",
        "ece_by_chance": "ECE_by_chance",
        "calibration_p": "calibration_p",
        "brier": "Brier",
        "auroc": "AUROC",
    },
    "commitment": {
        "psdr": "PSDR",
        "psir": "PSIR",
        "psdrg": "PSDRg",
        "npcs_given_divergence": "NPCS_given_divergence",
        "npcs": "NPCS_unconditional",
    },
}


def card_of_audit(
    audit: ConfidenceAudit,
    corpus: ConfidenceCorpus,
    table: ConfidenceTable,
    *,
    stated: Mapping[str, Mapping[str, Any]] | None = None,
) -> AuditCard:
    """The card of an audit.

    Args:
        audit: of the table.
        corpus, table: the traces and their columns.
        stated: by group, fields that only the user knows, or knows better; they replace what follows from the traces.
            A required field that nobody knows is said to be unavailable.

    Raises:
        InputError: ``stated`` has a group or field that a card does not have.
    """
    groups: dict[str, dict[str, Any]] = {name: {} for name in CARD_GROUPS}
    for source in (corpus_facts(corpus, table), audited_fields(audit), stated or {}):
        for name, fields in source.items():
            groups.setdefault(name, {}).update(fields)
    for name, group in CARD_GROUPS.items():
        for field in group.fields:
            if field.is_required and field.name not in groups[name]:
                groups[name][field.name] = unavailable("neither the traces nor the user state it")
    return audit_card({name: fields for name, fields in groups.items() if fields or name not in CARD_GROUPS})


def audited_fields(audit: ConfidenceAudit) -> dict[str, dict[str, Any]]:
    """The fields of a card that an audit fills, group by group."""
    groups: dict[str, dict[str, Any]] = {
        group: {field: audit[name] for field, name in fields.items()} for group, fields in _METRICS.items()
    }
    groups["routing"]["router_counterfactuals"] = {metric.name: metric for metric in audit.corpus.routers}
    groups["calibration"] |= _calibration(audit)
    groups["commitment"]["divergence_classes"] = {
        "by_class": list(audit.corpus.divergence),
        "any_flag": audit.classes.n_any_flag,
        "flag_surplus": audit.classes.flag_surplus,
        "flagged": dict(zip(CLASSES, audit.classes.flags.sum(axis=0).tolist(), strict=False)),
    }
    groups["labels"] = {
        "judge_agreement": [{**one.to_dict(), "metrics": list(one.metrics)} for one in audit.agreements]
        or unavailable(audit.undefined["judge_agreement"]),
        "n_undecided": audit.counts["undecided_pairs"],
        "sign_stability": _sign_stability(audit),
    }
    groups["corpus"] = {
        "inclusion_rules": {
            "on_missing_label": audit.settings["on_missing_label"],
            "undecided_policy": audit.settings["undecided_policy"],
            "counts": dict(audit.counts),
        }
    }
    groups["uncertainty"] = {
        "bootstrap_replicates": audit.settings["replicates"],
        "seed": audit.settings["seed"],
        "interval_method": f"percentile cluster bootstrap, widened for few clusters, level {audit.settings['level']:g}",
    }
    null, *oracles = audit.constructions
    groups["null_checks"] = {"permutation_null": null.to_dict(), "noisy_oracle": [c.to_dict() for c in oracles]}
    groups["outcome_linkage"] = _outcome_linkage(audit)
    if "costs" not in audit.undefined:
        groups["cost"] = {
            "by_mode": [
                {**one.to_dict(), "metrics": list(one.metrics), "ratios": list(one.ratios)} for one in audit.costs
            ]
        }
    groups["limits"] = {
        "limits": [f"{section}: {reason}" for section, reason in audit.undefined.items()] or ["none found"],
        "non_causal_statement": NON_CAUSAL,
    }
    return groups


def _calibration(audit: ConfidenceAudit) -> dict[str, Any]:
    fields: dict[str, Any] = {"n_candidates": audit["accuracy"].denominator}
    if not audit.recalibration:
        reason = audit.undefined["recalibration"]
        names = ("ece_bins", "ece_closed", "calibrator", "folds", "held_out_ece", "held_out_brier", "held_out_auroc")
        return fields | {name: unavailable(reason) for name in names}
    stated, held_out = (audit.recalibration[name][1] for name in ("identity", CALIBRATOR))
    measures = {"held_out_ece": "ECE", "held_out_brier": "Brier", "held_out_auroc": "AUROC"}
    not_held_out = audit.undefined.get(ECE_ISOTONIC)
    return fields | {
        "ece_bins": stated.bins.n_bins,
        "ece_closed": stated.bins.closed,
        "calibrator": CALIBRATOR,
        "folds": {"n_folds": N_FOLDS, "kept_together": "problems", "stratified_by": "tier"},
        **{
            name: unavailable(not_held_out) if not_held_out else held_out[measure] for name, measure in measures.items()
        },
    }


def _sign_stability(audit: ConfidenceAudit) -> dict[str, Any]:
    """The net change given divergence under every judge and policy, and whether all have one sign."""
    if not audit.variants:
        return unavailable("no judge compared spoken answers with polled ones")
    shifts = {
        f"{variant.judge}, undecided {variant.undecided_policy}": next(
            metric for metric in variant.metrics if metric.name == "NPCS_given_divergence"
        )
        for variant in audit.variants
    }
    signs = {metric.value > 0 for metric in shifts.values() if metric.status == "ok" and metric.value != 0}
    return {"one_sign": len(signs) <= 1, "net_change_given_divergence": shifts}


def _outcome_linkage(audit: ConfidenceAudit) -> dict[str, Any]:
    fit = audit.regressions[0]
    if fit.status == "undefined":
        return {"model": unavailable(fit.reason)}
    return {
        "model": f"logistic regression of {fit.response}, {fit.estimator}, cluster-robust",
        "predictors": fit.to_records(),
        "n": fit.n,
        "n_clusters": fit.n_clusters,
        "pseudo_r2": number_to_json(fit.mcfadden),
        "descriptive_only": DESCRIPTIVE,
    }
