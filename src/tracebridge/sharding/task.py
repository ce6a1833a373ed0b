"""One shard: a file of a corpus, read where the work is done, into a summary that is small and adds up."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.errors import InputError, Location, Problem, TraceError
from tracebridge.sharding.scan import NATIVE
from tracebridge.sharding.summary import ShardSummary, SummaryError
from tracebridge.states.features import PassageCounter, RunEncoder
from tracebridge.states.light_runs import LightRuns, packed, without_steps
from tracebridge.states.manual import StateMap
from tracebridge.states.shard_features import ShardFeatures
from tracebridge.states.state_map_file import state_map_from_dict
from tracebridge.states.text_corpus import TextCorpus
from tracebridge.states.text_features import TextFeatures
from tracebridge.traces.inputs import Source
from tracebridge.traces.readers.endings import EndingRules, read_ending_rules
from tracebridge.traces.readers.outcome_files import read_outcomes
from tracebridge.traces.stream import TraceStream, check_reading
from tracebridge.traces.summary import TraceTally
from tracebridge.traces.trace_ids import TraceIds
from tracebridge.version import __version__

if TYPE_CHECKING:
    from tracebridge.states.features import EncodedBatch
    from tracebridge.traces.files import LineSpan
    from tracebridge.traces.model import Trace


#: Of a piece of a large native file: the memory that a reader takes does not depend on the size of its file.
PIECE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOptions:
    """How the files of a corpus are read, and what is asked of them; small, and ready to be sent.

    Attributes:
        format, mapping, outcomes, max_problems: as `open_traces` takes them. endings: the rules of its file.
        features: count passages between feature vectors. runs: keep the runs, without what their steps say.
        state_map: the document of the `StateMap` that gives steps their groups. texts: their texts do.
        piece_bytes: native files that are larger are read in pieces of about this size.
    """

    format: str | None = None
    mapping: Mapping[str, str]
    outcomes: tuple[str, ...] = ()
    endings: EndingRules | None = None
    max_problems: int = 100
    features: bool = True
    runs: bool = False
    state_map: Mapping[str, Any] | None = None
    texts: bool = False
    piece_bytes: int = PIECE_BYTES

    @classmethod
    def of(
        cls,
        *,
        format: str | None = None,  # noqa: A002 - the word of the command line
        mapping: Mapping[str, str] | None = None,
        outcomes: Sequence[str | Path] | None = None,
        endings: str | Path | None = None,
        max_problems: int = 100,
        features: bool = True,
        runs: bool = False,
        state_map: StateMap | None = None,
        texts: bool = False,
    ) -> ShardOptions:
        """The options for arguments as `open_traces` takes them. Raises UsageError for what it refuses."""
        check_reading(format, mapping, max_problems)
        return cls(
            format=format,
            mapping=dict(mapping or {}),
            outcomes=tuple(str(Path(path).absolute()) for path in outcomes or ()),
            endings=None if endings is None else read_ending_rules(endings),
            max_problems=max_problems,
            features=features,
            runs=runs,
            state_map=None if state_map is None else state_map.to_dict(),
            texts=texts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardTask:
    """What a worker is asked to read.

    Attributes:
        files: one file with its label; all files of the corpus where outcomes from files are about it as a whole.
        notes: what is known of other files.
        options: how.
        taken: digests of trace_ids that earlier files have used.
        span: the lines of the file that are read, if not all; it is a native one.
        n_bytes: how much is read, about; a stored file has no fewer.
        version: of the package that asks.
    """

    files: tuple[tuple[Source | None, str], ...]
    notes: tuple[Problem, ...] = ()
    options: ShardOptions
    taken: frozenset[bytes] = frozenset()
    span: LineSpan | None = None
    n_bytes: int = 0
    version: str = __version__

    def stream(self) -> TraceStream:
        """The traces of the files."""
        options = self.options
        return TraceStream(
            self,
            format_name=options.format if self.span is None else NATIVE,
            mapping=options.mapping,
            outcomes=read_outcomes(options.outcomes) if options.outcomes else None,
            endings=options.endings,
            skip_bad=True,
            max_problems=options.max_problems,
            follow=bool(options.outcomes),
            taken=TraceIds(self.taken),
            span=self.span,
        )


def summarize(task: ShardTask) -> ShardSummary:
    """Read a shard.

    Errors of the input that stop the reading are part of the summary: whoever merges the shards raises the first of
    them, whichever worker was faster.
    """
    stream, tally = task.stream(), TraceTally()
    features = runs = None
    texts = TextCorpus(TextFeatures()) if task.options.texts else None
    try:
        if task.options.features or task.options.runs:
            features, runs = _encoded(stream.usable(), tally, task.options, texts)
        else:
            for trace in stream.usable():
                tally.add(trace)
    except InputError as error:
        return ShardSummary.stopped_by(error)
    return ShardSummary(
        files=tuple(stream.files),
        log=stream.log,
        companions=tuple(stream.companions),
        ids=stream.ids.beyond(TraceIds(task.taken)),
        tally=tally,
        endings=stream.endings,
        touched=dict(task.options.endings.touched) if task.options.endings is not None else {},
        features=features if task.options.features else None,
        texts=texts,
        runs=runs,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A worker's answer where reading would give something else than it gives to the process that asks.

    Attributes:
        host: of the worker. reason: what is not as expected there.
    """

    host: str
    reason: str


def summarize_to_bytes(tasks: list[tuple[int, ShardTask]]) -> list[tuple[int, bytes | Refusal]]:
    """Read some shards where the results must travel, each with its number."""
    return [(number, _to_bytes(task)) for number, task in tasks]


def unlike(task: ShardTask) -> str | None:
    """What is not here as the process that asks has it; None if nothing is."""
    if task.version != __version__:
        return f"it has tracebridge {__version__}, not {task.version}"
    for path, _ in task.files:
        if not isinstance(path, Path):
            continue
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
        except OSError as error:
            return f"{path} cannot be opened: {error.strerror}"
        least = task.n_bytes if task.span is None else task.span.end
        if size < least:
            return f"{path} has {size:,} bytes, not {least:,}"
    return None


def _to_bytes(task: ShardTask) -> bytes | Refusal:
    reason = unlike(task)
    if reason is not None:
        return Refusal(host=platform.node(), reason=reason)
    summary = summarize(task)
    try:
        return summary.to_bytes()
    except SummaryError as error:
        names = ", ".join(file.path for file in summary.files)
        problem = Problem(location=Location(path=names), message=str(error), hint="split the file")
        return ShardSummary.stopped_by(TraceError(problem)).to_bytes()


def _encoded(
    traces: Iterator[Trace], tally: TraceTally, options: ShardOptions, texts: TextCorpus | None
) -> tuple[ShardFeatures, LightRuns | None]:
    classifier: StateMap | TextCorpus | None = texts
    if options.state_map is not None:
        classifier = state_map_from_dict({k: v for k, v in options.state_map.items() if k != "kind"})
    encoder, counter = RunEncoder(classifier), PassageCounter()
    heads: list[Trace] = []
    kept: list[EncodedBatch] = []

    def passing() -> Iterator[Trace]:
        for trace in traces:
            if options.runs:
                heads.append(without_steps(trace))
            yield tally.add(trace)

    for batch in encoder.batches(passing() if texts is None else texts.watched(passing())):
        counter.add(batch.codes, batch.offsets, batch.outcomes)
        if options.runs:
            kept.append(batch)
    table = encoder.vectors()
    features = ShardFeatures.of(counter, table)
    if not options.runs:
        return features, None
    empty = np.empty(0, dtype=np.int32)
    raw = np.concatenate([empty, *(batch.codes for batch in kept)])
    lengths = np.concatenate([empty, *(np.diff(batch.offsets) for batch in kept)]).astype(np.uint32)
    used, codes = np.unique(raw, return_inverse=True)
    runs = LightRuns(
        heads=tuple(heads),
        vectors=tuple(table[code] for code in used.tolist()),
        codes=packed(codes, len(used)),
        lengths=lengths,
    )
    return features, runs
