"""What a corpus itself says for its Trace-Audit Card; what it does not say is unavailable, with the reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.confidence.card import unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracebridge.confidence.corpus import ConfidenceCorpus
    from tracebridge.confidence.table import ConfidenceTable

_NOT_STATED = "the traces do not state it"


def corpus_facts(corpus: ConfidenceCorpus, table: ConfidenceTable) -> dict[str, dict[str, Any]]:
    """The fields of a card that follow from the traces alone, group by group: protocol, setup, surface, labels, corpus.

    Args:
        corpus: the traces.
        table: their columns, whose clusters are reported.
    """
    traces = corpus.traces
    answers = [poll for trace in traces for block in trace.blocks for poll in block.polls]
    answers_labelled = [poll for poll in answers if poll.correct is not None]
    per_cluster = np.bincount(table.traces.cluster, minlength=table.n_clusters)
    methods = Counter("stated" if poll.label is None else poll.label.method or "stated" for poll in answers_labelled)
    label_judges = {poll.label.judge for poll in answers_labelled if poll.label is not None}
    return {
        "protocol_identity": {
            "protocol_name": _stated(trace.protocol.name for trace in traces),
            "protocol_version": _stated(trace.protocol.version for trace in traces),
        },
        "inference_setup": {
            "agent_model": _stated(trace.cell.actor_model for trace in traces),
            "n_agents": sorted({len(block.polls) for trace in traces for block in trace.blocks}),
            "temperature": _stated(trace.config.temperature for trace in traces),
            "judge_model": _stated([*(trace.cell.judge_model for trace in traces), *label_judges]),
        },
        "confidence_surface": {
            "confidence_elicitation": corpus.scale.elicitation or unavailable(_NOT_STATED),
            "score_scale": {
                "minimum": corpus.scale.minimum,
                "maximum": corpus.scale.maximum,
                "whole_numbers": corpus.scale.integer,
                "origin": corpus.scale.origin,
            },
            "parse_fail_value": unavailable(_NOT_STATED)
            if corpus.scale.parse_fail_value is None
            else corpus.scale.parse_fail_value,
        },
        "routing": {
            "router_rule": _stated(trace.config.router_rule for trace in traces),
            "tie_rule": _stated(trace.config.tie_rule for trace in traces),
        },
        "labels": {
            "label_method": {name: methods[name] for name in sorted(methods)} or unavailable("no answer has a label"),
            "judges": list(table.judges) or unavailable("no judge compared spoken answers with polled ones"),
        },
        "corpus": {
            "n_traces": len(traces),
            "n_problems": len(table.problems),
            "n_clusters": table.n_clusters,
            "traces_per_cluster": {
                "minimum": int(per_cluster.min()),
                "median": float(np.median(per_cluster)),
                "maximum": int(per_cluster.max()),
            },
            "tiers": list(table.tiers) or unavailable(_NOT_STATED),
            "benchmark": _stated(trace.cell.benchmark for trace in traces),
        },
    }


def _stated(values: Iterable[Any]) -> Any:
    """The values that traces state, in order; unavailable where none does."""
    found = sorted({value for value in values if value not in (None, "")}, key=lambda value: (str(type(value)), value))
    return found or unavailable(_NOT_STATED)
