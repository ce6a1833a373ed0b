"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracebridge.cli.completing import completing, known_formats
from tracebridge.cli.help_sections import of_every_verb, section
from tracebridge.cli.values import parse_pairs
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from tracebridge.chain import DeclaredSupport

#: A file or folder, which shells complete; what is wrong with it, its reader says.
PATH = click.Path(readable=False)

F = TypeVar("F", bound=Callable[..., Any])


@of_every_verb
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
        help="Seed of the random draws. A verb that draws nothing ignores it.",
    )(command)


@section("Reading traces")
def reading(command: F) -> F:
    """How trace files are read."""
    command = click.option(
        "--format",
        "trace_format",
        metavar="NAME",
        shell_complete=completing(known_formats),
        help="Read every file as this format instead of telling it by its content.",
    )(command)
    command = click.option(
        "--map",
        "mapping",
        multiple=True,
        metavar="FIELD=COLUMN,...",
        help="Column names of flat files, such as outcome=passed,step=action; FIELD=- says that there is none, and "
        "attributes.NAME=COLUMN makes a column the attribute NAME of its run.",
    )(command)
    command = click.option(
        "--outcomes",
        multiple=True,
        type=click.Path(exists=True),
        metavar="PATH",
        help="A file (JSON, JSON lines, CSV, a report of SWE-bench) or a folder of evaluation logs that says how runs "
        "ended whose traces do not; may be given several times.",
    )(command)
    command = click.option(
        "--endings",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help='A TOML file with a table [endings] of lines such as max_steps = "failure": what runs that ended for this '
        "reason without success count as (failure, censored or drop). `tracebridge traces endings` lists the reasons.",
    )(command)
    return click.option(
        "--skip-bad", is_flag=True, help="Count and skip bad records instead of stopping with the list of them."
    )(command)


def reading_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `reading` by the names that all take who read trace files; the format and ``skip_bad`` are not of them.

    Raises:
        UsageError: see `parse_pairs`.
    """
    mapping = parse_pairs(options["mapping"], "--map") or None
    return {"mapping": mapping, "outcomes": options["outcomes"], "endings": options["endings"]}


@section("States and counts")
def counting(command: F) -> F:
    """How runs are counted: which state each step belongs to, and what censored runs count as."""
    options = [
        click.option(
            "--states",
            "state_map",
            metavar="FILE",
            type=PATH,
            help="A TOML or JSON file of ordered rules that give each step its state; `tracebridge fit` records it.",
        ),
        click.option(
            "--text-features",
            type=click.FloatRange(min=0, min_open=True),
            metavar="WEIGHT",
            help="Cluster steps by what they say, too (hashed TF-IDF): with weight 1 unrelated texts differ as much as "
            "different names do, with 2 four times as much. Without it texts are not looked at.",
        ),
        click.option(
            "--k-max",
            type=click.IntRange(min=1),
            help="At most this many states of a corpus: if steps are of no more different kinds, each kind is a state; "
            "if they are of more, kinds are clustered. [default: 30, and 12 with --profile paper]",
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
            "--censored",
            type=click.Choice(["censored", "failure", "drop"]),
            default="censored",
            show_default=True,
            help="What a run without an observed end counts as.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@section("Estimation")
def fitting(command: F) -> F:
    """How a chain is fitted to traces: how runs are counted, and how chances follow from counts."""
    options = [
        click.option(
            "--prior",
            metavar="NAME|NUMBER",
            shell_complete=completing(lambda: ("mass-one", "jeffreys", "laplace", "none")),
            help="Pseudo-counts: mass-one (one in total a row), jeffreys (1/2 an entry), laplace (1), none, or a "
            "number an entry. [default: mass-one]",
        ),
        click.option(
            "--support",
            metavar="full|observed|FILE",
            shell_complete=completing(lambda: ("full", "observed"), or_a_file=True),
            help="Which transitions may have probability, besides those to both absorbers: all, those that were seen, "
            "or those of a declared graph: a TOML file with a table [successors] of lines such as "
            'plan = ["search", "answer"], or the same as JSON. '
            "[default: full]",
        ),
        click.option(
            "--start",
            "starts",
            multiple=True,
            metavar="observed|smoothed|STATE=SHARE,...",
            shell_complete=completing(lambda: ("observed", "smoothed")),
            help="Where runs start: as they were seen to, the same smoothed by the prior, or as given, in shares that "
            "sum to 1. [default: observed]",
        ),
        click.option(
            "--weight",
            metavar="ATTRIBUTE",
            help="The attribute of each run that is its relative weight; in flat files name its column with "
            "--map attributes.ATTRIBUTE=COLUMN.",
        ),
        click.option(
            "--profile",
            type=click.Choice(["paper"]),
            help="Fit as the paper does: one pseudo-count an entry, full support, at most 12 clusters.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return counting(command)


def fit_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of `fit_chain` from the options of `fitting`; those not given keep their defaults.

    Raises:
        UsageError: a support or a start that is none.
        ModelError: a declared graph that cannot be read.
    """
    names = {"k_max": "k_max", "min_count": "min_count", "top": "top", "prior": "prior", "censored": "policy"}
    names |= {"weight": "weight", "profile": "profile", "state_map": "states"}
    chosen = {name: options[key] for key, name in names.items() if options.get(key) is not None}
    if options.get("text_features") is not None:
        from tracebridge.states import TextFeatures

        chosen["text_features"] = TextFeatures(weight=options["text_features"])
    if options.get("support") is not None:
        chosen["support"] = _parse_support(options["support"])
    if options.get("starts"):
        chosen["start"] = _parse_start(options["starts"])
    return chosen


def given_fit_options() -> list[str]:
    """Those of the options of `fitting` that stand on the command line of the running verb."""
    context = click.get_current_context()
    known: list[click.Option] = getattr(fitting(lambda: None), "__click_params__")  # noqa: B009 - click's own attribute
    return [
        option.opts[0]
        for option in reversed(known)
        if option.name and context.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE
    ]


def _parse_support(text: str) -> str | DeclaredSupport:
    from tracebridge.chain import read_declared_support

    if text in ("full", "observed"):
        return text
    if not text or not Path(text).exists():
        raise UsageError(f"--support takes full, observed, or the file of a declared graph; there is no file {text!r}")
    return read_declared_support(text)


def _parse_start(texts: tuple[str, ...]) -> str | dict[str, str]:
    if len(texts) == 1 and "=" not in texts[0]:
        if texts[0] not in ("observed", "smoothed"):
            raise UsageError(
                f"--start takes observed, smoothed, or shares such as plan=1/2,search=1/2; not {texts[0]!r}"
            )
        return texts[0]
    return parse_pairs(texts, "--start")


@section("Engines")
def checking(command: F) -> F:
    """How properties are checked."""
    options = [
        click.option(
            "--engine",
            "engines",
            multiple=True,
            type=click.Choice(["closed-form", "storm", "prism"]),
            help="Use only this engine; may be given more than once. By default closed-form and storm, and prism where "
            "it is there.",
        ),
        prism_place,
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
            help="Time for one operator in Storm or PRISM. [default: 60, and 20 for their exact engines]",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def model_constants(command: F) -> F:
    """Values that a PRISM model needs."""
    return click.option(
        "--const",
        "constants",
        multiple=True,
        metavar="NAME=VALUE,...",
        help="Values of constants that a PRISM model leaves undefined.",
    )(command)


def interval_level(command: F) -> F:
    """The level of intervals."""
    return click.option(
        "--level",
        type=click.FloatRange(0.5, 1, max_open=True),
        default=0.95,
        show_default=True,
        help="Level of each interval by itself.",
    )(command)


@section("What the data leave open")
def judging(command: F) -> F:
    """How the data behind a fitted chain judge properties."""
    options = [
        click.option(
            "--draws",
            type=click.IntRange(0, 1_000_000),
            default=4_000,
            show_default=True,
            help="Draws from the posterior of a fitted chain: they give each number its interval and each property its "
            "share P(satisfied | data), and decide properties with '//@ credible'. 0 turns this off.",
        ),
        click.option(
            "--futures",
            type=click.IntRange(0, 100_000),
            default=40,
            show_default=True,
            help="For properties that the data leave undecided: further runs that are drawn, of each of several "
            "numbers, to tell how many would decide. 0 turns this off.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def in_a_folder(_context: click.Context, _parameter: click.Parameter, path: str | None) -> str | None:
    """The callback of an option: refuse at once what could not be written at the end."""
    if path is not None and path != "-":
        place = Path(path)
        if not path or place.is_dir():
            raise click.BadParameter(f"{path!r} is a folder; name a file" if path else "a file needs a name")
        if not place.parent.is_dir():
            raise click.BadParameter(f"{path!r} lies in {str(place.parent)!r}, and there is no such folder")
    return path


def output_file(told: str, default: str | None = None) -> Callable[[F], F]:
    """``-o FILE``, which must be given unless it has a default; ``told`` is its help."""
    return click.option(
        "-o",
        "--output",
        "output",
        **({"required": True} if default is None else {"default": default, "show_default": True}),
        callback=in_a_folder,
        metavar="FILE",
        type=PATH,
        help=told,
    )


#: Models whose states remember more, as a command line names them most often; parts are joined by +.
_MODELS = ("auto", "first-order", "order2", "dwell4", "clock", "phases:4", "classes:2")


def chain_model(told: str) -> Callable[[F], F]:
    """``--model``: what a state remembers; ``told`` is its help."""
    return click.option(
        "--model",
        "model",
        default="first-order",
        show_default=True,
        metavar="auto|NAME",
        shell_complete=completing(lambda: _MODELS),
        help=told,
    )


def prism_place(command: F) -> F:
    """Where PRISM is."""
    return click.option(
        "--prism",
        metavar="PATH",
        type=PATH,
        help="The executable of PRISM, or the folder that it was unpacked to. By default that of the environment "
        "variable TRACEBRIDGE_PRISM, or a prism on the PATH.",
    )(command)


def output(command: F) -> F:
    """``-o`` and ``--force``."""
    command = click.option(
        "-o",
        "--output",
        "output",
        type=PATH,
        metavar="FOLDER",
        required=True,
        help="Folder to write to; it is created.",
    )(command)
    return click.option("--force", is_flag=True, help="Write into a non-empty folder that tracebridge did not write.")(
        command
    )
