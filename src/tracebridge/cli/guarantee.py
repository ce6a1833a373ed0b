"""The option ``--robust`` and its table: what holds for all chains that the counts do not exclude."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracebridge.cli.console import print_table, say, write
from tracebridge.cli.help_sections import section

if TYPE_CHECKING:
    from tracebridge.report import PropertyFinding

F = TypeVar("F", bound=Callable[..., Any])


@section("What the data leave open")
def guaranteeing(command: F) -> F:
    """``--robust LEVEL``."""
    return click.option(
        "--robust",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="LEVEL",
        help="Also give each property its extremes over all chains whose transition probabilities lie in their "
        "confidence intervals, all at once at this level, such as 0.95: a guarantee without a prior, and much wider "
        "than the posterior interval beside it.",
    )(command)


def print_guarantees(findings: Sequence[PropertyFinding]) -> None:
    """The table on standard output, and why there is no guarantee on standard error; nothing if none was asked for."""
    from tracebridge.report.guarantee import (
        COLUMNS,
        guarantee_heading,
        guarantee_rows,
        has_guarantees,
        missing_guarantees,
    )

    if not has_guarantees(findings):
        return
    if any(each.guarantee is not None and each.guarantee.reason is None for each in findings):
        write("")
        write(guarantee_heading(findings))
        print_table(list(COLUMNS), guarantee_rows(findings))
    for name, reason in missing_guarantees(findings):
        say(f"{name}: {reason}")
