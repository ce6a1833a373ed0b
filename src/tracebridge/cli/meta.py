"""``tracebridge schema`` and ``tracebridge doctor``."""

from __future__ import annotations

import platform
import sys
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version

import click

from tracebridge.cli.console import emit, print_table, write
from tracebridge.cli.options import common
from tracebridge.version import __version__

_PACKAGES = ("numpy", "scipy", "python-flint", "scikit-learn", "networkx", "lark", "msgspec", "zstandard", "stormpy")


@click.command()
@click.argument("name", type=click.Choice(["trace"]))
@common
def schema(name: str, as_json: bool, seed: int) -> None:  # noqa: ARG001
    """Print the JSON Schema of a document: `trace` is one line of native JSON lines."""
    from tracebridge.traces import trace_schema

    emit(trace_schema())


@click.command()
@common
def doctor(as_json: bool, seed: int) -> int:  # noqa: ARG001
    """Tell which engines are there, and test each on a chain with a known answer."""
    packages = {name: _version(name) for name in _PACKAGES}
    tests = [_self_test(engine, exact=exact) for engine in ("closed-form", "storm") for exact in (False, True)]
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
        rows = [[str(test["engine"]), str(test["arithmetic"]), str(test["result"])] for test in tests]
        print_table(["engine", "arithmetic", "self-test"], rows)
        if packages["stormpy"] is None:
            write("Storm is missing: pip install 'stormpy>=2,<3'. Until then no property has a second engine.")
    return 0 if all(test["result"] == "passed" for test in tests) else 4


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _self_test(engine: str, *, exact: bool) -> dict[str, str]:
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
    text = 'P=? [ F "success" ]; R{"steps"}=? [ F "absorbed" ]; P=? [ F<=6 "success" ];'
    expected = [Fraction(24, 79), Fraction(1000, 237), Fraction(274437, 1000000)]
    arithmetic = "rational" if exact else "double"
    results = check(chain, text, engines=[engine], exact=exact)
    for result, truth in zip(results, expected, strict=True):
        if result.value is None:
            return {"engine": engine, "arithmetic": arithmetic, "result": f"failed: {result.reason}"}
        if not result.value.lower <= truth <= result.value.upper or (exact and result.value.value != truth):
            return {"engine": engine, "arithmetic": arithmetic, "result": f"wrong: {result.value.value} for {truth}"}
    return {"engine": engine, "arithmetic": arithmetic, "result": "passed"}
