"""Trace files that grow, and folders into which they come: every run is read once, as soon as it is there.

A native file is followed line by line; its last line is waited for until it has its end. Any other file is read whole,
once it has stayed the same from one look to the next. A file is known by its first bytes: when those change, or it
becomes shorter than what was read, it is another file, and read from its start. One that was renamed, as logs are when
they rotate, is read to its end first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.errors import InputError, Location, NothingToCheckError, Problem, TraceError, UsageError
from tracebridge.traces.files import GZIP_MAGIC, MAX_LINE_BYTES, ZSTD_MAGIC, InputFile
from tracebridge.traces.inputs import Inputs
from tracebridge.traces.jsonl import JsonlReader, examine_line
from tracebridge.traces.model import Trace
from tracebridge.traces.remote_files import is_url
from tracebridge.traces.stream import open_traces

if TYPE_CHECKING:
    import os

#: A file is known by so many of its first bytes, of those that were read.
FINGERPRINT_BYTES = 4_096

_READER = JsonlReader()
_HEAD = 1 << 16


class FileMark(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How far a file was read.

    Attributes:
        path: where it was last seen. device, inode: what it is there.
        native: whether it is followed by lines; None until that is known.
        offset, lines: bytes and lines that were read of a native file.
        fingerprint: the hash of the first of these bytes, at most `FINGERPRINT_BYTES`.
        size, modified: what the file was at the last look; of one that is read whole, when it was read.
        done: it was read whole, or cannot be.
        overlong: the line that is being read is longer than a line may be.
    """

    path: str
    device: int
    inode: int
    native: bool | None = None
    offset: int = 0
    lines: int = 0
    fingerprint: str = ""
    size: int = -1
    modified: int = -1
    done: bool = False
    overlong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEvent:
    """Something to know about a file: it was cut or replaced, or changed after it was read."""

    path: str
    text: str


class FollowedFiles:
    """The files of some paths, read as they grow.

    Args:
        paths: files, folders and patterns; a folder may be empty at first. options: of `open_traces` for files that are
            read whole: ``format``, ``mapping``, ``outcomes`` and ``endings``.

    Raises:
        UsageError: no path, standard input, or an option that is none.
        TraceError: a path that is not there.
    """

    def __init__(self, paths: Sequence[str | Path], options: Mapping[str, Any]) -> None:
        if not paths or any(str(path) == "-" or is_url(str(path)) for path in paths):
            raise UsageError("watch follows local files and folders, not standard input or URLs")
        self._paths = list(paths)
        self._options = {**options, "skip_bad": True}
        self._native_only = options.get("format") == _READER.name
        self._may_be_native = options.get("format") in (None, _READER.name) and not (
            options.get("outcomes") or options.get("endings") or options.get("mapping")
        )
        self._by_path: dict[str, FileMark] = {}
        self._by_inode: dict[tuple[int, int], FileMark] = {}
        for path in self._paths:  # what is not there now is a misspelling
            try:
                Inputs([path])
            except NothingToCheckError:
                continue

    # ------------------------------------------------------------ looking

    def look(self, *, last: bool = False) -> Iterator[Trace | Problem | FileEvent]:
        """What came since the last look: runs, records that cannot be used, and what happened to files.

        Args:
            last: nobody will look again: files are taken as they are, and a last line without its end is read if it is
                a whole run.
        """
        for path, label in self._listed():
            try:
                stat = path.stat()
            except OSError:
                continue  # gone since it was listed
            mark, replaced = self._mark_of(path, stat)
            if replaced is not None:
                yield from self._rest_of(replaced, path, label)
            if mark is None:
                mark = FileMark(path=str(path), device=stat.st_dev, inode=stat.st_ino)
                self._add(mark)
            same = (mark.size, mark.modified) == (stat.st_size, stat.st_mtime_ns)
            try:
                yield from self._news(mark, path, label, stat.st_size, same=same, last=last)
            except (OSError, TraceError) as error:
                if not same:  # said once
                    yield Problem(location=Location(path=label), message=f"cannot be read: {error}")
            mark.size, mark.modified = stat.st_size, stat.st_mtime_ns

    def _listed(self) -> list[tuple[Path, str]]:
        found: dict[Path, str] = {}
        for item in self._paths:
            try:
                inputs = Inputs([item])
            except (InputError, NothingToCheckError):
                continue  # between two files of a log that rotates there is none
            for path, label in inputs.files:
                if isinstance(path, Path):
                    found.setdefault(path, label)
        return list(found.items())

    def _mark_of(self, path: Path, stat: os.stat_result) -> tuple[FileMark | None, FileMark | None]:
        """The mark of the file, if it has one; and that of the file which was there before, if it is another."""
        place = (stat.st_dev, stat.st_ino)
        here, known = self._by_path.get(str(path)), self._by_inode.get(place)
        if known is not None and known is not here and known.fingerprint and _begins_as(path, known):
            if here is not None:
                self._forget(here)
            self._forget(known)
            known.path = str(path)
            self._add(known)
            return known, here
        if here is None or (here.device, here.inode) == place:
            return here, None
        self._forget(here)
        if here.done or (here.offset and here.offset <= stat.st_size and _begins_as(path, here)):
            here.device, here.inode = place  # a copy was put in its place
            self._add(here)
            return here, None
        return None, here

    def _add(self, mark: FileMark) -> None:
        self._by_path[mark.path] = self._by_inode[mark.device, mark.inode] = mark

    def _forget(self, mark: FileMark) -> None:
        if self._by_path.get(mark.path) is mark:
            del self._by_path[mark.path]
        if self._by_inode.get((mark.device, mark.inode)) is mark:
            del self._by_inode[mark.device, mark.inode]

    def _rest_of(self, mark: FileMark, path: Path, label: str) -> Iterator[Trace | Problem | FileEvent]:
        """What is left of a file that another took the place of."""
        for other in sorted(path.parent.iterdir()):
            try:
                stat = other.stat()
            except OSError:
                continue
            if (stat.st_dev, stat.st_ino) == (mark.device, mark.inode) and _begins_as(other, mark):
                mark.path = str(other)
                self._add(mark)
                yield FileEvent(path=label, text=f"{label} is another file now; the one before it is {other.name}")
                if mark.native:
                    yield from self._lines(mark, other, other.name, last=False)
                return
        if mark.native:
            text = f"{label} is another file now; what was written to the one before since the last look is lost"
            yield FileEvent(path=label, text=text)

    def _news(
        self, mark: FileMark, path: Path, label: str, size: int, *, same: bool, last: bool
    ) -> Iterator[Trace | Problem | FileEvent]:
        if mark.native and (size < mark.offset or (not same and not _begins_as(path, mark))):
            mark.offset, mark.lines, mark.fingerprint, mark.native, mark.overlong = 0, 0, "", None, False
            yield FileEvent(path=label, text=f"{label} was cut or written anew; it is read from its start")
        if mark.done:
            if not same:
                text = f"{label} changed after it was read whole; what is new in it is not read"
                yield FileEvent(path=label, text=text)
            return
        if not size:
            return
        if mark.native is None:
            mark.native = self._is_native(path, settled=same or last)
        if mark.native:
            if mark.offset < size:
                yield from self._lines(mark, path, label, last=last)
        elif mark.native is False and (same or last):
            if not any(each.done for each in self._by_path.values()):
                text = f"{label} is read once, as all but plain native JSON Lines are; what is added later is not read"
                yield FileEvent(path=label, text=text)
            mark.done = True
            yield from self._whole(path)

    # ------------------------------------------------------------ reading

    def _is_native(self, path: Path, *, settled: bool) -> bool | None:
        """Whether a file has one native run a line; None while its first line has no end."""
        if not self._may_be_native:
            return False
        with path.open("rb") as stored:
            head = stored.read(_HEAD)
        if head.startswith((GZIP_MAGIC, ZSTD_MAGIC)):
            return False
        if self._native_only:
            return True
        if b"\n" not in head.lstrip() and not settled and len(head) < _HEAD:
            return None
        with InputFile(path, path.name) as file:
            return _READER.detect(file)

    def _lines(self, mark: FileMark, path: Path, label: str, *, last: bool) -> Iterator[Trace | Problem]:
        with path.open("rb") as file:
            file.seek(mark.offset)
            while line := file.readline(MAX_LINE_BYTES + 1):
                whole = line.endswith(b"\n")
                if not whole and len(line) <= MAX_LINE_BYTES and not mark.overlong:
                    if not last:
                        break
                    found = examine_line(line, path=label, number=mark.lines + 1)
                    if not isinstance(found, Trace):
                        yield Problem(
                            location=Location(path=label, line=mark.lines + 1),
                            message="the last line has no end yet; it is read when it has",
                        )
                        break
                    mark.offset += len(line)
                    yield _with_source(found, label, mark.lines + 1)
                    break
                mark.offset += len(line)
                if mark.overlong or not whole:  # a line too long is passed over, however many pieces it comes in
                    if not mark.overlong:
                        place = Location(path=label, line=mark.lines + 1)
                        yield Problem(location=place, message=f"the line is longer than {MAX_LINE_BYTES >> 20} MiB")
                    mark.overlong = not whole
                    mark.lines += whole
                    continue
                mark.lines += 1
                yield from _run(line, label, mark.lines)
        if _length(mark.fingerprint) < FINGERPRINT_BYTES:
            mark.fingerprint = _fingerprint(path, min(mark.offset, FINGERPRINT_BYTES))

    def _whole(self, path: Path) -> Iterator[Trace | Problem]:
        stream = open_traces([path], **self._options)
        try:
            yield from stream
        except (InputError, NothingToCheckError) as error:
            problems = error.problems if isinstance(error, InputError) else ()
            yield from problems or [Problem(location=Location(path=path.name), message=str(error))]
            return
        yield from stream.log.listing()

    # ------------------------------------------------------------ documents

    def to_dict(self) -> list[Any]:
        """JSON values: the mark of every file."""
        return [msgspec.to_builtins(mark) for _, mark in sorted(self._by_path.items())]

    def restore(self, data: Any) -> None:
        """Take up `to_dict`'s values.

        Raises:
            TraceError: they are none.
        """
        try:
            marks = msgspec.convert(data, list[FileMark], strict=True)
        except msgspec.ValidationError as error:
            raise TraceError(f"what was saved of the files cannot be read: {error}") from error
        for mark in marks:
            self._add(mark)


def _run(line: bytes, label: str, number: int) -> Iterator[Trace | Problem]:
    if line.isspace():
        return
    found: Trace | list[Problem]
    try:
        # what the decoder does not see, control characters in names, needs an escape
        found = _decode(line) if b"\\" not in line else examine_line(line, path=label, number=number)
        if isinstance(found, Trace) and _encode(found).count(b":") != line.count(b":"):  # does a key stand twice?
            found = examine_line(line, path=label, number=number)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = examine_line(line, path=label, number=number)
    if isinstance(found, Trace):
        yield _with_source(found, label, number)
    else:
        yield from found


_decode = msgspec.json.Decoder(Trace).decode
_encode = msgspec.json.Encoder().encode


def _with_source(trace: Trace, label: str, number: int) -> Trace:
    return trace if trace.source is not None else msgspec.structs.replace(trace, source=f"{label}:{number}")


def _fingerprint(path: Path, length: int) -> str:
    with path.open("rb") as file:
        return f"{length}:{hashlib.sha256(file.read(length)).hexdigest()}"


def _length(fingerprint: str) -> int:
    return int(fingerprint.partition(":")[0] or 0)


def _begins_as(path: Path, mark: FileMark) -> bool:
    """Whether a file has the first bytes that were read of another look at it."""
    try:
        return not mark.fingerprint or _fingerprint(path, _length(mark.fingerprint)) == mark.fingerprint
    except OSError:
        return False
