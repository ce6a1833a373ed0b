"""``tracebridge watch``: a stream of runs, its verdicts and its drift, as they change."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracebridge.cli.completing import completing, known_formats
from tracebridge.cli.console import progress_line, say, write
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, common, in_a_folder
from tracebridge.cli.values import parse_constants, parse_pairs
from tracebridge.errors import UsageError
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.watching import Event, Watcher

F = TypeVar("F", bound=Callable[..., Any])

_PROPERTY_SUFFIXES = frozenset({".props", ".pctl", ".csl"})


def _number_of_runs(name: str, default: int, told: str, *, least: int = 1) -> Callable[[F], F]:
    kind = click.IntRange(min=least)
    return click.option(name, type=kind, default=default, show_default=True, metavar="RUNS", help=told)


@click.command(
    cls=Verb,
    epilog="\b\nExamples: follow a folder, old runs counting ever less; look once, from cron\n"
    "  tracebridge watch runs/ reliability.props --baseline chain.json --forget 500\n"
    "  tracebridge watch runs.jsonl my.props --once --state watch.json",
)
@click.argument("paths", nargs=-1, required=True, metavar="STREAM... [PROPERTIES]", type=PATH)
@click.option(
    "--baseline",
    metavar="CHAIN",
    type=PATH,
    help="A chain.json: its states and fitting options are used, and new runs are compared with its counts: alarms for "
    "drift and for steps that it does not have.",
)
@click.option(
    "--forget",
    type=click.FloatRange(min=1),
    metavar="RUNS",
    help="Half-life: a run that so many runs came after counts half. Intervals are those of the effective number of "
    "runs. [default: every run counts alike]",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    help="Largest probability that the drift alarm over all runs is ever false, however long the stream.",
)
@click.option(
    "--run-length",
    type=click.FloatRange(min=1),
    default=10_000,
    show_default=True,
    metavar="RUNS",
    help="Least mean number of runs between two false alarms of the drift alarm over recent runs.",
)
@_number_of_runs(
    "--every", 100, "Check after so many further runs; without --forget, also not before there are one per cent more."
)
@_number_of_runs(
    "--certify-every", 1_000, "Certify after so many further runs, and at the end with --once; 0 for never.", least=0
)
@_number_of_runs("--window", 1_000, "A certificate is about the last runs, so many.")
@click.option(
    "--once",
    is_flag=True,
    help="Read what is there, tell what changed, and exit with the worst verdict, and with 1 after an alarm.",
)
@click.option(
    "--state",
    "state",
    callback=in_a_folder,
    metavar="FILE",
    type=PATH,
    help="Go on from this file if it is there, and keep it up to date.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.01),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks.",
)
@click.option(
    "--engine",
    "engines",
    multiple=True,
    type=click.Choice(["closed-form", "storm", "prism"]),
    help="Check with this engine only; may be given more than once. [default: closed-form and storm]",
)
@click.option(
    "--draws",
    type=click.IntRange(1, 1_000_000),
    default=4_000,
    show_default=True,
    help="Draws of the posterior for intervals.",
)
@click.option(
    "--const", "constants", multiple=True, metavar="NAME=VALUE,...", help="Values of constants of the property file."
)
@click.option(
    "--format",
    "trace_format",
    metavar="NAME",
    shell_complete=completing(known_formats),
    help="Read every file as this format instead of telling it by its content.",
)
@click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="FIELD=COLUMN,...",
    help="Column names of flat files, such as outcome=passed,step=action.",
)
@common
def watch(
    paths: tuple[str, ...],
    baseline: str | None,
    forget: float | None,
    alpha: float,
    run_length: float,
    every: int,
    certify_every: int,
    window: int,
    once: bool,
    state: str | None,
    interval: float,
    engines: tuple[str, ...],
    draws: int,
    constants: tuple[str, ...],
    trace_format: str | None,
    mapping: tuple[str, ...],
    as_json: bool,
    seed: int,
) -> int:
    """Follow trace files as they grow, and tell which verdicts change and whether runs drift from a baseline.

    Plain native JSON Lines are read line by line as they are written; all other files are read once, when they have
    stayed the same from one look to the next, and what is added to them later is not read. A folder is looked into for
    new files. Lines that are no run are reported and passed over. With --json each event is one line of JSON; with
    --once, and when it is interrupted between two looks (Ctrl-C or SIGTERM), the last line is the state of the stream.

    A drift alarm says that runs changed: other tasks and other behaviour on the same tasks look alike. Its rates are
    those of independent runs of a first-order chain.
    """
    from tracebridge.checking.run import DEFAULT_ENGINES
    from tracebridge.watching import Watcher, WatchOptions

    streams, properties = _told_apart(paths)
    options = WatchOptions(
        every=every,
        forget=forget,
        alpha=alpha,
        run_length=run_length,
        certify_every=certify_every,
        window=window,
        draws=draws,
        engines=engines or DEFAULT_ENGINES,
        seed=seed,
        constants=parse_constants(constants),
    )
    reading = {"format": trace_format, "mapping": parse_pairs(mapping, "--map") or None}
    watcher = Watcher(streams, properties, baseline=baseline, options=options, reading=reading)
    if state is not None and Path(state).exists():
        watcher.resume(state)
    with _terminated_as_interrupted(), progress_line() as progress:
        while True:
            runs, told = watcher.runs, False
            for event in watcher.look(last=once, progress=progress):
                _show(event, as_json=as_json)
                told = True
            if state is not None and (once or told or watcher.runs != runs):
                watcher.save(state)
            if once:
                break
            progress(_status_line(watcher))
            try:
                time.sleep(interval)
            except KeyboardInterrupt:  # whoever stops it, by Ctrl-C or SIGTERM, is told how it stands
                _show_status(watcher, as_json=as_json)
                raise
    _show_status(watcher, as_json=as_json)
    return watcher.exit_code


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Take SIGTERM, by which services are stopped, as Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():  # signals are for that one
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _told_apart(paths: tuple[str, ...]) -> tuple[list[str], str | None]:
    """The streams, and the property file if there is one."""
    properties = [path for path in paths if Path(path).suffix in _PROPERTY_SUFFIXES]
    if len(properties) > 1:
        raise UsageError(f"one property file is watched, not {len(properties)}: {', '.join(properties)}")
    streams = [path for path in paths if path not in properties]
    if not streams:
        raise UsageError("watch needs a trace file or a folder beside the property file")
    return streams, properties[0] if properties else None


def _show(event: Event, *, as_json: bool) -> None:
    if as_json:
        _write_line(event.to_dict())
    elif event.kind in ("file", "problem"):
        say(f"{event.kind}: {event.text}")
    else:
        mark = "ALARM " if event.is_alarm else ""
        write(f"run {event.run}: {mark}{event.text}")


def _show_status(watcher: Watcher, *, as_json: bool) -> None:
    if as_json:
        _write_line({"event": "status", "run": watcher.runs, **watcher.status(), "exit_code": watcher.exit_code})
    else:
        say(_status_line(watcher))


def _write_line(document: dict[str, Any]) -> None:
    click.echo(json.dumps(document, allow_nan=False))


def _status_line(watcher: Watcher) -> str:
    effective = watcher.effective_runs
    parts = [counted(watcher.runs, "run")]
    if watcher.options.forget is not None and effective is not None and round(effective) != watcher.runs:
        parts[0] += f" ({effective:.0f} effective)"
    parts += [f"{name} {verdict}" for name, verdict in watcher.verdicts.items() if verdict != "answered"]
    status = watcher.status()
    if status["certificate"] is not None:
        parts.append(f"certificate {status['certificate']}")
    parts.append(counted(status["alarms"], "alarm"))
    if status["problems"]:
        parts.append(counted(status["problems"], "problem"))
    return ", ".join(parts)
