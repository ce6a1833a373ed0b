"""``tracebridge monitor``: steps of live runs in, readings out, a line of JSON each."""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import click
import msgspec

from tracebridge.cli.console import say
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, common, interval_level
from tracebridge.cli.values import parse_constants
from tracebridge.errors import TracebridgeError, UsageError
from tracebridge.traces.json_text import JsonTextError, decode_strictly
from tracebridge.traces.model import Identifier, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.inference.online.monitor import RuntimeMonitor
    from tracebridge.inference.online.monitored_run import MonitoredRun

_MAX_LINE_BYTES = 16 << 20


_Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    run: Identifier | _Number
    step: Step | None = None
    end: str | None = None


@click.command(
    cls=Verb,
    epilog="\b\nExample: a program that writes its steps to a pipe\n"
    "  my_agent --steps-as-json | tracebridge monitor chain.json my.props\n\n"
    "\b\nA line of input, and one that ends the run:\n"
    '  {"run": "17", "step": {"name": "search", "error": true}}\n'
    '  {"run": "17", "end": "success"}',
)
@click.argument("chain", type=PATH)
@click.argument("properties", required=False, type=PATH)
@click.option(
    "--const", "constants", multiple=True, metavar="NAME=VALUE,...", help="Values of constants of the property file."
)
@click.option(
    "--draws",
    type=click.IntRange(0, 1_000_000),
    default=4_000,
    show_default=True,
    help="Draws of the posterior behind the intervals; 0 for none.",
)
@click.option(
    "--max-runs",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="At most so many runs are open. When one more begins, the one without news for longest is dropped, and a line "
    "says so; a later step of it would begin a new run.",
)
@interval_level
@common
def monitor(
    chain: str,
    properties: str | None,
    constants: tuple[str, ...],
    draws: int,
    max_runs: int,
    level: float,
    as_json: bool,  # noqa: ARG001 - there is no other output
    seed: int,
) -> int:
    """Read steps of live runs from standard input and write what each says about the end of its run.

    CHAIN is a chain.json. After each step come the probability of success, the expected number of further steps, and
    for each property of the PROPERTIES file the conditional probability of its path formula given the steps so far, or
    the reward so far plus what is expected, with posterior intervals where the chain is of first order. Also the
    log-likelihood of the run so far, the share of the chain's runs that after as many steps are at most as likely, and
    the transitions and steps that the corpus never had. A run is named by a text or an integer, which are answered
    alike.

    Properties must be one P of X, U, F, G, W or R with step bounds, or one R of F, C or I=k; the others are left out,
    and standard error says why. A line that cannot be used is answered by one with its number and the error, and the
    exit code is 3 at the end.
    """
    from pathlib import Path

    from tracebridge.checking.models import read_model
    from tracebridge.inference.online.monitor import runtime_monitor
    from tracebridge.report.recorded import recorded_standings

    if "-" in (chain, properties):
        raise UsageError("standard input is for the steps of runs; give CHAIN and PROPERTIES as files")
    fit = read_model(chain).fitted
    if fit is None:
        raise UsageError(f"{chain} is no fitted chain: a monitor needs the counts and states of a chain.json")
    recorded = recorded_standings(chain)
    standings = None if recorded is None else recorded.standings
    tables = runtime_monitor(
        fit,
        None if properties is None else Path(properties),
        constants=parse_constants(constants),
        draws=draws,
        seed=seed,
        level=level,
        standing=None if standings is None else standings["path"],
    )
    for name, reason in tables.refused.items():
        say(f"note: {name} is not monitored: {reason}")
    return _Runs(tables, max_runs).follow(sys.stdin.buffer)


class _Runs:
    """The open runs, the one without news for longest first."""

    def __init__(self, tables: RuntimeMonitor, most: int) -> None:
        self._tables = tables
        self._most = most
        self._open: OrderedDict[str, MonitoredRun] = OrderedDict()

    def follow(self, stream: BinaryIO) -> int:
        """Answer every line; the exit code is 3 if some could not be used."""
        code = 0
        for number, line in enumerate(_lines(stream), 1):
            if line.isspace():
                continue
            try:
                self._answer(number, line)
            except (msgspec.MsgspecError, JsonTextError, TracebridgeError) as error:
                code = 3
                _write({"line": number, "error": str(error)})
        return code

    def _answer(self, number: int, line: bytes) -> None:
        if len(line) > _MAX_LINE_BYTES:
            raise UsageError(f"the line is longer than {_MAX_LINE_BYTES >> 20} MiB")
        message = msgspec.convert(decode_strictly(line), _Message)
        name = str(message.run)
        if (message.step is None) == (message.end is None):
            raise UsageError("a line has either a step or an end")
        run = self._open.get(name)
        if run is None:
            if message.end is not None:
                raise UsageError(f"no run {name!r} is open: it had no step yet, has ended, or was dropped")
            if len(self._open) >= self._most:
                dropped, _ = self._open.popitem(last=False)
                _write({"line": number, "run": dropped, "dropped": f"more than {self._most} runs are open"})
            run = self._open[name] = self._tables.start()
        self._open.move_to_end(name)
        try:
            reading = run.step(message.step) if message.step is not None else run.end(message.end or "")
        except TracebridgeError:
            if run.is_new:
                del self._open[name]
            raise
        if message.end is not None:
            del self._open[name]
        _write({"line": number, "run": name, **reading.to_dict()})


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines; one that is too long is cut one byte beyond the limit."""
    while line := stream.readline(_MAX_LINE_BYTES + 1):
        rest = line
        while len(rest) > _MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = stream.readline(_MAX_LINE_BYTES + 1)
        yield line


def _write(document: dict[str, Any]) -> None:
    click.echo(json.dumps(document, allow_nan=False))
