"""A confidence audit for a person in a hurry: the numbers of the three axes, routers, and what the models say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tracebridge.confidence.calibration import DEFAULT_BINS
from tracebridge.confidence.formal_model import OBSERVED
from tracebridge.confidence.router import RUNTIME
from tracebridge.report import markdown
from tracebridge.report.table import verdict_columns, verdict_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.confidence.audit import ConfidenceAudit
    from tracebridge.confidence.bootstrap import ClusterInterval
    from tracebridge.confidence.corpus import ConfidenceCorpus
    from tracebridge.confidence.formal_model import FormalModel
    from tracebridge.confidence.metric_value import MetricValue

#: What the metrics of the headline are called, in words.
MEANING: Final = {
    "CRA": "the selected valid poll is correct",
    "HRWP": "a correct poll is selected where there is one",
    "MCR": "of blocks with a choice of valid polls: a wrong one is selected though a correct one is there",
    "PCCA": "correct polls state more confidence than wrong ones in their block (0.5: no signal)",
    "CTR": "a correct and a wrong poll state the same confidence",
    "selected_invalid_rate": "the selected poll has no candidate, or no confidence on the scale, or was not parsed",
    "accuracy": "valid polls are correct",
    "mean confidence": "mean stated confidence",
    "ECE": f"expected calibration error of stated confidence ({DEFAULT_BINS} bins of equal width, closed left)",
    "ECE_by_chance": "the ECE that calibrated confidence would have here: what chance alone makes",
    "calibration_p": "how likely chance makes an ECE as large, if confidence is calibrated",
    "ECE_isotonic": "the ECE of recalibrated confidence, held out",
    "Brier": "mean squared error of stated confidence",
    "AUROC": "a correct poll states more confidence than a wrong one, over the corpus",
    "PSDR": "what is spoken differs from the poll that won the turn",
    "PSIR": "of these, wrong to correct",
    "PSDRg": "of these, correct to wrong",
    "NPCS_unconditional": "net change of correctness by speaking",
}
UNSURE: Final = "?"
"""Stands behind an interval that is not to be relied on; metrics.csv has the reason."""


def routers_of(audit: ConfidenceAudit) -> dict[str, MetricValue]:
    """By rule, the expected success of a routeable block."""
    return _by_rule(audit, "success")


def _by_rule(audit: ConfidenceAudit, kind: str) -> dict[str, MetricValue]:
    return {
        metric.name.removeprefix(f"{kind}[").removesuffix("]"): metric
        for metric in audit.corpus.routers
        if metric.name.startswith(f"{kind}[")
    }


def _gain_text(gain: MetricValue | None) -> str:
    if gain is None or gain.status == "undefined":
        return "-"
    if gain.numerator == 0 and gain.lower == -gain.upper and gain.method.startswith("all "):
        return f"none in any cluster, \u00b1{gain.upper:.4f}{_mark(gain)}"
    text = f"{gain.value:+.4f}"
    return text if math.isnan(gain.lower) else f"{text} [{gain.lower:+.4f}, {gain.upper:+.4f}]{_mark(gain)}"


def _interval_text(value: float, found: ClusterInterval | None, form: str = ".4f") -> str:
    text = f"{value:{form}}"
    if found is None or math.isnan(found.interval.lower):
        return text
    ends = f"[{found.interval.lower:{form}}, {found.interval.upper:{form}}]"
    return f"{text} {ends}{UNSURE if found.reason else ''}"


def _mark(metric: MetricValue) -> str:
    return UNSURE if metric.reason else ""


def metric_text(metric: MetricValue) -> str:
    """A value with its interval, or why there is none."""
    if metric.status == "undefined":
        return f"undefined: {metric.reason}"
    if math.isnan(metric.lower):
        return f"{metric.value:.4f}"
    return f"{metric.value:.4f} [{metric.lower:.4f}, {metric.upper:.4f}]{_mark(metric)}"


def headline_rows(audit: ConfidenceAudit) -> list[list[str]]:
    """One row a metric: name, value with interval, what it is of, what it means."""
    rows = []
    for name, meaning in MEANING.items():
        metric = audit[name]
        rows.append([name, metric_text(metric), f"{metric.denominator:.15g} {metric.denominator_name}", meaning])
    return rows


def router_rows(audit: ConfidenceAudit) -> list[list[str]]:
    """One row a router: success of a block, and how much more than the observed router's that is."""
    blocks, gains = (_by_rule(audit, kind) for kind in ("success", "gain_over_observed"))
    blocks = {OBSERVED: blocks.pop(RUNTIME), **blocks}  # the recorded selection, whatever rule made it
    return [[rule, metric_text(success), _gain_text(gains.get(rule))] for rule, success in blocks.items()]


def deliberation_rows(model: FormalModel) -> list[list[str]]:
    """One row a router: P(pass), how much more than the observed router's that is, and blocks of a deliberation."""
    observed, rows = model.routers[0], []
    for router in model.routers:
        found = router.intervals
        gain = _interval_text(router.passes - observed.passes, None if found is None else found.gain, "+.4f")
        rows.append(
            [
                router.rule,
                _interval_text(router.passes, None if found is None else found.passes),
                "-" if router is observed else gain,
                _interval_text(router.blocks, None if found is None else found.blocks, ".3f"),
            ]
        )
    return rows


ROUTER_COLUMNS: Final = ("router", "success of a block", "more than observed")
DELIBERATION_COLUMNS: Final = ("router", "P(pass)", "more than observed", "blocks")
METRIC_COLUMNS: Final = ("metric", "value", "of", "meaning")


def audit_notes(audit: ConfidenceAudit, corpus: ConfidenceCorpus) -> list[str]:
    """What a reader of any number must know first."""
    notes = []
    if corpus.is_selection_derived:
        notes.append(
            "selections are derived, not observed: the first of the highest scores is taken to have been selected "
            "where nothing is recorded"
        )
    if audit.settings["judge"] is None and audit.counts["valid_pairs"]:
        notes.append("no judge compared answers: what is not equal in canonical form counts as divergent")
    if audit.counts["clusters"] == audit.counts["traces"] > 1:
        notes.append(
            "every deliberation is a cluster of its own: intervals take them as independent; if several are about one "
            "question, say so by a field of the data (problem_uid or cluster_id; in polls problem or cluster)"
        )
    if any(metric.reason and not math.isnan(metric.lower) for metric in _shown(audit)):
        notes.append(f"an interval marked {UNSURE} is not to be relied on; metrics.csv has the reason")
    return notes


def _shown(audit: ConfidenceAudit) -> Iterator[MetricValue]:
    yield from (audit[name] for name in MEANING)
    yield from routers_of(audit).values()


def audit_markdown(audit: ConfidenceAudit, corpus: ConfidenceCorpus, model: FormalModel | str) -> str:
    """The summary of an audit."""
    return "\n".join([*_lines(audit, audit_notes(audit, corpus), model), ""])


def _lines(audit: ConfidenceAudit, notes: list[str], model: FormalModel | str) -> Iterator[str]:
    counts, settings = audit.counts, audit.settings
    yield "# Audit of stated confidence"
    yield ""
    yield f"{counts['traces']} deliberations of {counts['problems']} problems in {counts['clusters']} clusters."
    yield f"Intervals: {settings['level']:.0%}, {settings['replicates']} resamples of clusters."
    yield ""
    for note in notes:
        yield f"- {markdown.escape(note)}"
    if notes:
        yield ""
    yield markdown.table(list(METRIC_COLUMNS), headline_rows(audit))
    yield ""
    if audit.recalibration:
        yield "## Confidence recalibrated, held out by problem"
        yield ""
        yield markdown.table(["map", *_RECALIBRATED, "what is to be known"], list(_recalibration_rows(audit)))
        yield ""
        yield "Intervals, here and of fitted routers (learned, composed, isotonic), take what was fitted as given."
        yield ""
    yield "## Routers"
    yield ""
    yield markdown.table(list(ROUTER_COLUMNS), router_rows(audit))
    yield ""
    yield from _model_lines(model)
    if audit.undefined:
        yield "## What these data cannot say"
        yield ""
        for name, reason in audit.undefined.items():
            yield f"- {markdown.escape(name)}: {markdown.escape(reason)}"


def _recalibration_rows(audit: ConfidenceAudit) -> Iterator[list[str]]:
    for name, (fitted, quality) in audit.recalibration.items():
        label = "none (as stated)" if name == "identity" else name
        unsure = (
            f"{measure} {UNSURE}: {quality[measure].reason}" for measure in _RECALIBRATED if _mark(quality[measure])
        )
        known = "; ".join([*fitted.remarks, *unsure])
        yield [label, *(metric_text(quality[measure]) for measure in _RECALIBRATED), known or "-"]


_RECALIBRATED: Final = ("ECE", "Brier", "AUROC", "mean confidence")


def _model_lines(model: FormalModel | str) -> Iterator[str]:
    if isinstance(model, str):
        yield f"There is no chain of these deliberations: {markdown.escape(model)}."
        yield ""
        return
    yield "Whole deliberations under each router, without a prior:"
    yield ""
    yield markdown.table(list(DELIBERATION_COLUMNS), deliberation_rows(model))
    yield ""
    yield "P(pass) under a router is a counterfactual of whole deliberations: what follows a selection is taken to"
    yield "depend on the pool and on the kind of the selected poll alone. Tests of that:"
    yield ""
    rows = [
        [
            test.outcome,
            test.group,
            f"{test.statistic:.2f}",
            str(test.degrees),
            f"{test.p_value:.4f}",
            f"{test.p_holm:.4f}",
            test.note or "-",
        ]
        for test in model.ignorability
    ]
    yield markdown.table(["what", "against", "chi-square", "degrees", "p", "p (Holm)", "note"], rows)
    yield ""
    for review in model.reviews:
        routing = review.routing
        yield f"## Every router that selects from {_CHOICES[routing.action_set]}"
        yield ""
        yield markdown.table(verdict_columns(review.agreements), verdict_rows(review.agreements))
        yield ""
        for note in routing.notes:
            yield f"- {markdown.escape(note)}"
        if routing.notes:
            yield ""


_CHOICES: Final = {"tie": "the polls that tie on the highest score", "valid": "the valid polls", "all": "all polls"}
