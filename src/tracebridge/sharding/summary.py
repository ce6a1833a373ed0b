"""What is known of a shard once it was read: to be merged, to travel, and to be kept in a file.

A kept summary is input like any other: its types, sizes and sums are checked before it is used. It is compressed
msgpack, never pickle.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import zstandard
from numpy.typing import NDArray

from tracebridge.errors import FitError, InputError, ModelError, Problem, TraceError
from tracebridge.states.features import FeatureVector
from tracebridge.states.light_runs import LightRuns
from tracebridge.states.shard_features import ShardFeatures
from tracebridge.states.text_corpus import TextCorpus
from tracebridge.states.text_features import TextFeatures
from tracebridge.traces.corpus import TraceFile
from tracebridge.traces.ending_counts import EndingCount, EndingTally
from tracebridge.traces.problems import ProblemLog
from tracebridge.traces.summary import TraceTally
from tracebridge.traces.trace_ids import DIGEST_BYTES

SCHEMA_VERSION = 2

#: A summary that unpacks to more is neither written nor read.
MAX_BYTES = 1 << 31

_LEVEL = 3
_ERRORS: dict[str, type[InputError]] = {each.__name__: each for each in (InputError, TraceError, FitError, ModelError)}


class SummaryError(ValueError):
    """Bytes that are no summary of a shard."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShardSummary:
    """A file of a corpus or a piece of one, or all files where outcomes from files are about the corpus as a whole.

    Attributes:
        files: the files that were read; none if it could not be.
        log: what is wrong with them and what there is to note.
        companions: files that belong to them and were not read with them, with their labels.
        ids: digests of the trace_ids, ascending, dtype S16.
        tally: what a summary of the corpus counts. endings: the runs by the reason for their end.
        touched: how many runs each rule for endings was applied to.
        features: passages between feature vectors, if asked for. texts: what the steps say, if asked for.
        runs: the runs without what their steps say, if asked for; or their compressed bytes.
        error: what stopped the reading; there is nothing else then.
    """

    files: tuple[TraceFile, ...]
    log: ProblemLog
    companions: tuple[tuple[Path, str], ...]
    ids: NDArray[np.bytes_]
    tally: TraceTally
    endings: EndingTally
    touched: Mapping[str, int]
    features: ShardFeatures | None = None
    texts: TextCorpus | None = None
    runs: LightRuns | bytes | None = None
    error: InputError | None = None

    @classmethod
    def stopped_by(cls, error: InputError) -> ShardSummary:
        """The summary of a shard that could not be read to its end."""
        return cls(
            files=(),
            log=ProblemLog(1),
            companions=(),
            ids=np.empty(0, dtype=f"S{DIGEST_BYTES}"),
            tally=TraceTally(),
            endings=EndingTally(),
            touched={},
            error=error,
        )

    def packed_runs(self) -> bytes | None:
        """The runs as compressed bytes; see `read_runs`."""
        return pack(self.runs.to_bytes()) if isinstance(self.runs, LightRuns) else self.runs

    def to_bytes(self) -> bytes:
        """The summary as compressed msgpack. Raises SummaryError where it would be too large to be read again."""
        log, features = self.log, self.features
        document = _Summary(
            schema_version=SCHEMA_VERSION,
            files=list(self.files),
            problems=log.problems,
            notes=log.notes,
            limit=log.limit,
            counts=(log.n_problems, log.n_notes, log.n_skipped),
            companions=[(os.fsencode(path), label) for path, label in self.companions],
            ids=self.ids.tobytes(),
            tally=self.tally.to_dict(),
            endings=self.endings.counts(),
            touched=dict(self.touched),
            features=None if features is None else _features_document(features),
            texts=None if self.texts is None else self.texts.to_dict(),
            runs=self.packed_runs(),
            error=None if self.error is None else (_class_of(self.error), list(self.error.problems)),
        )
        return pack(_encode(document))

    @classmethod
    def from_bytes(cls, data: bytes) -> ShardSummary:
        """Read `to_bytes`'s bytes.

        Raises:
            SummaryError: saying what is wrong with them. Runs are looked at when they are read.
        """
        try:
            document = _decode(unpack(data))
            if document.schema_version != SCHEMA_VERSION:
                raise SummaryError(f"schema_version {document.schema_version} is not {SCHEMA_VERSION}")
            if len(document.ids) % DIGEST_BYTES:
                raise SummaryError("digests of trace_ids are cut")
            error = None
            if document.error is not None:
                name, problems = document.error
                error = _ERRORS[name](problems)
            return cls(
                files=tuple(document.files),
                log=_log(document),
                companions=tuple((Path(os.fsdecode(path)), label) for path, label in document.companions),
                ids=np.frombuffer(document.ids, dtype=f"S{DIGEST_BYTES}"),
                tally=TraceTally.from_dict(document.tally),
                endings=EndingTally.of_counts(document.endings),
                touched=document.touched,
                features=None if document.features is None else _features(document.features),
                texts=None if document.texts is None else TextCorpus.from_dict(document.texts, TextFeatures()),
                runs=document.runs,
                error=error,
            )
        except (msgspec.MsgspecError, ValueError, KeyError) as error:
            raise SummaryError(f"this is no summary of a shard: {error}") from error


def read_runs(packed: bytes) -> LightRuns:
    """Runs from `ShardSummary.packed_runs`.

    Raises:
        SummaryError: saying what is wrong with the bytes.
    """
    try:
        return LightRuns.from_bytes(unpack(packed))
    except (msgspec.MsgspecError, ValueError) as error:
        raise SummaryError(f"these are no runs of a shard: {error}") from error


def pack(data: bytes) -> bytes:
    """The bytes compressed, with a checksum. Raises SummaryError for more than `MAX_BYTES`."""
    if len(data) > MAX_BYTES:
        raise SummaryError(f"a summary of {len(data) >> 20} MiB is larger than {MAX_BYTES >> 20} MiB")
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(data)


def unpack(data: bytes) -> bytes:
    """The bytes that `pack` compressed. Raises SummaryError for others, and for more than `MAX_BYTES`."""
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= MAX_BYTES:
            raise SummaryError(f"it unpacks to {size} bytes, at most {MAX_BYTES} are read")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise SummaryError(f"its compressed data are damaged: {error}") from error


# ---------------------------------------------------------------- documents

_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**60)]


class _Features(msgspec.Struct, forbid_unknown_fields=True):
    vectors: list[FeatureVector]
    keys: bytes
    counts: bytes


class _Summary(msgspec.Struct, forbid_unknown_fields=True):
    schema_version: int
    files: list[TraceFile]
    problems: list[Problem]
    notes: list[Problem]
    limit: Annotated[int, msgspec.Meta(ge=1)]
    counts: tuple[_Count, _Count, _Count]
    companions: list[tuple[bytes, str]]
    ids: bytes
    tally: dict[str, Any]
    endings: dict[str, EndingCount]
    touched: dict[str, _Count]
    features: _Features | None
    texts: dict[str, Any] | None
    runs: bytes | None
    error: tuple[Literal["InputError", "TraceError", "FitError", "ModelError"], list[Problem]] | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Summary).decode


def _class_of(error: InputError) -> Literal["InputError", "TraceError", "FitError", "ModelError"]:
    if isinstance(error, FitError):
        return "FitError"
    if isinstance(error, ModelError):
        return "ModelError"
    return "TraceError" if isinstance(error, TraceError) else "InputError"


def _log(document: _Summary) -> ProblemLog:
    log = ProblemLog(document.limit)
    log.problems, log.notes = document.problems, document.notes
    log.n_problems, log.n_notes, log.n_skipped = document.counts
    if max(len(log.problems), len(log.notes)) > log.limit or log.n_problems < len(log.problems):
        raise SummaryError("there are more problems than were counted")
    return log


def _features_document(features: ShardFeatures) -> _Features:
    return _Features(
        vectors=list(features.vectors),
        keys=features.keys.astype("<i8").tobytes(),
        counts=features.counts.astype("<i8").tobytes(),
    )


def _features(document: _Features) -> ShardFeatures:
    return ShardFeatures(
        vectors=tuple(document.vectors),
        keys=np.frombuffer(document.keys, dtype="<i8"),
        counts=np.frombuffer(document.counts, dtype="<i8"),
    )
