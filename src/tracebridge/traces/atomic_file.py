"""The one way in which files are written: beside their place, then renamed, so that they appear whole or not at all."""

from __future__ import annotations

import re
import secrets
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
_KEPT_OF_NAME = 40  # file systems allow 255 bytes


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A stream whose bytes become the file when the block ends; a block that raises leaves what was there.

    A process that is killed inside leaves the old file whole, and beside it one that `is_leftover` tells. A link is
    followed, and the permissions of an older file are kept. A device or a pipe is written to as it stands: renaming
    would put a file in its place.

    Raises:
        OSError: the place cannot be written to.
    """
    target = Path(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open("wb") as stream:
            yield stream
        return
    if target.is_symlink():
        target = target.resolve()
    partial = target.with_name(f".{target.name[:_KEPT_OF_NAME]}.{secrets.token_hex(8)}.tmp")
    try:
        with partial.open("xb") as stream:
            yield stream
        if target.exists():
            partial.chmod(target.stat().st_mode & 0o7777)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: str | Path, data: bytes) -> None:
    """Make a file of these bytes, which appears whole or not at all; raises as `replacing` does."""
    with replacing(path) as stream:
        stream.write(data)


def is_leftover(name: str) -> bool:
    """Whether a file of this name is what a process left that was killed while it wrote."""
    return _LEFTOVER.fullmatch(name) is not None
