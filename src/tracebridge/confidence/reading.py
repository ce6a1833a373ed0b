"""The way in: files of deliberations and polls, in any known form, become one corpus."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tracebridge.confidence.agentverse import is_event_log, read_agentverse
from tracebridge.confidence.broadcast import BroadcastTrace
from tracebridge.confidence.broadcast_lines import read_line, unknown_key_notes
from tracebridge.confidence.corpus import ConfidenceCorpus
from tracebridge.confidence.corpus_scale import common_scale, place_of, scale_findings
from tracebridge.confidence.label_findings import label_findings, shared_problem_findings
from tracebridge.confidence.labels import LabelFiles
from tracebridge.confidence.poll_columns import check_poll_mapping, split_poll_header
from tracebridge.confidence.poll_reader import (
    has_flat_polls,
    has_nested_polls,
    read_flat_polls,
    read_nested_polls,
    with_scale,
)
from tracebridge.confidence.record_lines import record_lines
from tracebridge.confidence.score_scale import ScoreSightings
from tracebridge.errors import InputError, NothingToCheckError, Problem, TraceError
from tracebridge.traces.corpus import TraceFile
from tracebridge.traces.files import InputFile
from tracebridge.traces.inputs import Inputs, Source
from tracebridge.traces.problems import ProblemLog, shown
from tracebridge.traces.sniff import LFS_POINTER, shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from tracebridge.confidence.table import ScoreScale

Paths: TypeAlias = "str | Path | Iterable[str | Path]"


def read_confidence(
    paths: Paths,
    *,
    labels: Paths | None = None,
    mapping: Mapping[str, str] | None = None,
    scale: ScoreScale | None = None,
    skip_bad: bool = False,
    max_problems: int = 100,
) -> ConfidenceCorpus:
    """Read deliberations and polls into memory; each file's form is recognised by its content.

    Args:
        paths: files (.gz and .zst too), folders, patterns with ``*``, or ``-`` for standard input; forms may be mixed.
        labels: label files; see :mod:`tracebridge.confidence.labels`.
        mapping: for polls: field to column name, e.g. ``{"candidate": "response"}``; ``-`` says that there is none.
        scale: the scale of polls, which their files do not state; None: told from their scores.
        skip_bad: leave out records that cannot be used, and count them, instead of raising.
        max_problems: how many problems and findings are kept; all are counted.

    Raises:
        UsageError: a field in ``mapping`` that is none.
        TraceError: a path that is not there, traces on different scales, bad records without ``skip_bad``; all of them.
        InputError: scores that no one scale explains.
        NothingToCheckError: there is no trace.
    """
    check_poll_mapping(mapping or {})
    log = ProblemLog(max_problems)
    reading = _Reading(log, mapping or {}, scale)
    inputs = Inputs(_listed(paths))
    for note in inputs.notes:
        log.note(note)
    for path, label in inputs.files:
        reading.read(path, label)
    try:
        traces = reading.traces()
    except InputError as error:
        raise InputError([*log.listing(), *error.problems]) from error
    if labels is not None:
        traces = reading.labelled(traces, Inputs(_listed(labels)))
    if log.n_problems and not (skip_bad and traces):
        raise TraceError(log.listing())
    if not traces:
        raise NothingToCheckError(f"no trace in {', '.join(file.path for file in reading.files[:10])}")
    found, findings = common_scale(traces)
    told = reading.told_scale
    for finding in (
        *findings,
        *scale_findings(traces, found),
        *shared_problem_findings(traces),
        *label_findings(traces),
        *unknown_key_notes(reading.unknown_keys),
    ):
        log.note(finding)
    return ConfidenceCorpus(
        traces=tuple(traces),
        scale=found if told is None else replace(found, origin=told.origin),
        files=tuple(reading.files),
        findings=tuple(log.notes),
        problems=tuple(log.listing()),
        n_skipped=log.n_skipped,
    )


class _Reading:
    """The files of a corpus while they are read."""

    def __init__(self, log: ProblemLog, mapping: Mapping[str, str], scale: ScoreScale | None) -> None:
        self._log = log
        self._mapping = mapping
        self._given_scale = scale
        self._sightings = ScoreSightings()
        self._stated: dict[str, BroadcastTrace] = {}
        self._untold: set[str] = set()
        self.told_scale: ScoreScale | None = None
        self.unknown_keys: dict[str, int] = {}
        self.files: list[TraceFile] = []

    def read(self, path: Source | None, label: str) -> None:
        """Take the traces of a file; what is wrong goes to the log."""
        n_before = len(self._stated)
        try:
            with InputFile(path, label, mapping=self._mapping) as file:
                name = _format_of(file)
                try:
                    for trace in self._read_as(name, file):
                        self._take(trace, has_scale=name in ("broadcast", "agentverse"))
                finally:
                    n_records = len(self._stated) - n_before
                    self.files.append(_on_record(file, name, n_records))
        except TraceError as error:
            self._log.refuse(error.problems)

    def traces(self) -> list[BroadcastTrace]:
        """All traces, those of polls with the scale that was given or told from their scores.

        Raises:
            InputError: their scores are of no one scale.
        """
        if not self._untold:
            return list(self._stated.values())
        told = self._sightings.scale() if self._given_scale is None else self._sightings.on(self._given_scale)
        self.told_scale = told
        return [with_scale(trace, told) if trace.trace_id in self._untold else trace for trace in self._stated.values()]

    def labelled(self, traces: list[BroadcastTrace], inputs: Inputs) -> list[BroadcastTrace]:
        """The traces with the labels of some files."""
        labels = LabelFiles()
        for path, label in inputs.files:
            try:
                with InputFile(path, label) as file:
                    n_labels = labels.read(file, self._log)
                    self.files.append(_on_record(file, "labels", n_labels))
            except TraceError as error:
                self._log.refuse(error.problems)
        return labels.attach(traces, self._log)

    def _take(self, trace: BroadcastTrace, *, has_scale: bool) -> None:
        if trace.trace_id in self._stated:
            message = f"the name {shown(trace.trace_id)} was used by an earlier trace or item"
            self._log.refuse(Problem(location=place_of(trace), message=message, hint="is a file in there twice?"))
            return
        self._stated[trace.trace_id] = trace
        if not has_scale:
            self._untold.add(trace.trace_id)

    def _read_as(self, name: str, file: InputFile) -> Iterator[BroadcastTrace]:
        if name == "broadcast":
            return self._broadcast(file)
        if name == "agentverse":
            return read_agentverse(file, self._log)
        read = read_nested_polls if name == "nested-polls" else read_flat_polls
        return read(file, self._log, self._sightings)

    def _broadcast(self, file: InputFile) -> Iterator[BroadcastTrace]:
        for place, line in record_lines(file):
            found = read_line(line, place, self.unknown_keys)
            if isinstance(found, BroadcastTrace):
                if found.source is None:
                    where = f"{place.line}" if place.line is not None else f"{place.record}"
                    found = msgspec.structs.replace(found, source=f"{file.label}:{where}")
                yield found
            else:
                self._log.refuse(found)


def _format_of(file: InputFile) -> str:
    """The form of a file: ``broadcast``, ``nested-polls``, ``flat-polls`` or ``agentverse``.

    Raises:
        TraceError: none of them.
    """
    if file.head.startswith(LFS_POINTER):
        raise file.damaged("this is a Git LFS pointer, not the file itself", hint="run git lfs pull")
    seen = shape(file.head)
    if seen.kind in ("object", "array"):
        if "blocks" in seen.keys or {"schema", "trace_id"} <= seen.keys:
            return "broadcast"
        if has_nested_polls(seen.keys, file.mapping):
            return "nested-polls"
        if is_event_log(seen.keys):
            return "agentverse"
        if has_flat_polls(seen.keys, file.mapping):
            return "flat-polls"
    elif seen.kind == "text" and has_flat_polls(split_poll_header(seen.first_line, file.mapping)[0], file.mapping):
        return "flat-polls"
    hint = (
        "columns or keys by other names are mapped: --map item=COLUMN,agent=COLUMN,candidate=COLUMN,confidence=COLUMN"
    )
    raise file.damaged(f"these are no deliberations and no polls that are known; the file holds {seen}", hint=hint)


def _listed(paths: Paths) -> list[str | Path]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def _on_record(file: InputFile, name: str, n_records: int) -> TraceFile:
    sha256 = file.sha256()
    return TraceFile(path=file.label, format=name, sha256=sha256, n_bytes=file.n_bytes, n_records=n_records)
