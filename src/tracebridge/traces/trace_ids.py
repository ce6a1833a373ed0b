"""Which trace_ids have been used: sixteen bytes each, for one file or for a corpus of many."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

DIGEST_BYTES = 16


class TraceIds:
    """A set of trace_ids that knows their digests alone; two of them share one with a probability below 1e-24."""

    __slots__ = ("_digests",)

    def __init__(self, digests: Iterable[bytes] = ()) -> None:
        self._digests = set(digests)

    def __contains__(self, trace_id: object) -> bool:
        return isinstance(trace_id, str) and digest_of(trace_id) in self._digests

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
    """The trace_ids of many shards, in sorted arrays, whose sizes grow by powers of two: sixteen bytes a run."""

    def __init__(self) -> None:
        self._sorted: list[NDArray[np.bytes_]] = []

    def common(self, digests: NDArray[np.bytes_]) -> frozenset[bytes]:
        """Those of ``digests``, of dtype S16, that have been added before."""
        import numpy as np

        known: set[bytes] = set()
        for held in self._sorted:
            place = np.minimum(np.searchsorted(held, digests), len(held) - 1)
            known.update(padded(digests[held[place] == digests]))
        return frozenset(known)

    def digests(self) -> frozenset[bytes]:
        """All that have been added."""
        return frozenset(digest for held in self._sorted for digest in padded(held))

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


def digest_of(trace_id: str) -> bytes:
    """The digest of a trace_id, `DIGEST_BYTES` long."""
    return blake2b(trace_id.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def padded(digests: NDArray[np.bytes_]) -> list[bytes]:
    """The digests of an array as bytes; numpy drops the zeros at the end of each."""
    return [digest.ljust(DIGEST_BYTES, b"\0") for digest in digests.tolist()]
