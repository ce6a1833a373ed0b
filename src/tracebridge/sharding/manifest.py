"""The manifest of a corpus: which shards were read before, by what is in them, so that only the others are read.

Beside the manifest, in a folder of its name and ``.shards``, lies the summary of each shard under a key: a hash of its
content, of all options that the summary depends on, and of the version of this package. A summary appears
by renaming when its shard is done, so that a reading that was killed goes on where it was.

A summary is trusted as far as its types and sums go: whoever can write into the folder decides what is counted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec

from tracebridge.errors import Location, Problem, TraceError, UsageError
from tracebridge.sharding.scan import ListedFile, Piece
from tracebridge.sharding.summary import SCHEMA_VERSION as SUMMARY_VERSION
from tracebridge.sharding.summary import ShardSummary, SummaryError
from tracebridge.sharding.task import ShardOptions
from tracebridge.traces.atomic_file import write_whole
from tracebridge.version import __version__

#: Formats whose readers look at the bytes of one file alone; others also look at its folder or at files beside it.
SELF_CONTAINED = frozenset(
    {"ag2", "claude-code", "flat", "inspect", "jsonl", "messages", "openhands", "otlp", "tau-bench"}
)

_MAX_BYTES = 1 << 30
_SUMMARY_NAME = re.compile(r"[0-9a-f]{64}\.zst")
_SECONDS_BETWEEN_SAVES = 2.0


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    first_line: int
    sha256: str
    n_runs: int
    n_steps: int


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["tracebridge-manifest"]
    schema_version: Literal[1]
    shards: dict[str, _Entry]


class Manifest:
    """A manifest file and the summaries beside it.

    Attributes:
        path: of the manifest. folder: of the summaries.

    Raises:
        TraceError: for a file that is something else; it is not written over.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.folder = self.path.with_name(f"{self.path.name}.shards")
        self._entries: dict[str, _Entry] = {}
        self._used: set[str] = set()
        self._saved_at = time.monotonic()
        self._is_saved = True
        if self.path.exists():
            self._entries = _read(self.path)

    def require_apart(self, given: Iterable[str | Path], files: Iterable[ListedFile]) -> None:
        """Refuse a manifest that would be read as traces. Raises UsageError."""
        place = self.path.resolve()
        folders = [Path(item).resolve() for item in given if Path(item).is_dir()]
        among = [path for path, _ in files if isinstance(path, Path) and path.resolve() == place]
        if among or any(place.is_relative_to(folder) for folder in folders):
            raise UsageError(f"the manifest {self.path} lies among the traces: put it beside their folder")

    def known(self, pieces: Iterable[Piece], options: ShardOptions) -> dict[Piece, str]:
        """The keys of the pieces whose summaries are there; what was not looked at is not known."""
        keys = {piece: _key(piece.sha256, piece, options) for piece in pieces if piece.sha256 is not None}
        return {piece: key for piece, key in keys.items() if self._place(key).is_file()}

    def read(self, key: str, piece: Piece) -> ShardSummary | None:
        """The summary with a key; None if it is not that of the piece, or is damaged: then it must be made anew."""
        try:
            summary = ShardSummary.from_bytes(self._place(key).read_bytes())
        except (OSError, SummaryError):
            return None
        is_of_piece = [(file.path, file.sha256) for file in summary.files] == [(piece.label, piece.sha256)]
        if not is_of_piece:
            return None
        self._used.add(key)
        if key not in self._entries:  # the manifest was deleted, or not written before the end
            self._list(key, piece, summary)
        return summary

    def keep(self, piece: Piece, options: ShardOptions, summary: ShardSummary, data: bytes | None) -> None:
        """Keep a summary, if it follows from the bytes of its piece; ``data`` are its bytes, where they are known."""
        if summary.error is not None or summary.companions or [file.path for file in summary.files] != [piece.label]:
            return
        read = summary.files[0]
        if read.format not in SELF_CONTAINED or piece.path is None or not piece.path.is_file():
            return
        key = _key(read.sha256, piece, options)
        try:
            data = summary.to_bytes() if data is None else data
        except SummaryError:
            return  # too large: it is read every time
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._place(key), data)
        self._used.add(key)
        self._list(key, piece, summary)
        if time.monotonic() - self._saved_at > _SECONDS_BETWEEN_SAVES:
            self.save()

    def _list(self, key: str, piece: Piece, summary: ShardSummary) -> None:
        """Have the manifest say what a summary is of."""
        tally = summary.tally
        self._entries[key] = _Entry(
            path=piece.label,
            first_line=1 if piece.span is None else piece.span.line,
            sha256=summary.files[0].sha256,
            n_runs=tally.n_runs,
            n_steps=tally.n_steps,
        )
        self._is_saved = False

    def save(self) -> None:
        """Write the manifest, if it has changed."""
        if self._is_saved:
            return
        entries = sorted(self._entries.items(), key=lambda item: (item[1].path, item[1].first_line, item[0]))
        document = _Document(kind="tracebridge-manifest", schema_version=1, shards=dict(entries))
        write_whole(self.path, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
        self._saved_at, self._is_saved = time.monotonic(), True

    def prune(self) -> None:
        """Forget what was neither read from here nor kept here since this object was made.

        Raises:
            TraceError: a summary cannot be removed.
        """
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if _SUMMARY_NAME.fullmatch(path.name) and path.stem not in self._used:
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    place = Location(path=str(path))
                    raise TraceError(Problem(location=place, message=f"cannot be removed: {error.strerror}")) from error
        gone = self._entries.keys() - self._used
        for key in gone:
            del self._entries[key]
        self._is_saved = self._is_saved and not gone

    def _place(self, key: str) -> Path:
        return self.folder / f"{key}.zst"


def _key(content: str, piece: Piece, options: ShardOptions) -> str:
    """What a summary depends on, hashed. That bad records are skipped is no part of it: all are in the summary."""
    depends: dict[str, Any] = {
        "version": __version__,
        "summary": SUMMARY_VERSION,
        "content": content,
        "label": piece.label,
        "first_line": None if piece.span is None else piece.span.line,
        "format": options.format,
        "mapping": dict(options.mapping),
        "endings": None if options.endings is None else options.endings.rules,
        "max_problems": options.max_problems,
        "features": options.features,
        "runs": options.runs,
        "state_map": options.state_map,
        "texts": options.texts,
    }
    return sha256(msgspec.json.encode(depends, order="sorted")).hexdigest()


def _read(path: Path) -> dict[str, _Entry]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES >> 20} MiB")
        return msgspec.json.decode(path.read_bytes(), type=_Document).shards
    except (OSError, ValueError) as error:
        raise TraceError(
            Problem(
                location=Location(path=str(path)),
                message=f"this is no manifest of tracebridge: {error}",
                hint="name another file, or delete this one; what was kept of files lies in its folder",
            )
        ) from error
