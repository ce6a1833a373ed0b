"""What computed the numbers of an evidence file: versions of the tool, of Python, of the engines and of packages."""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from tracebridge.checking.prism_process import find_prism
from tracebridge.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: The packages that numbers come from.
COMPUTING = ("networkx", "numpy", "python-flint", "scikit-learn", "scipy", "stormpy")

MISSING = "missing"


def engine_version(name: str, *, prism: str | Path | None = None) -> str:
    """The version of an engine, as reports show it; ``missing`` where it is not here.

    Args:
        prism: see `tracebridge.checking.check`.
    """
    if name == "closed-form":
        return __version__
    if name == "prism":
        executable = find_prism(prism)
        return MISSING if executable is None else executable.version() or "unknown"
    return _package_version("stormpy")


def tool_document(engines: Mapping[str, str]) -> dict[str, Any]:
    """The ``tool`` of an evidence file.

    Args:
        engines: name to version.
    """
    return {
        "name": "tracebridge",
        "version": __version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "engines": dict(engines),
        "packages": {name: _package_version(name) for name in COMPUTING},
    }


@cache
def _package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return MISSING
