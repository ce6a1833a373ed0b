"""``tracebridge diff``: what changed from one evidence file to another."""

from __future__ import annotations

import re
from math import isnan
from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, print_table, say, write
from tracebridge.cli.evidence_files import opened
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, common, interval_level
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracebridge.report.evidence_diff import Change, EvidenceDiff, PropertyChange

_MOST_TRANSITIONS = 10
_MOST_NAMES = 10
_NOTHING = 1e-12
_HASH = re.compile("[0-9a-f]{64}")


@click.command(
    cls=Verb,
    epilog="\b\nExample: what a new version of the agent changed\n"
    "  tracebridge diff baseline/evidence.json out/evidence.json",
)
@click.argument("old", type=PATH, metavar="OLD")
@click.argument("new", type=PATH, metavar="NEW")
@interval_level
@common
def diff(old: str, new: str, level: float, as_json: bool, seed: int) -> int:  # noqa: ARG001 - seeds are recorded
    """Show what changed from one evidence.json to another: verdicts, numbers with intervals, the chain, the corpus.

    Properties are put together by requirement id, else by name, else by formula. The interval of a difference takes
    both corpora as independent samples.
    """
    from tracebridge.report.evidence_diff import compare_evidence

    (before, old_code), (after, new_code) = opened(old), opened(new)
    if before.digest == after.digest:
        say("note: both files have the same digest: intervals are of independent samples, and these are the same runs")
    found = compare_evidence(before, after, level=level)
    if as_json:
        emit(found.to_dict())
    else:
        _show(found)
    return max(old_code, new_code)


def _show(found: EvidenceDiff) -> None:
    for line in _headline(found):
        write(line)
    if found.properties:
        write("")
        columns = ["property", "verdict", "old", "new", f"difference, {found.level:.4g} interval", "P(new > old)"]
        print_table(columns, [_row(each) for each in found.properties])
        write("old, new and their difference are of the fitted chains; its interval is of their posteriors")
        for each in found.properties:
            if each.reason is not None:
                write(f"{each.key}: no difference, {each.reason}")
            elif not each.same_formula:
                write(f"{each.key}: it demands something else than before")
    for title, changes in (
        ("certificate", found.standings),
        ("corpus", found.corpus),
        ("options", found.options),
        ("inputs", found.inputs),
    ):
        if changes:
            write("")
            print_table([title, "old", "new"], [_change(each) for each in changes])
    if found.transitions:
        write("")
        print_table(
            ["transition", "old", "new", "difference", "standard error"],
            [
                [
                    f"{each.source} -> {each.target}",
                    f"{each.old:.4g}",
                    f"{each.new:.4g}",
                    f"{each.new - each.old:+.4g}",
                    "-" if each.error is None else f"{each.error:.2g}",
                ]
                for each in found.transitions[:_MOST_TRANSITIONS]
            ],
            title=f"{counted(found.transitions_changed, 'transition')} differ, the surest first",
        )


def _headline(found: EvidenceDiff) -> Iterator[str]:
    changed = [f"{each.key} ({_word(each.old)} -> {_word(each.new)})" for each in found.verdicts_changed]
    number = len(changed)
    first = "no property changed its verdict"
    if number:
        noun = "property" if number == 1 else "properties"
        first = f"{number} {noun} changed verdict: {_listed(changed)}"
    sure = [each.key for each in found.surely_changed]
    with_interval = sum(each.difference is not None for each in found.properties)
    told = f"the interval of the difference excludes zero for {len(sure)} of {with_interval} numbers"
    yield f"{first}; {told}" + (f" ({_listed(sure)}), each interval by itself" if sure else "")
    for names, what in (
        (found.properties_added, "only in the new file"),
        (found.properties_removed, "only in the old file"),
        (found.states_added, "new states"),
        (found.states_removed, "states that are gone"),
    ):
        if names:
            yield f"{what}: {_listed(names)}"


def _word(entry: Any) -> str:
    return str(entry["verdict"] or "answered")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


def _row(each: PropertyChange) -> list[str]:
    verdict = _word(each.new) if not each.verdict_changed else f"{_word(each.old)} -> {_word(each.new)}"
    difference = "-"
    if each.difference is not None:
        middle, ends = _signed(each.value_change), (each.difference.lower, each.difference.upper)
        difference = f"{middle} [{', '.join(map(_signed, ends))}]"
    return [each.key, verdict, _value(each.old_value), _value(each.new_value), difference, _share(each)]


def _signed(value: float | None) -> str:
    """A difference; what is left of zero by rounding is zero."""
    if value is None or isnan(value):
        return "-"
    return f"{0.0 if abs(value) < _NOTHING else value:+.4g}"


def _share(each: PropertyChange) -> str:
    """P(new > old) with no more certainty than the draws give."""
    share = each.probability_greater
    if share is None:
        return "-"
    least = 1 / max(each.draws, 1)
    if share < least:
        return f"< {least:.2g}"
    return f"> {1 - least:.6g}" if share > 1 - least else f"{share:.4g}"


def _value(value: float | None) -> str:
    from tracebridge.report.table import format_number

    return "-" if value is None else format_number(value, 6)


def _change(each: Change) -> list[str]:
    return [each.what, _shown(each.old), _shown(each.new)]


def _shown(value: Any) -> str:
    if isinstance(value, str) and _HASH.fullmatch(value):
        return f"{value[:12]}..."
    return "-" if value is None else str(value)
