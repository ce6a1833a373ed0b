"""Options that several verbs share."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

import click

from tracebridge.errors import UsageError

# Fraction("1e999999999") would try to build the number; what a property author means is shorter.
_NUMBER = re.compile(r"[+-]?(\d{1,300}(/\d{1,300})?|(\d{1,300}\.?|\d{0,300}\.\d{1,300})([eE][+-]?\d{1,3})?)")

F = TypeVar("F", bound=Callable[..., Any])


def common(command: F) -> F:
    """``--json`` and ``--seed``, which every verb takes."""
    command = click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Write one JSON document to standard output; everything else goes to standard error.",
    )(command)
    return click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Seed of every random draw; verbs without one ignore it.",
    )(command)


def reading(command: F) -> F:
    """How trace files are read."""
    command = click.option(
        "--format",
        "trace_format",
        metavar="NAME",
        help="Read every file as this format instead of telling it by its content.",
    )(command)
    command = click.option(
        "--map",
        "mapping",
        multiple=True,
        metavar="FIELD=COLUMN,...",
        help="Column names of flat files, such as outcome=passed,step=action; FIELD=- says that there is none.",
    )(command)
    return click.option(
        "--skip-bad", is_flag=True, help="Count and skip bad records instead of stopping with the list of them."
    )(command)


def fitting(command: F) -> F:
    """How a chain is fitted to traces."""
    options = [
        click.option(
            "--k-max",
            type=click.IntRange(min=1),
            help="Up to this many distinct step vectors are states; more are clustered into at most as many. "
            "[default: 30, and 12 with --profile paper]",
        ),
        click.option(
            "--min-count",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="States seen in fewer steps than this fold into the state 'other'.",
        ),
        click.option(
            "--top",
            type=click.IntRange(min=1),
            help="Keep only this many most frequent states; the rest fold into 'other'.",
        ),
        click.option(
            "--prior",
            metavar="NAME|NUMBER",
            help="Pseudo-counts: mass-one (one in total a row), jeffreys (1/2 an entry), laplace (1), none, or a "
            "number an entry. [default: mass-one]",
        ),
        click.option(
            "--support",
            type=click.Choice(["full", "observed"]),
            help="Which transitions may have probability: all, or those that were seen (and both absorbers). "
            "[default: full]",
        ),
        click.option(
            "--censored",
            type=click.Choice(["censored", "failure", "drop"]),
            default="censored",
            show_default=True,
            help="What a run without an observed end counts as.",
        ),
        click.option(
            "--profile",
            type=click.Choice(["paper"]),
            help="Fit as the paper does: one pseudo-count an entry, full support, at most 12 clusters.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def checking(command: F) -> F:
    """How properties are checked."""
    options = [
        click.option(
            "--engine",
            "engines",
            multiple=True,
            type=click.Choice(["closed-form", "storm"]),
            help="Use only this engine; may be given more than once. Both by default.",
        ),
        click.option("--exact", is_flag=True, help="Work in rationals; the engines must then be equal."),
        click.option(
            "--const",
            "constants",
            multiple=True,
            metavar="NAME=VALUE,...",
            help="Values of constants of the property file; with check also ranges, such as d=1:50 or p=0.1:0.2:0.9.",
        ),
        click.option(
            "--time-limit",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="Time for one operator in Storm. [default: 60, and 20 for its exact engine]",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def output(command: F) -> F:
    """``-o`` and ``--force``."""
    command = click.option(
        "-o", "--output", "output", type=click.Path(), required=True, help="Folder to write to; it is created."
    )(command)
    return click.option("--force", is_flag=True, help="Write into a non-empty folder that tracebridge did not write.")(
        command
    )


def parse_pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """``a=b,c=d`` pairs of a repeatable option.

    Raises:
        UsageError: a part without ``=``, or a name given twice.
    """
    pairs: dict[str, str] = {}
    for part in (part.strip() for text in texts for part in text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise UsageError(f"{option} takes NAME=VALUE, not {part!r}")
        if name in pairs:
            raise UsageError(f"{option} gives {name!r} twice")
        pairs[name] = value
    return pairs


def parse_constants(texts: tuple[str, ...]) -> dict[str, Fraction | bool]:
    """Values of constants: integers, decimals, fractions, true and false.

    Raises:
        UsageError: a value that is none of these.
    """
    values: dict[str, Fraction | bool] = {}
    for name, text in parse_pairs(texts, "--const").items():
        if text in {"true", "false"}:
            values[name] = text == "true"
            continue
        try:
            values[name] = Fraction(text if _NUMBER.fullmatch(text) else "no number")
        except (ValueError, ZeroDivisionError):
            raise UsageError(f"--const {name}={text}: {text!r} is no number, true or false") from None
    return values
