"""The way in: files, folders and patterns in any known format become one stream of traces."""

from __future__ import annotations

import difflib
import glob
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tracebridge.errors import Location, NothingToCheckError, Problem, TraceError, UsageError
from tracebridge.traces.corpus import TraceFile, TraceSet
from tracebridge.traces.files import InputFile
from tracebridge.traces.jsonl import JsonlReader, encode_checked
from tracebridge.traces.problems import ProblemLog, escaped, shown
from tracebridge.traces.readers import check_mapping, known_readers
from tracebridge.traces.sniff import LFS_POINTER, shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tracebridge.traces.model import Trace
    from tracebridge.traces.readers.reader import Reader

Paths: TypeAlias = "str | Path | Iterable[str | Path]"

STDIN = "-"
_DATA_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".traj", ".eval"})
_COMPRESSION_SUFFIXES = frozenset({".gz", ".zst"})


def open_traces(
    paths: Paths,
    *,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    thorough: bool = False,
    max_problems: int = 100,
) -> TraceStream:
    """Read traces one at a time, in bounded memory where the format allows it (native JSON Lines does).

    Args:
        paths: files, folders (read recursively, in sorted order), patterns with ``*``, or ``-`` for standard input.
            Formats may be mixed.
        format: the format of all files; None recognises each by its content.
        mapping: for flat files: field to column name, e.g. ``{"outcome": "passed", "state": "action"}``.
        skip_bad: leave out records that cannot be used, and count them, instead of raising after the last record.
        thorough: look also for keys that stand twice in an object of a native line; about five times slower.
        max_problems: how many problems are kept; all are counted.

    Raises:
        UsageError: an unknown format or field.
        TraceError: a path that is not there.
        NothingToCheckError: there is no file.
    """
    if format is not None and format not in known_readers():
        close = difflib.get_close_matches(format, known_readers(), n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known_readers())}"
        raise UsageError(f"there is no trace format {format!r}; {hint}")
    if mapping:
        if format not in (None, "flat"):
            raise UsageError(f"column names can be mapped in flat traces only, not in {format}")
        check_mapping(mapping)
    if max_problems < 1:
        raise UsageError(f"max_problems must be at least 1, got {max_problems}")
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    return TraceStream(
        _Inputs(given),
        format_name=format,
        mapping=dict(mapping or {}),
        skip_bad=skip_bad,
        thorough=thorough,
        max_problems=max_problems,
    )


def read_traces(
    paths: Paths,
    *,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    thorough: bool = False,
    max_problems: int = 100,
) -> TraceSet:
    """Read all traces into memory; for the arguments see :func:`open_traces`.

    Raises:
        UsageError: an unknown format or field.
        TraceError: a path that is not there, or bad records without ``skip_bad``; it lists them all.
        NothingToCheckError: there is no run.
    """
    stream = open_traces(
        paths, format=format, mapping=mapping, skip_bad=skip_bad, thorough=thorough, max_problems=max_problems
    )
    traces = tuple(stream)
    return TraceSet(
        traces=traces,
        files=tuple(stream.files),
        problems=tuple(stream.log.listing()),
        notes=tuple(stream.log.notes),
        n_skipped=stream.log.n_skipped,
    )


class TraceStream:
    """Traces from files, one at a time; iterating again reads the files again.

    Iteration raises TraceError after the last record if any record could not be used and ``skip_bad`` is off, or if
    none could; NothingToCheckError if the files hold no run at all.

    Attributes:
        files: the files read so far.
        log: the problems, notes and skipped records so far.
    """

    def __init__(
        self,
        inputs: _Inputs,
        *,
        format_name: str | None,
        mapping: Mapping[str, str],
        skip_bad: bool,
        thorough: bool,
        max_problems: int,
    ) -> None:
        self._inputs = inputs
        self._format = format_name
        self._mapping = mapping
        self._skip_bad = skip_bad
        self._thorough = thorough
        self._max_problems = max_problems
        self.files: list[TraceFile] = []
        self.log = ProblemLog(max_problems)

    def __iter__(self) -> Iterator[Trace]:
        self.files = []
        self.log = ProblemLog(self._max_problems)
        for note in self._inputs.notes:
            self.log.note(note)
        seen: set[str] = set()
        queue = deque(self._inputs.files)
        opened: set[Path] = set()
        while queue:
            path, label = queue.popleft()
            if path is not None:
                if path.resolve() in opened:
                    continue
                opened.add(path.resolve())
            try:
                with InputFile(path, label, mapping=self._mapping, thorough=self._thorough) as file:
                    reader = self._reader(file)
                    yield from self._read(file, reader, seen)
                    queue.extendleft(reversed(_companions(file, reader)))
            except TraceError as error:
                self.log.refuse(error.problems)
        if self.log.n_problems and not (self._skip_bad and seen):
            raise TraceError(self.log.listing())
        if not seen:
            raise NothingToCheckError(f"no run in {', '.join(file.path for file in self.files[:10])}")

    def _read(self, file: InputFile, reader: Reader, seen: set[str]) -> Iterator[Trace]:
        n_before = len(seen)
        try:
            for trace in self._valid(reader, file):
                if trace.trace_id in seen:
                    self.log.refuse(_used_twice(trace, file))
                else:
                    seen.add(trace.trace_id)
                    yield trace
        except TraceError as error:
            self.log.refuse(error.problems)
        # a file that turned out damaged is listed too: what came before the damage has been handed out
        n_records = len(seen) - n_before
        self.files.append(TraceFile(path=file.label, format=reader.name, sha256=file.sha256(), n_records=n_records))

    def _valid(self, reader: Reader, file: InputFile) -> Iterator[Trace]:
        """The reader's traces, as far as they obey the trace schema; the native reader has checked its own."""
        if isinstance(reader, JsonlReader):
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
        if not file.head.strip():
            raise file.damaged("the file is empty")
        readers = known_readers()
        if self._format is not None:
            return readers[self._format]
        matches = [reader for reader in readers.values() if reader.detect(file)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            names = " and ".join(reader.name for reader in matches)
            raise file.damaged(f"the file may be {names}", hint="choose one with --format")
        known = ", ".join(readers)
        raise file.damaged(
            f"the format is not recognised; the file holds {shape(file.head)}",
            hint=f"known formats are {known}; choose one with --format, or name flat columns with --map",
        )


def _used_twice(trace: Trace, file: InputFile) -> Problem:
    location = Location(path=file.label, record=escaped(trace.source or "?"), field="trace_id")
    message = f"the trace_id {shown(trace.trace_id)} was used by an earlier run"
    return Problem(location=location, message=message, hint="is a file or a run in there twice?")


def _companions(file: InputFile, reader: Reader) -> list[tuple[Path | None, str]]:
    find = getattr(reader, "companions", None)
    if find is None or file.path is None:
        return []
    folder = file.label.rpartition("/")[0]
    found: list[tuple[Path | None, str]] = []
    for path in find(file):
        label = path.relative_to(file.path.parent).as_posix()
        found.append((path, f"{folder}/{label}" if folder else label))
    return found


class _Inputs:
    """The files that the given paths stand for, each with its label, in a fixed order.

    Raises:
        TraceError: a path that is not there.
        NothingToCheckError: no file at all.
    """

    def __init__(self, given: list[str | Path]) -> None:
        self.files: list[tuple[Path | None, str]] = []
        self.notes: list[Problem] = []
        for item in given:
            if str(item) == STDIN:
                self.files.append((None, "<stdin>"))
                continue
            path = Path(item)
            if path.is_dir():
                self._add_folder(path)
            elif path.exists():
                self.files.append((path, path.name))
            else:
                self._add_pattern(item)
        if not self.files:
            where = ", ".join(map(str, given))
            raise NothingToCheckError(f"there is no trace file in {where}" if where else "no trace file was named")

    def _add_folder(self, folder: Path) -> None:
        unread = []
        for path in sorted(_visible_files(folder)):
            label = path.relative_to(folder).as_posix()
            if _is_data(path):
                self.files.append((path, label))
            else:
                unread.append(label)
        if unread:
            some = ", ".join(unread[:10])
            message = f"{len(unread)} files are not read, by their suffix: {some}"
            self.notes.append(
                Problem(location=Location(path=folder.name), message=message, hint="name them to read them")
            )

    def _add_pattern(self, item: str | Path) -> None:
        found = [Path(name) for name in sorted(glob.glob(str(item), recursive=True))]  # noqa: PTH207 - patterns may be absolute
        files = [path for path in found if path.is_file()]
        if not files:
            what = "no file matches this pattern" if glob.has_magic(str(item)) else "there is no such file or folder"
            raise TraceError(what, location=Location(path=str(item)))
        common = Path(os.path.commonpath([path.parent for path in files])) if len(files) > 1 else files[0].parent
        self.files += [(path, path.relative_to(common).as_posix()) for path in files]


def _visible_files(folder: Path) -> Iterator[Path]:
    """The regular files below a folder; hidden ones, and folders behind symbolic links, are left out."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(parent, name) for name in names if not name.startswith("."))
        yield from (path for path in paths if path.is_file())


def _is_data(path: Path) -> bool:
    suffixes = path.suffixes[-2:]
    if suffixes and suffixes[-1] in _COMPRESSION_SUFFIXES:
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] in _DATA_SUFFIXES
