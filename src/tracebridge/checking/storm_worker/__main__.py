"""Starts the process as ``python -P storm_worker/__main__.py``.

The folder becomes a package of its own, ``storm_worker``: neither the search path grows nor is the package around it
imported, which would take longer than Storm itself.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path


def main() -> None:
    """Load the package from this folder and serve; see `loop.main` for the arguments."""
    folder = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location(
        "storm_worker", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None  # noqa: S101 - the file is there
    assert spec.loader is not None  # noqa: S101 - it is Python
    package = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = package
    spec.loader.exec_module(package)
    importlib.import_module("storm_worker.loop").main()


if __name__ == "__main__":
    main()
