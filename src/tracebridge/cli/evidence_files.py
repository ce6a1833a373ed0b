"""Evidence files, and what is written of them, as verbs take them that compute nothing again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracebridge.cli.console import say, write
from tracebridge.cli.gate_files import write_text
from tracebridge.cli.options import PATH, in_a_folder

if TYPE_CHECKING:
    from tracebridge.report.evidence import Evidence

F = TypeVar("F", bound=Callable[..., Any])

#: The exit code for a record that does not fit what follows from it.
ALTERED = 6


def evidence_to_text(command: F) -> F:
    """The argument EVIDENCE, and ``-o`` for a text that is made of it; see `write_result`."""
    output = click.option(
        "-o",
        "--output",
        callback=in_a_folder,
        metavar="FILE",
        type=PATH,
        help="File to write. [default: standard output]",
    )
    return click.argument("evidence", type=PATH)(output(command))


def write_result(text: str, output: str | None, *, as_json: bool) -> None:
    """Write a text where ``-o`` says, or on standard output unless a JSON document goes there.

    Raises:
        InputError: the file cannot be written.
    """
    if output is not None and output != "-":
        write_text(output, text)
        if not as_json:
            say(f"written to {output}")
    elif not as_json:
        write(text)


def opened(path: str) -> tuple[Evidence, int]:
    """An evidence file and the exit code that it deserves: `ALTERED`, and a warning for each reason, if it is unsound.

    Raises:
        ModelError: it is no evidence file.
    """
    from tracebridge.report.evidence_reading import read_evidence
    from tracebridge.report.soundness import altered_files, unsoundness

    evidence = read_evidence(path)
    reasons = (*unsoundness(evidence), *altered_files(evidence))
    for reason in reasons:
        say(f"warning: {path}: {reason}; `tracebridge replay` tells more")
    return evidence, ALTERED if reasons else 0
