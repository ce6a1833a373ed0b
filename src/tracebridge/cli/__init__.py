"""The command line: thin verbs over the library. The only place that prints or exits."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code (see the README for the codes)."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    import click

    from tracebridge.cli.app import app
    from tracebridge.cli.console import say
    from tracebridge.errors import TracebridgeError

    try:
        code = app.main(args=arguments, prog_name="tracebridge", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        say("interrupted")
        return 130
    except TracebridgeError as error:
        say(f"error: {error}")
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; nothing more to say
        return 0
    except Exception as error:
        if os.environ.get("TRACEBRIDGE_DEBUG"):
            raise
        say(f"internal error: {type(error).__name__}: {error}")
        say("This is a fault of tracebridge. Set TRACEBRIDGE_DEBUG=1 to see where.")
        return 70
    return int(code or 0)
