"""The files of a confidence audit: card, summary, tables for spreadsheets and programs, plots."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.checking.result import number_to_json
from tracebridge.confidence.audit_group import ECE_ISOTONIC
from tracebridge.confidence.calibration import ReliabilityBins
from tracebridge.confidence.ranking import ConfidenceRanking
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.report.card_markdown import card_markdown
from tracebridge.report.confidence_plots import plot_bars, plot_reliability, plot_risk_coverage
from tracebridge.report.confidence_summary import audit_markdown, routers_of
from tracebridge.report.plot import Figure
from tracebridge.version import __version__

if TYPE_CHECKING:
    from tracebridge.confidence.audit import ConfidenceAudit
    from tracebridge.confidence.card import AuditCard
    from tracebridge.confidence.corpus import ConfidenceCorpus
    from tracebridge.confidence.formal_model import FormalModel
    from tracebridge.confidence.routing_pools import BlockPools

KIND = "tracebridge-audit"
SCHEMA_VERSION = 1

_STATED = "as stated"
_RECALIBRATED = "isotonic, held out"


def audit_document(
    corpus: ConfidenceCorpus, audit: ConfidenceAudit, model: FormalModel | str, *, assessment: str | None
) -> dict[str, Any]:
    """The findings as JSON values; ``assessment`` is the file with those of the chain."""
    formal = {"reason": model} if isinstance(model, str) else {**model.to_dict(), "assessment": assessment}
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "corpus": {
            "files": [file.to_dict() for file in corpus.files],
            "scale": {
                "minimum": corpus.scale.minimum,
                "maximum": corpus.scale.maximum,
                "whole_numbers": corpus.scale.integer,
                "origin": corpus.scale.origin,
            },
            "selection_derived": corpus.is_selection_derived,
            "n_skipped": corpus.n_skipped,
            "problems": [str(problem) for problem in corpus.problems],
            "findings": [str(finding) for finding in corpus.findings],
        },
        "audit": audit.to_dict(),
        "formal_model": formal,
    }


def audit_files(
    pools: BlockPools, corpus: ConfidenceCorpus, audit: ConfidenceAudit, card: AuditCard, model: FormalModel | str
) -> dict[str, str]:
    """Every file of an audit by its name, but for the models and audit.json."""
    confidences = _confidences(pools, audit)
    bins = {name: ReliabilityBins.of(answers) for name, answers in confidences.items()}
    curves = {name: ConfidenceRanking.of(answers).risk_coverage() for name, answers in confidences.items()}
    texts = {
        "card.json": card.to_json(),
        "card.md": card_markdown(card),
        "summary.md": audit_markdown(audit, corpus, model),
        "metrics.csv": csv_text(audit.to_records()),
        "reliability.csv": csv_text(_named(bins)),
        "risk_coverage.csv": csv_text(_named(curves)),
        "regressions.csv": csv_text(
            [{"model": fit.model, **record} for fit in audit.regressions for record in fit.to_records()]
        ),
        "reliability.svg": _drawn(lambda axes: plot_reliability(axes, bins)),
        "risk_coverage.svg": _drawn(lambda axes: plot_risk_coverage(axes, curves)),
    }
    routers = routers_of(audit)
    texts["routers.svg"] = _drawn(
        lambda axes: plot_bars(axes, list(routers.values()), list(routers), xlabel="success of a routeable block")
    )
    if audit.tiers:
        rates = [group["CRA"] for group in audit.tiers]
        names = [group.name for group in audit.tiers]
        texts["tiers.svg"] = _drawn(lambda axes: plot_bars(axes, rates, names, xlabel="CRA by tier"))
    if not isinstance(model, str):
        texts["routers.csv"] = csv_text([router.to_dict() for router in model.routers])
    return texts


def csv_text(records: Sequence[Mapping[str, Any]]) -> str:
    """Records as CSV: a column for each key that occurs, in the order of their first occurrence.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    columns = list(dict.fromkeys(key for record in records for key in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in record.items()} for record in records)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return number_to_json(value)
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


def _confidences(pools: BlockPools, audit: ConfidenceAudit) -> dict[str, RatedAnswers]:
    """The confidence of valid polls, as stated and recalibrated."""
    polls = np.flatnonzero(pools.table.polls.valid)
    labels = pools.correct[polls]
    found = {_STATED: RatedAnswers.of(pools.table.polls.confidence[polls], labels)}
    if "isotonic" in audit.recalibration and ECE_ISOTONIC not in audit.undefined:
        found[_RECALIBRATED] = RatedAnswers.of(audit.recalibration["isotonic"][0].confidence, labels)
    return found


def _named(tables: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"confidence": name, **record} for name, table in tables.items() for record in table.to_records()]


def _drawn(draw: Any) -> str:
    figure = Figure()
    draw(figure.axes)
    return figure.svg()
