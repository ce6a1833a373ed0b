"""Putting `fake_prism` where an executable of PRISM is looked for."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

_PROGRAM = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import fake_prism; fake_prism.main()"


def install(folder: Path) -> Path:
    """An executable called prism in the folder; a shell script that starts another program, as PRISM's own is."""
    path = folder / "prism"
    command = shlex.join([sys.executable, "-I", "-S", "-c", _PROGRAM])  # a module is compiled once, a script each time
    path.write_text(f'#!/bin/sh\n{command} "$@"\n')
    path.chmod(0o755)
    return path
