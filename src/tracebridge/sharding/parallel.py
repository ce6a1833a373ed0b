"""Shards read through joblib, which knows where: in this process, in others, or on a cluster."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import joblib

from tracebridge.sharding.backend import outputs
from tracebridge.sharding.scan import ScannedFile, scan
from tracebridge.sharding.task import Refusal, ShardTask, summarize_to_bytes

#: Small files go to a worker together: up to so many, of up to so many bytes, but so that each gets several batches.
_BATCH_FILES = 64
_BATCH_BYTES = 16 << 20
_BATCHES_EACH = 4


def is_parallel(jobs: int | None) -> bool:
    """Whether more than one worker would read; None is what joblib is configured to."""
    return int(joblib.effective_n_jobs(jobs)) > 1


def read_in_parallel(
    tasks: Sequence[ShardTask], jobs: int | None
) -> Generator[tuple[int, bytes | Refusal], None, None]:
    """The summaries of shards as they are ready, each with the position of its task; closed, it reads no more.

    Raises:
        TraceError: processes that read were killed, more often than is made up for, or their cluster was lost.
    """
    largest = max(1, min(_BATCH_FILES, len(tasks) // (_BATCHES_EACH * joblib.effective_n_jobs(jobs))))
    calls = [joblib.delayed(summarize_to_bytes)(group) for group in _groups(tasks, largest)]
    with closing(outputs(calls, jobs, ordered=False, doing="read traces")) as found:
        for group in found:
            yield from group


def scan_in_parallel(
    files: Sequence[tuple[Path, str]], format_name: str | None, piece_bytes: int, jobs: int | None
) -> list[ScannedFile | None]:
    """Look at files with `scan`."""
    groups = [files[start : start + _BATCH_FILES] for start in range(0, len(files), _BATCH_FILES)]
    calls = [joblib.delayed(_scan_all)(group, format_name, piece_bytes) for group in groups]
    found = outputs(calls, jobs, ordered=True, doing="looked at files")
    return [scanned for group in found for scanned in group]


def _scan_all(files: Sequence[tuple[Path, str]], format_name: str | None, piece_bytes: int) -> list[ScannedFile | None]:
    return [scan(path, label, format_name, piece_bytes) for path, label in files]


def _groups(tasks: Sequence[ShardTask], largest: int) -> Iterator[list[tuple[int, ShardTask]]]:
    group: list[tuple[int, ShardTask]] = []
    size = 0
    for number, task in enumerate(tasks):
        if group and (len(group) >= largest or size + task.n_bytes > _BATCH_BYTES):
            yield group
            group, size = [], 0
        group.append((number, task))
        size += task.n_bytes
    if group:
        yield group
