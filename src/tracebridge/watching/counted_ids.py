"""Which runs of a stream were counted, so that a file written anew or a run that stands twice counts once."""

from __future__ import annotations

from base64 import b64decode, b64encode

from tracebridge.traces.trace_ids import DIGEST_BYTES, digest_of

#: Earlier ones are forgotten, the earliest first: a stream has no end.
MAX_IDS = 1_000_000


class CountedIds:
    """The trace_ids of the latest `MAX_IDS` runs."""

    def __init__(self) -> None:
        self._digests: dict[bytes, None] = {}

    def claim(self, trace_id: str) -> bool:
        """Remember one; whether it is new."""
        digest = digest_of(trace_id)
        if digest in self._digests:
            return False
        self._digests[digest] = None
        if len(self._digests) > MAX_IDS:
            del self._digests[next(iter(self._digests))]
        return True

    def to_text(self) -> str:
        """All of them in order, as base64."""
        return b64encode(b"".join(self._digests)).decode("ascii")

    def restore(self, text: str) -> None:
        """Read `to_text`'s value.

        Raises:
            ValueError: it is none.
        """
        data = b64decode(text, validate=True)
        if len(data) % DIGEST_BYTES:
            raise ValueError("the ids of the runs that were counted are cut short")
        self._digests = dict.fromkeys(data[i : i + DIGEST_BYTES] for i in range(0, len(data), DIGEST_BYTES))
