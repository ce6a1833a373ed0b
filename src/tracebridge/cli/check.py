"""``tracebridge check``: properties on any model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracebridge.cli.console import emit, progress_line
from tracebridge.cli.options import checking, common, parse_constants
from tracebridge.cli.verdicts import print_verdicts
from tracebridge.version import __version__


@click.command()
@click.argument("model")
@click.argument("properties")
@checking
@common
def check(
    model: str,
    properties: str,
    engines: tuple[str, ...],
    exact: bool,
    constants: tuple[str, ...],
    time_limit: float | None,
    as_json: bool,
    seed: int,  # noqa: ARG001
) -> int:
    """Check the PROPERTIES file on MODEL with both engines and compare them.

    MODEL is a chain.json or a PRISM file. --const gives values to constants of the property file, and to undefined
    constants of a PRISM model.
    """
    from tracebridge.agreement import compare, worst_exit_code
    from tracebridge.checking import ENGINE_NAMES, iter_check
    from tracebridge.checking.models import model_for, read_model
    from tracebridge.pctl import read_properties
    from tracebridge.pipeline import engine_version

    if model == properties == "-":
        raise click.UsageError("only one of MODEL and PROPERTIES can be standard input")
    names: tuple[Any, ...] = engines or tuple(ENGINE_NAMES)
    file = read_properties(Path(properties) if properties != "-" else "-")
    values = parse_constants(constants)
    declared = {constant.name for constant in file.constants}
    for_model = {name: value for name, value in values.items() if name not in declared}
    chain = model_for(read_model(model, constants=for_model, time_limit=time_limit), file)
    results = []
    with progress_line() as progress:
        checking_ = iter_check(
            chain,
            file,
            engines=names,
            exact=exact,
            constants={name: value for name, value in values.items() if name in declared},
            time_limit=time_limit,
        )
        for result in checking_:
            progress(f"{result.engine}: {result.property.name or result.property.text}")
            results.append(result)
    agreements = compare(results)
    code = worst_exit_code([agreement.exit_code for agreement in agreements])
    if not as_json:
        print_verdicts(agreements)
        return code
    emit(
        {
            "kind": "tracebridge-check",
            "schema_version": 1,
            "tool": {
                "name": "tracebridge",
                "version": __version__,
                "engines": {ENGINE_NAMES[name]: engine_version(name) for name in names},
            },
            "model": model,
            "exact": exact,
            "properties": [agreement.to_dict() for agreement in agreements],
            "exit_code": code,
        }
    )
    return code
