"""What a reader of a trace format is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracebridge.traces.files import InputFile
    from tracebridge.traces.model import Trace
    from tracebridge.traces.problems import ProblemLog


class Reader(Protocol):
    """One trace format. A package adds one through the entry point group ``tracebridge.readers``.

    Attributes:
        name: what ``--format`` calls it.
        description: one line for listings.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def description(self) -> str: ...  # noqa: D102

    def detect(self, file: InputFile) -> bool:
        """Whether ``file.head``, its first 256 KiB, is of this format; of all readers at most one should say so."""

    def read(self, file: InputFile, log: ProblemLog) -> Iterator[Trace]:
        """The runs of a file, in its order; what cannot be used goes to the log.

        A reader may raise TraceError where the whole file is unusable. The caller checks that each trace obeys the
        trace schema and that its trace_id is new.
        """


class CompanionReader(Reader, Protocol):
    """A reader of a format that spreads over several files."""

    def companions(self, file: InputFile) -> Sequence[Path]:
        """Files beside this one that must be read with it."""
