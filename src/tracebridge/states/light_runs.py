"""Runs without what their steps say: who ran, how it ended, and the feature vector of every step.

That is all that fitting, certifying and resampling ask of a run whose states come from rule-based features. The steps
of such a run are those of its vectors, shared by all steps that are alike; encoded anew they give the same vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tracebridge.states.features import FeatureVector
from tracebridge.traces.model import Step, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LightRuns:
    """Some runs, in their order.

    Attributes:
        heads: the traces without their steps.
        vectors: distinct rule-based vectors, without groups.
        codes: positions in ``vectors``, run after run, shape (n_steps,), of the smallest unsigned type that holds them.
        lengths: steps of each run, uint32, shape (n_runs,).

    Raises:
        ValueError: for arrays that do not fit.
    """

    heads: tuple[Trace, ...]
    vectors: tuple[FeatureVector, ...]
    codes: NDArray[np.unsignedinteger]
    lengths: NDArray[np.uint32]

    def __post_init__(self) -> None:
        if any(vector.group for vector in self.vectors) or len(set(self.vectors)) != len(self.vectors):
            raise ValueError("light runs are over distinct vectors without groups")
        if self.lengths.shape != (len(self.heads),) or int(self.lengths.sum(dtype=np.int64)) != len(self.codes):
            raise ValueError("the lengths of light runs are not those of their steps")
        if len(self.codes) and int(self.codes.max()) >= len(self.vectors):
            raise ValueError("a step of a light run has no vector")
        if any(head.steps for head in self.heads):
            raise ValueError("the head of a light run has no steps")

    def __iter__(self) -> Iterator[Trace]:
        steps = [
            Step(kind=v.kind, name=v.name, error=v.error, attributes={"retry": True} if v.retry else {})
            for v in self.vectors
        ]
        end = 0
        step_of = steps.__getitem__
        for head, length in zip(self.heads, self.lengths.tolist(), strict=True):
            start, end = end, end + length
            yield with_steps(head, tuple(map(step_of, self.codes[start:end].tolist())))

    def to_bytes(self) -> bytes:
        """The runs as msgpack, uncompressed."""
        document = _Document(
            heads=_encode_json(self.heads),
            vectors=[(v.kind, v.name, v.error, v.retry) for v in self.vectors],
            width=self.codes.dtype.itemsize,
            codes=self.codes.astype(self.codes.dtype.newbyteorder("<")).tobytes(),
            lengths=self.lengths.astype("<u4").tobytes(),
        )
        return _encode(document)

    @classmethod
    def from_bytes(cls, data: bytes) -> LightRuns:
        """Read `to_bytes`'s bytes.

        Raises:
            msgspec.MsgspecError, ValueError: for anything else.
        """
        document = _decode(data)
        if document.width not in (1, 2, 4):
            raise ValueError(f"codes of {document.width} bytes")
        return cls(
            heads=tuple(_decode_heads(document.heads)),
            vectors=tuple(FeatureVector(*vector) for vector in document.vectors),
            codes=np.frombuffer(document.codes, dtype=f"<u{document.width}"),
            lengths=np.frombuffer(document.lengths, dtype="<u4"),
        )


def without_steps(trace: Trace) -> Trace:
    """The head of a run."""
    return msgspec.structs.replace(trace, steps=())


def with_steps(head: Trace, steps: tuple[Step, ...]) -> Trace:
    """A run from its head."""
    return msgspec.structs.replace(head, steps=steps)


def packed(codes: NDArray[np.integer], size: int) -> NDArray[np.unsignedinteger]:
    """Codes below ``size`` in the smallest of one, two and four bytes."""
    return codes.astype(np.min_scalar_type(max(size - 1, 0)))


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    heads: bytes  # JSON, as traces are stored elsewhere: msgpack has no integers beyond 64 bits
    vectors: list[tuple[str, str, bool, bool]]
    width: int
    codes: bytes
    lengths: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Document).decode
_encode_json = msgspec.json.Encoder().encode
_decode_heads = msgspec.json.Decoder(list[Trace]).decode
