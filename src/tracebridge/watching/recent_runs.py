"""The last runs of a stream, which its certificate is about."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterable

import msgspec
from msgspec import structs

from tracebridge.sharding.summary import pack, unpack
from tracebridge.traces.jsonl import encode_checked
from tracebridge.traces.model import Trace

_decode = msgspec.json.Decoder(list[Trace]).decode


class RecentRuns:
    """The last runs, at most so many.

    Args:
        most: how many. keep_texts: states depend on what steps say; texts would be most of the memory otherwise.
    """

    def __init__(self, most: int, *, keep_texts: bool) -> None:
        self._runs: deque[Trace] = deque(maxlen=most)
        self._keep_texts = keep_texts

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, runs: Iterable[Trace]) -> None:
        """Remember runs; the oldest are forgotten for them."""
        self._runs.extend(runs if self._keep_texts else map(_without_texts, runs))

    def all(self) -> list[Trace]:
        """All of them, the oldest first."""
        return list(self._runs)

    def to_text(self) -> str:
        """Compressed, as base64."""
        return b64encode(pack(b"[" + b",".join(map(encode_checked, self._runs)) + b"]")).decode("ascii")

    def restore(self, text: str) -> None:
        """Read `to_text`'s value; of more runs than are remembered the last.

        Raises:
            ValueError: it is none.
        """
        try:
            self._runs = deque(_decode(unpack(b64decode(text, validate=True))), maxlen=self._runs.maxlen)
        except ValueError as error:  # those of msgspec and of unpack among them
            raise ValueError(f"what was saved of the last runs cannot be read: {error}") from error


def _without_texts(trace: Trace) -> Trace:
    """What rule-based states are made of."""
    steps = tuple(
        structs.replace(step, text=None, attributes={"retry": True} if step.attributes.get("retry") is True else {})
        for step in trace.steps
    )
    return structs.replace(trace, steps=steps, attributes={})
