"""The command line: thin verbs over the library. The only place that prints or exits."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code (see the README for the codes)."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    from tracebridge.errors import TracebridgeError

    try:
        return _dispatch(arguments)
    except KeyboardInterrupt:  # also while the packages are still being loaded
        sys.stderr.write("interrupted\n")
        return 130
    except TracebridgeError as error:
        from tracebridge.cli.console import say

        say(f"error: {error}")
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; nothing more to say
        return 141
    except OSError as error:
        sys.stderr.write(f"error: {error.filename or 'the output'} cannot be used: {error.strerror}\n")
        return 3
    except Exception as error:
        if os.environ.get("TRACEBRIDGE_DEBUG"):
            raise
        from tracebridge.cli.console import say

        say(f"internal error: {type(error).__name__}: {error}")
        say("This is a fault of tracebridge. Set TRACEBRIDGE_DEBUG=1 to see where.")
        return 70


def _dispatch(arguments: Sequence[str] | None) -> int:
    import click

    from tracebridge.cli.app import app
    from tracebridge.cli.console import clean

    try:
        code = int(app.main(args=arguments, prog_name="tracebridge", standalone_mode=False) or 0)
        sys.stdout.flush()
        return code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except SystemExit as stop:  # how click ends after completing words, and when the reader of a pipe has left
        return 141 if stop.code else 0
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except click.ClickException as error:
        told = io.StringIO()
        error.show(told)
        # It may quote an argument, such as the name of a file; click indents by tabs.
        sys.stderr.write(clean(told.getvalue().expandtabs(2)))
        return error.exit_code
