"""The fields of a Trace-Audit Card: what must be said of the measurement properties of a deliberation protocol."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

CARD_SCHEMA = "trace-audit-card/0.1"

FieldKind: TypeAlias = Literal["fact", "metric"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardField:
    """One field.

    Attributes:
        kind: ``metric`` is one number with its denominator; ``fact`` is any JSON value, in which metrics may stand.
        is_required: a card without it is refused; what cannot be known is said to be unavailable, with the reason.
        meaning: in a few words.
    """

    name: str
    kind: FieldKind
    is_required: bool
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardGroup:
    """Fields under one heading."""

    name: str
    heading: str
    fields: tuple[CardField, ...]


def _fact(name: str, meaning: str, *, is_required: bool = True) -> CardField:
    return CardField(name=name, kind="fact", is_required=is_required, meaning=meaning)


def _metric(name: str, meaning: str, *, is_required: bool = True) -> CardField:
    return CardField(name=name, kind="metric", is_required=is_required, meaning=meaning)


def _group(name: str, heading: str, *fields: CardField) -> CardGroup:
    return CardGroup(name=name, heading=heading, fields=fields)


_ALL_GROUPS = (
    _group(
        "protocol_identity",
        "Protocol identity",
        _fact("protocol_name", "name of the protocol"),
        _fact("protocol_version", "its version"),
        _fact("paper_of_record", "where it is described", is_required=False),
    ),
    _group(
        "inference_setup",
        "Inference setup",
        _fact("agent_model", "models of the agents"),
        _fact("n_agents", "how many agents are polled"),
        _fact("temperature", "of the agents"),
        _fact("judge_model", "models that judge answers"),
        _fact("evaluator_model", "model that evaluates submissions"),
    ),
    _group(
        "confidence_surface",
        "Confidence surface",
        _fact("confidence_elicitation", "the words in which confidence is asked for"),
        _fact("score_scale", "ends of the scale, whole numbers or not, and how it is known"),
        _fact("parse_fail_value", "score of a poll that could not be parsed"),
        _fact("confidence_visible_to_peers", "whether agents see the confidence of others"),
    ),
    _group(
        "routing",
        "Routing",
        _fact("router_rule", "how a poll is selected"),
        _fact("tie_rule", "which of equal polls"),
        _fact("invalid_poll_policy", "whether invalid polls can be selected"),
        _metric("cra", "correct among the selected valid polls"),
        _metric("hrwp", "a correct poll is selected where there is one"),
        _metric("mcr", "a wrong poll is selected where there is a correct one"),
        _metric("pcca", "correct above wrong within blocks"),
        _metric("ctr", "tied correct-wrong pairs"),
        _metric("selected_invalid_rate", "the selected poll is invalid"),
        _fact("router_counterfactuals", "success under other routers"),
    ),
    _group(
        "calibration",
        "Calibration",
        _fact("n_candidates", "labelled valid polls"),
        _metric("accuracy", "of candidates"),
        _metric("mean_confidence", "of candidates"),
        _metric("ece", "expected calibration error"),
        _metric("ece_by_chance", "of calibrated confidence in as many answers", is_required=False),
        _metric("calibration_p", "chance of an ECE as large if confidence were calibrated", is_required=False),
        _fact("ece_bins", "number of its bins"),
        _fact("ece_closed", "which end of a bin belongs to it"),
        _metric("brier", "mean squared error"),
        _metric("auroc", "of raw confidence"),
        _fact("calibrator", "what confidence is recalibrated with"),
        _fact("folds", "how it is cross-fitted"),
        _metric("held_out_ece", "after recalibration"),
        _metric("held_out_brier", "after recalibration"),
        _metric("held_out_auroc", "after recalibration"),
    ),
    _group(
        "commitment",
        "Commitment",
        _metric("psdr", "the spoken answer diverges from the poll"),
        _metric("psir", "wrong to correct among divergent pairs"),
        _metric("psdrg", "correct to wrong among divergent pairs"),
        _metric("npcs_given_divergence", "net change among divergent pairs"),
        _metric("npcs", "net change among all valid pairs"),
        _fact("divergence_classes", "where divergent answers come from"),
        _fact("visibility_rule", "what a speaker is taken to have seen"),
    ),
    _group(
        "labels",
        "Labels",
        _fact("label_method", "how correctness is known"),
        _fact("judges", "who judges equivalence"),
        _fact("judge_agreement", "kappa and the table of confusion"),
        _fact("n_undecided", "pairs on which judges did not decide"),
        _fact("sign_stability", "whether signs of commitment agree across judges"),
    ),
    _group(
        "corpus",
        "Corpus",
        _fact("n_traces", "traces"),
        _fact("n_problems", "problems"),
        _fact("n_clusters", "independent clusters"),
        _fact("traces_per_cluster", "minimum, median, maximum"),
        _fact("tiers", "tiers of difficulty"),
        _fact("benchmark", "where the problems are from"),
        _fact("inclusion_rules", "which traces, blocks and polls are counted"),
    ),
    _group(
        "uncertainty",
        "Uncertainty",
        _fact("bootstrap_replicates", "number of replicates"),
        _fact("seed", "of the generator"),
        _fact("cluster_key", "what is drawn again"),
        _fact("interval_method", "method and level"),
    ),
    _group(
        "null_checks",
        "Null checks",
        _fact("permutation_null", "metrics with confidence permuted within blocks"),
        _fact("noisy_oracle", "metrics with confidence made of the labels and noise"),
    ),
    _group(
        "outcome_linkage",
        "Outcome linkage",
        _fact("model", "regression of the outcome", is_required=False),
        _fact("predictors", "with their coefficients", is_required=False),
        _fact("n", "traces", is_required=False),
        _fact("n_clusters", "clusters", is_required=False),
        _fact("pseudo_r2", "McFadden", is_required=False),
        _fact("descriptive_only", "predictors and outcome are of the same traces", is_required=False),
    ),
    _group(
        "cost",
        "Cost",
        _fact("by_mode", "pass rate, tokens, calls and time of each mode", is_required=False),
    ),
    _group(
        "formal_model",
        "Formal model",
        _fact("abstraction", "which states", is_required=False),
        _fact("states", "how many", is_required=False),
        _fact("goodness_of_fit", "verdict of the certificate", is_required=False),
        _fact("reliability", "probability of ever passing", is_required=False),
        _fact("minimum_over_routers", "worst router", is_required=False),
        _fact("maximum_over_routers", "best router", is_required=False),
        _fact("properties", "results", is_required=False),
    ),
    _group(
        "limits",
        "Limits",
        _fact("limits", "what the audit cannot say"),
        _fact("non_causal_statement", "associations are no effects"),
    ),
)

CARD_GROUPS: Mapping[str, CardGroup] = MappingProxyType({group.name: group for group in _ALL_GROUPS})
"""The groups of a card in their order."""
