"""``tracebridge completion``: what makes a shell complete verbs, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tracebridge.cli.console import emit, write
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import common

_PROGRAM = "tracebridge"
_VARIABLE = "_TRACEBRIDGE_COMPLETE"


@click.command(
    cls=Verb,
    epilog="\b\nExamples: a line for ~/.bashrc, one for ~/.zshrc (after compinit), one for fish\n"
    '  eval "$(tracebridge completion bash)"\n'
    '  eval "$(tracebridge completion zsh)"\n'
    "  tracebridge completion fish > ~/.config/fish/completions/tracebridge.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common
def completion(shell: str, as_json: bool, seed: int) -> None:  # noqa: ARG001
    """Print the script that makes SHELL complete verbs and options of tracebridge; bash takes 4.4 or newer."""
    from tracebridge.cli.app import app

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the three of the choice are click's own
    script = kind(app, {}, _PROGRAM, _VARIABLE).source()
    if as_json:
        emit({"schema_version": 1, "shell": shell, "script": script})
    else:
        write(script)
