"""The table of the language: each construct, the engines that evaluate it, and the tools whose syntax has it."""

from __future__ import annotations

from tracebridge.checking.constructs import engine_support


def construct_markdown() -> str:
    """The table as GitHub-flavoured Markdown, one row a construct; see `engine_support` and `construct_table`."""
    lines = [
        "| construct | example | closed form | Storm engine | PRISM engine | PRISM's syntax | Storm's syntax |",
        "|---|---|---|---|---|---|---|",
    ]
    for support in engine_support():
        construct = support.tools.construct
        example = construct.example.replace("|", "\\|")
        cells = [
            construct.name,
            f"`{example}`",
            support.closed_form,
            support.storm,
            support.prism,
            support.tools.prism.syntax,
            support.tools.storm.syntax,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
