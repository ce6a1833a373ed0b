"""The report of an assessment as one page."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from tracebridge.confidence.card import AuditCard
from tracebridge.confidence.card_fields import CARD_SCHEMA
from tracebridge.errors import InputError, ModelError
from tracebridge.report.card_markdown import card_markdown
from tracebridge.report.certificate import bare_p
from tracebridge.report.html.certificate_section import certificate_section
from tracebridge.report.html.corpus_facts import (
    corpus_facts,
    corpus_remarks,
    corpus_tables,
    outcome_bar,
    outcome_words,
)
from tracebridge.report.html.data_table import Cell, Column, DataTable, Tone
from tracebridge.report.html.ending_choice_table import ending_choice_remarks, ending_choice_table
from tracebridge.report.html.flow_graph import flow_graph
from tracebridge.report.html.folded_graph import folded, read_graph
from tracebridge.report.html.mark_meanings import mark_meanings
from tracebridge.report.html.markdown_fragment import markdown_html
from tracebridge.report.html.property_blocks import property_block
from tracebridge.report.html.reliability_figure import figure_table, reliability_drawing, reliability_table
from tracebridge.report.html.sensitivity_tables import MOST_RANKED, rankings
from tracebridge.report.html.state_diagram import state_diagram
from tracebridge.report.html.state_tables import edge_table, state_table
from tracebridge.report.html.transition_matrix import MOST_ROWS, shade_words, transition_matrix
from tracebridge.report.html.verdict_table import recorded_properties, told_reasons, verdict_counts, verdict_table
from tracebridge.report.markdown import printable
from tracebridge.report.repeated_trials import repeated_trials_markdown
from tracebridge.report.soundness import unsoundness
from tracebridge.report.table import NOTHING

if TYPE_CHECKING:
    from jinja2 import Environment

    from tracebridge.report.evidence import Evidence

_TEMPLATES = files("tracebridge.report.html") / "templates"

#: Text is cut after so many characters; all of it is in a title, up to as many as follow.
CUT_AT = 80
LONGEST_TITLE = 1_000

#: More properties are folded.
OPEN_BLOCKS = 12

#: After a sign between words; numbers such as 0.25 stay whole.
_BREAKS = re.compile(r"(?<=[^\W_]{2}[_/:.])(?=[^\W\d_])")

_EXIT_MEANING = {
    0: "every property is satisfied or answered",
    1: "a property is violated",
    4: "a property is undecided, an engine failed, or the chain is rejected",
    6: "engines disagree",
}
_MOST_NAMED, _MOST_FILES = 5, 200
_BY_COVARIATE = frozenset({"run-homogeneity", "task-independence"})
_RESULT_TONES: Mapping[str, Tone] = {"accept": "good", "reject": "bad"}


def render_html(evidence: Evidence, audit: Mapping[str, Any] | None = None) -> str:
    """The report: one self-contained HTML file, the same text for the same evidence.

    It loads nothing, and its Content-Security-Policy allows nothing but its own style and script, by their hashes.
    Names and texts from the input are shown literally, control characters as escapes.

    Args:
        evidence: what `assess` found. audit: the document of a Trace-Audit Card, for a page about confidence.

    Raises:
        ModelError: the evidence holds no fit, or no certificate that can be read. InputError: the audit is no card.
    """
    style, script = (_TEMPLATES.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            style=Markup(style),  # noqa: S704 - files of this package
            script=Markup(script),  # noqa: S704
            policy=_policy(style, script),
            **_context(evidence, audit),
        )
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tracebridge.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_literal,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cut"] = _cut
    return environment


def _literal(value: Any) -> Any:
    """Every text of a template's values on its way out: control characters made visible. Autoescape does the rest."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _cut(text: str, limit: int = CUT_AT) -> Markup:
    """A text of any length; a long one cut, with the whole of it for those who point at it."""
    if len(text) <= limit:
        return _breakable(text)
    whole = printable(text[:LONGEST_TITLE]) + ("…" if len(text) > LONGEST_TITLE else "")
    return Markup('<span class="cut" title="{}">{}…</span>').format(whole, _breakable(text[: limit - 1]))


def _breakable(text: str) -> Markup:
    """The text, which a line may break after the signs that part the words of an identifier."""
    return Markup("<wbr>").join(_BREAKS.split(printable(text)))


def _policy(style: str, script: str) -> str:
    """The Content-Security-Policy: nothing but this style and this script."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    style_hash, script_hash = hashes
    return (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; base-uri 'none'; "
        "form-action 'none'"
    )


def _context(evidence: Evidence, audit: Mapping[str, Any] | None) -> dict[str, Any]:
    document, results = evidence.document, evidence.results
    card = None if audit is None else _audit(audit)
    properties = recorded_properties(evidence)
    choices = results["ending_choices"]
    has_figures = "missing" not in results["figures"]
    graph, no_graph = None, ""
    try:
        graph = flow_graph(evidence.fit)
    except ModelError as error:
        no_graph = str(error)
    drawn = None if graph is None else read_graph(graph)
    ranked = rankings(evidence)
    return {
        "document": document,
        "unsound": unsoundness(evidence),
        "results": results,
        "marks": mark_meanings(results, properties),
        "counts": verdict_counts(properties),
        "n_properties": len(properties),
        "n_single": sum(each.found["agree"] is None for each in properties),
        "requirements": sum(each.requirement is not None for each in properties),
        "verdicts": verdict_table(properties),
        "reasons": told_reasons(properties),
        "engines": results["tool"]["engines"],
        "facts_of_corpus": list(corpus_facts(results)),
        "outcomes": outcome_words(results["corpus"]["outcomes"]),
        "outcome_bar": outcome_bar(results["corpus"]["outcomes"]),
        "corpus_tables": list(corpus_tables(results)),
        "corpus_remarks": corpus_remarks(results),
        "endings": None if choices is None else ending_choice_table(choices, [each.name for each in properties]),
        "ending_remarks": [] if choices is None else ending_choice_remarks(choices),
        "graph": graph,
        "no_graph": no_graph,
        "drawn": drawn,
        "diagram": None if drawn is None else state_diagram(drawn),
        "matrix": None if graph is None or graph is drawn else transition_matrix(folded(graph, MOST_ROWS)),
        "most_rows": MOST_ROWS,
        "shades": shade_words(),
        "states": None if graph is None else state_table(graph),
        "transitions": None if graph is None else edge_table(graph),
        "figures": figure_table(results) if has_figures else None,
        "curve": reliability_drawing(evidence.fit.chain, results) if has_figures else None,
        "curve_table": reliability_table(results) if has_figures else None,
        "trials": [markdown_html(each, caption="Repeated trials") for each in repeated_trials_markdown(evidence.fit)],
        "certificate": certificate_section(results),
        "rankings": ranked,
        "most_ranked": MOST_RANKED,
        "blocks": [property_block(each) for each in properties],
        "open_blocks": OPEN_BLOCKS,
        "audit": card,
        "assumptions": _assumptions(document["assumptions"], results),
        "exit_meaning": _EXIT_MEANING.get(results["exit_code"], "unknown here"),
        "traces": [_argument(each["name"]) for each in document["inputs"] if each["role"] == "traces"][:_MOST_NAMED],
        "inputs": _hashes("Inputs", [(each["name"], each["role"], each["sha256"]) for each in document["inputs"]]),
        "files": _hashes("Files beside the evidence", [(name, "", of) for name, of in document["files"].items()]),
        "versions": list(_versions(document)),
        "options": list(_options(document["command"]["options"])),
    }


def _argument(name: str) -> str:
    """The name of a file as a shell takes it, for a reader who copies the line."""
    return shlex.quote(name) if name.isprintable() and len(name) <= CUT_AT else "FILE"


def _assumptions(assumptions: Sequence[Mapping[str, Any]], results: Mapping[str, Any]) -> DataTable:
    columns = [
        Column("assumption", prose=True),
        Column("result"),
        Column("p", numeric=True),
        Column("tested by", prose=True),
        Column("because", prose=True),
    ]
    rows = [
        [
            Cell(each["statement"]),
            Cell(each["result"], tone=_RESULT_TONES.get(each["result"], "open")),
            Cell(_p_value(each, results["certificate"])),
            Cell(each["tested_by"] or "nothing"),
            Cell(each["reason"] or NOTHING),
        ]
        for each in assumptions
    ]
    return DataTable(caption="What every number rests on", columns=columns, rows=rows, stacks=True)


def _p_value(assumption: Mapping[str, Any], certificate: Mapping[str, Any]) -> str:
    """With ``<=`` where it is as small as the replicates of its test allow."""
    if assumption["p"] is None:
        return NOTHING
    p, least = float(assumption["p"]), None
    if assumption["id"] in _BY_COVARIATE:
        adjusted = {float(each["p_holm"]): float(each["p"]) for each in certificate["covariates"] if each["p_holm"]}
        least = adjusted.get(p)
    return bare_p(p, certificate["replicates"], least=least)


def _hashes(caption: str, files: Sequence[tuple[str, str, str]]) -> DataTable:
    has_roles = any(role for _, role, _ in files)
    columns = [Column("file"), *([Column("role")] if has_roles else []), Column("SHA-256")]
    rows = [[Cell(name), *([Cell(role)] if has_roles else []), Cell(of, code=True)] for name, role, of in files]
    return DataTable(caption=caption, columns=columns, rows=rows[:_MOST_FILES])


def _versions(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What computed the numbers."""
    tool = document["tool"]
    yield "tracebridge", tool["version"]
    yield "Python", f"{tool['python']} on {tool['platform']}"
    yield "engines", ", ".join(f"{name} {version}" for name, version in tool["engines"].items())
    yield "packages", ", ".join(f"{name} {version}" for name, version in tool["packages"].items())
    yield "seed", str(document["command"]["options"]["seed"])
    yield "digest", document["digest"]


def _audit(card: Mapping[str, Any]) -> Markup:
    if card.get("schema") != CARD_SCHEMA:
        raise InputError(f"the audit is no {CARD_SCHEMA} document")
    text = card_markdown(AuditCard(groups={name: fields for name, fields in card.items() if name != "schema"}))
    return markdown_html(text.partition("\n")[2], caption="Confidence audit", heading=2)


def _options(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The options of the command that are not None."""
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, Mapping):
            yield name, ", ".join(f"{key}={item}" for key, item in value.items())
        else:
            yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
