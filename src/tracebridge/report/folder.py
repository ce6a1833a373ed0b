"""The folder a run writes to: never over someone else's files, nor what evidence vouches for, and never half a file."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tracebridge.chain import document_text
from tracebridge.errors import UsageError
from tracebridge.traces.atomic_file import is_leftover, write_whole


class OutputFolder:
    """An output folder. Files appear whole (written beside, then renamed), with the same bytes for the same run.

    Args:
        path: the folder; it is created. marker: the JSON file of the same verb whose presence makes the folder ours.
        kind: what its ``kind`` must be. force: write into any folder.

    Raises:
        UsageError: the path is a file, or a non-empty folder that the same verb did not write (unless ``force``).
    """

    def __init__(self, path: str | Path, *, marker: str, kind: str, force: bool = False) -> None:
        if str(path) in {"", "-"}:
            raise UsageError(f"{str(path)!r} is no folder to write to")
        self.path = Path(path)
        self._marker, self._kind = marker, kind
        try:
            if self.path.exists() and not self.path.is_dir():
                raise UsageError(f"{self.path} is a file; give a folder to write to")
            names = [path.name for path in self.path.iterdir()] if self.path.is_dir() else []
            foreign = not all(map(is_leftover, names)) and not self._ours()
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written to: {error.strerror}") from error
        if foreign and not force:
            raise UsageError(
                f"{self.path} is not empty and was not written by the same verb; choose another folder or add --force"
            )

    def _ours(self) -> bool:
        marker = self.path / self._marker
        try:
            head = json.loads(marker.read_bytes()[:50_000_000])
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(head, dict) and head.get("kind") == self._kind

    def write(self, name: str, text: str) -> Path:
        """Write one UTF-8 file with ``\\n`` line ends and return its path; the folder is created with its first file.

        Raises:
            UsageError: the place cannot be written to.
        """
        target = self.path / name
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(target, text.encode())
        except OSError as error:
            raise UsageError(f"{target} cannot be written: {error.strerror}") from error
        return target

    def write_json(self, name: str, document: Mapping[str, Any]) -> Path:
        """Write a JSON document, keys in the order given."""
        return self.write(name, document_text(document))


def require_unrecorded(target: str | Path, evidence: str | Path, names: Collection[str]) -> None:
    """Refuse to write over an evidence file, or over a file beside it that a replay compares with it.

    Args:
        target: where something is to be written. evidence: the file that it is made of. names: of files beside that.

    Raises:
        UsageError: the target is one of these.
    """
    place, own = Path(target), Path(evidence)
    if place.name not in {own.name, *names} or place.resolve().parent != own.resolve().parent:
        return
    raise UsageError(f"{place} is compared with {own} by `tracebridge replay`; write to another name or folder")
