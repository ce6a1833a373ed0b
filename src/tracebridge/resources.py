"""Files that come with the package: property files and reference models."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def packaged(folder: str, name: str) -> Path:
    """The path of a packaged file, e.g. ``packaged("properties", "reliability.props")``.

    They stand at the top of the source tree and inside the package once it is installed.

    Raises:
        FileNotFoundError: an installation without its files.
    """
    for root in (_HERE, _HERE.parent.parent):
        path = root / folder / name
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder}/{name} is missing from this installation of tracebridge")
