"""Readers that other packages bring, kept at arm's length: one that is broken is named, and takes no other down."""

from __future__ import annotations

from functools import cache
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.model import Trace
from tracebridge.traces.problems import escaped, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.problems import ProblemLog
    from tracebridge.traces.readers.reader import Reader

ENTRY_POINT_GROUP = "tracebridge.readers"

_METHODS = ("detect", "read")


class PlugInError(Exception):
    """An entry point that names no usable reader; the message says why."""


class PlugInReader:
    """A reader of another package. What goes wrong inside it becomes a problem that names the package.

    Attributes:
        name: what ``--format`` calls it.
        description: one line for listings.
        details: what it takes as a step, an error and an outcome, in its own words.
        origin: the package and its version.
        failures: what went wrong while it looked whether a file is of its format; such a file counts as not of it.
    """

    def __init__(self, reader: Any, origin: str) -> None:
        """Raises PlugInError for an object that is no reader."""
        if isinstance(reader, type):
            raise PlugInError(f"{reader.__name__} is a class, where an object of it is needed")
        for method in _METHODS:
            if not callable(getattr(reader, method, None)):
                raise PlugInError(f"the object has no method {method}")
        for text in ("name", "description"):
            if not isinstance(getattr(reader, text, None), str) or not getattr(reader, text).isprintable():
                raise PlugInError(f"its {text} is not a line of text")
        if not reader.name:
            raise PlugInError("its name is empty")
        self.name: str = reader.name
        self.description: str = reader.description
        self.details = cleandoc(type(reader).__doc__ or "")
        self.origin = origin
        self.failures: list[Problem] = []
        self._reader: Reader = reader

    def detect(self, file: InputFile) -> bool:
        """Whether the plug-in recognises the file; false where it fails, which is then among the failures."""
        try:
            return bool(self._reader.detect(file))
        except Exception as error:  # noqa: BLE001 - code of somebody else
            if not self.failures:
                self.failures.append(self._failure(error, file, "look at"))
            return False

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The runs that the plug-in finds in a file.

        Raises:
            TraceError: the plug-in says that the file is unusable, or fails.
        """
        try:
            for trace in self._reader.read(file, log):
                if not isinstance(trace, Trace):
                    raise TypeError(f"a Trace was expected, got {shown(trace)}")
                yield trace
        except TraceError:
            raise
        except Exception as error:
            raise TraceError(self._failure(error, file, "read")) from error

    def companions(self, file: InputFile) -> Sequence[Path]:
        """Files beside this one that the plug-in wants read with it. Raises TraceError where it fails."""
        find = getattr(self._reader, "companions", None)
        try:
            return [] if find is None else list(find(file))
        except Exception as error:
            raise TraceError(self._failure(error, file, "find what belongs to")) from error

    def _failure(self, error: Exception, file: InputFile, doing: str) -> Problem:
        message = f"the reader {self.name!r} of {self.origin} failed to {doing} the file: {_described(error)}"
        hint = "tell its makers, or choose another one with --format"
        return Problem(location=Location(path=file.label), message=message, hint=hint)


class PlugIns:
    """The readers of installed packages.

    Attributes:
        readers: in the order of their entry points' names.
        refused: the entry points that name no usable reader, and why.
    """

    def __init__(self, entry_points: Sequence[EntryPoint], taken: Collection[str]) -> None:
        self.readers: list[PlugInReader] = []
        self.refused: list[Problem] = []
        names = set(taken)
        for entry_point in entry_points:
            origin = _origin(entry_point)
            try:
                reader = PlugInReader(entry_point.load(), origin)
                if reader.name in names:
                    raise PlugInError(f"the name {reader.name!r} is in use")
            except Exception as error:  # noqa: BLE001 - code of somebody else runs when it is loaded
                why = str(error) if isinstance(error, PlugInError) else _described(error)
                message = f"its trace reader {escaped(entry_point.value)!r} is not used: {why}"
                self.refused.append(Problem(location=Location(path=origin), message=message))
            else:
                names.add(reader.name)
                self.readers.append(reader)

    def problems(self) -> list[Problem]:
        """What is wrong with plug-ins, as far as it has come out."""
        return [*self.refused, *(failure for reader in self.readers for failure in reader.failures)]


@cache
def installed_plug_ins(taken: frozenset[str]) -> PlugIns:
    """The plug-ins of the environment, loaded once; ``taken`` are the names that none may have."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return PlugIns(sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: (entry.name, entry.value)), taken)


def _origin(entry_point: EntryPoint) -> str:
    distribution = entry_point.dist
    return "an unknown package" if distribution is None else f"{distribution.name} {distribution.version}"


def _described(error: Exception) -> str:
    return escaped(f"{type(error).__name__}: {error}", 300)
