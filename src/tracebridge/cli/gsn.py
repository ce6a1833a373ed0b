"""``tracebridge gsn``: a fragment of an assurance case."""

from __future__ import annotations

from typing import Literal

import click

from tracebridge.cli.console import emit, say
from tracebridge.cli.evidence_files import evidence_to_text, opened, write_result
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import common


@click.command(
    cls=Verb,
    epilog="\b\nExamples: YAML for gsn2x, and a diagram that GitHub shows in Markdown\n"
    "  tracebridge gsn out/evidence.json -o agent.gsn.yaml\n"
    "  tracebridge gsn out/evidence.json --to mermaid",
)
@evidence_to_text
@click.option(
    "--to",
    "form",
    type=click.Choice(["yaml", "mermaid"]),
    default="yaml",
    show_default=True,
    help="The YAML that gsn2x reads, or a Mermaid flowchart.",
)
@common
def gsn(evidence: str, form: Literal["yaml", "mermaid"], output: str | None, as_json: bool, seed: int) -> int:  # noqa: ARG001
    """Write EVIDENCE as a fragment of an assurance case in the Goal Structuring Notation.

    Each property with a verdict is a goal. It has a solution only if it is satisfied, two engines agree, and the
    certificate does not reject the chain for it; otherwise it is undeveloped and says why.
    """
    from tracebridge.report.gsn import elements, gsn_text

    sound, code = opened(evidence)
    if code:
        say("no assurance case is made of it")
        return code
    found = elements(sound)
    text = gsn_text(found, form)
    undeveloped = [element.name for element in found if element.undeveloped]
    if as_json:
        emit({"schema_version": 1, "form": form, "undeveloped": undeveloped, "text": text})
    write_result(text, output, as_json=as_json)
    if undeveloped:
        say(f"not supported by this evidence: {', '.join(undeveloped)}")
    return 0
