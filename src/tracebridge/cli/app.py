"""The group of all verbs. A verb is loaded when it is called, so that help, version and completion answer at once."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from tracebridge.cli import shells  # noqa: F401 - says how shells complete
from tracebridge.version import __version__

_EPILOG = """\b
Exit codes:
  0    everything satisfied
  1    a property is violated, a chain is rejected, lint has findings
  2    the command line is wrong
  3    bad input
  4    undecided, or an engine failed
  5    nothing to check
  6    engines disagree, or a replay differs
  70   a fault of tracebridge
  130  interrupted
  141  the reader of the output left"""

#: What `tracebridge --help` lists, by what one wants to do: a verb, its module of `tracebridge.cli`, and a few words.
SECTIONS = {
    "From traces to verdicts": {
        "demo": ("assess", "Run the main job on a packaged corpus."),
        "assess": ("assess", "Traces and properties in; chain, verdicts, report out."),
    },
    "Traces": {
        "traces": ("traces", "Look at trace files, check them, convert them."),
        "trials": ("trials", "Estimate pass^k, that k trials of a task all succeed."),
        "compare": ("compare", "Compare two sets of runs: what differs, and where."),
        "audit": ("audit", "Audit stated confidence and a router that selects by it."),
    },
    "Chains and properties": {
        "fit": ("fit", "Fit a chain to traces and write it with its counts."),
        "certify": ("certify", "Test whether traces are runs of a Markov chain."),
        "show": ("show", "Show a chain: where runs end, how long they take."),
        "horizon": ("horizon", "Show how R(d) grows with the budget d."),
        "whatif": ("whatif", "Show what changing transitions would change."),
        "sample": ("sample", "Draw runs from a chain and write them as traces."),
        "props": ("props", "Check, rewrite and explain property files."),
        "check": ("check", "Check properties on a model with every engine."),
        "export": ("export", "Write a model and its properties for other tools."),
    },
    "Evidence": {
        "replay": ("replay", "Compute an evidence file again, number by number."),
        "diff": ("diff", "Show what changed from one evidence file to another."),
        "gate": ("gate", "Pass or stop an agent by its evidence, or against a baseline."),
        "report": ("report", "Write evidence as an HTML page."),
        "gsn": ("gsn", "Write evidence as a fragment of an assurance case."),
    },
    "Live runs": {
        "watch": ("watch", "Follow traces as they come: verdicts and drift."),
        "monitor": ("monitor", "Tell of live runs, step by step, how they may end."),
    },
    "Papers, and this program": {
        "study": ("study", "Re-run studies of the papers beside their figures."),
        "schema": ("meta", "Print the JSON Schema of a document."),
        "doctor": ("meta", "Tell which engines are there, and test each."),
        "completion": ("completion", "Print what makes a shell complete verbs and options."),
    },
}

#: Verb to its module and those words.
VERBS = {verb: told for verbs in SECTIONS.values() for verb, told in verbs.items()}

#: The verbs of groups, which are not loaded to know them.
SUB_VERBS = {
    "traces": ("convert", "endings", "formats", "summary", "validate"),
    "props": ("explain", "format", "labels", "lint"),
}


def _what_was_meant(word: str) -> str:
    """A verb or verb of a group that the word may stand for."""
    if near := get_close_matches(word, VERBS, n=1):
        return f"did you mean {near[0]}?"
    for group, verbs in SUB_VERBS.items():
        if word in verbs:
            return f"did you mean {group} {word}?"
    return "tracebridge --help lists them"


class _Verbs(click.Group):
    """The verbs of `VERBS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        verb: click.Command = getattr(import_module(f"tracebridge.cli.{VERBS[cmd_name][0]}"), cmd_name)
        return verb

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS and not args[0].startswith("-"):
            raise click.UsageError(f"there is no verb {args[0]!r}; {_what_was_meant(args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(f"there is no option {error.option_name} before the verb", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        longest = max(map(len, VERBS))
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(longest), about) for name, (_, about) in verbs.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        verbs = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)  # that of Group would load every verb
        return [CompletionItem(name, help=VERBS[name][1]) for name in verbs] + options


@click.group(
    cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=_EPILOG
)
@click.version_option(__version__, prog_name="tracebridge")
def app() -> None:
    """From agent traces to model-checked reliability.

    Give it traces and a property file; it gives back an absorbing Markov chain, the same chain as a PRISM file, and a
    verdict for every property from two engines that must agree. Start with `tracebridge demo`.
    """
