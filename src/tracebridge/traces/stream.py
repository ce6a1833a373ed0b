"""The way in: files, folders and patterns in any known format become one stream of traces."""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tracebridge.errors import Location, NothingToCheckError, Problem, TraceError, UsageError
from tracebridge.traces.corpus import TraceFile, TraceSet
from tracebridge.traces.ending_counts import EndingTally
from tracebridge.traces.files import InputFile, LineSpan
from tracebridge.traces.foreign import foreign_format
from tracebridge.traces.inputs import Inputs, Source, label_of
from tracebridge.traces.jsonl import JsonlReader, encode_checked
from tracebridge.traces.near_misses import remedy
from tracebridge.traces.problems import ProblemLog, escaped, shown
from tracebridge.traces.readers import check_mapping, known_readers, plug_ins
from tracebridge.traces.readers.endings import EndingRules, read_ending_rules
from tracebridge.traces.readers.flat import FlatReader
from tracebridge.traces.readers.outcome_files import OutcomeStore, read_outcomes
from tracebridge.traces.sniff import LFS_POINTER, shape
from tracebridge.traces.trace_ids import TraceIds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tracebridge.traces.model import Trace
    from tracebridge.traces.readers.reader import Reader

Paths: TypeAlias = "str | Path | Iterable[str | Path]"


def open_traces(
    paths: Paths,
    *,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
    outcomes: Paths | None = None,
    endings: str | Path | None = None,
    skip_bad: bool = False,
    max_problems: int = 100,
) -> TraceStream:
    """Read traces one at a time, in bounded memory where the format allows it (JSON Lines do).

    Args:
        paths: files, folders (read recursively, in sorted order), patterns with ``*``, or ``-`` for standard input.
            Formats may be mixed.
        format: the format of all files; None recognises each by its content.
        mapping: for flat files: field to column name, e.g. ``{"outcome": "passed", "state": "action"}``.
        outcomes: files, or folders of evaluation logs, that say how runs ended where the traces do not; see
            `read_outcomes`. Where two of them, or one and the trace, contradict each other, the run is a bad record.
        endings: a file of rules that say what runs count as, by the reason for their end; see `read_ending_rules`.
        skip_bad: leave out records that cannot be used, and count them, instead of raising after the last record.
        max_problems: how many problems are kept; all are counted.

    Raises:
        UsageError: an unknown format or field, an empty path.
        TraceError: a path that is not there, or an outcome file that holds no outcome.
        NothingToCheckError: there is no file.
    """
    check_reading(format, mapping, max_problems)
    return TraceStream(
        Inputs(_listed(paths)),
        format_name=format,
        mapping=dict(mapping or {}),
        outcomes=read_outcomes(_listed(outcomes)) if outcomes else None,
        endings=read_ending_rules(endings) if endings is not None else None,
        skip_bad=skip_bad,
        max_problems=max_problems,
    )


def check_reading(format: str | None, mapping: Mapping[str, str] | None, max_problems: int) -> None:  # noqa: A002
    """Refuse options of `open_traces` that are none. Raises UsageError."""
    if format is not None and format not in known_readers():
        close = difflib.get_close_matches(format, known_readers(), n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known_readers())}"
        broken = "".join(f"\n{problem}" for problem in plug_ins().problems())
        raise UsageError(f"there is no trace format {format!r}; {hint}{broken}")
    if mapping:
        if format not in (None, "flat"):
            raise UsageError(f"column names can be mapped in flat traces only, not in {format}")
        check_mapping(mapping)
    if max_problems < 1:
        raise UsageError(f"max_problems must be at least 1, got {max_problems}")


def read_traces(
    paths: Paths,
    *,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
    outcomes: Paths | None = None,
    endings: str | Path | None = None,
    skip_bad: bool = False,
    max_problems: int = 100,
) -> TraceSet:
    """Read all traces into memory; for the arguments see :func:`open_traces`.

    Raises:
        UsageError: an unknown format or field.
        TraceError: a path that is not there, or bad records without ``skip_bad``; it lists them all.
        NothingToCheckError: there is no run.
    """
    stream = open_traces(
        paths,
        format=format,
        mapping=mapping,
        outcomes=outcomes,
        endings=endings,
        skip_bad=skip_bad,
        max_problems=max_problems,
    )
    traces = tuple(stream)
    return TraceSet(
        traces=traces,
        files=tuple(stream.files),
        problems=tuple(stream.log.listing()),
        notes=tuple(stream.log.notes),
        n_skipped=stream.log.n_skipped,
        endings=stream.endings.counts(),
    )


class TraceStream:
    """Traces from files, one at a time; iterating again reads the files again.

    Iteration raises TraceError after the last record if any record could not be used and ``skip_bad`` is off, or if
    none could; NothingToCheckError if the files hold no run at all.

    Attributes:
        files: the files read so far, those of outcomes and endings first.
        log: the problems, notes and skipped records so far.
        endings: the runs so far by the reason for their end: what sources say of them, and what they count as.
        companions: files that belong to those read so far and were left to the caller (with ``follow`` off), in order.
        ids: the trace_ids that are taken, those of the traces read so far among them.
    """

    def __init__(
        self,
        inputs: ListedFiles,
        *,
        format_name: str | None,
        mapping: Mapping[str, str],
        outcomes: OutcomeStore | None,
        endings: EndingRules | None,
        skip_bad: bool,
        max_problems: int,
        follow: bool = True,
        taken: TraceIds | None = None,
        span: LineSpan | None = None,
    ) -> None:
        """Of files that `open_traces` found.

        Args:
            follow: these are all files: also read those that readers name as companions, and tell what rules did.
            taken: trace_ids that other files have used.
            span: the lines of the file that are read; it is a native one, whose format is given.
        """
        self._inputs = inputs
        self._format = format_name
        self._mapping = mapping
        self._outcomes = outcomes
        self._endings = endings
        self._skip_bad = skip_bad
        self._max_problems = max_problems
        self._follow = follow
        self._taken = taken or TraceIds()
        self._span = span
        self._formats_are_listed = False
        self._readers: Mapping[str, Reader] = {}
        self.companions: list[tuple[Path, str]] = []
        self.ids = self._taken
        self.files: list[TraceFile] = []
        self.log = ProblemLog(max_problems)
        self.endings = EndingTally()

    def __iter__(self) -> Iterator[Trace]:
        n_usable = 0
        for trace in self.usable():
            n_usable += 1
            yield trace
        require_usable(self.log, self.files, n_usable, skip_bad=self._skip_bad)

    def usable(self) -> Iterator[Trace]:
        """The traces that can be used; what is wrong with the others stands in the log and is not raised."""
        self.files = []
        if self._follow:
            rules = [each for each in (self._outcomes, self._endings) if each is not None]
            self.files = [file for each in rules for file in each.files]
        self.endings = EndingTally()
        self.log = ProblemLog(self._max_problems)
        for note in self._inputs.notes:
            self.log.note(note)
        self.companions = []
        self._formats_are_listed = False
        self._readers = known_readers()
        traces = self._traces()
        if self._outcomes is not None:
            traces = self._outcomes.apply(traces, self.log)
        traces = map(self.endings.found, traces)
        if self._endings is not None:
            traces = self._endings.apply(traces)
        yield from map(self.endings.counted, traces)
        if self._endings is not None and self._follow:
            self._endings.remark(self.log, self._endings.touched, self.endings.counts())
        for problem in plug_ins().problems() if self._follow else ():
            self.log.note(problem)

    def _traces(self) -> Iterator[Trace]:
        """The traces of all files, with the outcomes that stand in them."""
        self.ids = seen = self._taken.copy()
        sizes: dict[int, list[TraceFile]] = {}
        queue: deque[tuple[Source | None, str]] = deque(self._inputs.files)
        opened: dict[object, Source] = {}
        while queue:
            path, label = queue.popleft()
            status = None
            if path is not None:
                status, identity = _identified(path)
                earlier = opened.setdefault(identity, path)
                if earlier is not path and earlier.resolve() == path.resolve():
                    continue  # not so for a second name of the same bytes on the disk, which are compared below
            try:
                size = _require_new(path, label, sizes, status)
                with InputFile(path, label, mapping=self._mapping, taken_ids=seen, span=self._span) as file:
                    reader = self._reader(file)
                    yield from self._read(file, reader, seen)
                    sizes.setdefault(size, []).append(self.files[-1])
                    companions = _companions(file, reader)
                    if self._follow:
                        queue.extendleft(reversed(companions))
                    else:
                        self.companions += companions
            except TraceError as error:
                self.log.refuse(error.problems)

    def _read(self, file: InputFile, reader: Reader, seen: TraceIds) -> Iterator[Trace]:
        n_before = len(seen)
        try:
            for trace in self._valid(reader, file):
                if seen.claim(trace.trace_id):
                    yield trace
                else:
                    self.log.refuse(_used_twice(trace, file))
        except TraceError as error:
            self.log.refuse(error.problems)
        # a file that turned out damaged is listed too: what came before the damage has been handed out
        n_records = len(seen) - n_before
        sha256 = file.sha256()
        self.files.append(
            TraceFile(path=file.label, format=reader.name, sha256=sha256, n_bytes=file.n_bytes, n_records=n_records)
        )

    def _valid(self, reader: Reader, file: InputFile) -> Iterator[Trace]:
        """The reader's traces, as far as they obey the trace schema; native and flat readers have checked their own."""
        if isinstance(reader, JsonlReader | FlatReader):
            yield from reader.read(file, self.log)
            return
        for trace in reader.read(file, self.log):
            try:
                encode_checked(trace)
            except TraceError as error:
                self.log.refuse(error.problems)
            else:
                yield trace

    def _reader(self, file: InputFile) -> Reader:
        """The reader of the format that was asked for, or the one that recognises the file."""
        if file.head.startswith(LFS_POINTER):
            raise file.damaged("this is a Git LFS pointer, not the file itself", hint="run git lfs pull")
        if not file.head.strip() and self._span is None:
            raise file.damaged("the file is empty")
        readers = self._readers
        if self._format is not None:
            return readers[self._format]
        matches = [reader for reader in readers.values() if reader.detect(file)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            names = " and ".join(reader.name for reader in matches)
            raise file.damaged(f"the file may be {names}", hint="choose one with --format")
        if (how := remedy(file)) is not None:
            raise file.damaged(f"the format is not recognised; the file holds {shape(file.head)}", hint=how)
        foreign = foreign_format(file)
        if self._mapping and foreign is None and _has_rows(file):
            return readers["flat"]  # columns are named: its reader says which of them are missing
        hint = None
        if not self._formats_are_listed:
            self._formats_are_listed = True
            hint = format_hint()
        if foreign is not None:
            raise file.damaged(f"looks like {foreign}, which is not read yet", hint=hint)
        raise file.damaged(f"the format is not recognised; the file holds {shape(file.head)}", hint=hint)


class ListedFiles(Protocol):
    """Files in their order, each with its label, and notes on others; what `Inputs` finds."""

    @property
    def files(self) -> Sequence[tuple[Source | None, str]]: ...  # noqa: D102

    @property
    def notes(self) -> Sequence[Problem]: ...  # noqa: D102


def format_hint() -> str:
    """What the first file whose format is not recognised is told."""
    return f"known formats are {', '.join(known_readers())}; choose one with --format, or name flat columns with --map"


def require_usable(log: ProblemLog, files: Sequence[TraceFile], n_usable: int, *, skip_bad: bool) -> None:
    """Raise what a corpus deserves after its last record.

    Raises:
        TraceError: a record could not be used and ``skip_bad`` is off, or none could; it lists them.
        NothingToCheckError: there is no run.
    """
    if log.n_problems and not (skip_bad and n_usable):
        raise TraceError(log.listing())
    if not n_usable:
        names = [file.path for file in files if file.format not in ("outcomes", "endings")]
        notes = "".join(f"\nnote: {note}" for note in log.notes[:10])
        raise NothingToCheckError(f"no run in {', '.join(names[:10])}{notes}")


def _listed(paths: Paths) -> list[str | Path]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def _identified(path: Source) -> tuple[os.stat_result | None, object]:
    """What the system says of a local file, and what tells it from others, whatever links lead to it."""
    if not isinstance(path, Path):
        return None, path.resolve()
    try:
        status = path.stat()
    except OSError:
        return None, path  # opening it says what is wrong
    return status, (status.st_dev, status.st_ino)


def _require_new(
    path: Source | None, label: str, sizes: dict[int, list[TraceFile]], status: os.stat_result | None
) -> int:
    """The size of a file, 0 where it has none.

    Raises:
        TraceError: an earlier file has the same bytes; only files of one size are compared.
    """
    if not isinstance(path, Path) or status is None or not stat.S_ISREG(status.st_mode):
        return 0
    size = status.st_size
    if size not in sizes:
        return size
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return 0  # opening it says what is wrong
    for earlier in sizes[size]:
        if earlier.sha256 == digest:
            raise TraceError(given_twice(label, earlier))
    return size


def given_twice(label: str, earlier: TraceFile) -> Problem:
    """The problem of a file that has the bytes of an earlier one."""
    message = f"the same file twice: it has the bytes of {earlier.path}"
    return Problem(location=Location(path=label), message=message, hint="give it once")


def _has_rows(file: InputFile) -> bool:
    """Whether the file may be a table: a text, or JSON objects that end with their lines."""
    first_line = file.head.lstrip().split(b"\n", 1)[0]
    kind = shape(file.head).kind
    return kind == "text" or (kind == "object" and first_line.rstrip().endswith(b"}"))


def _used_twice(trace: Trace, file: InputFile) -> Problem:
    location = Location(path=file.label, record=escaped(trace.source or "?"), field="trace_id")
    message = f"the trace_id {shown(trace.trace_id)} was used by an earlier run"
    return Problem(location=location, message=message, hint="is a file or a run in there twice?")


def _companions(file: InputFile, reader: Reader) -> list[tuple[Path, str]]:
    find = getattr(reader, "companions", None)
    if find is None or file.path is None:
        return []
    folder = file.label.rpartition("/")[0]
    found: list[tuple[Path, str]] = []
    for path in find(file):
        label = label_of(path.relative_to(file.path.parent))
        found.append((path, f"{folder}/{label}" if folder else label))
    return found
