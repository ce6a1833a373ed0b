"""``tracebridge report``: an evidence file as a page for people."""

from __future__ import annotations

import click

from tracebridge.cli.console import emit
from tracebridge.cli.evidence_files import evidence_to_text, opened, write_result
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import common


@click.command(
    cls=Verb,
    epilog="\b\nExample: the report of an assessment, with the audit of its agents' confidence\n"
    "  tracebridge report out/evidence.json --audit audit/card.json -o report.html",
)
@evidence_to_text
@click.option(
    "--audit", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="A Trace-Audit Card to show beside."
)
@common
def report(evidence: str, output: str | None, audit: str | None, as_json: bool, seed: int) -> int:  # noqa: ARG001
    """Write EVIDENCE as one HTML file that needs no network and no script to be read.

    assess writes the same page as report.html. The same evidence gives the same file. What replay compares with the
    evidence is not written over: a page with an audit needs another name than that report.html.
    """
    from tracebridge.confidence.card import read_card
    from tracebridge.report.evidence_document import RENDERED
    from tracebridge.report.folder import require_unrecorded
    from tracebridge.report.html import render_html

    found, code = opened(evidence)
    if output is not None and output != "-":
        compared = [*found.document["files"], *([] if audit is None else [RENDERED])]
        require_unrecorded(output, evidence, compared)
    page = render_html(found, None if audit is None else read_card(audit).to_dict())
    write_result(page, output, as_json=as_json)
    if as_json:
        emit({"schema_version": 1, "digest": found.digest, "bytes": len(page.encode()), "output": output})
    return code
