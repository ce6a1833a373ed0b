"""Which files the given paths, folders and patterns stand for, and what messages and trace_ids call them."""

from __future__ import annotations

import glob
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tracebridge.errors import Location, NothingToCheckError, Problem, TraceError, UsageError
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STDIN = "-"
_DATA_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".traj", ".eval"})
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
        self.files: list[tuple[Path | None, str]] = []
        self.notes: list[Problem] = []
        self._depths: dict[Path, int] = {}  # how many of its last parts a file's label has
        for item in given:
            if str(item) == STDIN:
                self.files.append((None, "<stdin>"))
                continue
            path = Path(item)
            if path.is_dir():
                self._add_folder(path)
            elif path.exists():
                self._add(path, 1)
            else:
                self._add_pattern(item)
        self._tell_apart()
        if not self.files:
            where = ", ".join(label_of(item) for item in given)
            raise NothingToCheckError(f"there is no trace file in {where}" if where else "no trace file was named")

    def _add(self, path: Path, depth: int) -> None:
        self.files.append((path, label_of(path, depth)))
        self._depths[path] = max(depth, self._depths.get(path, 0))

    def _tell_apart(self) -> None:
        """Lengthen the labels that several files share, until none does."""
        while True:
            sharing: dict[str, set[Path]] = {}
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

    def _add_folder(self, folder: Path) -> None:
        unread = []
        n_parts = len(folder.parts)
        for path in sorted(_visible_files(folder)):
            depth = len(path.parts) - n_parts
            if _is_data(path):
                self._add(path, depth)
            else:
                unread.append(label_of(path, depth))
        if unread:
            are = "is" if len(unread) == 1 else "are"
            some = ", ".join(unread[:10]) + (", …" if len(unread) > 10 else "")
            message = f"{counted(len(unread), 'file')} {are} not read, by the suffix: {some}"
            place = Location(path=label_of(folder, 1))
            self.notes.append(Problem(location=place, message=message, hint="name a file to read it"))

    def _add_pattern(self, item: str | Path) -> None:
        found = [Path(name) for name in sorted(glob.glob(str(item), recursive=True))]  # noqa: PTH207 - patterns may be absolute
        files = [path for path in found if path.is_file()]
        if not files:
            what = "no file matches this pattern" if glob.has_magic(str(item)) else "there is no such file or folder"
            raise TraceError(what, location=Location(path=label_of(item)))
        common = Path(os.path.commonpath([path.parent for path in files])) if len(files) > 1 else files[0].parent
        for path in files:
            self._add(path, len(path.parts) - len(common.parts))


def label_of(path: str | Path, depth: int | None = None) -> str:
    """The last parts of a path, or all of it, as text that prints: other bytes and control characters escaped."""
    parts = Path(path).parts
    whole = PurePosixPath(*(parts if depth is None else parts[len(parts) - depth :]))
    text = os.fsencode(whole).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


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
