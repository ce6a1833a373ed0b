"""Which trace_ids have been used: sixteen bytes each, for one file or for a corpus of many."""

from __future__ import annotations

import tempfile
import weakref
from hashlib import blake2b
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

DIGEST_BYTES = 16

_MOST_IN_MEMORY = 1 << 18  # digests of a corpus: 4 MiB


class TraceIds:
    """A set of trace_ids that knows their digests alone; two of them share one with a probability below 1e-24."""

    __slots__ = ("_digests",)

    def __init__(self, digests: Iterable[bytes] = ()) -> None:
        self._digests = set(digests)

    def __contains__(self, trace_id: object) -> bool:
        return bool(self._digests) and isinstance(trace_id, str) and digest_of(trace_id) in self._digests

    def __len__(self) -> int:
        return len(self._digests)

    def claim(self, trace_id: str) -> bool:
        """Remember one; whether it is new."""
        digest = digest_of(trace_id)
        is_new = digest not in self._digests
        self._digests.add(digest)
        return is_new

    def copy(self) -> TraceIds:
        """The same ids in a set of its own."""
        return TraceIds(self._digests)

    def beyond(self, others: TraceIds) -> NDArray[np.bytes_]:
        """The digests that ``others`` does not have, ascending, of dtype S16."""
        import numpy as np

        return np.array(sorted(self._digests - others._digests), dtype=f"S{DIGEST_BYTES}")


class CorpusIds:
    """The trace_ids of many shards, sixteen bytes a run in sorted arrays: the latest in memory, others in a file.

    The temporary file goes when the object does; memory does not grow with the number of runs.
    """

    def __init__(self) -> None:
        self._sorted: list[NDArray[np.bytes_]] = []  # their sizes grow by powers of two
        self._file: IO[bytes] | None = None
        self._places: list[tuple[int, int]] = []  # of arrays in the file: offset and length

    def common(self, digests: NDArray[np.bytes_]) -> frozenset[bytes]:
        """Those of ``digests``, of dtype S16, that have been added before."""
        import numpy as np

        known: set[bytes] = set()
        for held in self._arrays():
            place = np.minimum(np.searchsorted(held, digests), len(held) - 1)
            known.update(padded(digests[held[place] == digests]))
        return frozenset(known)

    def digests(self) -> frozenset[bytes]:
        """All that have been added."""
        return frozenset(digest for held in self._arrays() for digest in padded(held))

    def add(self, digests: NDArray[np.bytes_]) -> None:
        """Remember the ids of one more shard."""
        import numpy as np

        if not len(digests):
            return
        added = np.sort(digests)
        while self._sorted and len(self._sorted[-1]) <= 2 * len(added):
            added = np.concatenate([self._sorted.pop(), added])
            added.sort(kind="stable")
        self._sorted.append(added)
        if sum(map(len, self._sorted)) > _MOST_IN_MEMORY:
            self._write(np.sort(np.concatenate(self._sorted)))
            self._sorted = []

    def _write(self, digests: NDArray[np.bytes_]) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="tracebridge-ids-")  # noqa: SIM115 - closed with this object
            weakref.finalize(self, self._file.close)
        self._places.append((self._file.seek(0, 2), len(digests)))
        self._file.write(digests.tobytes())
        self._file.flush()

    def _arrays(self) -> Iterator[NDArray[np.bytes_]]:
        """All arrays, those of the file one at a time."""
        import numpy as np

        yield from self._sorted
        for start, length in self._places:
            assert self._file is not None  # noqa: S101 - it has places
            yield np.memmap(self._file, dtype=f"S{DIGEST_BYTES}", mode="r", offset=start, shape=(length,))


def digest_of(trace_id: str) -> bytes:
    """The digest of a trace_id, `DIGEST_BYTES` long."""
    return blake2b(trace_id.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def padded(digests: NDArray[np.bytes_]) -> list[bytes]:
    """The digests of an array as bytes; numpy drops the zeros at the end of each."""
    return [digest.ljust(DIGEST_BYTES, b"\0") for digest in digests.tolist()]
