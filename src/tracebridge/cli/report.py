"""``tracebridge report``: an evidence file as a page for people."""

from __future__ import annotations

import click

from tracebridge.cli.console import emit, say, write
from tracebridge.cli.evidence_files import opened
from tracebridge.cli.gate_files import in_a_folder, write_text
from tracebridge.cli.options import common


@click.command(
    epilog="\b\nExample: the report of an assessment, with the audit of its agents' confidence\n"
    "  tracebridge report out/evidence.json --audit audit/card.json -o report.html"
)
@click.argument("evidence", type=click.Path())
@click.option("-o", "--output", callback=in_a_folder, metavar="FILE", help="File to write. [default: standard output]")
@click.option(
    "--audit", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="A Trace-Audit Card to show beside."
)
@common
def report(evidence: str, output: str | None, audit: str | None, as_json: bool, seed: int) -> int:  # noqa: ARG001
    """Write EVIDENCE as one HTML file that needs no network and no script to be read.

    assess writes the same page as report.html. The same evidence gives the same file.
    """
    from tracebridge.confidence.card import read_card
    from tracebridge.report.html import render_html

    found, code = opened(evidence)
    page = render_html(found, None if audit is None else read_card(audit).to_dict())
    written = output is not None and output != "-"
    if written:
        write_text(str(output), page)
    if as_json:
        emit({"schema_version": 1, "digest": found.digest, "bytes": len(page.encode()), "output": output})
    elif written:
        say(f"written to {output}")
    else:
        write(page)
    return code
