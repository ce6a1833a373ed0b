"""The group of all verbs."""

from __future__ import annotations

import click

from tracebridge.cli.assess import assess, demo
from tracebridge.cli.audit import audit
from tracebridge.cli.certify import certify
from tracebridge.cli.chain import fit, sample, show
from tracebridge.cli.check import check
from tracebridge.cli.compare import compare
from tracebridge.cli.export import export
from tracebridge.cli.horizon import horizon
from tracebridge.cli.meta import doctor, schema
from tracebridge.cli.props import props
from tracebridge.cli.study import study
from tracebridge.cli.traces import traces
from tracebridge.cli.trials import trials
from tracebridge.cli.whatif import whatif
from tracebridge.version import __version__

_EPILOG = """\b
Exit codes: 0 everything satisfied, 1 violated, a chain is rejected, or lint findings, 2 usage, 3 bad input, 4 undecided
or an engine failed, 5 nothing to check, 6 engines disagree, 70 internal error, 130 interrupted."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=_EPILOG)
@click.version_option(__version__, prog_name="tracebridge")
def app() -> None:
    """From agent traces to model-checked reliability.

    Give it traces and a property file; it gives back an absorbing Markov chain, the same chain as a PRISM file, and a
    verdict for every property from two engines that must agree. Start with `tracebridge demo`.
    """


for _verb in (
    demo,
    assess,
    traces,
    fit,
    certify,
    show,
    sample,
    export,
    props,
    check,
    whatif,
    horizon,
    compare,
    trials,
    audit,
    study,
    schema,
    doctor,
):
    app.add_command(_verb)
