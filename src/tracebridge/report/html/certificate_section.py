"""The certificate in a page: its verdict by scope, then the words that ``summary.md`` has of the same record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from tracebridge.inference.certificate import Certificate, StatisticResult, p_text
from tracebridge.inference.expanded.certificate import ModelCertificate, ModelStatistic
from tracebridge.report.certificate import WHAT_IS_TESTED, bare_p, certificate_markdown, departure_text
from tracebridge.report.html.data_table import Cell, Column, DataTable, Tone, plain_table
from tracebridge.report.html.markdown_fragment import markdown_html
from tracebridge.report.html.svg import drawing, element, fitted
from tracebridge.report.model_certificate import model_certificate_markdown
from tracebridge.report.standings import told_once

Document = Mapping[str, Any]

_TONES: Mapping[str, Tone] = {
    "accept": "good",
    "reject": "bad",
    "inconclusive": "open",
    "refused": "open",
    "none": "open",
}
_ROW, _NAMES, _BAR, _VALUES = 24.0, 150.0, 340.0, 380.0

#: Bars of larger departures leave the chart; in multiples of what would matter.
_LONGEST = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateSection:
    """What the section shows.

    Attributes:
        standings: scope, verdict and its tone, reasons. drawing: departures beside what would matter, None without any.
        reading: of the drawing, one sentence each.
        details: everything, as HTML. ladder: how the model was found. advice: what can be done.
        missing: why there is no certificate.
    """

    standings: Sequence[tuple[str, str, Tone, Sequence[str]]]
    drawing: Markup | None
    reading: Sequence[str]
    details: Markup
    ladder: Sequence[DataTable]
    advice: Sequence[str]
    missing: str | None


def certificate_section(results: Document) -> CertificateSection:
    """The section of any kind of certificate, or of none.

    Raises:
        ModelError: the record is none.
    """
    recorded = results["certificate"]
    kind = recorded.get("kind")
    details, figure, reading = Markup(""), None, list[str]()
    if kind == "certificate":
        certificate = Certificate.from_dict(recorded, "results.certificate")
        details = markdown_html(certificate_markdown(certificate), caption="Certificate")
        figure, reading = _departures(certificate.statistics, certificate)
    elif kind == "model-certificate":
        model = ModelCertificate.from_dict(recorded, "results.certificate")
        details = markdown_html(model_certificate_markdown(model), caption="Certificate")
        figure, reading = _departures(model.path.statistics, model)
    return CertificateSection(
        standings=[
            (scope, each["verdict"], _TONES.get(each["verdict"], "open"), each["reasons"])
            for scope, each in told_once(results["standings"]).items()
        ],
        drawing=figure,
        reading=reading,
        details=details,
        ladder=[] if results["ladder"] is None else _ladder(results["ladder"]),
        advice=results["advice"],
        missing=recorded.get("missing"),
    )


def _departures(
    statistics: Sequence[StatisticResult | ModelStatistic], certificate: Certificate | ModelCertificate
) -> tuple[Markup | None, list[str]]:
    """Each departure as a bar, in units of what would matter, which is a line; and how to read them."""
    if not statistics:
        return None, []
    matters = {"gap": certificate.effects.gap, "nats": certificate.effects.nats}
    sizes = [max(0.0, each.effect) / matters[each.unit] for each in statistics]
    found = [each.p <= certificate.level for each in statistics]
    longest = max(1.5, min(max(sizes), _LONGEST))
    parts = []
    for k, (each, size) in enumerate(zip(statistics, sizes, strict=True)):
        y = k * _ROW + 4
        multiple = f"{'» ' if size > longest else ''}{size:.2g} ×, " if size else ""
        parts += [
            element("text", fitted(each.name, 22), x=_NAMES - 10, y=y + 13, text_anchor="end", class_="label"),
            element(
                "rect",
                x=_NAMES,
                y=y + 3,
                width=max(1.0, _BAR * min(size / longest, 1.0)),
                height=_ROW - 12,
                class_=f"departure{' found' if found[k] else ''}",
            ),
            element(
                "text",
                f"{multiple}{departure_text(each)}, p {p_text(each.p, certificate.replicates)}",
                x=_NAMES + _BAR + 12,
                y=y + 13,
                class_="label",
            ),
        ]
    x, bottom = _NAMES + _BAR / longest, len(sizes) * _ROW + 4
    parts += [
        element("path", d=f"M{x:.1f} 0L{x:.1f} {bottom:.1f}", class_="limit"),
        element("text", "what would matter (1 ×)", x=x, y=bottom + 12, text_anchor="middle", class_="tick"),
    ]
    said = "; ".join(f"{each.name} {size:.2g} times" for each, size in zip(statistics, sizes, strict=True))
    figure = drawing(
        _NAMES + _BAR + _VALUES,
        bottom + 18,
        *parts,
        key="departures",
        title="How far the runs depart from the chain",
        description=f"Departures beside the smallest that would matter: {said}.",
    )
    scale = f"{matters['gap']:g} in probability, {matters['nats']:g} nats a step"
    reading = [
        f"Bars: how far the runs depart from the chain, as multiples of what would matter ({scale}).",
        f"Red: more than chance explains, p at most {certificate.level:g}.",
    ]
    looked = [f"{each.name}: {WHAT_IS_TESTED[each.name]}" for each in statistics if each.name in WHAT_IS_TESTED]
    if looked:
        reading.append(f"What each looks for: {'; '.join(looked)}.")
    if any(each.unit == "nats" for each in statistics):
        reading.append(
            "Nats a step: by how much a chain that remembers this would foretell the next step better, as a mean gain "
            "in log-likelihood."
        )
    if any(size < 1 and beyond for size, beyond in zip(sizes, found, strict=True)):
        reading.append(
            "A red bar that stops before the line: chance does not explain the departure, though it is smaller than "
            "what an acceptance must rule out. A chain is rejected by what chance does not explain, of whatever size."
        )
    if any(size > longest for size in sizes):
        reading.append(f"A bar with » leaves the chart, which ends at {longest:g} ×.")
    return figure, reading


def _ladder(ladder: Document) -> list[DataTable]:
    """What was tried, and what was asked of it."""
    columns = [
        Column("model"),
        Column("states", numeric=True),
        Column("parameters", numeric=True),
        Column("gain, timing", numeric=True, meaning="held-out log-likelihood over the first-order chain, nats a run"),
        Column("gain, path", numeric=True, meaning="held-out log-likelihood over the first-order chain, nats a run"),
        Column("kept for"),
        Column("remark", prose=True),
    ]
    rungs = [
        [
            Cell(rung["form"]),
            Cell("too many" if rung["n_states"] is None else str(rung["n_states"]), sort=rung["n_states"]),
            Cell(str(rung["n_parameters"]), sort=rung["n_parameters"]),
            *(
                Cell(f"{rung['gains'][scope]:+.2f} ({rung['errors'][scope]:.2f})", sort=rung["gains"][scope])
                for scope in ("timing", "path")
            ),
            Cell(", ".join(rung["kept"]) or "-"),
            Cell(rung["remark"]),
        ]
        for rung in ladder["rungs"]
    ]
    tests = [
        [
            test["scope"],
            test["part"],
            test["form"],
            test["verdict"],
            bare_p(float(test["certificate"][test["scope"]]["p"]), test["certificate"]["replicates"]),
        ]
        for test in ladder["tests"]
    ]
    return [
        DataTable(caption="Models that were tried", columns=columns, rows=rungs),
        plain_table("Certificates that were asked for, in order", ["scope", "part", "model", "verdict", "p"], tests),
    ]
