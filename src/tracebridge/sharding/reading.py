"""A corpus from its shards: who reads them does not matter, the order in which they are merged is that of the files."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracebridge.errors import UsageError
from tracebridge.sharding.manifest import Manifest
from tracebridge.sharding.run_spool import RunSpool
from tracebridge.sharding.scan import ListedFile, ScannedFile
from tracebridge.sharding.source import OnProgress, ShardSource
from tracebridge.sharding.summary import ShardSummary
from tracebridge.sharding.task import ShardOptions, ShardTask, summarize
from tracebridge.states.shard_features import FeatureTotal
from tracebridge.states.text_corpus import TextCorpus
from tracebridge.states.text_features import TextFeatures
from tracebridge.traces.ending_counts import EndingTally
from tracebridge.traces.inputs import Inputs, Source
from tracebridge.traces.problems import ProblemLog
from tracebridge.traces.readers import plug_ins
from tracebridge.traces.readers.endings import EndingRules
from tracebridge.traces.stream import format_hint, given_twice, require_usable
from tracebridge.traces.summary import TraceTally
from tracebridge.traces.trace_ids import CorpusIds

if TYPE_CHECKING:
    from tracebridge.errors import Problem
    from tracebridge.traces.corpus import TraceFile


class ShardedCorpus:
    """What the shards of a corpus add up to.

    Attributes:
        files: the files that were read. log: what is wrong with them, in their order.
        tally: what a summary counts. endings: the runs by the reason for their end.
        features: passages between feature vectors. texts: what the steps say, if it was asked for.
        runs: the runs without what their steps say, if they were asked for.
    """

    def __init__(self, options: ShardOptions) -> None:
        self.files: list[TraceFile] = []
        self.log = ProblemLog(options.max_problems)
        self.tally = TraceTally()
        self.endings = EndingTally()
        self.features = FeatureTotal()
        self.texts = TextCorpus(TextFeatures()) if options.texts else None
        self.runs = RunSpool() if options.runs else None
        self._touched: Counter[str] = Counter()
        self._ids = CorpusIds()
        self._by_hash: dict[str, TraceFile] = {}
        self._is_hinted = False

    def require_usable(self, *, skip_bad: bool) -> None:
        """Raise TraceError for bad records, unless they are to be skipped, and NothingToCheckError for no run."""
        require_usable(self.log, self.files, self.tally.n_runs, skip_bad=skip_bad)

    def document(self) -> dict[str, Any]:
        """The files, and what was skipped and noted, as JSON values."""
        return {
            "files": [file.to_dict() for file in self.files],
            "n_skipped": self.log.n_skipped,
            "problems": [str(problem) for problem in self.log.listing()],
            "notes": [str(note) for note in self.log.notes],
            "endings": self.endings.to_dict(),
        }

    def begin(self, notes: Iterable[Problem], rules: EndingRules | None) -> None:
        """Note what is known before the first shard."""
        for note in notes:
            self.log.note(note)
        if rules is not None:
            self.files += rules.files

    def end(self, rules: EndingRules | None) -> None:
        """Note what is known after the last shard."""
        if rules is not None:
            rules.remark(self.log, self._touched, self.endings.counts())
        for problem in plug_ins().problems():
            self.log.note(problem)

    def holds(self, label: str, sha256: str) -> bool:
        """Whether an earlier file has these bytes; the later one is refused then."""
        earlier = self._by_hash.get(sha256)
        if earlier is not None:
            self.log.refuse(given_twice(label, earlier))
        return earlier is not None

    def add(self, summary: ShardSummary, again: Callable[[frozenset[bytes]], ShardSummary]) -> Sequence[ListedFile]:
        """Merge the next shard, as one reading of all files would have gone on with it.

        Args:
            summary: of the shard. again: reads it knowing that some trace_ids, given by their digests, are taken.

        Returns:
            Files that must be read next.

        Raises:
            InputError: what stopped the reading of the shard.
        """
        if summary.error is not None:
            raise summary.error
        taken: frozenset[bytes] = frozenset()
        while common := self._ids.common(summary.ids):
            taken |= common
            summary = again(taken)
            if summary.error is not None:
                raise summary.error
        self._ids.add(summary.ids)
        self.files += summary.files
        self._add_log(summary.log)
        self.tally.update(summary.tally)
        self.endings.add(summary.endings)
        self._touched.update(summary.touched)
        if summary.features is not None:
            self.features.add(summary.features)
        if self.texts is not None and summary.texts is not None:
            self.texts.update(summary.texts)
        packed = None if self.runs is None else summary.packed_runs()
        if self.runs is not None and packed is not None:
            self.runs.add(packed)
        return summary.companions

    def taken_ids(self) -> frozenset[bytes]:
        """The digests of all trace_ids so far."""
        return self._ids.digests()

    def close_file(self, n_before: int, whole: ScannedFile | None, *, is_stored: bool) -> None:
        """Put the pieces of a file together on the list of files, whose first ``n_before`` were there before it."""
        parts = self.files[n_before:]
        if whole is not None and len(whole.pieces) > 1 and parts:
            n_bytes, n_records = (sum(getattr(part, name) for part in parts) for name in ("n_bytes", "n_records"))
            self.files[n_before:] = [replace(parts[0], sha256=whole.sha256, n_bytes=n_bytes, n_records=n_records)]
        if is_stored:
            self._by_hash |= {file.sha256: file for file in self.files[n_before:]}

    def _add_log(self, log: ProblemLog) -> None:
        """Only the first file whose format is not recognised is told which there are."""
        hint = format_hint()
        for i, problem in enumerate(log.problems):
            if problem.hint == hint and self._is_hinted:
                log.problems[i] = replace(problem, hint=None)
            self._is_hinted |= problem.hint == hint
        self.log.update(log)


def read_shards(
    paths: str | Path | Iterable[str | Path],
    options: ShardOptions,
    *,
    jobs: int | None = None,
    manifest: str | Path | None = None,
    prune: bool = False,
    on_progress: OnProgress = lambda progress: None,
) -> ShardedCorpus:
    """Read a corpus in shards: its files, and large native ones in pieces.

    Outcomes from files are about the corpus as a whole: with them it is one shard.

    Args:
        paths: as `open_traces` takes them. options: how they are read, and what for.
        jobs: how many processes read; None is what joblib is configured to, one by default.
        manifest: a file that lists what is known of shards from earlier readings; it is created where there is none.
            Only what is new or has changed is read then.
        prune: forget, at the end, what the manifest knows of anything that this reading did not use.
        on_progress: told after every shard.

    Raises:
        TraceError, UsageError, NothingToCheckError: as `open_traces` does; also UsageError to prune no manifest. Bad
            records are in the log alone; see `ShardedCorpus.require_usable`.
        InputError: what stopped the reading of the first shard that could not be finished.
    """
    if prune and manifest is None:
        raise UsageError("--prune needs a --manifest: it forgets what that knows of other files")
    given = [paths] if isinstance(paths, str | Path) else [*paths]
    inputs = Inputs(given)
    corpus = ShardedCorpus(options)
    if options.outcomes:
        task = ShardTask(files=tuple(inputs.files), notes=tuple(inputs.notes), options=options)
        corpus.add(summarize(task), lambda taken: summarize(replace(task, taken=taken)))
        return corpus
    corpus.begin(inputs.notes, options.endings)
    record = None if manifest is None else Manifest(manifest)
    if record is not None:
        record.require_apart(given, inputs.files)
    source = ShardSource(_distinct(inputs.files), options, jobs, record)
    try:
        _merge(corpus, inputs.files, source, on_progress)
        if record is not None and prune:
            record.prune()
    finally:
        source.close()
        if record is not None:
            record.save()
    corpus.end(options.endings)
    return corpus


def _merge(corpus: ShardedCorpus, files: Iterable[ListedFile], source: ShardSource, on_progress: OnProgress) -> None:
    queue: deque[ListedFile] = deque(files)
    opened: set[Source] = set()
    while queue:
        file = path, label = queue.popleft()
        if path is not None:
            if path.resolve() in opened:
                continue
            opened.add(path.resolve())
        scanned = source.scanned(file)
        if scanned is not None and corpus.holds(label, scanned.sha256):
            continue
        n_before = len(corpus.files)
        is_stored = path is not None and path.is_file()
        companions: list[ListedFile] = []
        for piece in source.pieces(file):
            summary = source.summary_of(piece, corpus.taken_ids)
            if scanned is None and is_stored and summary.files and corpus.holds(label, summary.files[0].sha256):
                break
            companions += corpus.add(summary, partial(source.read_again, piece))
            on_progress(source.progress(corpus.tally))
        corpus.close_file(n_before, scanned, is_stored=is_stored)
        queue.extendleft(reversed(companions))


def _distinct(files: Iterable[ListedFile]) -> list[ListedFile]:
    """The files that come first under their name; those given again are not read."""
    found: dict[Source | None, ListedFile] = {}
    for path, label in files:
        found.setdefault(None if path is None else path.resolve(), (path, label))
    return list(found.values())
