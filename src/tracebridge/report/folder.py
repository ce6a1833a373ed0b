"""The folder a run writes to: never over someone else's files, and never half a file."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracebridge.chain import document_text
from tracebridge.errors import UsageError

#: A folder that holds this file was written by us and may be written again.
MARKER = "results.json"


class OutputFolder:
    """An output folder. Files appear whole (written beside, then renamed), with the same bytes for the same run.

    Raises:
        UsageError: the path is a file, or a non-empty folder that we did not write and ``force`` is not set.
    """

    def __init__(self, path: str | Path, *, force: bool = False) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; give a folder to write to")
        if self.path.is_dir() and any(self.path.iterdir()) and not force and not self._ours():
            raise UsageError(
                f"{self.path} is not empty and was not written by tracebridge; choose another folder or add --force"
            )
        self.path.mkdir(parents=True, exist_ok=True)

    def _ours(self) -> bool:
        marker = self.path / MARKER
        try:
            head = json.loads(marker.read_bytes()[:50_000_000])
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(head, dict) and str(head.get("kind", "")).startswith("tracebridge-")

    def write(self, name: str, text: str) -> Path:
        """Write one UTF-8 file with ``\\n`` line ends and return its path."""
        target = self.path / name
        handle, temporary = tempfile.mkstemp(dir=self.path, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return target

    def write_json(self, name: str, document: Mapping[str, Any]) -> Path:
        """Write a JSON document, keys in the order given."""
        return self.write(name, document_text(document))
