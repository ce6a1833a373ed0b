"""The summaries of shards, in the order asked for: known from before, read ahead by others, or read here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.sharding.manifest import Manifest
from tracebridge.sharding.parallel import is_parallel, read_in_parallel, scan_in_parallel
from tracebridge.sharding.scan import ListedFile, Piece, ScannedFile
from tracebridge.sharding.summary import ShardSummary
from tracebridge.sharding.task import Refusal, ShardOptions, ShardTask, summarize, unlike
from tracebridge.traces.inputs import is_read_once
from tracebridge.traces.remote_files import RemoteFile
from tracebridge.traces.summary import TraceTally

#: Files behind these URLs are in the memory of one process.
_OF_THIS_PROCESS = "memory:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingProgress:
    """How far reading has come; files that others name as their companions may come on top of the totals.

    Attributes:
        n_shards: of the corpus. n_known: those whose summary was kept from an earlier reading. n_bytes: of the others.
        shards_read, bytes_read: of these. n_runs, n_steps: found so far.
    """

    n_shards: int
    n_bytes: int
    shards_read: int
    bytes_read: int
    n_runs: int
    n_steps: int
    n_known: int


OnProgress = Callable[[ReadingProgress], None]


class ShardSource:
    """Reads the files of a corpus, here or elsewhere."""

    def __init__(
        self, files: Sequence[ListedFile], options: ShardOptions, jobs: int | None, manifest: Manifest | None
    ) -> None:
        if manifest is not None and options.features and options.state_map is None and not options.texts:
            options = replace(options, runs=True)  # one summary for whatever will be asked
        self._options = options
        self._manifest = manifest
        self._scanned = _scanned(files, options, jobs, every=manifest is not None)
        pieces = [piece for file in files for piece in self.pieces(file)]
        self._known = {} if manifest is None else manifest.known(pieces, options)
        self._n_shards = len(pieces)
        self._n_bytes = sum(piece.n_bytes for piece in pieces if piece not in self._known)
        self._shards_read = self._bytes_read = 0
        ahead = [piece for piece in pieces if piece not in self._known and _can_be_read_elsewhere(piece)]
        self._ahead = ahead if is_parallel(jobs) and len(ahead) > 1 else []
        self._to_come = set(self._ahead)
        self._here: dict[Piece, bytes] = {}
        self._coming = read_in_parallel([self._task(piece) for piece in self._ahead], jobs)

    def scanned(self, file: ListedFile) -> ScannedFile | None:
        """What is known of a file that was looked at."""
        return self._scanned.get(file)

    def pieces(self, file: ListedFile) -> Sequence[Piece]:
        """The shards of a file."""
        scanned = self._scanned.get(file)
        if scanned is not None:
            return scanned.pieces
        path, label = file
        n_bytes = path.stat().st_size if isinstance(path, Path) and path.is_file() else 0
        return [Piece(path=path, label=label, n_bytes=n_bytes)]

    def summary_of(self, piece: Piece, taken_ids: Callable[[], frozenset[bytes]]) -> ShardSummary:
        """The summary of a shard.

        Args:
            piece: the shard. taken_ids: the trace_ids before it, for what can be read only once.

        Raises:
            TraceError: the file changed while it was read.
        """
        self._shards_read += 1
        self._bytes_read += 0 if piece in self._known else piece.n_bytes
        if piece.path is None or (isinstance(piece.path, Path) and is_read_once(piece.path)):
            return self.read_again(piece, taken_ids())
        summary = self._found(piece)
        if piece.span is not None and summary.error is None and [f.sha256 for f in summary.files] != [piece.sha256]:
            message = "the file changed while it was read"
            raise TraceError(Problem(location=Location(path=piece.label), message=message, hint="read it once more"))
        return summary

    def _found(self, piece: Piece) -> ShardSummary:
        if piece in self._known and self._manifest is not None:
            known = self._manifest.read(self._known[piece], piece)
            if known is not None:
                return known
        while piece in self._to_come:
            number, data = next(self._coming)
            done = self._ahead[number]
            self._to_come.discard(done)
            if isinstance(data, Refusal):
                self._require_gone(done, data)
                continue
            self._here[done] = data
            self._keep(done, ShardSummary.from_bytes(data), data)
        if piece in self._here:
            return ShardSummary.from_bytes(self._here.pop(piece))
        summary = summarize(self._task(piece))
        self._keep(piece, summary, None)
        return summary

    def _require_gone(self, piece: Piece, refusal: Refusal) -> None:
        """What a worker has not as it was here must not be here any more either: then reading tells what it is.

        Raises:
            TraceError: it is.
        """
        if unlike(self._task(piece)) is None:
            raise TraceError(
                Problem(
                    location=Location(path=piece.label),
                    message=f"a worker on {refusal.host} does not see what is here: {refusal.reason}",
                    hint="workers need the files under the same paths, and the same version of tracebridge",
                )
            )

    def read_again(self, piece: Piece, taken: frozenset[bytes]) -> ShardSummary:
        """Read a shard here, knowing which of its trace_ids are taken."""
        return summarize(replace(self._task(piece), taken=taken))

    def progress(self, tally: TraceTally) -> ReadingProgress:
        """How far it is."""
        return ReadingProgress(
            n_shards=self._n_shards,
            n_bytes=self._n_bytes,
            shards_read=self._shards_read,
            bytes_read=self._bytes_read,
            n_runs=tally.n_runs,
            n_steps=tally.n_steps,
            n_known=len(self._known),
        )

    def close(self) -> None:
        """Stop those that read ahead."""
        self._coming.close()

    def _task(self, piece: Piece) -> ShardTask:
        path = None if piece.path is None else piece.path.absolute()
        return ShardTask(files=((path, piece.label),), options=self._options, span=piece.span, n_bytes=piece.n_bytes)

    def _keep(self, piece: Piece, summary: ShardSummary, data: bytes | None) -> None:
        if self._manifest is not None:
            self._manifest.keep(piece, self._options, summary, data)


def _scanned(
    files: Sequence[ListedFile], options: ShardOptions, jobs: int | None, *, every: bool
) -> dict[ListedFile, ScannedFile]:
    """What is in the files that are large, or in every file."""
    chosen = [
        (path, label)
        for path, label in files
        if isinstance(path, Path) and path.is_file() and (every or path.stat().st_size > options.piece_bytes)
    ]
    asked = [(path.absolute(), label) for path, label in chosen]
    found = scan_in_parallel(asked, options.format, options.piece_bytes, jobs)
    return {file: scanned for file, scanned in zip(chosen, found, strict=True) if scanned is not None}


def _can_be_read_elsewhere(piece: Piece) -> bool:
    """Standard input and pipes can be read here and once only."""
    if isinstance(piece.path, RemoteFile):
        return not piece.path.url.startswith(_OF_THIS_PROCESS)
    return piece.path is not None and piece.path.is_file()
