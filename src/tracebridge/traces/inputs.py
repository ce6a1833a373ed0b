"""Which files the given paths, folders and patterns stand for, and what messages and trace_ids call them."""

from __future__ import annotations

import glob
import os
import posixpath
from operator import itemgetter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TypeAlias

from tracebridge.errors import Location, NothingToCheckError, Problem, TraceError, UsageError
from tracebridge.traces.problems import counted
from tracebridge.traces.remote_files import RemoteFile, find_remote, is_pattern, is_url, local_path, shown_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Source: TypeAlias = Path | RemoteFile

STDIN = "-"
_DATA_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".traj", ".eval", ".parquet"})
_COMPRESSION_SUFFIXES = frozenset({".gz", ".zst"})


class Inputs:
    """The files that the given paths stand for, each with its label, in a fixed order.

    A label is the file's name, below the folder that was given if one was; of files that would share a label, it has as
    many more folders of their paths as tell them apart.

    Raises:
        UsageError: an empty path.
        TraceError: a path that is not there.
        NothingToCheckError: no file at all.
    """

    def __init__(self, given: Sequence[str | Path]) -> None:
        if "" in given:
            raise UsageError("a path is empty; the current folder is '.'")
        self.files: list[tuple[Source | None, str]] = []
        self.notes: list[Problem] = []
        self._depths: dict[Source, int] = {}  # how many of its last parts a file's label has
        for item in given:
            if str(item) == STDIN:
                self.files.append((None, "<stdin>"))
                continue
            path = Path(item)
            if is_url(item):
                url, local = str(item), local_path(str(item))
                if local is None:
                    self._add_remote(url)
                    continue
                item = path = local  # noqa: PLW2901
            if path.is_dir():
                self._add_folder(path)
            elif path.exists():
                self._add(path, 1)
            else:
                self._add_pattern(item)
        self._tell_apart()
        if not self.files:
            where = ", ".join(shown_url(str(item)) if is_url(item) else label_of(item) for item in given)
            raise NothingToCheckError(f"there is no trace file in {where}" if where else "no trace file was named")

    def _add(self, path: Source, depth: int) -> None:
        self.files.append((path, label_of(path, depth)))
        self._depths[path] = max(depth, self._depths.get(path, 0))

    def _tell_apart(self) -> None:
        """Lengthen the labels that several files share, until none does."""
        if len({label for _, label in self.files}) == len(self.files) == len(self._depths):
            return
        while True:
            sharing: dict[str, set[Source]] = {}
            for path in self._depths:
                sharing.setdefault(label_of(path, self._depths[path]), set()).add(path)
            growing = [
                path
                for paths in sharing.values()
                if len(paths) > 1 and len({path.resolve() for path in paths}) > 1
                for path in paths
                if self._depths[path] < len(path.parts)
            ]
            if not growing:
                break
            for path in growing:
                self._depths[path] += 1
        self.files = [
            (path, label if path is None else label_of(path, self._depths[path])) for path, label in self.files
        ]

    def _add_remote(self, url: str) -> None:
        found, root = find_remote(url)
        if root is None:
            for file in found:
                self._add(file, 1)
            return
        unread = []
        n_parts = len(RemoteFile(url, root).parts)
        for file in found:
            depth = max(1, len(file.parts) - n_parts)
            if any(part.startswith(".") for part in file.parts[-depth:]):
                continue
            if is_pattern(url) or _is_data(PurePath(file.path)):
                self._add(file, depth)
            else:
                unread.append(label_of(file, depth))
        self._note_unread(shown_url(url), "file", unread, "by the suffix", "name a file to read it")

    def _add_folder(self, folder: Path) -> None:
        unread, links = [], []
        n_parts = len(folder.parts)
        for path, entry in sorted(_visible_entries(folder), key=itemgetter(0)):
            depth = len(path.parts) - n_parts
            is_link = entry.is_symlink()
            if not (path.is_file() if is_link else entry.is_file(follow_symlinks=False)):
                if is_link:
                    links.append(label_of(path, depth))
            elif _is_data(path):
                self._add(path, depth)
            else:
                unread.append(label_of(path, depth))
        place = label_of(folder, 1)
        self._note_unread(place, "file", unread, "by the suffix", "name a file to read it")
        self._note_unread(place, "link", links, "to a folder or to nothing", "name what it leads to")

    def _note_unread(self, place: str, what: str, names: list[str], reason: str, hint: str) -> None:
        if names:
            are = "is" if len(names) == 1 else "are"
            some = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
            message = f"{counted(len(names), what)} {are} not read, {reason}: {some}"
            self.notes.append(Problem(location=Location(path=place), message=message, hint=hint))

    def _add_pattern(self, item: str | Path) -> None:
        found = [Path(name) for name in sorted(set(_matches(str(item))))]
        files = [path for path in found if path.is_file()]
        if not files:
            what = "no file matches this pattern" if glob.has_magic(str(item)) else "there is no such file or folder"
            raise TraceError(what, location=Location(path=label_of(item)))
        common = Path(os.path.commonpath([path.parent for path in files])) if len(files) > 1 else files[0].parent
        for path in files:
            self._add(path, len(path.parts) - len(common.parts))


def label_of(path: str | Source, depth: int | None = None) -> str:
    """The last parts of a path, or all of it, as text that prints: other bytes and control characters escaped."""
    parts = Path(path).parts if isinstance(path, str) else path.parts
    whole = posixpath.join(*(parts if depth is None else parts[len(parts) - depth :])) if parts else "."
    if whole.isprintable():
        return whole
    text = os.fsencode(whole).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def is_read_once(path: str | Path) -> bool:
    """Whether reading uses the input up: standard input, and pipes."""
    return str(path) == STDIN or (Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir())


def _visible_entries(folder: Path) -> Iterator[tuple[Path, os.DirEntry[str]]]:
    """What lies below a folder, hidden entries left out; links to folders are not followed but are among it.

    Raises:
        TraceError: a folder cannot be listed.
    """
    for parent, entries in _walk(folder):
        yield from ((Path(parent, entry.name), entry) for entry in entries if not entry.name.startswith("."))


def _walk(folder: str | Path) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """A folder and those in it, hidden ones left out, each with its entries that are no folders.

    Raises:
        TraceError: a folder cannot be listed.
    """
    pending = [os.fspath(folder)]
    while pending:
        parent = pending.pop()
        try:
            with os.scandir(parent) as found:
                entries = list(found)
        except OSError as error:
            location = Location(path=label_of(error.filename or parent))
            raise TraceError(f"the folder cannot be listed: {error.strerror}", location=location) from error
        others = []
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                others.append(entry)
            elif not entry.name.startswith("."):
                pending.append(entry.path)
        yield parent, others


def _matches(pattern: str) -> Iterator[str]:
    """As glob.glob, recursively, but ``**`` does not follow links to folders: those that form a loop have no end."""
    parts = pattern.split("/")
    if "**" not in parts:
        yield from glob.glob(pattern)  # noqa: PTH207 - patterns may be absolute
        return
    place = parts.index("**")
    above, below = "/".join(parts[:place]), parts[place + 1 :]
    roots = glob.glob(above) if above else ["/" if place else "."]  # noqa: PTH207
    for root in roots:
        for folder, entries in _walk(root):
            inside = "" if folder == "." else folder.removeprefix("./")
            if below:
                yield from _matches("/".join([glob.escape(inside), *below]) if inside else "/".join(below))
            else:
                yield from (str(Path(inside, entry.name)) for entry in entries if not entry.name.startswith("."))


def _is_data(path: PurePath) -> bool:
    if path.suffix in _COMPRESSION_SUFFIXES:
        path = path.with_suffix("")
    return path.suffix in _DATA_SUFFIXES
