"""Shards read through joblib, which knows where: in this process, in others, or on a cluster."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import joblib

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.sharding.scan import ScannedFile, scan
from tracebridge.sharding.task import ShardTask, summarize_to_bytes

#: Small files go to a worker together: up to so many, of up to so many bytes, but so that each gets several batches.
_BATCH_FILES = 64
_BATCH_BYTES = 16 << 20
_BATCHES_EACH = 4

#: What joblib's own processes, and Dask after some more tries, raise for a worker that died.
_DEATHS = frozenset({"TerminatedWorkerError", "BrokenProcessPool", "KilledWorker"})
#: What Dask raises for work that its scheduler took along when it went.
_LOSSES = frozenset({"FutureCancelledError", "CancelledError", "ClosedClientError", "CommClosedError"})


def is_parallel(jobs: int | None) -> bool:
    """Whether more than one worker would read; None is what joblib is configured to."""
    return int(joblib.effective_n_jobs(jobs)) > 1


def read_in_parallel(tasks: Sequence[ShardTask], jobs: int | None) -> Generator[tuple[int, bytes], None, None]:
    """The summaries of shards as they are ready, each with the position of its task; closed, it reads no more.

    Raises:
        TraceError: processes that read were killed, more often than is made up for, or their cluster was lost.
    """
    run = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    largest = max(1, min(_BATCH_FILES, len(tasks) // (_BATCHES_EACH * joblib.effective_n_jobs(jobs))))
    outputs = run(joblib.delayed(summarize_to_bytes)(group) for group in _groups(tasks, largest))
    try:
        for group in outputs:
            yield from group
    except Exception as error:
        problem = _problem_of(type(error).__name__)
        if problem is None:
            raise
        raise TraceError(problem) from error
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that not all was read: an error made it needless
            outputs.close()


def _problem_of(error: str) -> Problem | None:
    """What an error of a backend says about the reading; None for one that is not of the backend."""
    if error in _DEATHS:
        message = f"a process that read traces was killed ({error})"
        hint = "was it short of memory? Read in fewer processes, or give smaller files"
    elif error in _LOSSES:
        message = f"the cluster was lost while traces were read ({error})"
        hint = "is its scheduler still there? With --manifest the reading goes on where it was"
    else:
        return None
    return Problem(location=Location(), message=message, hint=hint)


def scan_in_parallel(
    files: Sequence[tuple[Path, str]], format_name: str | None, piece_bytes: int, jobs: int | None
) -> list[ScannedFile | None]:
    """Look at files with `scan`."""
    groups = [files[start : start + _BATCH_FILES] for start in range(0, len(files), _BATCH_FILES)]
    run = joblib.Parallel(n_jobs=jobs)
    found = run(joblib.delayed(_scan_all)(group, format_name, piece_bytes) for group in groups)
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
