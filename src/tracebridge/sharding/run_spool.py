"""The runs of a corpus, without what their steps say, in a temporary file: as many readings as are wanted."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracebridge.errors import TraceError
from tracebridge.sharding.summary import SummaryError, read_runs

if TYPE_CHECKING:
    from tracebridge.traces.model import Trace


class RunSpool:
    """Packed runs of shards, in the order added; every iteration gives all runs, one shard in memory at a time.

    A step takes about a byte of the file, which goes when the object does.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="tracebridge-runs-")  # noqa: SIM115 - closed with this object
        self._places: list[tuple[int, int]] = []
        weakref.finalize(self, self._file.close)

    def add(self, packed: bytes) -> None:
        """Keep the runs of one more shard."""
        self._places.append((self._file.seek(0, 2), len(packed)))
        self._file.write(packed)

    def __iter__(self) -> Iterator[Trace]:
        """The runs.

        Raises:
            TraceError: for runs that were kept by others and are damaged.
        """
        for start, size in self._places:
            self._file.seek(start)
            try:
                runs = read_runs(self._file.read(size))
            except SummaryError as error:
                raise TraceError(f"what was kept of a trace file is damaged: {error}") from error
            yield from runs
