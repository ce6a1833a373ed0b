"""``tracebridge sample``: runs drawn from a chain, as traces."""

from __future__ import annotations

import click

from tracebridge.cli.console import emit, say
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, common, model_constants, output_file
from tracebridge.cli.show_decision import scheduled_chain
from tracebridge.cli.values import parse_constants


@click.command(
    cls=Verb,
    epilog="\b\nExamples: runs of a chain; of a decision process whose choices make success likely\n"
    "  tracebridge sample chain.json -n 1000 -o drawn.jsonl\n"
    "  tracebridge sample router.prism -n 1000 --scheduler max:success -o drawn.jsonl",
)
@click.argument("model", type=PATH)
@click.option("-n", "n_runs", type=click.IntRange(1, 10_000_000), default=10, show_default=True, help="How many runs.")
@click.option(
    "--max-steps",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Cut runs at this length; they are censored.",
)
@click.option(
    "--trials",
    type=click.IntRange(1, 10_000_000),
    default=1,
    show_default=True,
    help="Runs of each task. In a chain with classes of tasks those of one task share its class.",
)
@click.option(
    "--scheduler",
    "scheduler",
    metavar="NAME",
    help="Of a decision process, how it chooses: uniform (at random), or max:LABEL or min:LABEL (so that the label is "
    "most, or least, likely to be reached). [default: uniform]",
)
@output_file("Native JSON lines.", default="-")
@model_constants
@common
def sample(
    model: str,
    n_runs: int,
    max_steps: int,
    trials: int,
    scheduler: str | None,
    output: str,
    constants: tuple[str, ...],
    as_json: bool,
    seed: int,
) -> None:
    """Draw runs from a chain and write them as traces (with --json as one document).

    MODEL is a chain.json, a PRISM program, or a file that export writes. Runs name their task if the chain has classes
    of tasks, or with --trials.
    """
    from msgspec import to_builtins

    from tracebridge.chain import sample_traces
    from tracebridge.chain.decision import DecisionProcess
    from tracebridge.checking.models import read_model
    from tracebridge.traces import write_traces

    read = read_model(model, constants=parse_constants(constants))
    if isinstance(read.described, DecisionProcess):
        if scheduler is None:
            say("note: a decision process has choices to make; they are made uniformly at random (--scheduler)")
        chain = scheduled_chain(read.described, scheduler or "uniform")
    elif scheduler is not None:
        raise click.UsageError("--scheduler is for decision processes: a chain leaves nothing to choose")
    else:
        chain = read.chain
    runs = sample_traces(chain, n_runs, seed=seed, max_steps=max_steps, trials=trials)
    if output != "-" or not as_json:
        write_traces(runs, output)
    if as_json:
        shown = {"traces": [to_builtins(run) for run in runs]} if output == "-" else {"output": output}
        emit({"schema_version": 1, "n_runs": n_runs, "seed": seed, **shown})
