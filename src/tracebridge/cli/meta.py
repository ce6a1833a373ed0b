"""``tracebridge schema`` and ``tracebridge doctor``."""

from __future__ import annotations

import platform
import shutil
import sys
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version

import click

from tracebridge.cli.console import emit, print_table, write
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import common, prism_place
from tracebridge.version import __version__

_PACKAGES = ("numpy", "scipy", "python-flint", "scikit-learn", "networkx", "lark", "msgspec", "zstandard", "stormpy")


@click.command(
    cls=Verb,
    epilog="\b\nExample: what a line of native traces may hold\n  tracebridge schema trace > trace.schema.json",
)
@click.argument("name", type=click.Choice(["trace", "broadcast-trace", "evidence"]))
@common
def schema(name: str, as_json: bool, seed: int) -> None:  # noqa: ARG001
    """Print the JSON Schema of a document.

    trace is a line of native traces, broadcast-trace one of deliberations (broadcast-trace/0.1), and evidence the
    evidence.json of an assessment.
    """
    from tracebridge.confidence.broadcast import broadcast_schema
    from tracebridge.report.evidence_schema import evidence_schema
    from tracebridge.traces import trace_schema

    schemas = {"trace": trace_schema, "broadcast-trace": broadcast_schema, "evidence": evidence_schema}
    emit(schemas[name]())


@click.command(
    cls=Verb, epilog="\b\nExample: with a PRISM that is not on the PATH\n  tracebridge doctor --prism ~/prism-4.8"
)
@prism_place
@common
def doctor(prism: str | None, as_json: bool, seed: int) -> int:  # noqa: ARG001
    """Tell which engines are there, and test each on a chain with a known answer."""
    from tracebridge.checking.prism_process import HOW_TO_GET, find_prism

    packages = {name: _version(name) for name in _PACKAGES}
    executable = find_prism(prism)
    engines = [_Engine("closed-form", __version__), _Engine("storm", packages["stormpy"])]
    if executable is not None:
        engines.append(_Engine("prism", executable.version(), str(executable.path)))
    tests = [_self_test(engine, exact=exact) for engine in engines for exact in (False, True)]
    document = {
        "schema_version": 1,
        "tracebridge": __version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "packages": packages,
        "engines": tests,
    }
    if as_json:
        emit(document)
    else:
        write(f"tracebridge {__version__}, Python {document['python']} on {document['platform']}")
        print_table(["package", "version"], [[name, found or "missing"] for name, found in packages.items()])
        columns = ["engine", "version", "arithmetic", "result"]
        print_table([*columns[:-1], "self-test"], [[test[column] or "unknown" for column in columns] for test in tests])
        if executable is not None:
            write(f"PRISM is {executable.path}")
        if packages["stormpy"] is None:
            write("Storm is missing: pip install 'stormpy>=2,<3'. Until then few properties have a second engine.")
        if executable is None:
            if (other := shutil.which("prism")) is not None:
                write(f"{other} is not asked: it is turned off, or `prism -version` does not answer as PRISM does.")
            write(f"A third engine is optional. {HOW_TO_GET}.")
    return 0 if all(test["result"] == "passed" for test in tests) else 4


@dataclass(frozen=True, slots=True)
class _Engine:
    """An engine by its name on the command line, and what is known about it; the path is that of PRISM."""

    name: str
    version: str | None
    path: str | None = None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _self_test(engine: _Engine, *, exact: bool) -> dict[str, str | None]:
    """A three-state loop whose success probability, expected steps and R(6) were derived by hand."""
    from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector, RewardStructure
    from tracebridge.checking import check

    tenth = [[1, 5, 4, 0, 0], [1, 2, 3, 3, 1], [0, 1, 6, 0, 3], [0, 0, 0, 10, 0], [0, 0, 0, 0, 10]]
    chain = MarkovChain(
        states=("s0", "s1", "s2", "success", "failure"),
        transitions=RationalMatrix.from_rows([{j: Fraction(x, 10) for j, x in enumerate(row) if x} for row in tenth]),
        initial=RationalVector.from_fractions([1, 0, 0, 0, 0]),  # type: ignore[arg-type]
        labels={"absorbed": [False, False, False, True, True]},  # type: ignore[dict-item]
        rewards={"steps": RewardStructure.from_fractions([1, 1, 1, 0, 0])},
    )
    questions = {
        'P=? [ F "success" ];': Fraction(24, 79),
        'R{"steps"}=? [ F "absorbed" ];': Fraction(1000, 237),
        'P=? [ F<=6 "success" ];': Fraction(274437, 1000000),
    }
    if exact and engine.name == "prism":  # whose exact engine does not count steps
        del questions['P=? [ F<=6 "success" ];']
    outcome: dict[str, str | None] = {
        "engine": engine.name,
        "version": engine.version,
        "path": engine.path,
        "arithmetic": "rational" if exact else "double",
    }
    results = check(chain, "".join(questions), engines=[engine.name], exact=exact, prism=engine.path)
    for result, truth in zip(results, questions.values(), strict=True):
        if result.value is None:
            return {**outcome, "result": f"failed: {result.reason}"}
        if exact and not result.exact:
            return {**outcome, "result": f"failed: {result.notes[0].text}"}
        if not result.value.lower <= truth <= result.value.upper:
            return {**outcome, "result": f"wrong: {result.value.value} for {truth}"}
    return {**outcome, "result": "passed"}
