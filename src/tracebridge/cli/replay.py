"""``tracebridge replay``: an evidence file computed again, number by number."""

from __future__ import annotations

import json
import re
from math import isnan
from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, progress_line, say, write
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, common, prism_place
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.report.replay import Difference, Replay

_LONGEST = 80
_HASH = re.compile("[0-9a-f]{64}")
_MOST_DIFFERENCES = 50


@click.command(
    cls=Verb,
    epilog="\b\nExamples: from the counts in the evidence; from the traces, too\n"
    "  tracebridge replay out/evidence.json\n"
    "  tracebridge replay out/evidence.json --traces runs/",
)
@click.argument("evidence", type=PATH, metavar="EVIDENCE")
@click.option(
    "--traces",
    "traces",
    multiple=True,
    type=PATH,
    metavar="PATH",
    help="The traces that it was made of; may be given more than once. Without them, what only the runs can tell "
    "(certificate, bootstrap, observed curve) is not computed again.",
)
@click.option(
    "--outcomes",
    multiple=True,
    type=click.Path(exists=True),
    metavar="PATH",
    help="What was given as --outcomes to assess, with the traces.",
)
@click.option(
    "--endings",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="What was given as --endings to assess, with the traces.",
)
@prism_place
@common
def replay(
    evidence: str,
    traces: tuple[str, ...],
    outcomes: tuple[str, ...],
    endings: str | None,
    prism: str | None,
    as_json: bool,
    seed: int,  # noqa: ARG001 - the seed is that of the record
) -> int:
    """Check an evidence.json and compute it again from the counts that it records, and from the traces if given.

    Says first whether it is as recorded, then what differs and by how much, then what was not computed again and why.
    The exit code is 6 if anything differs, and 3 if the file is no evidence.
    """
    from tracebridge.pipeline import replay as run_replay

    with progress_line() as progress:
        found = run_replay(
            evidence,
            traces or None,
            outcomes=outcomes or None,
            endings=endings,
            prism=prism,
            progress=progress,
        )
    if as_json:
        emit(found.to_dict())
    else:
        _show(found)
    return found.exit_code


def _show(found: Replay) -> None:
    write(found.verdict)
    write(f"digest {found.digest}; {counted(found.files, 'file')} beside it as recorded")
    if found.rounded:
        write(f"{counted(found.rounded, 'value')} differ by rounding, {found.largest:.2g} at most")
    if found.allowed:
        write(f"{counted(found.allowed, 'value')} differ by no more than other versions may")
    for name, (recorded, here) in found.versions.items():
        say(f"note: {name} {recorded} computed the record, {here} is here")
    for note in found.notes:
        say(f"note: {note}")
    if found.differences:
        write("")
        write("what differs:")
        numbers_first = sorted(found.differences, key=lambda each: each.kind != "recomputed")
        for each in numbers_first[:_MOST_DIFFERENCES]:
            write(f"  {_line(each)}")
        if len(found.differences) > _MOST_DIFFERENCES:
            write(f"  and {len(found.differences) - _MOST_DIFFERENCES:,} more; --json lists all")
    if found.not_recomputed:
        write("")
        write("not computed again:")
        for line in _gaps(found):
            write(f"  {line}")


def _line(each: Difference) -> str:
    """Where, what is wrong, what was recorded, what was found, and how far that is off."""
    parts = [] if each.message is None else [each.message.splitlines()[0]]
    if each.message is None:
        parts.append(f"recorded {_shown(each.recorded)}, found {_shown(each.found)}")
    elif each.recorded is not None:
        parts.append(
            f"recorded {_shown(each.recorded)}" + ("" if each.found is None else f", found {_shown(each.found)}")
        )
    if each.amount is not None and not isnan(each.amount):
        parts.append(f"{each.amount:+.6g}")
    return f"{each.path}: {'; '.join(parts)}"


def _shown(value: Any) -> str:
    if isinstance(value, str) and _HASH.fullmatch(value):
        return f"{value[:12]}..."
    text = json.dumps(value) if isinstance(value, dict | list | bool) or value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _gaps(found: Replay) -> Iterator[str]:
    """Which parts of the document, with how many values each, and why not."""
    by_reason: dict[str, dict[str, int]] = {}
    for each in found.not_recomputed:
        part = ".".join(each.path.split("[")[0].split(".")[:2]) or "the document"
        parts = by_reason.setdefault(each.reason, {})
        parts[part] = parts.get(part, 0) + each.values
    for reason, parts in by_reason.items():
        listed = ", ".join(f"{part} ({values:,})" for part, values in parts.items())
        yield f"{listed}: {reason}"
